"""Undocumented behaviour of the QPU: one row per choice, and what would decide it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from vc4lab.diagnostics.unknown import Unknown

__all__ = ["DEFAULTS", "QPU_UNKNOWNS", "Settings"]


class Settings(Protocol):
    """Anything that answers `settings[name]` with a choice: a dict, or all switches."""

    def __getitem__(self, name: str, /) -> str: ...


QPU_UNKNOWNS = [
    Unknown(
        "sf_with_never",
        "Which ALU sets the flags when the add op is not NOP but its condition is 'never'?",
        {"add": "the add ALU: nothing changes", "mul": "the mul ALU"},
        "add",
        "An instruction with sf, cond_add never and a mul op on a chip.",
        "hardware reference 4.4: the guide says mul, vc4asm's measurement says add",
    ),
    Unknown(
        "branch_register_lane",
        "Which lane gives the target of a register branch?",
        {"15": "lane 15", "0": "lane 0"},
        "15",
        "A branch by a register whose lanes differ.",
        "hardware reference 4.12: guide lane 0, vc4asm measured lane 15",
    ),
    Unknown(
        "mul24_carry",
        "When does mul24 set C?",
        {
            "over-32-bits": "the product needs more than 32 bits",
            "over-24-bits": "the product needs more than 24 bits",
        },
        "over-32-bits",
        "Mul24 with sf and products between 2^24 and 2^32.",
        "hardware reference 4.7: VC4C against the text of vc4asm",
    ),
    Unknown(
        "fmul_carry",
        "Does fmul set C like fadd (result > 0)?",
        {"zero": "no, C is clear", "positive": "yes"},
        "zero",
        "Fmul with sf, op_add NOP, positive result.",
        "hardware reference 4.7",
    ),
    Unknown(
        "half_rounding",
        "How does the float to half pack round?",
        {
            "away": "away from zero if any bit is lost",
            "nearest": "to nearest, ties to even",
            "truncate": "toward zero",
        },
        "away",
        "Packing 0x3F800001 to 16a.",
        "hardware reference 4.9: VC4C reports away from zero; its table only refutes truncation",
    ),
    Unknown(
        "colour_rounding",
        "How does the mul ALU's colour pack round f*255?",
        {"nearest": "to nearest", "truncate": "toward zero"},
        "nearest",
        "Packing 0.5/255 and 254.6/255 to a byte.",
        "hardware reference 4.9: VC4C truncates, py-videocore accepts +-1",
        "piglit's arb_framebuffer_srgb, blit renderbuffer srgb_to_linear downsample enabled render, passes "
        "on a Raspberry Pi 3 and fails with `truncate`; vc4asm's evaluation of constants rounds to "
        "nearest, too",
    ),
    Unknown(
        "mul_pack_bit_3",
        "What do the mul ALU's packs 8 to 15 (pm=1), which are reserved?",
        {
            "ignored": "the same as 0 to 7: 12 to 15 put a colour byte into byte a to d",
            "no_pack": "nothing: the 32-bit result is written",
        },
        "ignored",
        "A fragment shader whose colours go through packs 12 to 15, on a chip.",
        "hardware reference 4.9: reserved",
        "kumaashi's Sample_V3D_04, whose shaders make colours by packs 12 to 15, shows plain colours in its "
        "author's capture of a Pi Zero's screen; vc4asm assembles `mov r3.8a, r0` with pack 12 (`.8as` "
        "with 4), and its evaluation of constants looks at the lower three bits",
    ),
    Unknown(
        "recip_one",
        "Is the SFU reciprocal of +-1.0 exact?",
        {"exact": "yes, 1/1 is 1", "model": "no, 0x3F7FFC00 as the tables give"},
        "exact",
        "Reading recip(1.0) on a chip.",
        "hardware reference 4.16: chip prints of 1/(1/1.0)",
        "tests of piglit and dEQP-GLES2 that pass on Raspberry Pi 3 boards fail without it",
    ),
    Unknown(
        "register_after_write",
        "What does a register-file read give in the instruction after its write?",
        {"old": "the value from before the write", "new": "the written value"},
        "old",
        "Two adjacent instructions on a chip.",
        "hardware reference 4.19 rule 7",
    ),
    Unknown(
        "thread_switch_registers",
        "What becomes of r0-r3 and the flags at a thread switch?",
        {"kept": "they stay", "zero": "they become 0"},
        "kept",
        "Two-thread shader reading r0 after the switch.",
        "hardware reference 4.13 (lost; the contents are undefined)",
    ),
    Unknown(
        "ftoi_out_of_range",
        "What does ftoi give for |x| >= 2^31, Inf and NaN?",
        {
            "modulo": "the low 32 bits of the integer, negative ones negated; Inf and NaN 0",
            "zero": "0",
            "saturate": "0x7FFFFFFF or 0x80000000",
        },
        "modulo",
        "Ftoi of FLT_MAX and of 4294966784.0 on a chip.",
        "hardware reference 4.6: VC4C's table says 0 for FLT_MAX, its text INT_MIN",
        "recorded run div_int: Mesa divides integers by a reciprocal times 4294966784.0; all 144 "
        "`div` tests of dEQP-GLES2 pass on Raspberry Pi 3 boards, and here only with this choice",
    ),
    Unknown(
        "infinity_order",
        "Which operand's infinity wins in fadd when both have exponent 255?",
        {"b-first": "the second operand's", "a-first": "the first operand's"},
        "b-first",
        "Fadd of a NaN and an infinity of the other sign.",
        "hardware reference 4.8",
    ),
    Unknown(
        "unmapped_read",
        "What does reading an unmapped register address give?",
        {"element": "lane number (A) or QPU number (B)", "zero": "0"},
        "element",
        "Reading A 33 and B 33 on a chip.",
        "hardware reference 4.11 notes: the guide says lane number / QPU number",
    ),
    Unknown(
        "peripheral_unpack",
        "Does the regfile-A unpack also apply to peripherals read through A?",
        {"unpack": "yes", "raw": "no"},
        "unpack",
        "Unpacking a uniform on a chip.",
        "hardware reference 4.9",
    ),
    Unknown(
        "uniforms_address_b",
        "Is a write to address 40 of the B space an address relative to the pointer?",
        {"absolute": "no, an address like in the A space", "relative": "yes"},
        "absolute",
        "Writing UNIFORMS_ADDRESS from the mul ALU.",
        "hardware reference 4.11: hermanhermitage calls B 40 unif_addr_rel",
    ),
    Unknown(
        "uniforms_address_condition",
        "Which lanes' condition decides whether a write of UNIFORMS_ADDRESS moves the pointer?",
        {
            "lane-0": "that of lane 0, whose value it takes, as with r5 and REV_FLAG",
            "ignored": "none: it always moves",
        },
        "lane-0",
        "A conditional write whose condition fails, and what the next uniform is.",
        "hardware reference 4.11, 4.14",
    ),
    Unknown(
        "load_immediate_condition",
        "Which condition gates the flags of a load immediate when cond_add is 'never'?",
        {"add": "cond_add: no flag changes", "mul-if-never": "cond_mul"},
        "add",
        "Ldi with sf, cond_add never, cond_mul always.",
        "hardware reference 4.4 (VC4C: cond_mul)",
    ),
    Unknown(
        "mul_nop_result",
        "What does a mul NOP with a write address write?",
        {"last-quad-3": "every quad gets quad 3 of the last mul result", "nothing": "nothing"},
        "last-quad-3",
        "Reported by VC4C's author.",
        "hardware reference 4.7",
    ),
    Unknown(
        "same_destination",
        "Which result survives when both ALUs write the same accumulator?",
        {"mul": "the mul ALU's", "add": "the add ALU's"},
        "mul",
        "Both ALUs writing r0 on a chip.",
        "hardware reference 4.2 (undefined; mul for the VPM)",
    ),
    Unknown(
        "underflow_sign",
        "What is the sign of a negative float result below 2^-126?",
        {"plus": "positive: the result is +0", "kept": "negative: the result is -0"},
        "plus",
        "Fmul of 0x80800000 by 0.5 on a chip.",
        "hardware reference 4.8 (not measured)",
    ),
    Unknown(
        "uniform_read_twice",
        "How many words does an instruction take that reads a uniform, a varying or the VPM "
        "through A and through B?",
        {"one": "one, for both", "two": "two: A has the first one, B the second"},
        "one",
        "Run such an instruction and read the next uniform.",
        "Linux and VC4C count one uniform; hardware reference 4.11, 4.19 rule 24",
    ),
    Unknown(
        "r5_write_condition",
        "Which condition gates a write of r5 through the A space?",
        {
            "lane-0": "that of lane 0 of each quad, for the quad",
            "any": "that of any of its lanes, for the quad",
            "each": "that of each lane, for the lane",
        },
        "lane-0",
        "Write r5 with a condition that differs inside a quad.",
        "hardware reference 4.11 notes",
    ),
    Unknown(
        "float_pack_32",
        "What does pack 8 (32 bits, saturated) do with a float result?",
        {"as-is": "nothing", "finite": "infinities become the largest number of their sign"},
        "as-is",
        "Pack 8 of an fadd that overflows.",
        "hardware reference 4.9",
    ),
    Unknown(
        "mutex_read",
        "Which word does a read of MUTEX_ACQUIRE give?",
        {"element": "the lane number", "constant": "0xFC2FF000"},
        "element",
        "Acquire the mutex and store what was read.",
        "AG100-R says unmapped-read data, VC4C's author saw the constant; hardware reference 4.11",
    ),
    Unknown(
        "dma_busy_read",
        "Which word does a read of VPM_LD_BUSY or VPM_ST_BUSY give?",
        {"status": "0 when the DMA is idle (here it always is)", "unmapped": "that of an unmapped address"},
        "status",
        "Read it with no DMA in progress.",
        "AG100-R against what VC4C's author saw; hardware reference 4.11, 5.6",
    ),
    Unknown(
        "rotation_order",
        "Do condition and flags of a rotated mul result belong to its lanes before or after?",
        {
            "first": "rotated first: flags are set, and lanes written, where the result arrives",
            "last": "rotated last: flags are set, and lanes chosen, where it was computed",
        },
        "first",
        "A rotation by 1 with sf, and one with a condition that holds in one lane.",
        "hardware reference 4.10",
    ),
]

DEFAULTS: Mapping[str, str] = MappingProxyType({row.name: row.default for row in QPU_UNKNOWNS})
"""The choices made unless others are asked for."""
