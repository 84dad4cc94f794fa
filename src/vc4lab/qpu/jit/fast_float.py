"""Float operations of the fast JIT: native arithmetic, as long as nothing happens that only the
exact semantics know.

Overflow and invalid operations raise the processor's sticky flags; NaNs from unknown sources are
noted in `wild`. Either way the caller throws the result away and runs the exact build. What remains
agrees bit for bit.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from vc4lab.optimisations import FUSED_BYTES
from vc4lab.qpu.isa.qpu_unknowns import DEFAULTS, Settings
from vc4lab.qpu.isa.semantics import Flags, Result, Semantics
from vc4lab.qpu.jit.simd_ops import hide
from vc4lab.qpu.jit.words import FastOps, FastWord, nan_lanes
from vc4lab.simd import f32, f32x16, fused_, i32, max_, opaque, select
from vc4lab.simd.trace import current

_REPLICATE_255 = 0.003921568859368563  # 0x3B808081: 1/255 rounded up
_PART_255_HIGH = 0.003921568393707275  # 0x3B808080: 1/255 rounded down
_PART_255_LOW = 2.3374371882489697e-10  # 0x2F808081: what it lacks, rounded up
_BESIDE = 32768.0

RECIPROCAL, INFINITIES = 52, 2
"""The special function 1/x, and for how many products further infinite lanes are expected: those of
a step of Newton's, and what is divided. 1/sqrt(x) is not among them: there are many more of these,
a check of each costs programs with lights 4 to 8 %, and few vectors have no length.
"""
NATIVE = {"fadd": operator.add, "fsub": operator.sub, "fmul": operator.mul}


def _fuses() -> bool:
    """Whether bytes are converted by fused multiply-adds."""
    return FUSED_BYTES.serves(current().module.target.level)


class FastSemantics(Semantics):
    """Semantics over FastWords. note: called with masks of lanes that it cannot compute."""

    ops: FastOps

    def __init__(self, note: Callable[[Any], None], settings: Settings = DEFAULTS) -> None:
        super().__init__(FastOps(), settings)
        self.note = note

    def _operands(self, a: FastWord, b: FastWord) -> tuple[Any, Any]:
        """Both as native floats; NaN lanes are noted together (one comparison finds them)."""
        found = None
        for word in (a, b):
            lanes = nan_lanes(word)
            if lanes is not None:
                found = lanes if found is None else found | lanes
                word.no_nan = True
        if found is not None:
            self.note(found)
        return a.floats(), b.floats()

    def word_flags(self, word: FastWord, c: Callable[[], Any] | None = None) -> Flags:
        if not word.lazy:
            return super().word_flags(word, c)
        single = word.floats()
        return Flags(lambda: single == opaque(f32x16, 0.0), lambda: single < opaque(f32x16, 0.0), c)

    def _lazy(self, single: Any, carry: bool) -> Result:
        word = FastWord(single=single, lazy=True, clean=True)
        c = (lambda: single > opaque(f32x16, 0.0)) if carry else None
        return self.floating(word, c)

    def _arithmetic(self, name: str, a: FastWord, b: FastWord, carry: bool) -> Result:
        """The native operation in place of that of `Semantics` with this name."""
        return self._lazy(NATIVE[name](*self._operands(a, b)), carry)

    def fadd(self, a: FastWord, b: FastWord) -> Result:
        return self._arithmetic("fadd", a, b, True)

    def fsub(self, a: FastWord, b: FastWord) -> Result:
        return self._arithmetic("fsub", a, b, True)

    def fmul(self, a: FastWord, b: FastWord) -> Result:
        result = self._arithmetic(
            "fmul", *self._without_invalid(a, b), self.settings["fmul_carry"] == "positive"
        )
        result.word.infinities = max(a.infinities, b.infinities, 1) - 1
        return result

    def _without_invalid(self, a: FastWord, b: FastWord) -> tuple[FastWord, FastWord]:
        """Factors of the same product, without 0 times infinity where that is to be expected.

        It is 0 on the chip; natively it raises the invalid flag, and the work of the whole tile
        would be thrown away.
        """
        if a is b or not (a.infinities or b.infinities):
            return a, b
        if not b.infinities:
            a, b = b, a
        if a.number is not None and a.number & 0x7F800000:
            return a, b
        factor = a.floats()
        zero = opaque(f32x16, 0.0)
        other = FastWord(single=select(factor == zero, zero, b.floats()), lazy=b.lazy)
        other.clean, other.no_nan = b.clean, b.no_nan
        return a, other

    def positive(self, word: FastWord) -> Any:
        if word.lazy:
            return word.floats() > opaque(f32x16, 0.0)
        return super().positive(word)

    def greater(self, a: FastWord, b: FastWord) -> Any:
        if a.clean and b.clean:
            return a.floats() > b.floats()
        # Against a constant >= 0 the order of raw bits is the order of keys.
        if b.number is not None and b.number < 0x80000000:
            return a.bits() > b.bits()
        if a.number == 0:
            return b.bits().ugt(0x80000000)
        if a.number is not None and a.number < 0x80000000:
            return a.bits() > b.bits()
        return super().greater(a, b)

    def fmin(self, a: FastWord, b: FastWord) -> Result:
        return self.floating(a) if a is b else super().fmin(a, b)

    def fmax(self, a: FastWord, b: FastWord) -> Result:
        return self.floating(a) if a is b else super().fmax(a, b)

    def _magnitudes(self, a: FastWord, b: FastWord) -> tuple[FastWord, FastWord]:
        x, y = super()._magnitudes(a, b)
        x.clean, y.clean = a.clean, b.clean
        x.fixed, y.fixed = a.fixed, b.fixed
        x.no_nan, y.no_nan = a.no_nan, b.no_nan
        return x, y

    def itof(self, a: FastWord, _: FastWord) -> Result:
        return self.floating(self.ops.itof_rtz(a), lambda: self.ops.gt(a, self.ops.const(0)))

    def byte_to_float(self, byte: FastWord) -> FastWord:
        bits = byte.bits()
        if _fuses():
            # 1/255 in two parts, a bit too large together: 255 gives 1.0, and no other byte comes
            # near the next float (a test compares all 256).
            number = bits.to_float(f32)
            product = number * opaque(f32x16, _PART_255_LOW)
            quotient = fused_(number, opaque(f32x16, _PART_255_HIGH), product)
            return FastWord(quotient.bitcast(i32), clean=True)
        # The product is one unit too large for 1..254 and right for 0 and 255.
        bits = hide(bits) if byte.fixed else bits
        product = (bits.to_float(f32) * opaque(f32x16, _REPLICATE_255)).bitcast(i32)
        return FastWord(max_(product + ((bits + 1).shr(8) - 1), 0), clean=True)

    def colour_byte(self, word: FastWord) -> FastWord:
        """The byte in bits 7:0; those above are anything."""
        if not word.clean or word.number is not None:  # constants fold in the integer form
            found: FastWord = super().colour_byte(word)
            return found
        # Beside 2**15 the integer part of a float is in its byte 1. Truncating sums keep "at least
        # a half": this is round half up, like the integer form.
        half = 0.5 if self.settings["colour_rounding"] == "nearest" else 0.0
        scale, start = opaque(f32x16, 255.0), opaque(f32x16, _BESIDE + half)
        if _fuses():
            scaled = fused_(word.floats(), scale, start)
        else:
            scaled = word.floats() * scale + start
        zero, full = opaque(f32x16, _BESIDE), opaque(f32x16, _BESIDE + 255.0)
        scaled = select(scaled < full, scaled, full)
        scaled = select(scaled > zero, scaled, zero)
        return FastWord(scaled.bitcast(i32).shr(8))

    def special(self, address: int, word: FastWord) -> FastWord:
        result: FastWord = super().special(address, word)
        result.clean = result.no_nan = True
        result.fixed = word.fixed
        result.infinities = INFINITIES if address == RECIPROCAL else 0
        return result
