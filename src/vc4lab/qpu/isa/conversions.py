"""Conversions between floats, halves and bytes as the unpack and pack units do them."""

from __future__ import annotations

from vc4lab.qpu.isa.ops import REPLICATE, Ops, Word
from vc4lab.qpu.isa.qpu_unknowns import Settings


def half_to_float(ops: Ops, half: Word) -> Word:
    """Float bits of the half in bits 15:0; denormal halves stay denormal (and count as zero)."""
    sign = ops.shlc(ops.andc(half, 0x8000), 16)
    magnitude = ops.shlc(ops.andc(half, 0x7FFF), 13)
    exponent = ops.andc(magnitude, 0x0F800000)
    normal = ops.add(magnitude, ops.const(112 << 23))
    infinite = ops.or_(magnitude, ops.const(0x7F800000))
    word = ops.select(ops.eq(exponent, ops.const(0x0F800000)), infinite, normal)
    word = ops.select(ops.eq(exponent, ops.const(0)), magnitude, word)
    return ops.or_(word, sign)


def byte_to_float(ops: Ops, byte: Word) -> Word:
    """byte/255 truncated.

    The quotient's expansion repeats the byte (k/255 = 0.kkkk... in base 256), so the leading 24
    bits of the word kkkk are the truncated mantissa; only 255 is special: 1.0.
    """
    shift = ops.andc(ops.sub(ops.clz(byte), ops.const(24)), 31)
    digits = ops.shl(ops.mul(byte, ops.const(REPLICATE)), shift)
    mantissa = ops.andc(ops.shrc(digits, 8), 0x7FFFFF)
    result = ops.or_(ops.shlc(ops.sub(ops.const(126), shift), 23), mantissa)
    result = ops.select(ops.eq(byte, ops.const(255)), ops.const(0x3F800000), result)
    return ops.select(ops.eq(byte, ops.const(0)), ops.const(0), result)


def float_to_half(ops: Ops, x: Word, settings: Settings) -> Word:
    """Half bits of a float; results without a normal half exponent become +0, too large ones
    infinite.
    """
    sign = ops.andc(ops.shrc(x, 16), 0x8000)
    magnitude = ops.andc(x, 0x7FFFFFFF)
    rounding = settings["half_rounding"]
    if rounding == "away":
        rounded = ops.add(magnitude, ops.const(0x1FFF))
    elif rounding == "nearest":  # ties to even
        odd = ops.andc(ops.shrc(magnitude, 13), 1)
        rounded = ops.add(ops.add(magnitude, ops.const(0xFFF)), odd)
    else:
        rounded = magnitude
    half = ops.sub(ops.shrc(rounded, 13), ops.const(112 << 10))
    half = ops.select(ops.gt(half, ops.const(0x7BFF)), ops.const(0x7C00), half)
    half = ops.select(ops.ugt(magnitude, ops.const(0x7F7FFFFF)), ops.const(0x7C00), half)
    return ops.select(ops.gt(ops.const(0x400), half), ops.const(0), ops.or_(half, sign))


def colour_byte(ops: Ops, x: Word, settings: Settings) -> Word:
    """clamp(round(x*255), 0, 255) of a float; negative and -Inf 0, +Inf and NaN with clear sign
    255.

    In integers: x = m * 2^(e-150); x*255 = (m*255) >> (150-e), and adding half a unit first rounds
    to nearest.
    """
    exponent = ops.shrc(ops.andc(x, 0x7F800000), 23)
    mantissa = ops.or_(ops.andc(x, 0x7FFFFF), ops.const(0x800000))
    product = ops.sub(ops.shlc(mantissa, 8), mantissa)  # < 2^32
    shift = ops.sub(ops.const(150), exponent)  # 24.. for x < 1
    # Halve first, so that adding the rounding bit cannot overflow.
    count = ops.andc(ops.sub(shift, ops.const(1)), 31)
    byte = ops.shr(product, count)
    if settings["colour_rounding"] == "nearest":
        byte = ops.add(byte, ops.const(1))
    byte = ops.shrc(byte, 1)
    byte = ops.select(ops.gt(shift, ops.const(32)), ops.const(0), byte)
    byte = ops.select(ops.gt(x, ops.const(0x3F7FFFFF)), ops.const(255), byte)
    return ops.select(ops.gt(ops.const(0), x), ops.const(0), byte)
