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
from vc4lab.qpu.jit.fast_float import FastSemantics
from vc4lab.qpu.jit.simd_ops import SimdOps
from vc4lab.qpu.jit.words import FastWord
from vc4lab.simd import (
    Function,
    any_,
    call,
    enter,
    f32,
    f32x16,
    i32,
    i32x16,
    jump,
    jump_if,
    new_block,
    var,
)


class GuardedSemantics(FastSemantics):
    """Exact semantics over FastWords, fast as long as numbers are ordinary."""

    def __init__(self, settings: Settings = DEFAULTS, *, brief: bool = False) -> None:
        """brief: code that is quick to compile, not to run: every operation is a call."""
        super().__init__(lambda lanes: None, settings)
        self.brief = brief

    def _operands(self, a: FastWord, b: FastWord) -> tuple[Any, Any]:
        return a.floats(), b.floats()

    def _called(self, name: str, a: FastWord, b: FastWord, carry: bool) -> Result:
        function = _exact(name, self.settings["infinity_order"])
        bits = call(function, a.floats().bitcast(i32), b.floats().bitcast(i32))
        return self._lazy(bits.bitcast(f32), carry)

    def _guard(self, name: str, a: FastWord, b: FastWord, single: Any) -> Any:
        strange = (single.bitcast(i32) & 0x7FFFFFFF).uge(LARGEST)
        cell = var(f32x16, single)
        slow, on = new_block(), new_block()
        jump_if(any_(strange), slow, on)
        enter(slow)
        # -0 may stand for +0 here, which the exact operations treat alike.
        operands = a.floats().bitcast(i32), b.floats().bitcast(i32)
        exact = call(_exact(name, self.settings["infinity_order"]), *operands, cold=True)
        cell.set(exact.bitcast(f32))
        jump(on)
        enter(on)
        return cell.get()

    def fadd(self, a: FastWord, b: FastWord) -> Result:
        if self.brief:
            return self._called("fadd", a, b, True)
        return self._lazy(self._guard("fadd", a, b, a.floats() + b.floats()), True)

    def fsub(self, a: FastWord, b: FastWord) -> Result:
        if self.brief:
            return self._called("fsub", a, b, True)
        return self._lazy(self._guard("fsub", a, b, a.floats() - b.floats()), True)

    def fmul(self, a: FastWord, b: FastWord) -> Result:
        carry = self.settings["fmul_carry"] == "positive"
        if self.brief:
            return self._called("fmul", a, b, carry)
        return self._lazy(self._guard("fmul", a, b, a.floats() * b.floats()), carry)


@lru_cache
def _exact(name: str, infinity_order: str) -> Function:
    """The operation with its full semantics, as a function of two words."""
    settings = {**DEFAULTS, "infinity_order": infinity_order}

    def body(a: Any, b: Any) -> Any:
        result: Result = getattr(Semantics(SimdOps(), settings), name)(a, b)
        return result.word

    return Function((i32x16, i32x16), i32x16, body, f"exact_{name}")
