"""Ctrl-C during a run with --save-state: it ends at a moment that can be saved."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from types import FrameType

from vc4lab.listeners import Subscription
from vc4lab.soc.events import Vsync
from vc4lab.soc.machine import Machine

MAX_VSYNCS = 60
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
        self._vsync: Subscription[Vsync] | None = None

    def __enter__(self) -> SavedInterrupt:
        if threading.current_thread() is threading.main_thread():
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                signal.signal(signal.SIGINT, self._caught)
                self._installed = True
        self._vsync = self._machine.listeners.vsync.subscribe(self._look)
        return self

    def __exit__(self, *_details: object) -> None:
        if self._vsync is not None:
            self._vsync.close()
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _look(self, _event: Vsync) -> None:
        if self.asked:
            self._end()

    def _caught(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        with contextlib.suppress(OSError):
            os.write(2, MESSAGE)  # not by a stream: it may be in use at this moment

    def _end(self) -> None:
        from vc4lab.soc.states.state import can_be_saved

        self._vsyncs += 1
        if can_be_saved(self._machine) or self._vsyncs > MAX_VSYNCS:
            self._machine.end("interrupted")
