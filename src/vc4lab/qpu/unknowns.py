"""What nobody has documented about the QPU: one row per choice, each with the alternatives and what
would decide it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from vc4lab.diagnostics.unknown import Unknown


class Settings(Protocol):
    """Anything that answers `settings[name]` with the chosen alternative (a dict, or the table of
    all unknowns).
    """

    def __getitem__(self, name: str, /) -> str: ...


@dataclass(frozen=True)
class QpuUnknown:
    """One undocumented behaviour: the question, the choices, the one taken, and what would settle
    it.
    """

    name: str
    question: str
    choices: tuple[str, ...]
    default: str
    decided_by: str
    reference: str


def _row(name: str, question: str, choices: str, decided_by: str, reference: str) -> QpuUnknown:
    parts = tuple(choices.split())
    return QpuUnknown(name, question, parts, parts[0], decided_by, reference)


# The first choice is the default.
UNKNOWNS: tuple[QpuUnknown, ...] = (
    _row(
        "sf_with_never",
        "Which ALU sets the flags when the add op is not NOP but its condition is 'never'?",
        "add mul",
        "an instruction with sf, cond_add never and a mul op on a chip",
        "QPU ISA 4.4: the guide says mul, vc4asm's measurement says add",
    ),
    _row(
        "branch_register_lane",
        "Which lane gives the target of a register branch?",
        "15 0",
        "a branch by a register whose lanes differ",
        "QPU ISA 4.12: guide lane 0, vc4asm measured lane 15",
    ),
    _row(
        "mul24_carry",
        "When does mul24 set C?",
        "over-32-bits over-24-bits",
        "mul24 with sf and products between 2^24 and 2^32",
        "QPU ISA 4.7: VC4C against the text of vc4asm",
    ),
    _row(
        "fmul_carry",
        "Does fmul set C like fadd (result > 0)?",
        "zero positive",
        "fmul with sf, op_add NOP, positive result",
        "QPU ISA 4.7",
    ),
    _row(
        "half_rounding",
        "How does the float to half pack round?",
        "away nearest truncate",
        "packing 0x3F800001 to 16a",
        "QPU ISA 4.9: VC4C's author reports away from zero; the table only refutes truncation",
    ),
    _row(
        "colour_rounding",
        "How does the mul ALU's colour pack round f*255?",
        "nearest truncate",
        "packing 0.5/255 and 254.6/255 to a byte",
        "QPU ISA 4.9: VC4C truncates, py-videocore accepts +-1",
    ),
    _row(
        "recip_one",
        "Is the SFU reciprocal of +-1.0 exact?",
        "exact model",
        "reading recip(1.0) on a chip",
        "QPU ISA 4.16: chip prints of 1/(1/1.0)",
    ),
    _row(
        "register_after_write",
        "What does a register-file read give in the instruction after its write?",
        "old new",
        "two adjacent instructions on a chip",
        "QPU ISA 4.19 rule 7",
    ),
    _row(
        "thread_switch_registers",
        "What becomes of r0-r3 and the flags at a thread switch?",
        "kept zero",
        "two-thread shader reading r0 after the switch",
        "QPU ISA 4.13 (lost; the contents are undefined)",
    ),
    _row(
        "ftoi_out_of_range",
        "What does ftoi give for |x| >= 2^31, Inf and NaN?",
        "zero saturate",
        "ftoi of FLT_MAX on a chip",
        "QPU ISA 4.6: VC4C's table says 0, its text INT_MIN",
    ),
    _row(
        "infinity_order",
        "Which operand's infinity wins in fadd when both have exponent 255?",
        "b-first a-first",
        "fadd of a NaN and an infinity of the other sign",
        "QPU ISA 4.8",
    ),
    _row(
        "unmapped_read",
        "What does reading an unmapped register address give?",
        "element zero",
        "reading A 33 and B 33 on a chip",
        "QPU ISA 4.11 notes: the guide says lane number / QPU number",
    ),
    _row(
        "peripheral_unpack",
        "Does the regfile-A unpack also apply to peripherals read through A?",
        "unpack raw",
        "unpacking a uniform on a chip",
        "QPU ISA 4.9",
    ),
    _row(
        "uniforms_address_b",
        "Is a write to address 40 of the B space an address relative to the pointer?",
        "absolute relative",
        "writing UNIFORMS_ADDRESS from the mul ALU",
        "QPU ISA 4.11: hermanhermitage calls B 40 unif_addr_rel",
    ),
    _row(
        "load_immediate_condition",
        "Which condition gates the flags of a load immediate when cond_add is 'never'?",
        "add mul-if-never",
        "ldi with sf, cond_add never, cond_mul always",
        "QPU ISA 4.4 (VC4C: cond_mul)",
    ),
    _row(
        "mul_nop_result",
        "What does a mul NOP with a write address write?",
        "last-quad-3 nothing",
        "reported by VC4C's author",
        "QPU ISA 4.7",
    ),
    _row(
        "same_destination",
        "Which result survives when both ALUs write the same accumulator?",
        "mul add",
        "both ALUs writing r0 on a chip",
        "QPU ISA 4.2 (undefined; mul for the VPM)",
    ),
    _row(
        "underflow_sign",
        "What is the sign of a negative float result below 2^-126?",
        "plus",
        "fmul of 0x80800000 by 0.5 on a chip",
        "QPU ISA 4.8 (not measured)",
    ),
)

DEFAULTS: Mapping[str, str] = MappingProxyType({row.name: row.default for row in UNKNOWNS})

# The same rows as `vc4lab unknowns` prints them (v3d/unknowns.py collects them).
ROWS = [
    Unknown(
        row.name,
        row.question,
        {choice: choice for choice in row.choices},
        row.default,
        row.decided_by,
        row.reference,
    )
    for row in UNKNOWNS
]
