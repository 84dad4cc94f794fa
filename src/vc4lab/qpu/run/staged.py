"""The interpreter in an environment of staged code, which it runs eagerly.

Words are numpy arrays between instructions; the environment sees them as values whose lanes are
known, and a debugger steps through its source.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from vc4lab.qpu.isa.ops import Mask, Word
from vc4lab.qpu.run.execute import Core
from vc4lab.qpu.run.interpreter import Interpreter
from vc4lab.simd import Value, const, i32x16, mask16
from vc4lab.simd.eager import Eager
from vc4lab.simd.trace import entered
from vc4lab.simd.value import Lanes


class EagerCore(Core):
    """A core whose environment takes and gives staged values."""

    def adopt(self, value: Any, source: str = "") -> Word:
        return Eager.words(value) if isinstance(value, Value) else value

    def export(self, value: Word) -> Value:
        return Lanes(i32x16, "", value)

    def export_mask(self, mask: Mask | None) -> Value:
        return const(mask16, True) if mask is None else Lanes(mask16, "", mask)


class EagerInterpreter(Interpreter):
    """Everything it does, and its environment, is done inside an `eager_run`."""

    core_type = EagerCore


def eager_run() -> AbstractContextManager[Any]:
    """Where staged code is carried out at once, with Python's arithmetic."""
    return entered(Eager("default", {}).trace)
