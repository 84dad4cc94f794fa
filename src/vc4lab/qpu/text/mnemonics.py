"""Spellings of operations, conditions, packs and signals, shared by assembler and disassembler.

The names are those of hermanhermitage's qpuasm.js, plus a few aliases of other tools.
"""

from __future__ import annotations

from typing import Final

from vc4lab.qpu.isa.operations import (
    ONE_OPERAND_ADD_OPS,
    AddOp,
    BranchCondition,
    Condition,
    MulOp,
    Pack,
    Signal,
    Unpack,
)
from vc4lab.qpu.isa.registers import ALIASES, READ_NAMES, WRITE_NAMES

ADD_NAMES: Final = {op: op.name.lower() for op in AddOp} | {
    op: f"addop{int(op)}" for op in AddOp if op.is_reserved
}
MUL_NAMES: Final = {op: op.name.lower() for op in MulOp}

ADD_OPS: Final = {name: op for op, name in ADD_NAMES.items()} | {"mov": AddOp.OR}
MUL_OPS: Final = {name: op for op, name in MUL_NAMES.items()} | {"mov": MulOp.V8MIN}
LOADS: Final = ("ldi", "li", "load_imm")
SEMAPHORES: Final = {"sacq": 1, "srel": 0}
"""Name -> the bit that means decrement."""
BRANCHES: Final = {"bra": 0, "brr": 1}
"""Name -> whether the target counts from the branch."""
ONE_OPERAND: Final = frozenset({"mov", *(ADD_NAMES[op] for op in ONE_OPERAND_ADD_OPS)})

SIGNAL_NAMES: Final = {
    Signal.BREAKPOINT: "bkpt",
    Signal.NONE: "nop",
    Signal.THREAD_SWITCH: "thrsw",
    Signal.PROGRAM_END: "thrend",
    Signal.SCOREBOARD_WAIT: "sbwait",
    Signal.SCOREBOARD_UNLOCK: "sbdone",
    Signal.LAST_THREAD_SWITCH: "lthrsw",
    Signal.LOAD_COVERAGE: "loadcv",
    Signal.LOAD_COLOUR: "loadc",
    Signal.LOAD_COLOUR_END: "ldcend",
    Signal.LOAD_TMU0: "ldtmu0",
    Signal.LOAD_TMU1: "ldtmu1",
    Signal.LOAD_ALPHA_MASK: "loadam",
}
SIGNALS: Final = {name: signal for signal, name in SIGNAL_NAMES.items()} | {
    "end": Signal.PROGRAM_END,
    "bpt": Signal.BREAKPOINT,
    "loadc_end": Signal.LOAD_COLOUR_END,
}

FURTHER: Final = ("read", "with", "pm0", "pm1")
"""Words that may stand in a slot after the operations."""

OPERATION_NAMES: Final = tuple(
    name
    for name in (*ADD_OPS, *MUL_OPS, *SIGNALS, *LOADS, *SEMAPHORES, *BRANCHES, "read", "with", "pm0", "pm1")
    if not name.startswith("addop")
)
"""Operations that a programmer may write: not the reserved codes, which have names as well."""

CONDITION_NAMES: Final = {c: "" if c == Condition.ALWAYS else c.name.lower() for c in Condition}
CONDITIONS: Final = {name: c for c, name in CONDITION_NAMES.items() if name}

BRANCH_NAMES: Final = {
    BranchCondition.ALL_ZS: "allz",
    BranchCondition.ALL_ZC: "allnz",
    BranchCondition.ANY_ZS: "anyz",
    BranchCondition.ANY_ZC: "anynz",
    BranchCondition.ALL_NS: "alln",
    BranchCondition.ALL_NC: "allnn",
    BranchCondition.ANY_NS: "anyn",
    BranchCondition.ANY_NC: "anynn",
    BranchCondition.ALL_CS: "allc",
    BranchCondition.ALL_CC: "allnc",
    BranchCondition.ANY_CS: "anyc",
    BranchCondition.ANY_CC: "anync",
    BranchCondition.RESERVED_12: "cc12",
    BranchCondition.RESERVED_13: "cc13",
    BranchCondition.RESERVED_14: "cc14",
    BranchCondition.ALWAYS: "",
}
BRANCH_CONDITIONS: Final = {name: c for c, name in BRANCH_NAMES.items() if name} | {
    c.name.lower(): c for c in BranchCondition if "_" in c.name and "RESERVED" not in c.name
}
BRANCH_CONDITION_NAMES: Final = tuple(name for name in BRANCH_NAMES.values() if name.isalpha())
"""Conditions that a programmer may write after `brr.` and `bra.`."""

PACK_NAMES: Final = {
    Pack.NONE: "",
    Pack.H16A: "16a",
    Pack.H16B: "16b",
    Pack.B8_ALL: "8abcd",
    Pack.B8A: "8a",
    Pack.B8B: "8b",
    Pack.B8C: "8c",
    Pack.B8D: "8d",
    Pack.SAT32: "s",
    Pack.SAT16A: "16as",
    Pack.SAT16B: "16bs",
    Pack.SAT8_ALL: "8abcds",
    Pack.SAT8A: "8as",
    Pack.SAT8B: "8bs",
    Pack.SAT8C: "8cs",
    Pack.SAT8D: "8ds",
}
PACKS: Final = {name: pack for pack, name in PACK_NAMES.items() if name} | {"8888": Pack.B8_ALL}

UNPACK_NAMES: Final = {
    Unpack.NONE: "",
    Unpack.H16A: "16a",
    Unpack.H16B: "16b",
    Unpack.B8D_REPLICATED: "8dr",
    Unpack.B8A: "8a",
    Unpack.B8B: "8b",
    Unpack.B8C: "8c",
    Unpack.B8D: "8d",
}
UNPACKS: Final = {name: unpack for unpack, name in UNPACK_NAMES.items() if name}


def _by_name(names: dict[str, tuple[str, ...]]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for file, row in names.items():
        for address, name in enumerate(row):
            found.setdefault(name, {})[file] = address
            found.setdefault(f"r{file}{address}", {})[file] = address
    for alias, name in ALIASES.items():
        if name in found:
            found[alias] = found[name]
    return found


READ_REGISTERS: Final = _by_name(READ_NAMES)
"""Register name -> {file: read address}; ``ra32`` … name an address of one file directly."""

WRITE_REGISTERS: Final = _by_name(WRITE_NAMES)
"""Register name -> {address space: write address}."""

ACCUMULATORS: Final = {f"r{number}": number for number in range(6)}
