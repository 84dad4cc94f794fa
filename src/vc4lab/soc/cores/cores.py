"""The cores of a board: whether each runs, what it waits for, and what applies to all of them.

Whose turn it is and for how long: `turns.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.soc.address.bus import Bus, Polled
from vc4lab.soc.boot.boot_plan import BootPlan
from vc4lab.soc.clock import FAR
from vc4lab.soc.cores.code.native_events import (
    CALM,
    CURRENT,
    EVENTS,
    NAP,
    NAPS,
    RETURNS,
    RUNNING,
    STUB,
    Events,
)
from vc4lab.soc.cores.cpu import Cpu
from vc4lab.soc.cores.exceptions.exceptions import ArmException
from vc4lab.soc.cores.exceptions.outcome import InterruptStorm, UnhandledException
from vc4lab.soc.cores.idle import IdleLoop
from vc4lab.soc.cores.steady import SteadyWait
from vc4lab.soc.native import SliceCounter

IDLE_LOOP = "a loop that waits for memory to change"
MASKED_WAIT = "wfi, which ends at once because of a pending, masked interrupt"
POLLING = "polling"
"""Three of the ways in which a core is asleep; the others are outcomes of slices."""
LONGEST_NAP = 8
"""Rounds for which a core in a wfe loop is left alone while others work."""


class Core:
    """A core and what it waits for."""

    def __init__(self, cpu: Cpu, events: Events) -> None:
        self.cpu = cpu
        self.number = cpu.number
        self._shared, self._own = events.words, cpu.events.words
        self._bit = 1 << cpu.number
        self.idle = IdleLoop(cpu)
        self.steady = SteadyWait(cpu, self.idle)
        self.asleep = ""
        self.pending: tuple[ArmException, ...] = ()
        """The interrupts that wait for it, as the present round began."""
        self.looks = True
        """Asleep in wfe: whether it looks up now and then, as if an event had come."""
        self.stream_at = FAR
        """In wfe: the moment at which its timer sends it an event."""
        self.wish = 0
        """The moment until which it polls."""
        self.wake_at = 0
        self.probes = 0
        """Slices that are kept short because it waited for memory to change a moment ago."""
        self.vain = 0
        """Turns in which it only polled."""
        self.polls: bytes | None = None
        """Its polls, while others have their turn."""
        self.polled = False
        """Whether there were device accesses in its last turn."""
        self.activity = (0, 0, 0, 0)
        self.interrupt_storm = InterruptStorm()
        self.crash: UnhandledException | None = None
        """The exception that it takes again and again."""
        self.began = 0
        """Device accesses and instructions when its turn began."""

    @property
    def parked(self) -> bool:
        """Whether it has not been started yet."""
        return not self._shared[RUNNING] & self._bit

    @parked.setter
    def parked(self, parked: bool) -> None:
        running = self._shared[RUNNING]
        self._shared[RUNNING] = running & ~self._bit if parked else running | self._bit

    @property
    def event(self) -> bool:
        """The event register: sev or sevl has set it, and no wfe has taken it since."""
        return self._shared[EVENTS] & self._bit != 0

    @event.setter
    def event(self, event: bool) -> None:
        events = self._shared[EVENTS]
        self._shared[EVENTS] = events | self._bit if event else events & ~self._bit

    @property
    def returns(self) -> int:
        """Exceptions that it had taken when it came to its last wfe."""
        return self._own[RETURNS]

    @returns.setter
    def returns(self, count: int) -> None:
        self._own[RETURNS] = count

    @property
    def naps(self) -> int:
        """Rounds for which it is left alone, while it waits; `nap` is what is left of them."""
        return self._shared[NAPS + self.number]

    @naps.setter
    def naps(self, rounds: int) -> None:
        self._shared[NAPS + self.number] = rounds

    @property
    def nap(self) -> int:
        """Rounds that are left of `naps`."""
        return self._shared[NAP + self.number]

    @nap.setter
    def nap(self, rounds: int) -> None:
        self._shared[NAP + self.number] = rounds

    def attend(self) -> None:
        """An interrupt or a mailbox word was sent: if it polls, it checks again."""
        self.wake_at = self.wish = self.vain = 0
        self.polls = None

    def rest(self, how: str) -> None:
        """It waits; the longer, the more seldom it is asked again."""
        self.asleep = how
        naps = min(self.naps + 1, LONGEST_NAP)
        self.naps = self.nap = naps


class Cores:
    """All cores of a machine; those that were not started yet are parked.

    Attributes
    ----------
    events
        The cores' event registers.
    """

    def __init__(self, plan: BootPlan, counter: SliceCounter, bus: Bus) -> None:
        self.others: Callable[[], object] = lambda: None
        """Another value when something besides cores and DMA may have written to memory."""
        self._looked_at: object = None
        self.attentions = 0
        """How often cores were sent an interrupt or a mailbox word."""
        self.stub_waits = False
        """Whether parked cores start at an event only, see `parking.py`."""
        self.event_sent: Callable[[], object] = lambda: None
        """Called at each sev."""
        self._plan = plan
        self._counter = counter
        self._bus = bus
        self.all: list[Core] = []
        self._running: tuple[int, list[Core]] = 0, []
        """Which cores run, as bits and as a list."""
        self.events = Events(counter.address, lambda: self.event_sent())

    @property
    def current(self) -> Core:
        """The core whose turn it is."""
        return self.all[self.events.words[CURRENT]]

    @current.setter
    def current(self, core: Core) -> None:
        self.events.words[CURRENT] = core.number

    @property
    def calm(self) -> int:
        """Turns of one core while all others rested, since an event or interrupt was sent."""
        return self.events.words[CALM]

    @calm.setter
    def calm(self, turns: int) -> None:
        self.events.words[CALM] = turns

    def add(self, cpus: list[Cpu]) -> None:
        """The board's cores are made."""
        self.all = [Core(cpu, self.events) for cpu in cpus]
        if self.stub_waits:
            self.events.words[STUB] = (1 << len(cpus)) - 1

    # -- starting ----------------------------------------------------------------------------------

    def power_on(self) -> None:
        """Start core 0, or all of them if the firmware's stub does not hold them back."""
        for core in self.all if self._plan.all_cores else self.all[:1]:
            self.release(core.number, self._plan.entry)

    def mailed(self, number: int, address: int) -> bool:
        """A core was sent the address to begin at; whether it takes it at once."""
        return not self.stub_waits and self.release(number, address)

    def release(self, number: int, address: int) -> bool:
        """Start a parked core; False if it runs already."""
        core = self.all[number] if number < len(self.all) else None
        if core is None or not core.parked:
            return False
        self._counter.note()
        core.cpu.start(address, self._plan.entry_registers)
        core.cpu.stale = True
        core.parked = False
        self._counter.stop()
        return True

    # -- what is asked of all ----------------------------------------------------------------------

    def code_changed(self) -> None:
        """Code may have been written over: every core looks at what it knows before it goes on."""
        self._counter.note()
        for core in self.all:
            core.cpu.stale = True
        if len(self.running) > 1:
            self._counter.stop()

    def code_maintained(self) -> None:
        """A program maintains its instruction cache: code may have been written over.

        Linux does so for each page of code that it maps. A core alone notices what it has written
        itself, so that there is something to look for only if something else may have written.
        """
        others = self.others()
        if len(self.running) > 1 or others != self._looked_at:
            self._looked_at = others
            self.code_changed()

    def vsync(self) -> None:
        """Once a frame: look at the code, and let the engine's table of addresses grow."""
        self.code_maintained()
        for core in self.running:
            core.cpu.forget_translations()

    def attention(self) -> None:
        """A core was sent an interrupt or a mailbox word: polling cores check again."""
        self._counter.note()
        self._counter.stop()
        self.calm = 0
        self.attentions += 1
        for core in self.all:
            core.attend()

    # -- what they do ------------------------------------------------------------------------------

    @property
    def running(self) -> list[Core]:
        """The cores that are not parked."""
        bits = self.events.words[RUNNING]
        if bits != self._running[0]:
            self._running = bits, [core for core in self.all if not core.parked]
        return self._running[1]

    @property
    def polled(self) -> Polled | None:
        """The register that a core polls, if no core does anything else."""
        running = self.running
        if len(running) == 1:
            return self._bus.polled
        first = None
        for core in running:
            found = self._bus.polled_in(core.polls) if core.polled else None
            if found is None and not core.asleep:
                return None
            if found is not None and (first is None or not core.asleep):
                first = found
        return first

    @property
    def asleep(self) -> str:
        """Name what the cores wait for, "" if one of them works."""
        running = self.running
        if any(not core.asleep or core.asleep == POLLING for core in running):
            return ""
        return ", ".join(dict.fromkeys(core.asleep for core in running))
