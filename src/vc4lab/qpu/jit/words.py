"""Words of the fast JIT: staged lanes that remember what is known about them as floats.

Native arithmetic differs from the chip's in the sign of zeros, in denormals where values are
compared, and in NaNs. A `FastWord` carries what is needed to correct that only where it matters: a
result of native arithmetic is `lazy` (a lane of -0 stands for +0), and gets its real bits only when
something other than arithmetic looks at them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from vc4lab.qpu.isa.ops import Mask, Ops
from vc4lab.qpu.jit.simd_ops import SimdOps, hide, integer_low
from vc4lab.simd import (
    Value,
    const,
    f32,
    f32x16,
    has_fused,
    i32,
    i32x16,
    int_or_least,
    is_nan,
    mask16,
    opaque,
    select,
)

_NAN_FROM = 0x7F800001
_DENORMAL_BELOW = 0x00800000


class FastWord:
    """One word.

    lazy: -0 stands for +0 (only with a float form). clean: no NaN and no denormal. no_nan: no NaN.
    fixed: constant or computed by integer operations, so that the compiler may know its bits (it
    must not when they meet native arithmetic). number: the bits if it is one constant in all lanes.
    check: the stage promises to look for a NaN by itself once this was called.
    infinities: how many products further lanes of 1/x may be infinite; 0: they are not expected to
    be.
    """

    __slots__ = (
        "check", "clean", "fixed", "infinities", "integer", "lazy", "no_nan", "number", "single"
    )  # fmt: skip

    def __init__(
        self,
        integer: Value | None = None,
        single: Value | None = None,
        *,
        lazy: bool = False,
        clean: bool = False,
        no_nan: bool = False,
        fixed: bool = False,
    ) -> None:
        self.integer = integer
        self.single = single
        self.lazy = lazy
        self.clean = clean
        self.no_nan = no_nan or clean
        self.fixed = fixed
        self.number: int | None = None
        self.check: Callable[[], None] | None = None
        self.infinities = 0
        if integer is not None and integer.constant is not None:
            number = self.number = int(integer.constant) & 0xFFFFFFFF
            magnitude = number & 0x7FFFFFFF
            self.no_nan = magnitude < _NAN_FROM
            self.clean = self.no_nan and (magnitude >= _DENORMAL_BELOW or magnitude == 0)

    def bits(self) -> Value:
        """The lanes as the chip has them (i32x16)."""
        if self.integer is None:
            assert self.single is not None
            single = self.single
            if self.lazy:
                # -0 + 0 is +0 in every mode but round-down; the zero must be unknown to the
                # compiler.
                single = single + opaque(f32x16, 0.0)
            self.integer = single.bitcast(i32)
            self.single, self.lazy = single, False
        return self.integer

    def floats(self) -> Value:
        """The lanes for native float arithmetic (f32x16)."""
        if self.single is None:
            assert self.integer is not None
            self.single = (hide(self.integer) if self.fixed else self.integer).bitcast(f32)
        return self.single

    @property
    def never_minus_zero(self) -> bool:
        """No lane is a genuine -0 (so that the word may join lazy ones)."""
        return self.lazy or (self.number is not None and self.number != 0x80000000)


def _of_two(name: str) -> Any:
    """An integer operation of `SimdOps` on two words."""

    def operate(ops: FastOps, a: FastWord, b: FastWord) -> FastWord:
        # "fixed": the compiler may find out what, say, x ^ x is
        return FastWord(getattr(ops.simd, name)(a.bits(), b.bits()), fixed=True)

    return operate


class FastOps(Ops):
    """Ops over FastWords: integers as in SimdOps, with the knowledge about floats kept where lanes
    only move.
    """

    def __init__(self) -> None:
        self.simd = SimdOps()
        self.straight = False
        """Whether code must have no branches of its own, to be mixed with another batch's."""
        self.ftoi_fits = False
        """Whether numbers that do not fit in an i32 may raise the invalid flag."""

    # ---------------------------------------------------------------- making words
    def const(self, value: int | Sequence[int]) -> FastWord:
        return FastWord(self.simd.const(value), fixed=True)

    def adopt(self, value: Any, source: str = "", no_nan: bool = False) -> FastWord:
        """A word from an environment's value: i32x16, f32x16 (clean, -0 is +0) or an already made
        FastWord.
        """
        if isinstance(value, FastWord):
            return value
        if value.type.elem is f32:
            if value.constant is not None:
                value = opaque(f32x16, value.constant)
            return FastWord(single=value, lazy=True, clean=True)
        fixed = not value.text.startswith("%") or source in ("element_number", "qpu_number")
        return FastWord(value, fixed=fixed, no_nan=no_nan)

    def bits(self, word: FastWord) -> Value:
        return word.bits()

    def always(self) -> Value:
        return const(mask16, True)

    # ---------------------------------------------------------------- integers
    add, sub, mul = _of_two("add"), _of_two("sub"), _of_two("mul")
    and_, or_, xor = _of_two("and_"), _of_two("or_"), _of_two("xor")
    shl, shr, sar = _of_two("shl"), _of_two("shr"), _of_two("sar")
    bytes_add, bytes_sub = _of_two("bytes_add"), _of_two("bytes_sub")
    bytes_mul, bytes_min = _of_two("bytes_mul"), _of_two("bytes_min")
    bytes_max = _of_two("bytes_max")
    min_s, max_s = _of_two("min_s"), _of_two("max_s")

    def product_exceeds(self, a: FastWord, b: FastWord, limit: int) -> Mask:
        return self.simd.product_exceeds(a.bits(), b.bits(), limit)

    def clz(self, a: FastWord) -> FastWord:
        return FastWord(self.simd.clz(a.bits()), fixed=True)

    def replicate(self, a: FastWord, byte: int) -> FastWord:
        return FastWord(self.simd.replicate(a.bits(), byte), fixed=True)

    # ---------------------------------------------------------------- masks
    def eq(self, a: FastWord, b: FastWord) -> Mask:
        return a.bits() == b.bits()

    def gt(self, a: FastWord, b: FastWord) -> Mask:
        return a.bits() > b.bits()

    def ugt(self, a: FastWord, b: FastWord) -> Mask:
        return a.bits().ugt(b.bits())

    def mask_to_word(self, m: Mask) -> FastWord:
        return FastWord(m.zext(i32), fixed=True)

    def select(self, m: Mask, a: FastWord, b: FastWord) -> FastWord:
        clean, no_nan = a.clean and b.clean, a.no_nan and b.no_nan
        if (a.lazy or b.lazy) and a.never_minus_zero and b.never_minus_zero:
            single = select(m, a.floats(), b.floats())
            return FastWord(single=single, lazy=True, clean=clean, no_nan=no_nan)
        value = select(m, a.bits(), b.bits())
        return FastWord(value, clean=clean, no_nan=no_nan, fixed=a.fixed or b.fixed)

    # ---------------------------------------------------------------- floats: exact forms, unused
    # by FastSemantics
    def fadd_rtz(self, a: FastWord, b: FastWord) -> FastWord:
        return FastWord(self.simd.fadd_rtz(a.bits(), b.bits()))

    def fmul_rtz(self, a: FastWord, b: FastWord) -> FastWord:
        return FastWord(self.simd.fmul_rtz(a.bits(), b.bits()))

    def itof_rtz(self, a: FastWord) -> FastWord:
        source = hide(a.bits()) if a.fixed else a.bits()
        return FastWord(single=source.to_float(f32), clean=True)

    def ftoi_trunc(self, a: FastWord) -> FastWord:
        return FastWord(a.floats()._convert("fptosi", i32x16))  # in range by contract

    def ftoi_low(self, a: FastWord) -> FastWord:
        if self.ftoi_fits and has_fused():  # without, `int_or_least` raises no flag
            return FastWord(int_or_least(a.floats()))
        return FastWord(integer_low(a.floats(), self.straight))

    # ---------------------------------------------------------------- lanes
    def lookup16(self, index: FastWord, table: Sequence[int]) -> FastWord:
        return FastWord(self.simd.lookup16(index.bits(), table), fixed=True)

    def _moved(self, source: FastWord, move: Any) -> FastWord:
        if source.lazy:
            word = FastWord(single=move(source.floats()), lazy=True)
        else:
            word = FastWord(move(source.bits()))
        word.clean, word.no_nan, word.fixed = source.clean, source.no_nan, source.fixed
        return word

    def permute(self, a: FastWord, sources: Sequence[int]) -> FastWord:
        return self._moved(a, lambda value: self.simd.permute(value, sources))

    def permute_mask(self, m: Mask, sources: Sequence[int]) -> Mask:
        return self.simd.permute_mask(m, sources)

    def rotate(self, a: FastWord, n: int | FastWord, full: bool) -> FastWord:
        if isinstance(n, int):
            return self._moved(a, lambda value: self.simd.rotate(value, n, full))
        value = self.simd.rotate(a.bits(), n.bits(), full)
        return FastWord(value, clean=a.clean, no_nan=a.no_nan, fixed=a.fixed)


def nan_lanes(word: FastWord) -> Mask | None:
    """Lanes that may be NaN, as a mask to be checked at run time; None if there are none."""
    if word.no_nan:
        return None
    if word.number is not None:
        return const(mask16, True)
    if word.check is not None:
        word.check()
        return None
    return is_nan(word.floats())
