"""The VPU's floating-point operations: single precision, rounded to nearest even."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

from vc4lab.soc.videocore.vpu.operations import SIGN, WORD, signed

FCMP = 4
NAMES = (
    "fadd", "fsub", "fmul", "fdiv", "fcmp", "fabs", "frsub", "fmax",
    "frcp", "frsqrt", "fnmul", "fmin", "fceil", "ffloor", "flog2", "fexp2",
)  # fmt: skip
"""By number."""
UNARY = frozenset({5, 8, 9, 12, 13, 14, 15})
"""Those that look at their right operand only."""
REFUSED = {5: "a compiler's author found that it does not do what its name says"}
CONVERSIONS = ("ftrunc", "floor", "flts", "fltu")
SHIFTED = ("sasl", "sasl", "sasr", "sasr")
"""How the third operand of a conversion is written: a shift of the number without a point."""
LARGEST_SHIFT = 512
"""Further than any single-precision number can be shifted without becoming 0 or infinite."""
_FLOAT, _INT = struct.Struct("<f"), struct.Struct("<I")


def value_of(word: int) -> float:
    """The number whose single-precision pattern is `word`."""
    return float(_FLOAT.unpack(_INT.pack(word))[0])


def pattern_of(value: float) -> int:
    """The single-precision pattern nearest to `value`."""
    try:
        raw = _FLOAT.pack(value)
    except OverflowError:
        raw = _FLOAT.pack(math.copysign(math.inf, value))
    return int(_INT.unpack(raw)[0])


def small_float(number: int) -> float:
    """A 6-bit immediate as sign, three bits of exponent (bias 3) and two of fraction."""
    exponent, fraction = number >> 2 & 7, number & 3
    value = math.ldexp(4 + fraction, exponent - 5) if exponent else 0.0
    return -value if number & 0x20 else value


def _divide(a: float, b: float) -> float:
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _multiply(a: float, b: float) -> float:
    return a * b


def _root(value: float) -> float:
    if math.isnan(value) or value < 0:
        return math.nan
    return _divide(1.0, math.sqrt(value))


def _log2(value: float) -> float:
    if value == 0:
        return -math.inf
    return math.log2(value) if value > 0 else math.nan


def _exp2(value: float) -> float:
    if math.isnan(value):
        return value
    return math.exp2(max(-LARGEST_SHIFT, min(value, LARGEST_SHIFT)))


def _whole(rounded: Callable[[float], int], value: float) -> float:
    return math.copysign(rounded(value), value) if math.isfinite(value) else value


FUNCTIONS: tuple[Callable[[float, float], float], ...] = (
    lambda a, b: a + b,
    lambda a, b: a - b,
    _multiply,
    _divide,
    lambda a, b: a,
    lambda a, b: b,
    lambda a, b: b - a,
    lambda a, b: a if a >= b else b,
    lambda a, b: _divide(1.0, b),
    lambda a, b: _root(b),
    lambda a, b: -(a * b),
    lambda a, b: a if a <= b else b,
    lambda a, b: _whole(math.ceil, b),
    lambda a, b: _whole(math.floor, b),
    lambda a, b: _log2(b),
    lambda a, b: _exp2(b),
)
"""By number; `fcmp` and `fabs` do not come here."""


def _shifted(value: float, shift: int) -> float:
    """value · 2^shift."""
    return math.ldexp(value, max(-LARGEST_SHIFT, min(shift, LARGEST_SHIFT)))


def convert(number: int, word: int, shift: int, saturate: bool) -> int:
    """The result of a conversion: float → int with `shift` to the left, int → float to the right.

    `saturate`: what is too large becomes the largest integer; otherwise its low 32 bits are left.
    Infinity and NaN become the largest (smallest) integer and 0.
    """
    if number >= 2:
        return pattern_of(_shifted(float(signed(word) if number == 2 else word), -shift))
    value = _shifted(value_of(word), shift)
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return SIGN if value < 0 else SIGN - 1
    whole = math.floor(value) if number == 1 else math.trunc(value)
    if saturate:
        whole = max(-SIGN, min(whole, SIGN - 1))
    return whole & WORD
