"""Unpack of operands and pack of results, with the saturation the chips showed.

Source: hardware reference 4.9.
"""

from __future__ import annotations

from vc4lab.qpu.isa.conversions import float_to_half, half_to_float
from vc4lab.qpu.isa.operations import Pack, Unpack
from vc4lab.qpu.isa.ops import Mask, Ops, Word
from vc4lab.qpu.isa.semantics import Result, Semantics


def unpack(semantics: Semantics, code: int, word: Word, as_float: bool) -> Word:
    """Give a consumer's view of a regfile A value (or of r4, always as_float) under unpack `code`."""
    ops = semantics.ops
    if code == Unpack.NONE:
        return word
    if code in (Unpack.H16A, Unpack.H16B):
        half = ops.andc(word, 0xFFFF) if code == Unpack.H16A else ops.shrc(word, 16)
        if as_float:
            return half_to_float(ops, half)
        return ops.sar(ops.shlc(half, 16), ops.const(16))
    if code == Unpack.B8D_REPLICATED:
        return ops.replicate(word, 3)
    byte = ops.andc(ops.shrc(word, 8 * (code - Unpack.B8A)), 0xFF)
    return semantics.byte_to_float(byte) if as_float else byte


def _clamp(ops: Ops, x: Word, low: int, high: int) -> Word:
    return ops.max_s(ops.min_s(x, ops.const(high)), ops.const(low))


def _saturated(semantics: Semantics, code: int, result: Result, carry: Mask) -> Word:
    """The part that add and sub deliver on signed overflow (values measured on chips)."""
    ops = semantics.ops

    def choose(with_carry: int, without: int) -> Word:
        return ops.select(carry, ops.const(with_carry), ops.const(without))

    if code == Pack.SAT32:
        return choose(0x80000000, 0x7FFFFFFF)
    if code in (Pack.H16A, Pack.H16B):
        return choose(0x8000, 0x7FFF)
    if code <= Pack.B8D:
        return choose(0, 0xFF)
    if result.operands is None:  # sub
        return choose(0x8000, 0x7FFF) if code <= Pack.SAT16B else choose(0, 0xFF)
    if code >= Pack.SAT8_ALL:
        return ops.const(0)
    a, b = result.operands
    twice = ops.eq(a, b)
    lowest = ops.mand(twice, ops.eq(a, ops.const(0x80000000)))
    highest = ops.mand(twice, ops.eq(a, ops.const(0x7FFFFFFF)))
    word = ops.select(highest, ops.const(0x7FFF), ops.const(0))
    return ops.select(lowest, ops.const(0x8000), word)


def _part(semantics: Semantics, code: int, result: Result) -> Word:
    """The 8, 16 or 32 bits that pack `code` writes, in the low bits."""
    ops, word = semantics.ops, result.word
    if result.is_float and code in (Pack.H16A, Pack.H16B, Pack.SAT16A, Pack.SAT16B):
        return float_to_half(ops, word, semantics.settings)
    if result.is_float and code == Pack.SAT32 and semantics.settings["float_pack_32"] == "finite":
        return semantics.largest_for_infinity(word)
    if code in (Pack.SAT16A, Pack.SAT16B):
        part = _clamp(ops, word, 0xFFFF8000, 0x7FFF)
    elif code >= Pack.SAT8_ALL:
        part = _clamp(ops, word, 0, 255)
    else:
        part = word
    if result.overflow is not None:
        overflow = result.overflow()
        carry = result.flags.get("c")
        part = ops.select(overflow, _saturated(semantics, code, result, carry), part)
    return part


def insert(ops: Ops, code: int, part: Word, old: Word) -> Word:
    """`part` placed into the byte or half of `old` that pack `code` addresses."""
    if code in (Pack.NONE, Pack.SAT32):
        return part
    if code in (Pack.B8_ALL, Pack.SAT8_ALL):
        return ops.replicate(part, 0)
    if code in (Pack.H16A, Pack.SAT16A):
        shift, mask = 0, 0xFFFF
    elif code in (Pack.H16B, Pack.SAT16B):
        shift, mask = 16, 0xFFFF
    else:
        shift, mask = 8 * (code & 3), 0xFF
    placed = ops.shlc(ops.andc(part, mask), shift)
    return ops.or_(placed, ops.andc(old, ~(mask << shift) & 0xFFFFFFFF))


def pack_register(semantics: Semantics, code: int, result: Result, old: Word) -> Word:
    """Give what a write of `result` leaves in a regfile A register that held `old` (pm=0)."""
    if code == Pack.NONE:
        return result.word
    return insert(semantics.ops, code, _part(semantics, code, result), old)


def pack_colour(semantics: Semantics, code: int, word: Word, old: Word) -> Word:
    """A mul result under pm=1: a colour byte into all or one of the destination's bytes."""
    if semantics.settings["mul_pack_bit_3"] == "ignored":
        code &= Pack.B8D
    if code not in (Pack.B8_ALL, Pack.B8A, Pack.B8B, Pack.B8C, Pack.B8D):
        return word
    return insert(semantics.ops, code, semantics.colour_byte(word), old)
