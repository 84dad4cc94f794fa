"""What the golden interpreter knows about a draw, and the ids by which native code names draws."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from vc4lab.qpu.environment import GOLDEN_BUDGET
from vc4lab.v3d.fragment.tmu_requests import texture_numbers

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.fragment.tile_context import FragmentKey

_HIGHEST_ID = 1 << 30


class GoldenDraw:
    """What the interpreter must know about a draw; `DrawParams.callback_id` names it."""

    def __init__(self, key: FragmentKey, memory: GuestMemory, budget: int = GOLDEN_BUDGET) -> None:
        self.key = key
        self.budget = budget
        """Instructions for a block of pixels."""
        self.memory = memory
        self.program = key.whole_program
        self.failure: Exception | None = None
        """What ended the draw: `Unsupported`, or an error of the simulator itself."""

    @cached_property
    def requests(self) -> dict[int, int]:
        """Instruction index of an S write → number of its texture request."""
        return texture_numbers(self.program)


_draws: WeakValueDictionary[int, GoldenDraw] = WeakValueDictionary()
_lock = threading.Lock()
_next_id = 1


def register(draw: GoldenDraw) -> int:
    """Makes a draw known to the callback, as long as it lives; returns its id."""
    global _next_id
    with _lock:
        number = _next_id
        _next_id = _next_id % _HIGHEST_ID + 1
        _draws[number] = draw
        return number


def registered(number: int) -> GoldenDraw | None:
    """The draw with an id, if it still lives."""
    return _draws.get(number)
