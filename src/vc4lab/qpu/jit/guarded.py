"""Float operations for programs with side effects: native arithmetic that is checked at once.

A native sum or product under round-toward-zero and flush-to-zero differs from the chip's only where
an operand or the result leaves the range of ordinary numbers; then the native result's magnitude is
the largest float or beyond (overflow, infinity, NaN). One comparison for each operation finds
these, and a function with the full semantics computes them. So there is nothing to roll back.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from vc4lab.qpu.isa.qpu_unknowns import DEFAULTS, Settings
from vc4lab.qpu.isa.semantics import LARGEST, Result, Semantics
from vc4lab.qpu.jit.fast_float import NATIVE, FastSemantics
from vc4lab.qpu.jit.simd_ops import SimdOps
from vc4lab.qpu.jit.words import FastWord
from vc4lab.simd import Function, any_, call, enter, f32, f32x16, i32, i32x16, jump, jump_if, new_block, var


class GuardedSemantics(FastSemantics):
    """Exact semantics over FastWords, fast as long as numbers are ordinary."""

    def __init__(self, settings: Settings = DEFAULTS, *, brief: bool = False) -> None:
        """brief: code that is quick to compile, not to run: every operation is a call."""
        super().__init__(lambda lanes: None, settings)
        self.brief = brief

    def _arithmetic(self, name: str, a: FastWord, b: FastWord, carry: bool) -> Result:
        def exact(cold: bool) -> Any:
            # -0 may stand for +0 here, which the exact operations treat alike.
            words = a.floats().bitcast(i32), b.floats().bitcast(i32)
            function = _exact(name, self.settings["infinity_order"])
            return call(function, *words, cold=cold).bitcast(f32)

        if self.brief:
            return self._lazy(exact(cold=False), carry)
        single = NATIVE[name](a.floats(), b.floats())
        strange = (single.bitcast(i32) & 0x7FFFFFFF).uge(LARGEST)
        cell = var(f32x16, single)
        slow, on = new_block(), new_block()
        jump_if(any_(strange), slow, on)
        enter(slow)
        cell.set(exact(cold=True))
        jump(on)
        enter(on)
        return self._lazy(cell.get(), carry)


@lru_cache
def _exact(name: str, infinity_order: str) -> Function[Any]:
    """The operation with its full semantics, as a function of two words."""
    settings = {**DEFAULTS, "infinity_order": infinity_order}

    def body(a: Any, b: Any) -> Any:
        result: Result = getattr(Semantics(SimdOps(), settings), name)(a, b)
        return result.word

    return Function((i32x16, i32x16), i32x16, body, f"exact_{name}")
