"""Numbers and words given by users: what is allowed, declared once.

The options of the command line and the arguments of the Python interface take their ranges from
here, so that both refuse the same and with the same sentence.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Whole:
    """Whole numbers from `least` to `most`."""

    name: str
    least: int
    most: int

    def check(self, value: Any) -> int:
        """The number. Raises ValueError, or TypeError for what is no whole number."""
        try:
            number = operator.index(value)
        except TypeError:
            raise TypeError(f"{self.name} must be a whole number, not {value!r}") from None
        if not self.least <= number <= self.most:
            raise ValueError(f"{self.name}: {_shown(number)} is not {self}")
        return number

    def check_optional(self, value: Any) -> int | None:
        """Return a checked value; None stays None."""
        return None if value is None else self.check(value)

    def __str__(self) -> str:
        return f"from {_shown(self.least)} to {_shown(self.most)}"


@dataclass(frozen=True)
class Real:
    """Finite numbers from `least` to `most`."""

    name: str
    least: float
    most: float

    def check(self, value: Any) -> float:
        """The number. Raises ValueError, or TypeError for what is no number."""
        try:
            number = float(value) if not isinstance(value, str) else None
        except (TypeError, OverflowError):
            number = None
        if number is None:
            raise TypeError(f"{self.name} must be a number, not {value!r}"[:200])
        if math.isnan(number) or not self.least <= number <= self.most:
            raise ValueError(f"{self.name}: {number:g} is not {self}")
        return number

    def check_optional(self, value: Any) -> float | None:
        """Return a checked value; None stays None."""
        return None if value is None else self.check(value)

    def __str__(self) -> str:
        return f"from {self.least:g} to {self.most:g}"


def check_word(name: str, value: Any, choices: Iterable[str]) -> str:
    """One of some words. Raises ValueError."""
    known = tuple(choices)
    if value not in known:
        raise ValueError(f"{name} {str(value)[:40]!r}: it must be {' or '.join(known)}")
    return str(value)


def _shown(number: int) -> str:
    """A number as people write it; large ones, which are addresses mostly, in hexadecimal."""
    if abs(number) < 1 << 24 or (number % 1000 == 0 and abs(number) < 1 << 64):
        return str(number)
    text = hex(number)
    return text if len(text) < 40 else f"{text[:20]}…"


ENGINES = ("jit", "interpreter")
CACHE_MODES = ("check", "stale")
RAM_CONTENTS = ("noise", "zero")
"""Names of the contents of RAM at power-on."""

FRAMES = Whole("frames", 0, 1_000_000_000)
EVERY = Whole("every", 1, 1_000_000_000)
SECONDS = Real("seconds", 0.0, 1_000_000_000.0)
"""Guest time; 31 years, in nanoseconds less than 63 bits."""
THREADS = Whole("threads", 1, 256)
BUDGET = Whole("budget", 1, 1 << 40)
QPU_COUNT = Whole("qpus", 1, 12)
GPU_MEMORY = Whole("gpu_memory", 1, 768)
"""MiB."""
RECORD_COUNT = Whole("record_count", 1, 1_000_000)
RECORD_SIZE = Whole("record_size", 1, 1 << 20)
"""MiB."""
CAPTURE_SIZE = Whole("capture_size", 1, 1024)
"""MiB."""
PORT = Whole("port", 0, 65535)
JOB = Whole("job", 0, 1_000_000_000)
COUNT = Whole("count", 0, 1 << 32)
OFFSET = Whole("offset", 0, (1 << 32) - 1)
ADDRESS = Whole("address", 0, (1 << 32) - 1)
UNIFORM = Whole("uniform", -(1 << 31), (1 << 32) - 1)
PIN = Whole("pin", 0, 53)
CORES = Whole("cores", 1, 4)
LEVEL = Whole("level", 0, 1)
VERTEX_INDEX = Whole("vertices", 0, (1 << 32) - 1)
PICTURES = Whole("frames", 1, FRAMES.most)
"""Pictures of a program on the virtual device, after which it is ended."""
KEY = Whole("code", 0, 0x2FF)
"""Linux's KEY_ and BTN_ numbers."""
SLOWER = Real("slower", 1.0, 1e6)
"""How many times slower a chip is made."""
STEPS = Whole("steps", -1_000_000, 1_000_000)
PLACE = Real("place", -1e15, 1e15)
"""A pointer's coordinate, in pixels; what no event can hold is clamped."""
