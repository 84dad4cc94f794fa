"""A descriptor that becomes readable at a moment: poll counts in whole milliseconds, and rounds up.

Source: Linux timerfd_create(2).
"""

from __future__ import annotations

import ctypes
import os
import struct
from functools import cache
from typing import Any

_MONOTONIC, _ABSOLUTE = 1, 1
_SPEC = struct.Struct("<qqqq")
_BILLION = 1_000_000_000


class Timer:
    """One moment at a time; without timers in the host's kernel it never comes."""

    def __init__(self) -> None:
        self.descriptor: int = _call("timerfd_create")(
            _MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC
        )  # -1: there are none
        self._moment: float | None = None

    def set(self, moment: float | None) -> None:
        """Readable from then on (seconds of time.monotonic) until it is set anew; None: never."""
        if moment == self._moment:
            return
        self._moment = moment
        at = int((moment or 0.0) * _BILLION) + 1 if moment is not None else 0
        spec = ctypes.create_string_buffer(_SPEC.pack(0, 0, at // _BILLION, at % _BILLION))
        _call("timerfd_settime")(self.descriptor, _ABSOLUTE, spec, None)

    def close(self) -> None:
        """Let go of the descriptor."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


@cache
def _call(name: str) -> Any:
    return getattr(ctypes.CDLL(None, use_errno=True), name)
