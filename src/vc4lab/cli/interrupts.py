"""Ctrl-C during a run whose machine is to be saved: it ends at a moment that can be saved."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vc4lab.soc.machine import Machine

MOST_VSYNCS = 60
"""So many vsyncs (a second of guest time) a V3D at work is given to complete its frame."""
MESSAGE = b"\ninterrupted: the state is saved at the next moment possible; again: not saved\n"


class SavedInterrupt:
    """A context in which the first Ctrl-C asks the machine to end, the second ends at once.

    An exception in the middle of an instruction would leave a machine that cannot be saved, so the
    machine is asked at its next vsync.
    """

    def __init__(self, machine: Machine) -> None:
        self.asked = False
        self._machine = machine
        self._vsyncs = 0
        self._installed = False

    def __enter__(self) -> SavedInterrupt:
        if threading.current_thread() is threading.main_thread():
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                signal.signal(signal.SIGINT, self._caught)
                self._installed = True
        before = self._machine.on_vsync

        def on_vsync() -> None:
            if before is not None:
                before()
            if self.asked:
                self._end()

        self._machine.on_vsync = on_vsync
        return self

    def __exit__(self, *_details: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _caught(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        with contextlib.suppress(OSError):
            os.write(2, MESSAGE)  # not by a stream: it may be in use at this moment

    def _end(self) -> None:
        from vc4lab.soc.states.state import can_be_saved

        self._vsyncs += 1
        if can_be_saved(self._machine) or self._vsyncs > MOST_VSYNCS:
            self._machine.end("interrupted")
