"""The cores take turns: who runs, who waits for what, and when time may skip.

One core alone runs in slices up to the next event. Several run in rounds of short turns, always in
the same order, and time passes for all of them together (`Clock.share`). A core that waits (wfi,
wfe, a polled register, a loop that only watches memory) gives up its turn; when all of them wait,
time skips to the next event. Parked cores cost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vc4lab.soc.address.block import Poll
from vc4lab.soc.cores.code_pages import forget_addresses
from vc4lab.soc.cores.core import IDLE_LOOP, MASKED_WAIT, POLLING, Core
from vc4lab.soc.cores.core_interrupts import CoreInterrupts
from vc4lab.soc.cores.cpu import Cpu
from vc4lab.soc.cores.outcome import Outcome, UnhandledException
from vc4lab.soc.cores.waits import Waits

if TYPE_CHECKING:
    from vc4lab.soc.address.bus import Bus
    from vc4lab.soc.clock import Event
    from vc4lab.soc.hardware import Hardware

LONGEST_SLICE = 500_000
"""Instructions after which Python looks at a core in any case."""
PROBE, PROBES = 5_000, 16
"""A core that waited for memory to change gets so many shorter slices: it may wait again."""
TURN = 20_000
"""Instructions of a turn when several cores run."""
ALONE = 200_000
"""Nanoseconds that a core runs while all others rest, before they may look again."""
LONGEST_POLL = 200_000
"""Nanoseconds for which a polling core is left alone while others work."""
CALM = 4
"""Both grow to 2**CALM times that while only one core works, and no event is sent."""
LOOKS = 2
"""Rounds without work in which every waiting core looks again."""
QUIET = 4
"""Rounds without work after which time skips."""
HOPELESS = 200
"""So many rounds of loops that watch memory, and of nothing else, are a hang."""
SPIN_TABLE, SPIN_TABLE_END = 0xD8, 0x100
"""AArch64 firmware: core n begins at the address it finds at 0xD8 + 8 n."""


def _nothing() -> None:
    pass


def _longer(time: int, calm: int) -> int:
    """A time that doubles with each four calm turns."""
    return time << max(0, min(calm // 4, CALM))


class Cores:
    """The scheduler of a machine."""

    def __init__(self, machine: Hardware, cpus: list[Cpu]) -> None:
        self._machine = machine
        self._interrupts = CoreInterrupts(machine)
        self._waits = Waits(machine)
        self.all = [Core(cpu, parked=True) for cpu in cpus]
        self.current = self.all[0]
        plan = machine.plan
        self._spin_table = plan.wide and plan.address >= SPIN_TABLE_END
        self._quiet = 0
        self._hopeless = 0
        self._calm = 0
        """Turns of one core while all others rested."""
        self._events_seen = 0
        self._stirred = False
        """Whether an event has happened since the last round."""
        self.slices = 0
        """How often a core was let run, for those who measure."""

    # -- starting ----------------------------------------------------------------------------------

    def power_on(self) -> None:
        """Start core 0, or all of them if the firmware's stub does not hold them back."""
        plan = self._machine.plan
        for core in self.all if plan.all_cores else self.all[:1]:
            self.release(core.number, plan.entry)

    def release(self, number: int, address: int) -> bool:
        """Start a parked core; False if it runs already."""
        core = self.all[number] if number < len(self.all) else None
        if core is None or not core.parked:
            return False
        machine = self._machine
        core.cpu.start(address, machine.plan.entry_registers)
        core.cpu.stale = True
        core.parked = False
        machine.counter.stop()
        return True

    def _look_at_spin_table(self) -> bool:
        """Start the cores whose entry has been written; whether there were any."""
        found = False
        for core in self.all:
            if core.parked:
                address = self._machine.memory.u64(SPIN_TABLE + 8 * core.number)
                found |= address != 0 and self.release(core.number, address)
        return found

    def code_changed(self) -> None:
        """Every core looks at the code it knows before it goes on."""
        for core in self.all:
            core.cpu.stale = True
        if len(self._running()) > 1:
            self._machine.counter.stop()

    def vsync(self) -> None:
        """Once a frame: look at the code, and let the engine's table of addresses grow."""
        self.code_changed()
        for core in self._running():
            forget_addresses(core.cpu.engine)

    def attention(self) -> None:
        """A core was sent an interrupt or a mailbox word: who polls looks again."""
        self._machine.counter.stop()
        self._calm = 0
        for core in self.all:
            core.wake_at = core.wish = 0
            core.vain = 0
            core.polls = []

    def send_event(self) -> None:
        """SEV: cores in wfe go on, the others' next wfe does not wait. (So does SEVL here.)"""
        if self._calm:
            self._calm = 0
            self._machine.counter.stop()
        for core in self.all:
            core.event = not core.parked
            core.nap = 0
            core.naps = 0

    @property
    def working(self) -> list[Cpu]:
        """The cores that are not parked."""
        return [core.cpu for core in self._running()]

    def _running(self) -> list[Core]:
        return [core for core in self.all if not core.parked]

    # -- turns -------------------------------------------------------------------------------------

    def step(self) -> None:
        """Due events, then one slice of the only core that runs, or a turn of each."""
        machine = self._machine
        machine.clock.run_due()
        if machine.ended:
            return
        if self._spin_table and self._look_at_spin_table():
            self._waits.disturb()
        running = self._running()
        if self._waits.again(running):
            if len(running) > 1:
                self._events_seen = machine.clock.events_run
                self._quiet += 1
            return
        if len(running) == 1:
            self._alone(running[0])
        else:
            self._round(running)

    def _slice(self, core: Core, longest: int) -> Outcome | None:
        """Run one core; None if it crashed."""
        machine = self._machine
        self.current = core
        core.asleep = ""
        self.slices += 1
        machine.clock.something_happened()
        end = machine.counter.count + longest
        try:
            while True:
                self._interrupts.deliver(core)
                outcome = self._waits.execute(core, min(machine.clock.limit, end))
                if not machine.counter.unmasked or machine.ended:
                    break
                if self._interrupted_for_ever(core):
                    return None
            machine.v3d_bridge.settle()
        except UnhandledException as crash:
            if crash.storm and len(self._running()) > 1:
                core.crash = crash
                machine.report_crash(crash)
                return Outcome.STORM
            machine.crash(crash)
            return None
        if outcome is Outcome.LIMIT and not machine.ended and core.cpu.lost:
            machine.fail_lost(core.cpu.pc)
            return None
        return outcome

    def _interrupted_for_ever(self, core: Core) -> bool:
        """Whether a core does nothing but serve an interrupt never cleared; ends the run."""
        machine = self._machine
        cpu = core.cpu
        if not self._interrupts.will_be_taken(core):
            return False
        count = machine.counter.count
        if not core.interrupt_storm.grows(cpu.pc, count, machine.signs()):
            return False
        machine.hang_in_interrupts(cpu.pc, core.number)
        return True

    def _idles(self, core: Core) -> bool:
        """Whether the slice that has ended was part of a loop that only watches memory."""
        core.idle.look(touched=self._waits.touched(core))
        return core.idle.waits

    def _alone(self, core: Core) -> None:
        machine = self._machine
        machine.clock.company = False
        machine.clock.share = 1
        if core.asleep != Outcome.WAIT_FOR_INTERRUPT.value or self._interrupts.wake(core):
            self._waits.begin_turn(core)
            outcome = self._slice(core, PROBE if core.probes else LONGEST_SLICE)
            if outcome is None or machine.ended:
                return
            if outcome is Outcome.LIMIT:
                core.probes = max(core.probes - 1, 0)
                if self._idles(core):
                    self._waits_in_loop(core, IDLE_LOOP)
                else:
                    core.steady.forget()
                return
            if self._takes_event(core, outcome):
                return
            core.asleep = outcome.value
            if outcome is Outcome.WAIT_FOR_EVENT:
                self._waits.note(core)
            if self._interrupts.wake(core):
                if not self._interrupts.will_be_taken(core) and self._idles(core):
                    self._waits_in_loop(core, MASKED_WAIT)
                return
        if machine.goes_on or self._interrupts.can_come(core):
            self._waits.wait([core], machine.clock.next_event)
        elif not (self._spin_table and self._look_at_spin_table()):
            self._over([core])

    def _takes_event(self, core: Core, outcome: Outcome) -> bool:
        """Whether an event was there already when a core came to its wfe."""
        event = core.event and outcome is Outcome.WAIT_FOR_EVENT
        core.event = core.event and not event
        return event

    def _waits_in_loop(self, core: Core, how: str) -> None:
        """A core does the same again and again, and changes nothing by itself."""
        machine = self._machine
        core.asleep = how
        if machine.goes_on or self._interrupts.can_come(core):
            core.probes = PROBES
            self._waits.note(core)
            self._waits.wait([core], machine.clock.next_event)
        elif core.idle.hangs:
            self._over([core])
        else:
            core.asleep = ""

    def _round(self, running: list[Core]) -> None:
        machine = self._machine
        clock = machine.clock
        worked = 0
        self._stirred = clock.events_run != self._events_seen
        self._events_seen = clock.events_run
        ready = [core for core in running if self._ready(core)]
        marker = self._marker(running, ready[0]) if len(ready) == 1 else None
        for core in ready:
            if machine.ended:
                return
            clock.company = marker is None
            clock.wish = None
            before = self._take_up_polls(core)
            self._waits.begin_turn(core)
            outcome = self._slice(core, TURN if marker is None else LONGEST_SLICE)
            clock.company = False
            polls_in_vain = marker is not None and self._polls_in_vain()
            core.polls = [bus.exchange_polls(old) for bus, old in before]
            core.polled = self._waits.touched(core)
            if marker is not None:
                marker.cancel()
            if outcome is None:
                return
            if polls_in_vain and outcome is Outcome.LIMIT:
                clock.wish = clock.next_event
            worked += self._works(core, outcome)
        if machine.ended:
            return
        if worked and marker is not None:
            self._calm += 1
        elif worked > 1:
            self._calm = 0
        clock.share = max(worked, 1)
        if worked:
            self._quiet = self._hopeless = 0
        else:
            self._none_works(running)

    def _marker(self, running: list[Core], working: Core) -> Event:
        """An event that ends the slice of a core that runs while all others rest."""
        clock = self._machine.clock
        resting = [core for core in running if core is not working]
        moments = [core.wake_at for core in resting if core.asleep == POLLING]
        return clock.at(min([clock.now + _longer(ALONE, self._calm), *moments]), _nothing)

    def _polls_in_vain(self) -> bool:
        """Whether a core that ran alone polls what only an event or another core can change.

        It then rests like one that polls in company; else it would keep those company who poll a
        timer, and time would pass in steps of a few microseconds.
        """
        machine = self._machine
        for bus in (machine.bus, machine.local_bus):
            polled = bus.polled
            if polled is not None and polled[2] is Poll.EVENT:
                return True
        return False

    def _take_up_polls(self, core: Core) -> list[tuple[Bus, Any]]:
        machine = self._machine
        buses = machine.bus, machine.local_bus
        states: list[Any] = [*core.polls] or [None, None]
        return [(bus, bus.exchange_polls(new)) for bus, new in zip(buses, states, strict=True)]

    def _ready(self, core: Core) -> bool:
        """Whether a core gets a turn."""
        if not core.asleep or self._interrupts.wake(core):
            return True
        if core.asleep == Outcome.WAIT_FOR_INTERRUPT.value:
            return False
        if core.asleep in (Outcome.BRANCH_TO_SELF.value, Outcome.STORM.value):
            return False
        if core.asleep == POLLING:
            now = self._machine.clock.now
            return now >= core.wish or (not self._quiet and now >= core.wake_at)
        core.nap -= 1
        return core.nap <= 0 or self._stirred or 0 < self._quiet <= LOOKS

    def _works(self, core: Core, outcome: Outcome) -> bool:
        """Whether a core's turn was work; else it rests."""
        clock = self._machine.clock
        if self._takes_event(core, outcome):
            return True
        if outcome is not Outcome.LIMIT:
            core.rest(outcome.value)
            if outcome is Outcome.WAIT_FOR_EVENT:
                self._waits.note(core)
            return False
        if clock.wish is not None:
            core.asleep = POLLING
            core.wish = clock.wish
            core.wake_at = min(clock.wish, clock.now + _longer(LONGEST_POLL, core.vain))
            core.vain += 1
            return False
        if self._idles(core):
            core.rest(IDLE_LOOP)
            self._waits.note(core)
            return False
        core.steady.forget()
        core.naps = core.vain = 0
        return True

    def _none_works(self, running: list[Core]) -> None:
        machine = self._machine
        self._quiet += 1
        if self._quiet < QUIET:
            return
        wishes = [core.wish for core in running if core.asleep == POLLING]
        hope = machine.goes_on or any(self._interrupts.can_come(core) for core in running)
        if wishes or hope:
            self._waits.wait(running, min([machine.clock.next_event, *wishes]))
            return
        self._hopeless += 1
        if self._hopeless > HOPELESS or all(core.asleep != IDLE_LOOP for core in running):
            self._over(running)

    def _over(self, running: list[Core]) -> None:
        """Nothing will ever happen again: the program has ended, or it hangs."""
        machine = self._machine
        machine.frames.finish()
        if machine.ended:
            return
        crashes = [core.crash for core in running if core.asleep == Outcome.STORM.value]
        if crashes and crashes[0] is not None:
            machine.crash(crashes[0], reported=True)
            return
        watching = [core for core in running if core.asleep in (IDLE_LOOP, MASKED_WAIT)]
        self.current = core = watching[0] if watching else running[0]
        place = machine.places(core.cpu.pc)
        if watching:
            who = "the CPU" if len(running) == 1 else f"core {core.number}"
            if core.asleep == MASKED_WAIT:
                lines = machine.pending_lines(core.number)
                machine.hang(f"{who} at {place} waits in {MASKED_WAIT} ({lines})")
            else:
                machine.hang(f"{who} at {place} waits in {IDLE_LOOP}, which nothing changes")
        else:
            machine.halt(f"the program has ended in {core.asleep} at {place}")

    @property
    def polled(self) -> tuple[Core, tuple[str, int, Poll]] | None:
        """A core that polls a register (as `Bus.polled` says), and no core does anything else."""
        machine = self._machine
        running = self._running()
        if len(running) == 1:
            found = machine.bus.polled
            return None if found is None else (running[0], found)
        first = None
        for core in running:
            found = machine.bus.polled_in(core.polls[0]) if core.polled and core.polls else None
            if found is None and not core.asleep:
                return None
            if found is not None and (first is None or not core.asleep):
                first = core, found
        return first

    @property
    def asleep(self) -> str:
        """What the cores wait for, "" if one of them works."""
        running = self._running()
        if any(not core.asleep or core.asleep == POLLING for core in running):
            return ""
        return ", ".join(dict.fromkeys(core.asleep for core in running))
