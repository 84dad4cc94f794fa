"""How a run of a machine ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Stop(Enum):
    """Why `Machine.run` returned."""

    FRAMES = "the frames came"
    SECONDS = "the time is over"
    HALTED = "the program has ended"
    RESET = "the program asked for a restart"
    HANG = "the program hangs"
    STOPPED = "somebody stopped it"
    CRASH = "the program crashed"


@dataclass(frozen=True)
class RunResult:
    """How a run ended: why, frames presented since power-on, guest seconds, a sentence."""

    reason: Stop
    frames: int
    seconds: float
    message: str
