"""Words that lowered programs use, and floats as words."""

from __future__ import annotations

import struct

from vc4lab.driver.compiler.machine.code import Const

ZERO, ONE, MINUS_ONE, TWO, HALF = (
    Const(0), Const(0x3F800000), Const(0xBF800000), Const(0x40000000), Const(0x3F000000),
)  # fmt: skip
ALL = Const(0xFFFFFFFF)


def real(value: float) -> Const:
    """A float as a constant."""
    return Const(struct.unpack("<I", struct.pack("<f", value))[0])


def as_float(constant: Const) -> float:
    """The float that a constant's bits are."""
    value: float = struct.unpack("<f", struct.pack("<I", constant.word))[0]
    return value
