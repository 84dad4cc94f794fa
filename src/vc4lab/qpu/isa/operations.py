"""Names and values of the QPU's operations, conditions, signals, packs and small immediates.

Source: VideoCore IV 3D Architecture Reference Guide, "QPU Instruction Encoding" (pp. 26-36);
reserved codes are members too, because hardware meets every code.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final


class Signal(IntEnum):
    """Bits 63:60 of every instruction."""

    BREAKPOINT = 0
    NONE = 1
    THREAD_SWITCH = 2
    PROGRAM_END = 3
    SCOREBOARD_WAIT = 4
    SCOREBOARD_UNLOCK = 5
    LAST_THREAD_SWITCH = 6
    LOAD_COVERAGE = 7
    LOAD_COLOUR = 8
    LOAD_COLOUR_END = 9
    LOAD_TMU0 = 10
    LOAD_TMU1 = 11
    LOAD_ALPHA_MASK = 12
    SMALL_IMMEDIATE = 13
    LOAD_IMMEDIATE = 14
    BRANCH = 15


END_SIGNALS: Final = frozenset({Signal.PROGRAM_END, Signal.LOAD_COLOUR_END})
LOAD_R4_SIGNALS: Final = frozenset(
    {
        Signal.LOAD_COVERAGE,
        Signal.LOAD_COLOUR,
        Signal.LOAD_COLOUR_END,
        Signal.LOAD_TMU0,
        Signal.LOAD_TMU1,
        Signal.LOAD_ALPHA_MASK,
    }
)


class AddOp(IntEnum):
    """Operations of the add ALU (bits 28:24)."""

    NOP = 0
    FADD = 1
    FSUB = 2
    FMIN = 3
    FMAX = 4
    FMINABS = 5
    FMAXABS = 6
    FTOI = 7
    ITOF = 8
    RESERVED_9 = 9
    RESERVED_10 = 10
    RESERVED_11 = 11
    ADD = 12
    SUB = 13
    SHR = 14
    ASR = 15
    ROR = 16
    SHL = 17
    MIN = 18
    MAX = 19
    AND = 20
    OR = 21
    XOR = 22
    NOT = 23
    CLZ = 24
    RESERVED_25 = 25
    RESERVED_26 = 26
    RESERVED_27 = 27
    RESERVED_28 = 28
    RESERVED_29 = 29
    V8ADDS = 30
    V8SUBS = 31

    @property
    def is_reserved(self) -> bool:
        return self.name.startswith("RESERVED")


class MulOp(IntEnum):
    """Operations of the mul ALU (bits 31:29)."""

    NOP = 0
    FMUL = 1
    MUL24 = 2
    V8MULD = 3
    V8MIN = 4
    V8MAX = 5
    V8ADDS = 6
    V8SUBS = 7


FLOAT_INPUT_ADD_OPS: Final = frozenset(
    {
        AddOp.FADD, AddOp.FSUB, AddOp.FMIN, AddOp.FMAX, AddOp.FMINABS, AddOp.FMAXABS, AddOp.FTOI,
    }
)  # fmt: skip
"""Add operations that make a regfile A unpack deliver the float form (with MulOp.FMUL)."""

ONE_OPERAND_ADD_OPS: Final = frozenset({AddOp.FTOI, AddOp.ITOF, AddOp.NOT, AddOp.CLZ})


class Condition(IntEnum):
    """Per-lane condition of an ALU result (3 bits)."""

    NEVER = 0
    ALWAYS = 1
    ZS = 2
    ZC = 3
    NS = 4
    NC = 5
    CS = 6
    CC = 7


class BranchCondition(IntEnum):
    """Condition of a branch over all lanes (bits 55:52)."""

    ALL_ZS = 0
    ALL_ZC = 1
    ANY_ZS = 2
    ANY_ZC = 3
    ALL_NS = 4
    ALL_NC = 5
    ANY_NS = 6
    ANY_NC = 7
    ALL_CS = 8
    ALL_CC = 9
    ANY_CS = 10
    ANY_CC = 11
    RESERVED_12 = 12
    RESERVED_13 = 13
    RESERVED_14 = 14
    ALWAYS = 15


class Mux(IntEnum):
    """Source of an ALU operand."""

    R0 = 0
    R1 = 1
    R2 = 2
    R3 = 3
    R4 = 4
    R5 = 5
    A = 6
    B = 7


class Unpack(IntEnum):
    """Unpack of a regfile A read (pm=0) or of r4 (pm=1); names are the assembler's."""

    NONE = 0
    H16A = 1
    H16B = 2
    B8D_REPLICATED = 3
    B8A = 4
    B8B = 5
    B8C = 6
    B8D = 7


class Pack(IntEnum):
    """Pack of a regfile A write (pm=0); with pm=1 only 0 and 3-7 have a meaning (mul result)."""

    NONE = 0
    H16A = 1
    H16B = 2
    B8_ALL = 3
    B8A = 4
    B8B = 5
    B8C = 6
    B8D = 7
    SAT32 = 8
    SAT16A = 9
    SAT16B = 10
    SAT8_ALL = 11
    SAT8A = 12
    SAT8B = 13
    SAT8C = 14
    SAT8D = 15


MUL_PACKS: Final = frozenset({0, 3, 4, 5, 6, 7})
"""Pack codes that exist with pm=1; the rest is reserved."""


class LoadMode(IntEnum):
    """Bits 59:57 of a signal-14 instruction."""

    WORD = 0
    PER_LANE_SIGNED = 1
    RESERVED_2 = 2
    PER_LANE_UNSIGNED = 3
    SEMAPHORE = 4
    RESERVED_5 = 5
    RESERVED_6 = 6
    RESERVED_7 = 7


def _small_immediate(code: int) -> int:
    if code < 16:
        return code
    if code < 32 or code >= 48:
        return ((code & 15) - 16) & 0xFFFFFFFF
    exponent = code - 32 if code < 40 else code - 48
    value: int = struct.unpack("<I", struct.pack("<f", 2.0**exponent))[0]
    return value


SMALL_IMMEDIATES: Final = tuple(_small_immediate(code) for code in range(64))
"""32-bit word that mux B delivers for each code; 48-63 (rotations) read as -16..-1."""

ROTATE_BY_R5: Final = 48
"""Small immediate code: rotate by bits 3:0 of r5 lane 0; codes 49-63 rotate by code - 48."""
