"""vc4asm's names of registers, operations and suffixes, over the tables of the instruction set."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from vc4lab.qpu.dialects.vc4asm.values import NO_PACKING, NOTHING, Access, Packing, Register
from vc4lab.qpu.isa.operations import AddOp, BranchCondition, Condition, LoadMode, MulOp, Signal
from vc4lab.qpu.isa.registers import ALIASES, READ_NAMES, REGFILE_SIZE, WRITE_NAMES, Write
from vc4lab.qpu.text.mnemonics import ADD_NAMES, BRANCH_NAMES, MUL_NAMES, PACK_NAMES, SIGNAL_NAMES

_OTHER_NAMES: Final = {
    "element_number": "elem_num",
    "qpu_number": "qpu_num",
    "interrupt": "irq",
    "mutex_acquire": "mutex_acq",
    "mutex_release": "mutex_rel",
    "x_pixel_coord": "x_coord",
    "y_pixel_coord": "y_coord",
    "sfu_recip": "recip",
    "sfu_recipsqrt": "recipsqrt",
    "sfu_rsqrt": "recipsqrt",
    "sfu_exp": "exp",
    "sfu_log": "log",
    "tlb_alpha_mask": "tlbam",
    "tlb_colour_all": "tlbc",
    "tlb_color_all": "tlbc",
    "tlb_colour_ms": "tlbm",
    "tlb_color_ms": "tlbm",
    "tlb_z": "tlbz",
    "uniform_read": "unif",
    "uni_addr": "unif_addr",
    "uni_addr_rel": "unif_addr_rel",
    "varying_read": "vary",
    "vary_rd": "vary",
    "vpm_ld_addr": "vr_addr",
    "vpm_ld_busy": "vr_busy",
    "vpm_ld_wait": "vr_wait",
    "vpm_st_addr": "vw_addr",
    "vpm_st_busy": "vw_busy",
    "vpm_st_wait": "vw_wait",
    "vpmvcd_rd_setup": "vr_setup",
    "vpmvcd_wr_setup": "vw_setup",
    **{f"tmu{unit}_{name}": f"t{unit}{name}" for unit in range(2) for name in "strb"},
}


def _registers() -> dict[str, Register]:
    found: dict[str, tuple[int, Access]] = {}
    for names, use in ((READ_NAMES, Access.READ), (WRITE_NAMES, Access.WRITE)):
        for file, side in (("a", Access.A), ("b", Access.B)):
            for address in range(REGFILE_SIZE, 64):
                name = names[file][address]
                number, access = found.get(name, (address, Access(0)))
                if number == address:
                    found[name] = number, access | use | side
    for number in range(4):  # read through a mux, so that only writing has an address
        found[f"r{number}"] = Write.ACC0 + number, Access.AB | Access.WRITE
    found["r4"] = Write.TMU_NOSWAP, Access.AB | Access.WRITE
    found["r5"] = Write.ACC5, Access.AB
    found["mutex_acq"] = Write.MUTEX_RELEASE, Access.AB | Access.READ
    found["mutex_rel"] = Write.MUTEX_RELEASE, Access.AB | Access.WRITE
    found["vpm_read"] = Write.VPM, Access.AB | Access.READ
    found["vpm_write"] = Write.VPM, Access.AB | Access.WRITE
    registers = {name: Register(number, access) for name, (number, access) in found.items()}
    registers["-"] = NOTHING
    for file, side in (("a", Access.A), ("b", Access.B)):
        for number in range(64):
            use = Access.READ | Access.WRITE
            registers[f"r{file}{number}"] = Register(number, side | use)
    for number in range(16):
        registers[f"sacq{number}"] = Register(number, Access.ACQUIRE)
        registers[f"srel{number}"] = Register(number, Access.RELEASE)
    known = {key: name for key, name in ALIASES.items() if key not in ("w", "z")}
    for alias, name in {**known, **_OTHER_NAMES}.items():
        registers[alias] = registers[name]
    del registers["-"]  # an operator; expressions give it its meaning
    return registers


REGISTERS: Final = _registers()
"""Name -> register. `r4` can be written: as address 36, which is `tmurs`."""

_FOR_BOTH: Final = ("v8adds", "v8subs")

ADD_OPERATIONS: Final = {
    name: op for op, name in ADD_NAMES.items() if op and not op.is_reserved and name not in _FOR_BOTH
} | {"anop": AddOp.NOP, "av8adds": AddOp.V8ADDS, "av8subs": AddOp.V8SUBS, "nop": AddOp.NOP}
MUL_OPERATIONS: Final = {name: op for op, name in MUL_NAMES.items() if op} | {
    "mnop": MulOp.NOP,
    "mv8adds": MulOp.V8ADDS,
    "mv8subs": MulOp.V8SUBS,
}
FIXED_ALU: Final = frozenset({"anop", "mnop", "av8adds", "av8subs", "mv8adds", "mv8subs"})
"""Operations whose names say which ALU does them."""
ON_OTHER_ALU: Final = {AddOp.NOP: MulOp.NOP, AddOp.V8ADDS: MulOp.V8ADDS, AddOp.V8SUBS: MulOp.V8SUBS}

SIGNALS: Final = {name: signal for signal, name in SIGNAL_NAMES.items() if signal != Signal.NONE} | {
    "break": Signal.BREAKPOINT,
    "tend": Signal.PROGRAM_END,
    "tswitch": Signal.THREAD_SWITCH,
    "lswitch": Signal.LAST_THREAD_SWITCH,
    "waitscb": Signal.SCOREBOARD_WAIT,
    "unlscb": Signal.SCOREBOARD_UNLOCK,
    "ldcoend": Signal.LOAD_COLOUR_END,
    "ldcotlb": Signal.LOAD_COLOUR,
    "ldcvtlb": Signal.LOAD_COVERAGE,
    "ldaltlb": Signal.LOAD_ALPHA_MASK,
}

MOVES: Final = ("mov", "amov", "mmov")
LOADS: Final = {
    "ldi": LoadMode.WORD,
    "ldipes": LoadMode.PER_LANE_SIGNED,
    "ldipeu": LoadMode.PER_LANE_UNSIGNED,
    "sacq": LoadMode.SEMAPHORE,
    "srel": LoadMode.SEMAPHORE,
}
BRANCHES: Final = {"bra": 0, "brr": 1}
OPERATIONS: Final = frozenset({*ADD_OPERATIONS, *MUL_OPERATIONS, *SIGNALS, *MOVES, *LOADS, *BRANCHES, "read"})

_SHORT_CONDITIONS: Final = {
    "z": Condition.ZS, "zs": Condition.ZS, "nz": Condition.ZC, "zc": Condition.ZC,
    "n": Condition.NS, "ns": Condition.NS, "nn": Condition.NC, "nc": Condition.NC,
    "c": Condition.CS, "cs": Condition.CS, "cc": Condition.CC,
}  # fmt: skip
CONDITIONS: Final = {f"if{name}": value for name, value in _SHORT_CONDITIONS.items()} | {
    "never": Condition.NEVER
}
"""After an operation; `.ifnc` is "not negative", as AG100's `nc`."""
TARGET_CONDITIONS: Final = CONDITIONS | _SHORT_CONDITIONS
"""After a destination, where the short names are possible too."""

BRANCH_CONDITIONS: Final = {name: condition for condition, name in BRANCH_NAMES.items() if name.isalpha()} | {
    f"{quantor}{flag}{state}": BranchCondition[f"{quantor.upper()}_{flag.upper()}{state.upper()}"]
    for quantor in ("all", "any")
    for flag in "c"
    for state in "sc"
}

_PACKING: Final = re.compile(
    r"(?P<request>pack|unpack|)(?P<part>32|16a|16b|8888|8abcd|8a|8b|8c|8d)"
    r"(?P<dupe>dupe|)(?P<clamp>clamp|)(?P<saturates>s|)(?P<kind>[if]|)"
)
_REPLICATED: Final = re.compile(r"(?:unpack)?8dr")
_CODES: Final = {name: int(code) for code, name in PACK_NAMES.items() if code < 8 and name} | {
    "32": 0,
    "8888": 3,
}


@lru_cache(maxsize=256)
def packing_of(name: str) -> Packing | None:
    """The pack or unpack that a suffix means; None if it is none."""
    if _REPLICATED.fullmatch(name):
        return Packing(3, request="unpack")
    match = _PACKING.fullmatch(name)
    if match is None or (match["dupe"] and match["part"] != "8d"):
        return None
    part, kind = match["part"], match["kind"]
    whole = part in ("8888", "8abcd") or bool(match["dupe"])
    code = 3 if whole else _CODES[part]
    saturates = bool(match["saturates"] or match["clamp"])
    if part == "32":
        saturates = saturates or bool(kind)
        if not saturates:
            return NO_PACKING
    request = match["request"]
    if request == "unpack":
        if saturates or (whole and not match["dupe"]):
            return None
        return Packing(code, kind=kind, request=request)
    if not request:
        if kind == "f" and code >= 4 and not saturates:
            request = "unpack"  # there is no such pack
        elif (saturates and not kind) or match["clamp"] or whole or part == "32":
            request = "pack" if not match["dupe"] or match["clamp"] else ""
    if (match["clamp"] and part in ("16a", "16b")) or part == "32":
        kind = kind or "i"
    return Packing(code, saturates, kind, request)


def suffixes() -> tuple[str, ...]:
    """List the suffixes that an operation can have, for messages."""
    packs = ("pack8a", "pack16a", "unpack8a", "unpack16a")
    return (*CONDITIONS, "setf", *packs, *BRANCH_CONDITIONS)
