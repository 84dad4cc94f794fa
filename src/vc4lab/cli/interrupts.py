"""A signal during a run with --save-state: it ends at a moment that can be saved."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Self

from vc4lab import interruption
from vc4lab.soc.events import Vsync
from vc4lab.soc.machine import Machine

MAX_VSYNCS = 60
"""So many vsyncs (a second of guest time) a V3D at work is given to complete its frame."""
MESSAGE = "\ninterrupted: the state is saved at the next moment possible; again: not saved\n"


class SavedInterrupt:
    """A context in which the first signal asks the machine to end; a second ends the process.

    An exception while the V3D works would leave a machine that cannot be saved, so the machine is
    asked at its next vsync.
    """

    def __init__(self, machine: Machine) -> None:
        self.asked = False
        self._machine = machine
        self._vsyncs = 0
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(interruption.owned(MESSAGE))
        self._stack.enter_context(self._machine.listeners.vsync.subscribe(self._look))
        return self

    def __exit__(self, *_details: object) -> None:
        self._stack.close()

    def _look(self, _event: Vsync) -> None:
        if interruption.came():
            self.asked = True
            self._end()

    def _end(self) -> None:
        from vc4lab.soc.states.state import can_be_saved

        self._vsyncs += 1
        if can_be_saved(self._machine) or self._vsyncs > MAX_VSYNCS:
            self._machine.end("interrupted")
