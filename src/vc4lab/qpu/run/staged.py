"""The interpreter in an environment of staged code, which it runs eagerly.

Words are numpy arrays between instructions; the environment sees them as values whose lanes are
known, and a debugger steps through its source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.qpu.isa.ops import Mask, Word
from vc4lab.qpu.run.execute import Core
from vc4lab.qpu.run.interpreter import Interpreter
from vc4lab.qpu.run.wide import WideEnvironment, WideInterpreter, rows_of
from vc4lab.simd import Value, const, i32x16, mask16
from vc4lab.simd.eager import Eager, running
from vc4lab.simd.value import Lanes

if TYPE_CHECKING:
    from vc4lab.qpu.run.wide import Rows
    from vc4lab.simd.eager_wide import WideEager


class EagerCore(Core):
    """A core whose environment takes and gives staged values."""

    def adopt(self, value: Any, source: str = "") -> Word:
        return Eager.words(value) if isinstance(value, Value) else value

    def export(self, value: Word) -> Value:
        return Lanes(i32x16, "", _lanes(value))

    def export_mask(self, mask: Mask | None) -> Value:
        return const(mask16, True) if mask is None else Lanes(mask16, "", _lanes(mask))


def _lanes(words: Any) -> Any:
    """All 16 of them."""
    return words if words.shape[-1] > 1 else np.broadcast_to(words, (*words.shape[:-1], 16))


class EagerInterpreter(Interpreter):
    """All that it and its environment do is done in an eager run."""

    core_type = EagerCore


class EagerWideEnvironment(WideEnvironment):
    """An environment of staged code. run: what carries it out."""

    run: WideEager


class EagerWideInterpreter(WideInterpreter):
    """Many runs of a program at once."""

    env: EagerWideEnvironment
    core_type = EagerCore

    def advance(self, budget: int) -> list[WideInterpreter]:
        with running(self.env.run):
            return super().advance(budget)


def part_of(value: Value, rows: Rows) -> Value:
    """The value in some of the runs."""
    return Lanes(value.type, "", rows_of(Eager.words(value), rows))
