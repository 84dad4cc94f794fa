"""Draws of the reference interpreter, and the ids by which native code names them."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from vc4lab.qpu.run.environment import (
    INSTRUCTION_BUDGET,
    PROVEN_BUDGET,
    UNPROVEN_BUDGET,
    Unsupported,
    uncompiled_budget,
)
from vc4lab.v3d.state.tile_context import DrawParams
from vc4lab.v3d.tmu.requests import texture_numbers

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory
    from vc4lab.simd import NativeFunction
    from vc4lab.v3d.state.tile_context import FragmentKey

_HIGHEST_ID = 1 << 30

FIRST_UNCOMPILED_BUDGET = 1 << 7
"""`FIRST_BUDGET` where the compiler refused the program. Each tile of a frame spends it on an
endless shader, at about 5 us an instruction, and 1080 lines have 510 tiles.
"""


class Termination:
    """Whether it is unproven that a program ends; shared by its draws, so that one tile finds out.

    It stays so after a proof: the next frame may be different.
    """

    unproven = False


class ReferenceDraw:
    """A draw as the interpreter knows it; `DrawParams.callback_id` names it.

    compiled: gives the entry point of the same draw's compiled pipeline, which decides about
    programs that take long; it may raise Unsupported. None: there is no such pipeline.
    """

    def __init__(
        self, key: FragmentKey, memory: GuestMemory, compiled: Callable[[], NativeFunction] | None = None
    ) -> None:
        self.key = key
        self.memory = memory
        self.program = key.whole_program
        self.termination = _termination_of(key)
        self.proven = False
        """Compiled code has run the program to its end in the tiles that are rendered now."""
        self.failure: BaseException | None = None
        """The end of the draw: `Unsupported`, or an error of the simulator itself."""
        self._compiled = compiled

    @property
    def alone(self) -> bool:
        """Whether no compiled pipeline can decide: the interpreter uses small budgets."""
        return self._compiled is None

    @cached_property
    def compiled(self) -> int:
        """Entry point of the compiled pipeline, 0 if there is none."""
        try:
            if self._compiled is None:
                return 0
            self._code = self._compiled()  # loaded as long as this lives
            return self._code.address
        except Unsupported:
            self._compiled = None
            return 0

    def budget(self, granted: int) -> int:
        """Instructions for a block of pixels, in a pass that grants compiled code so many."""
        if self.alone:
            whole = granted >= INSTRUCTION_BUDGET
            return uncompiled_budget(len(self.program)) if whole else FIRST_UNCOMPILED_BUDGET
        return PROVEN_BUDGET if self.proven else UNPROVEN_BUDGET

    @cached_property
    def requests(self) -> dict[int, int]:
        """Instruction index of an S write → number of its texture request."""
        return texture_numbers(self.program)


_draws: WeakValueDictionary[int, ReferenceDraw] = WeakValueDictionary()
_terminations: WeakValueDictionary[Any, Termination] = WeakValueDictionary()
_lock = threading.Lock()
_next_id = 1


def register(draw: ReferenceDraw) -> int:
    """Makes a draw known to the callback, as long as it lives; returns its id."""
    global _next_id
    with _lock:
        number = _next_id
        _next_id = _next_id % _HIGHEST_ID + 1
        _draws[number] = draw
        return number


def registered(params: int) -> ReferenceDraw | None:
    """The draw of the `DrawParams` at a host address; None if it is compiled or lives no more."""
    number = ctypes.c_int32.from_address(params + DrawParams.callback_id.offset).value
    return _draws.get(number)


def _termination_of(key: FragmentKey) -> Termination:
    with _lock:
        return _terminations.setdefault((key.code_address, key.program, key.code_layout), Termination())
