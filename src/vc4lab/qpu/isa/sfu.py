"""The special function unit: reciprocal, 1/sqrt, log2 and exp2 as the chip's tables give them.

Source: Broadcom's model of the unit, compared with values that chips printed (hardware reference
4.16).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from vc4lab.qpu.isa.ops import Ops, Word
from vc4lab.qpu.isa.qpu_unknowns import DEFAULTS, Settings


class Table(NamedTuple):
    """16 segments of a quadratic: constant, slope and curvature coefficients."""

    c0: tuple[int, ...]
    c1: tuple[int, ...]
    c2: tuple[int, ...]


def _table(c0: str, c1: str, c2: str) -> Table:
    parsed = [tuple(int(word, 16) for word in text.split()) for text in (c0, c1, c2)]
    return Table(*parsed)


RECIP = _table(
    "7ffc 70ee 638c 5792 4ccb 430b 3a2e 3215 2aaa 23d6 1d8a 17b4 1249 0d3e 0889 0421",
    "f0b d60 bf8 ac5 9bf 8dc 818 76a 6d3 64c 5d6 56b 50b 4b5 468 421",
    "1d 18 15 12 0f 0d 0c 0a 09 08 07 06 06 05 05 04",
)
RSQRT = _table(
    "7ffb 7158 64f6 5a4f 5104 48d2 4184 3af4 3501 2aa8 21e7 1a5f 13cc 0e00 08d5 0433",
    "e9e c5f aa5 949 831 74d 68f 5ef a56 8bf 787 692 5cb 52a 4a2 433",
    "29 1f 18 13 10 0d 0b 09 1d 16 11 0e 0b 09 08 07",
)
LOG2 = _table(
    "7fff 74cd 6a3f 6043 56cb 4dc9 4531 3cfc 3520 2d96 2658 1f60 18a9 122e 0beb 05dd",
    "b31 a8d 9fb 978 902 898 835 7dc 78a 73e 6f8 6b7 67b 643 60e 5dd",
    "0b 0a 09 08 07 06 06 05 05 05 04 04 04 03 03 03",
)
EXP2 = _table(
    "0000 05ab 0b96 11c4 1838 1ef5 25ff 2d58 3505 3d09 4567 4e25 5745 60cd 6ac1 7524",
    "5ab 5eb 62e 674 6bd 70a 759 7ad 804 85e 8be 920 988 9f4 a64 adc",
    "04 04 04 04 05 05 05 05 06 06 06 06 07 07 07 08",
)

# The chip's table of the quadratic term. `square` computes it; a test compares the two.
SQUARE: tuple[int, ...] = tuple(
    bytes.fromhex(
        "0004080b0f1216191c1f22242729 2c2e 303234353738 3a3b3c3d3e3e3f3f3f3f".replace(" ", "")
        + "3f3f3f3f3f3e3e3d3c3b3a383735 3432 302e2c292724 221f1c191612 0f0b0804".replace(" ", "")
    )
)


def square(ops: Ops, q: Word) -> Word:
    """SQUARE[q] = min(63, (q*(64-q) + 8) >> 4)."""
    product = ops.mul(q, ops.sub(ops.const(64), q))
    return ops.min_s(ops.shrc(ops.add(product, ops.const(8)), 4), ops.const(63))


def interpolate(ops: Ops, table: Table, m: Word, rising: bool = False) -> Word:
    """F(m): the 23-bit mantissa for a 15-bit argument; `rising` is the exp2 form (slope added).

    The unit cuts slope, curve and sum to 12, 7 and 15 bits, which no table and argument exceed (a
    test tries them all); the rising form, which adds the complement of its slope, wraps once.
    """
    index = ops.shrc(m, 11)
    offset = ops.andc(m, 0x7FF)
    q = ops.andc(ops.shrc(m, 5), 63)
    slope = ops.shrc(ops.mul(ops.lookup16(index, table.c1), offset), 11)
    curve = ops.shrc(ops.mul(ops.lookup16(index, table.c2), square(ops, q)), 5)
    if rising:
        out = ops.add(ops.lookup16(index, [c + 1 for c in table.c0]), slope)
    else:
        out = ops.sub(ops.lookup16(index, table.c0), slope)
    return ops.shlc(ops.sub(out, curve), 8)


def _exponent(ops: Ops, x: Word) -> Word:
    return ops.andc(ops.shrc(x, 23), 255)


_EXPONENT = 0xFF << 23


def recip(ops: Ops, x: Word, settings: Settings = DEFAULTS) -> Word:
    """1/x."""
    e = ops.andc(x, _EXPONENT)
    sign = ops.andc(x, 0x80000000)
    exponent = ops.sub(ops.const(253 << 23), e)
    mantissa = interpolate(ops, RECIP, ops.andc(ops.shrc(x, 8), 0x7FFF))
    result = ops.or_(exponent, mantissa)
    if settings["recip_one"] == "exact":
        one = ops.const(0x3F800000)
        result = ops.select(ops.eq(ops.andc(x, 0x7FFFFFFF), one), one, result)
    result = ops.select(ops.ugt(e, ops.const(252 << 23)), ops.const(0), result)
    result = ops.select(ops.eq(e, ops.const(0)), ops.const(0x7F800000), result)
    return ops.or_(result, sign)


def rsqrt(ops: Ops, x: Word, settings: Settings = DEFAULTS) -> Word:
    """1/sqrt(|x|)."""
    e = _exponent(ops, x)
    exponent = ops.shlc(ops.shrc(ops.sub(ops.const(380), e), 1), 23)
    m = ops.xor(ops.andc(ops.shrc(x, 9), 0x7FFF), ops.const(0x4000))  # bit 14: exponent is even
    result = ops.or_(exponent, interpolate(ops, RSQRT, m))
    result = ops.select(ops.eq(e, ops.const(255)), ops.const(0), result)
    return ops.select(ops.eq(e, ops.const(0)), ops.const(0x7F800000), result)


def log2(ops: Ops, x: Word, settings: Settings = DEFAULTS) -> Word:
    """log2(|x|)."""
    e = _exponent(ops, x)
    fraction = ops.andc(ops.not_(interpolate(ops, LOG2, ops.andc(ops.shrc(x, 8), 0x7FFF))), 0x7FFFFF)
    whole = ops.shlc(ops.andc(ops.add(e, ops.const(1)), 127), 16)
    d = ops.andc(ops.or_(whole, ops.shrc(fraction, 7)), 0xFFFFFFFE)
    negative = ops.ugt(ops.const(127), e)
    d = ops.select(negative, ops.andc(ops.not_(d), 0x7FFFFF), d)
    # normalise: bit 22 stands for exponent 133; clz counts from bit 31
    shift = ops.andc(ops.sub(ops.clz(d), ops.const(9)), 31)
    mantissa = ops.andc(ops.shlc(ops.shl(d, shift), 1), 0x7FFFFF)
    result = ops.or_(ops.shlc(ops.sub(ops.const(133), shift), 23), mantissa)
    result = ops.or_(result, ops.select(negative, ops.const(0x80000000), ops.const(0)))
    result = ops.select(ops.eq(d, ops.const(0)), ops.const(0), result)
    result = ops.select(ops.eq(e, ops.const(255)), ops.const(0x7F800000), result)
    return ops.select(ops.eq(e, ops.const(0)), ops.const(0xFF800000), result)


def exp2(ops: Ops, x: Word, settings: Settings = DEFAULTS) -> Word:
    """2^x."""
    const, select = ops.const, ops.select
    x = select(ops.test(x, 0x7F800000), x, const(0))
    e = _exponent(ops, x)
    negative = ops.test(x, 0x80000000)
    large = ops.test(e, 0x80)
    shift = ops.andc(ops.not_(e), 15)
    shift = select(large, ops.andc(shift, 7), shift)
    shifted = ops.shr(ops.or_(ops.andc(x, 0x7FFFFF), const(1 << 23)), shift)
    small = select(ops.eq(ops.andc(e, 0x70), const(0x70)), ops.andc(ops.shrc(shifted, 8), 0xFFFF), const(0))
    d = select(large, ops.andc(shifted, 0x3FFFFF), small)
    beyond = ops.mor(ops.test(e, 0x78), ops.test(shifted, 0xFFC00000))
    overflow = ops.mand(large, beyond)
    d = select(negative, ops.andc(ops.not_(d), 0x3FFFFF), d)
    k = ops.andc(ops.shrc(d, 15), 127)
    mantissa = interpolate(ops, EXP2, ops.andc(d, 0x7FFF), rising=True)
    up = ops.or_(ops.shlc(ops.andc(ops.add(k, const(127)), 255), 23), mantissa)
    up = select(overflow, const(0x7F800000), up)
    down = ops.or_(ops.shlc(ops.andc(ops.sub(k, const(1)), 255), 23), mantissa)
    vanishes = ops.mor(overflow, ops.ugt(const(2), k))
    down = select(vanishes, const(0), down)
    return select(negative, down, up)


FUNCTIONS: dict[int, Callable[[Ops, Word, Settings], Word]] = {52: recip, 53: rsqrt, 54: exp2, 55: log2}
