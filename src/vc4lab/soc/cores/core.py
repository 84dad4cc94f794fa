"""A core as the scheduler sees it: whether it runs, what it waits for, when to ask it again."""

from __future__ import annotations

from typing import Any

from vc4lab.soc.cores.cpu import Cpu
from vc4lab.soc.cores.idle import IdleLoop
from vc4lab.soc.cores.outcome import UnhandledException
from vc4lab.soc.cores.steady import SteadyWait
from vc4lab.soc.cores.storms import InterruptStorm

IDLE_LOOP = "a loop that waits for memory to change"
MASKED_WAIT = "wfi, which an interrupt ends at once that is pending, but masked"
POLLING = "polling"
"""Three of the ways in which a core is asleep; the others are outcomes of slices."""
LONGEST_NAP = 8
"""Rounds for which a core in a wfe loop is left alone while others work."""


class Core:
    """A core and what it waits for."""

    def __init__(self, cpu: Cpu, parked: bool) -> None:
        self.cpu = cpu
        self.number = cpu.number
        self.parked = parked
        self.idle = IdleLoop(cpu)
        self.steady = SteadyWait(cpu)
        self.asleep = ""
        self.event = False
        """The event register: sev or sevl has set it, and no wfe has taken it since."""
        self.wish = 0
        """The moment until which it polls."""
        self.wake_at = 0
        self.naps = 0
        self.nap = 0
        self.probes = 0
        """Slices that are kept short because it waited for memory to change a moment ago."""
        self.vain = 0
        """Turns in which it only polled."""
        self.polls: list[Any] = []
        """What it polls on each bus, while others have their turn."""
        self.polled = False
        """Whether there were device accesses in its last turn."""
        self.activity = (0, 0, 0)
        self.interrupt_storm = InterruptStorm()
        self.crash: UnhandledException | None = None
        """The exception that it takes for ever."""
        self.began = 0
        """Device accesses and instructions when its turn began."""

    def rest(self, how: str) -> None:
        """It waits; the longer, the more seldom it is asked again."""
        self.asleep = how
        self.naps = min(self.naps + 1, LONGEST_NAP)
        self.nap = self.naps
