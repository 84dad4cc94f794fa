"""The abstract machine of the QPU's arithmetic: the 16-lane integer primitives that every back end
provides.

A *word* is 16 lanes of 32 bits, a *mask* 16 truth values. The meaning of every QPU instruction is
written over these primitives in `semantics.py`, `packing.py` and `sfu.py`; `../run/numpy_ops.py`
and `../jit/simd_ops.py` implement them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

Word = Any
Mask = Any

FTOI_PLAIN, FTOI_LIMIT = 0x4F000000, 0x5E000000
"""Bits of 2^31 and 2^61. From 2^55 on the low 32 bits of a float's integer are 0, so a conversion
may stop anywhere beyond; what is above bit 30 of a smaller one still fits 32 bits.
"""

REPLICATE = 0x01010101
"""Multiplier that copies a byte to all four bytes."""


class Ops(ABC):
    """Primitives over words and masks. Shift counts are words whose lanes are already 0..31.

    Those that Python's operators give on the words of most back ends are written here.
    """

    @abstractmethod
    def const(self, value: int | Sequence[int]) -> Word:
        """A word of constants: one for all lanes, or 16 values."""

    @abstractmethod
    def always(self) -> Mask:
        """The mask of all lanes."""

    # integer arithmetic, modulo 2^32
    def add(self, a: Word, b: Word) -> Word:
        return a + b

    def sub(self, a: Word, b: Word) -> Word:
        return a - b

    def mul(self, a: Word, b: Word) -> Word:
        return a * b

    @abstractmethod
    def product_exceeds(self, a: Word, b: Word, limit: int) -> Mask:
        """a*b > limit for 24-bit factors, without overflow."""

    def and_(self, a: Word, b: Word) -> Word:
        return a & b

    def or_(self, a: Word, b: Word) -> Word:
        return a | b

    def xor(self, a: Word, b: Word) -> Word:
        return a ^ b

    def shl(self, a: Word, n: Word) -> Word:
        return a << n

    @abstractmethod
    def shr(self, a: Word, n: Word) -> Word: ...
    @abstractmethod
    def sar(self, a: Word, n: Word) -> Word: ...
    @abstractmethod
    def clz(self, a: Word) -> Word: ...

    # per byte, unsigned
    @abstractmethod
    def bytes_add(self, a: Word, b: Word) -> Word: ...
    @abstractmethod
    def bytes_sub(self, a: Word, b: Word) -> Word: ...
    @abstractmethod
    def bytes_min(self, a: Word, b: Word) -> Word: ...
    @abstractmethod
    def bytes_max(self, a: Word, b: Word) -> Word: ...
    @abstractmethod
    def bytes_mul(self, a: Word, b: Word) -> Word:
        """(a*b + 127) // 255 per byte."""

    # comparisons and masks
    def eq(self, a: Word, b: Word) -> Mask:
        return a == b

    @abstractmethod
    def gt(self, a: Word, b: Word) -> Mask:
        """Signed a > b."""

    @abstractmethod
    def ugt(self, a: Word, b: Word) -> Mask: ...
    @abstractmethod
    def select(self, m: Mask, a: Word, b: Word) -> Word: ...
    def mand(self, a: Mask, b: Mask) -> Mask:
        return a & b

    def mor(self, a: Mask, b: Mask) -> Mask:
        return a | b

    def mnot(self, a: Mask) -> Mask:
        return ~a

    @abstractmethod
    def mask_to_word(self, m: Mask) -> Word:
        """1 where the mask holds, else 0."""

    # floats: operands are finite, not denormal; results are IEEE round toward zero, 0 below 2^-126
    # (sign free)
    @abstractmethod
    def fadd_rtz(self, a: Word, b: Word) -> Word:
        """The sum; +-Inf from 2^128 on."""

    @abstractmethod
    def fmul_rtz(self, a: Word, b: Word) -> Word:
        """The product; +-Inf from 2^128 on."""

    @abstractmethod
    def itof_rtz(self, a: Word) -> Word: ...
    @abstractmethod
    def ftoi_trunc(self, a: Word) -> Word:
        """Toward zero; operands below 2^31 in magnitude."""

    @abstractmethod
    def ftoi_low(self, a: Word) -> Word:
        """The low 32 bits of the integer toward zero; 0 for Inf and NaN."""

    # lanes
    @abstractmethod
    def lookup16(self, index: Word, table: Sequence[int]) -> Word:
        """table[index] for indices 0..15."""

    @abstractmethod
    def permute(self, a: Word, sources: Sequence[int]) -> Word:
        """Lane i of the result is lane sources[i] of a."""

    @abstractmethod
    def rotate(self, a: Word, n: int | Word, full: bool) -> Word:
        """Lane i goes to lane i+n: modulo 16 (full) or inside each group of four (n: number, or
        lane 0 of a word).
        """

    @abstractmethod
    def permute_mask(self, m: Mask, sources: Sequence[int]) -> Mask: ...

    # conveniences, all in terms of the above
    def not_(self, a: Word) -> Word:
        return self.xor(a, self.const(0xFFFFFFFF))

    def test(self, a: Word, bits: int) -> Mask:
        """Any of the bits set."""
        return self.mnot(self.eq(self.and_(a, self.const(bits)), self.const(0)))

    def andc(self, a: Word, bits: int) -> Word:
        return self.and_(a, self.const(bits))

    def shlc(self, a: Word, n: int) -> Word:
        return self.shl(a, self.const(n))

    def shrc(self, a: Word, n: int) -> Word:
        return self.shr(a, self.const(n))

    def replicate(self, a: Word, byte: int) -> Word:
        """One of a word's bytes (0 is the lowest) in all four."""
        return self.mul(self.andc(self.shrc(a, 8 * byte), 0xFF), self.const(REPLICATE))

    def min_s(self, a: Word, b: Word) -> Word:
        return self.select(self.gt(a, b), b, a)

    def max_s(self, a: Word, b: Word) -> Word:
        return self.select(self.gt(a, b), a, b)
