"""The native back end: words are staged `i32x16` values, masks `mask16`; floats run under round-
toward-zero and flush-to-zero.

LLVM folds float operations on constants as if rounding were to nearest, so a constant must not
reach one: `hide` loads it from memory instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vc4lab.qpu.isa.ops import FTOI_LIMIT, FTOI_PLAIN, Mask, Ops, Word
from vc4lab.simd import (
    Value,
    any_,
    clz_,
    const,
    enter,
    f32,
    f32x16,
    fused_,
    has_fused,
    i8,
    i16,
    i32,
    i32x16,
    i64,
    int_or_least,
    iota,
    is_nan,
    jump,
    jump_if,
    lookup16,
    mask16,
    max_,
    min_,
    nearest_,
    new_block,
    opaque,
    permute,
    rotate_lanes,
    select,
    shuffle,
    splat,
    uadd_sat,
    umax,
    umin,
    usub_sat,
    var,
    vec,
)
from vc4lab.simd.trace import current

_BYTES = vec(i8, 64)
_HALVES = vec(i16, 32)
FLT_MAX = 3.4028234663852886e38


def hide(word: Value) -> Value:
    """Hide i32 lanes from the compiler, which then knows nothing of their values."""
    if word.constant is not None:
        return opaque(i32x16, word.constant)
    return word | opaque(i32x16, 0)


def _seen_alone(result: Value) -> Value:
    """Byte minima as words. LLVM 22 rewrites shuffles of them for AVX-512 endlessly, unless it does
    not see where they are from.
    """
    return hide(result.bitcast(i32x16))


def integer_low(x: Value, straight: bool) -> Value:
    """The low 32 bits of the integers of f32 lanes; 0 for Inf and NaN.

    The result of a native conversion that overflows is anything. Where a lane's would, the part
    above bit 30 and the rest are converted alone; all steps are exact, so it does not matter how
    the compiler would round them. That is rare enough for a branch, which costs nothing by itself;
    straight: but the compiler could not mix the code with another batch's. There the nearest
    multiple of 2^32 is taken away, if that takes few instructions (Inf and NaN leave NaN).
    """
    magnitude = x.bitcast(i32) & 0x7FFFFFFF

    def split() -> Value:
        number = select(magnitude.ult(FTOI_LIMIT), x, const(f32x16, 0.0))
        high = (number * (2.0**-31))._convert("fptosi", i32x16)
        rest = number - high.to_float(f32) * (2.0**31)
        return rest._convert("fptosi", i32x16) + (high << 31)

    if straight and has_fused():
        whole = nearest_(x * 2.0**-32)
        rest = fused_(whole, -(2.0**32), x)  # at most 2^31, which has the bits of -2^31
        return select(is_nan(rest), const(i32x16, 0), int_or_least(rest))
    if straight:
        return split()
    result = var(i32x16, 0)
    plain, large, on = new_block(), new_block(), new_block()
    jump_if(any_(magnitude.uge(FTOI_PLAIN)), large, plain)
    enter(large)
    result.set(split())
    jump(on)
    enter(plain)
    result.set(x._convert("fptosi", i32x16))
    enter(on)
    return result.get()


class SimdOps(Ops):
    """Ops over staged values, to be used while a kernel with float_mode "qpu" is traced."""

    def const(self, value: int | Sequence[int]) -> Value:
        return const(i32x16, value if isinstance(value, int) else list(value))

    def always(self) -> Value:
        return const(mask16, True)

    def product_exceeds(self, a: Word, b: Word, limit: int) -> Mask:
        return (a.zext(i64) * b.zext(i64)).ugt(limit)

    def shr(self, a: Word, n: Word) -> Word:
        return a.shr(n)

    def sar(self, a: Word, n: Word) -> Word:
        return a >> n

    def clz(self, a: Word) -> Word:
        return clz_(a)

    def bytes_add(self, a: Word, b: Word) -> Word:
        return uadd_sat(a.bitcast(_BYTES), b.bitcast(_BYTES)).bitcast(i32x16)

    def bytes_sub(self, a: Word, b: Word) -> Word:
        return usub_sat(a.bitcast(_BYTES), b.bitcast(_BYTES)).bitcast(i32x16)

    def bytes_min(self, a: Word, b: Word) -> Word:
        return _seen_alone(umin(a.bitcast(_BYTES), b.bitcast(_BYTES)))

    def bytes_max(self, a: Word, b: Word) -> Word:
        return _seen_alone(umax(a.bitcast(_BYTES), b.bitcast(_BYTES)))

    def bytes_mul(self, a: Word, b: Word) -> Word:
        x, y = a.bitcast(_HALVES), b.bitcast(_HALVES)

        even = (x & 255) * (y & 255) + 128
        odd = x.shr(8) * y.shr(8) + 128
        # (t + (t >> 8)) >> 8 == (t - 1) // 255 for t <= 255 * 255 + 128; the first sum is t * 257,
        # of which processors give the upper half.
        even = (even.zext(i32) * 257).shr(16).trunc(i16)
        odd = (odd + odd.shr(8)) & 0xFF00
        return (even | odd).bitcast(i32x16)

    def replicate(self, a: Word, byte: int) -> Word:
        # Where no instruction moves bytes by an index, a product is shorter.
        if current().module.target.level == "sse2":
            return super().replicate(a, byte)
        places = [4 * lane + byte for lane in range(16) for _ in range(4)]
        return shuffle(a.bitcast(_BYTES), places).bitcast(i32x16)

    def gt(self, a: Word, b: Word) -> Mask:
        return a > b

    def ugt(self, a: Word, b: Word) -> Mask:
        return a.ugt(b)

    def select(self, m: Mask, a: Word, b: Word) -> Word:
        return select(m, a, b)

    def mask_to_word(self, m: Mask) -> Word:
        return m.zext(i32)

    def min_s(self, a: Word, b: Word) -> Word:
        return min_(a, b)

    def max_s(self, a: Word, b: Word) -> Word:
        return max_(a, b)

    def fadd_rtz(self, a: Word, b: Word) -> Word:
        x, y = hide(a).bitcast(f32), hide(b).bitcast(f32)
        half = opaque(f32x16, 0.5)
        return self._overflow(x + y, x * half + y * half)

    def fmul_rtz(self, a: Word, b: Word) -> Word:
        x, y = hide(a).bitcast(f32), hide(b).bitcast(f32)
        return self._overflow(x * y, (x * opaque(f32x16, 0.5)) * y)

    @staticmethod
    def _overflow(result: Value, half: Value) -> Value:
        """Round-toward-zero stops at the largest float where the chip goes on to infinity."""
        bits = result.bitcast(i32)
        magnitude = half.bitcast(i32) & 0x7FFFFFFF
        beyond = ((bits & 0x7FFFFFFF) == 0x7F7FFFFF) & (magnitude >= 0x7F000000)
        return select(beyond, (bits & 0x80000000) | 0x7F800000, bits)

    def itof_rtz(self, a: Word) -> Word:
        return hide(a).to_float(f32).bitcast(i32)

    def ftoi_trunc(self, a: Word) -> Word:
        return a.bitcast(f32).to_int(i32)

    def ftoi_low(self, a: Word) -> Word:
        return integer_low(hide(a).bitcast(f32), False)

    def lookup16(self, index: Word, table: Sequence[int]) -> Word:
        return lookup16(index, list(table))

    def permute(self, a: Word, sources: Sequence[int]) -> Word:
        return shuffle(a, list(sources))

    def permute_mask(self, m: Mask, sources: Sequence[int]) -> Mask:
        return shuffle(m, list(sources))

    def rotate(self, a: Word, n: int | Word, full: bool) -> Word:
        if isinstance(n, int):
            if full:
                return rotate_lanes(a, n)
            return shuffle(a, [lane & ~3 | (lane - n) & 3 for lane in range(16)])
        amount = n[0]
        if full:
            return rotate_lanes(a, amount & 15)
        lanes = iota()
        return permute(a, (lanes & ~3) | ((lanes - splat(amount)) & 3))

    def bits(self, word: Word) -> Value:
        """The i32x16 value of a word."""
        found: Value = word
        return found

    def adopt(self, value: Any, source: str = "") -> Word:
        """A word from an environment's i32x16 or f32x16 value."""
        if value.type.elem is f32:
            value = (value + opaque(f32x16, 0.0)).bitcast(i32)  # -0 stands for +0
        return value
