"""The cores take turns: which one runs, what each waits for, and when time may skip.

One core alone runs in slices up to the next event. Several run in rounds of short turns, always in
the same order, and time passes for all of them together (`Clock.share`). A core that waits (wfi,
wfe, a polled register, a loop that only watches memory) gives up its turn; when all of them wait,
time skips to the next event. Parked cores cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.registers import Poll
from vc4lab.soc.clock import FAR
from vc4lab.soc.cores.cores import IDLE_LOOP, MASKED_WAIT, POLLING, Core
from vc4lab.soc.cores.exceptions.outcome import EVENT, INTERRUPT, SELF, STORM, Outcome, UnhandledException
from vc4lab.soc.hardware import Hardware
from vc4lab.soc.inspect.watchdog import pending_lines
from vc4lab.soc.native import END
from vc4lab.soc.slices.core_interrupts import CoreInterrupts
from vc4lab.soc.slices.native_rounds import NativeTurns
from vc4lab.soc.slices.native_turns import (
    ALL_WAIT,
    ALONE,
    CALM,
    LONGEST_POLL,
    LONGEST_SLICE,
    LOOKS,
    QUIET,
    ROUND_BEGINS,
    TURN,
    TURN_BEGINS,
    TURN_ENDS,
)
from vc4lab.soc.slices.parking import Parking
from vc4lab.soc.slices.run_end import RunEnd
from vc4lab.soc.slices.waits import Waits

PROBE, PROBES = 5_000, 16
"""A core that waited for memory to change gets so many shorter slices: it may wait again."""
HOPELESS = 200
"""So many rounds of loops that watch memory, and of nothing else, are a hang."""


def _longer(time: int, calm: int) -> int:
    """A time that doubles with each four calm turns."""
    return time << max(0, min(calm // 4, CALM))


class Turns:
    """Lets the cores of a board run.

    Parameters
    ----------
    end
        Hears of programs that end, crash or hang; it says when a run is over.
    rest
        Called when all cores wait, and time is about to skip.
    """

    def __init__(self, hardware: Hardware, end: RunEnd, rest: Callable[[], None]) -> None:
        self._hardware = hardware
        self._cores = hardware.processors
        self._end = end
        self._interrupts = CoreInterrupts(hardware)
        self._waits = Waits(hardware, end, rest)
        self.parking = Parking(hardware)
        self._native = NativeTurns(hardware, lambda: end.is_reached)
        self._quiet = 0
        self._hopeless = 0
        self._events_seen = 0
        self._stirred = False
        """Whether an event has happened since the last round."""
        self.slices = 0
        """How often a core was run, for measurements."""
        self.native_slices = 0
        """How often of these by native code."""

    @property
    def _calm(self) -> int:
        """In saved states it stands among the others."""
        return self._cores.calm

    @_calm.setter
    def _calm(self, calm: int) -> None:
        self._cores.calm = calm

    # -- turns -------------------------------------------------------------------------------------

    def step(self) -> None:
        """Due events, then one slice of the only core that runs, or a turn of each."""
        hardware = self._hardware
        hardware.clock.run_due()
        if self._end.is_reached:
            return
        if self.parking.watches and self.parking.look():
            self._waits.disturb()
        running = self._cores.running
        if self._waits.again(running):
            if len(running) > 1:
                self._events_seen = hardware.clock.events_run
                self._quiet += 1
            return
        hardware.counter.keeps_company(len(running) > 1)
        if len(running) == 1:
            self._alone(running[0])
            return
        self._interrupts.look(running)
        if self.parking.watches or not self._native.serve(running):
            self._round(running)
        else:
            self._native_rounds(running)

    def _native_rounds(self, running: list[Core]) -> None:
        """Rounds in native code, and the end of the one that it leaves to Python."""
        native = self._native
        where = native.run(running, self._quiet, self._hopeless, self._events_seen)
        self._quiet, self._hopeless = native.quiet
        self.slices += native.slices
        self.native_slices += native.slices
        if native.rounds:
            self._events_seen = native.events_seen
        if where in (TURN_BEGINS, TURN_ENDS):
            ready = [native.begun, *native.rest]
            self._take_turns(running, ready, native.alone, where == TURN_ENDS, native.worked)
        elif where == ROUND_BEGINS:
            self._interrupts.look(running)
            self._round(running)
        elif where == ALL_WAIT:
            self._none_works(running)

    def _slice(self, core: Core, longest: int, begun: bool = False) -> Outcome | None:
        """Run one core; None if it crashed. `begun`: native code has let its engine run."""
        hardware = self._hardware
        if begun:
            end = hardware.counter.words[END]
        else:
            self._cores.current = core
            core.asleep = ""
            self.slices += 1
            hardware.clock.something_happened()
            end = hardware.counter.count + longest
            hardware.counter.words[END] = end
        try:
            while True:
                if begun:
                    begun = False
                    outcome = core.cpu.finish(self._native.error)
                    if self._native.until is not None:
                        outcome = self._waits.go_on(core, outcome, self._native.until)
                else:
                    self._interrupts.deliver(core)
                    outcome = self._waits.execute(core, min(hardware.clock.limit, end))
                if self._end.is_reached:
                    break
                if not hardware.counter.unmasked and not self._goes_on(core, outcome, end):
                    break
                if self._interrupted_for_ever(core):
                    return None
            hardware.v3d_bridge.settle()
        except UnhandledException as crash:
            if crash.storm and len(self._cores.running) > 1:
                core.crash = crash
                self._end.report_crash(crash)
                return Outcome.STORM
            self._end.crash(crash)
            return None
        if outcome is Outcome.LIMIT and not self._end.is_reached and core.cpu.lost:
            self._end.fail_lost(core.cpu.pc)
            return None
        return outcome

    def _interrupted_for_ever(self, core: Core) -> bool:
        """Whether a core does nothing but serve an interrupt never cleared; ends the run."""
        hardware = self._hardware
        cpu = core.cpu
        if not self._interrupts.will_be_taken(core):
            return False
        count = hardware.counter.count
        if not core.interrupt_storm.grows(cpu.pc, count, hardware.signs()):
            return False
        self._end.hang_in_interrupts(cpu.pc, core.number)
        return True

    def _idles(self, core: Core) -> bool:
        """Whether the slice that has ended was part of a loop that only watches memory."""
        core.idle.look(touched=self._waits.touched(core))
        return core.idle.waits

    def _alone(self, core: Core) -> None:
        hardware = self._hardware
        hardware.clock.company = False
        hardware.clock.share = 1
        if not self._sleeps_on(core):
            self._waits.begin_turn(core)
            outcome = self._slice(core, PROBE if core.probes else LONGEST_SLICE)
            if outcome is None or self._end.is_reached:
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
                self._waits_for_event(core)
            if self._interrupts.wake(core):
                if not self._interrupts.will_be_taken(core) and self._idles(core):
                    self._waits_in_loop(core, MASKED_WAIT)
                return
        if hardware.goes_on or self._interrupts.can_come(core) or core.stream_at < FAR:
            self._waits.wait([core], min(hardware.clock.next_event, core.stream_at))
        elif not (self.parking.watches and self.parking.look()):
            self._over([core])

    def _sleeps_on(self, core: Core) -> bool:
        """Whether nothing wakes a core from its wfi or wfe."""
        if core.asleep == INTERRUPT:
            return not self._interrupts.wake(core)
        if core.asleep != EVENT or core.looks:
            return False
        return not self._interrupts.wake(core) and not self._has_event(core)

    def _has_event(self, core: Core) -> bool:
        """Whether an event has come to a core that sleeps in wfe; it is taken."""
        found = core.event or self._hardware.clock.now >= core.stream_at
        core.event = core.event and not found
        return found

    def _waits_for_event(self, core: Core) -> None:
        """A core begins to sleep in wfe.

        It looks up at every event of the machine where what wakes it is not known exactly: after a
        load-exclusive on a Pi 3 a write to that place does. No core sleeps in a yield, nor an
        ARM1176 in a wfe.
        """
        hardware, cpu = self._hardware, core.cpu
        timer = cpu.links.timer
        core.looks = hardware.forgiving or cpu.yields or timer is None
        if not core.looks and hardware.board.cpu64 is not None:
            core.looks = cpu.monitors_memory
        core.stream_at = FAR
        if core.looks or timer is None:
            self._waits.note(core)
            return
        core.polls = None
        hardware.bus.polls.forget()
        if timer.has_streams and (wait := timer.next_in_stream()) is not None:
            core.stream_at = hardware.clock.now + wait

    def _goes_on(self, core: Core, outcome: Outcome, end: int) -> bool:
        """Whether the slice goes on after a wfe to which an event had come already."""
        if outcome is not Outcome.WAIT_FOR_EVENT or self._hardware.forgiving:
            return False
        return self._hardware.counter.count < end and self._takes_event(core, outcome)

    def _takes_event(self, core: Core, outcome: Outcome) -> bool:
        """Whether an event was there already when a core came to its wfe.

        sev and sevl leave one, and so does the return from an exception.
        """
        if outcome is not Outcome.WAIT_FOR_EVENT:
            return False
        returns = core.cpu.exceptions_taken
        event = core.event or (returns != core.returns and not self._hardware.forgiving)
        core.event, core.returns = False, returns
        return event

    def _waits_in_loop(self, core: Core, how: str) -> None:
        """A core does the same again and again, and changes nothing by itself."""
        hardware = self._hardware
        core.asleep = how
        if hardware.goes_on or self._interrupts.can_come(core):
            core.probes = PROBES
            self._waits.note(core)
            self._waits.wait([core], hardware.clock.next_event)
        elif core.idle.hangs:
            self._over([core])
        else:
            core.asleep = ""

    def _round(self, running: list[Core]) -> None:
        hardware = self._hardware
        clock = hardware.clock
        self._stirred = clock.events_run != self._events_seen
        self._events_seen = clock.events_run
        ready = [core for core in running if self._ready(core)]
        alone = len(ready) == 1
        if alone:
            clock.marker = self._marker(running, ready[0])
        self._take_turns(running, ready, alone)

    def _take_turns(
        self, running: list[Core], ready: list[Core], alone: bool, begun: bool = False, worked: int = 0
    ) -> None:
        """A turn of each core that is ready; `begun`: native code has begun that of the first.

        `worked`: so many of those before them have worked.
        """
        clock, polls = self._hardware.clock, self._hardware.bus.polls
        for core in ready:
            if self._end.is_reached and not begun:
                clock.marker = FAR
                return
            if begun:
                before = self._native.before
            else:
                clock.company = not alone
                clock.wish = None
                before = polls.exchange(core.polls)
                self._waits.begin_turn(core)
            outcome = self._slice(core, LONGEST_SLICE if alone else TURN, begun)
            begun = False
            clock.company = False
            polls_in_vain = alone and self._polls_in_vain()
            core.polls = polls.exchange(before)
            core.polled = self._waits.touched(core)
            if alone:
                clock.marker = FAR
            if outcome is None:
                return
            if polls_in_vain and outcome is Outcome.LIMIT:
                clock.wish = clock.next_event
            worked += self._works(core, outcome)
        if self._end.is_reached:
            return
        if worked and alone:
            self._calm += 1
        elif worked > 1:
            self._calm = 0
        clock.share = max(worked, 1)
        if worked:
            self._quiet = self._hopeless = 0
        else:
            self._none_works(running)

    def _marker(self, running: list[Core], working: Core) -> int:
        """The moment that ends the slice of a core that runs while all others rest."""
        clock = self._hardware.clock
        resting = [core for core in running if core is not working]
        moments = [core.wake_at for core in resting if core.asleep == POLLING]
        moments += [core.stream_at for core in resting if core.asleep == EVENT and not core.looks]
        return min([clock.now + _longer(ALONE, self._calm), *moments])

    def _polls_in_vain(self) -> bool:
        """Whether a core that ran alone polls what only an event or another core can change.

        It then rests like one that polls in company; else it would keep those company who poll a
        timer, and time would pass in steps of a few microseconds.
        """
        if self._hardware.bus.polls.measures_time:
            return False
        polls = (bus.polled for bus in self._hardware.buses)
        return any(polled is not None and polled.kind is Poll.EVENT for polled in polls)

    def _ready(self, core: Core) -> bool:
        """Whether a core gets a turn."""
        if not core.asleep or self._interrupts.wakes(core):
            return True
        if core.asleep == INTERRUPT:
            return False
        if core.asleep in (SELF, STORM):
            return False
        if core.asleep == POLLING:
            now = self._hardware.clock.now
            return now >= core.wish or (not self._quiet and now >= core.wake_at)
        if core.asleep == EVENT and not core.looks:
            return self._has_event(core)
        core.nap -= 1
        return core.nap <= 0 or self._stirred or 0 < self._quiet <= LOOKS

    def _works(self, core: Core, outcome: Outcome) -> bool:
        """Whether a core's turn was work; else it rests."""
        clock = self._hardware.clock
        if self._takes_event(core, outcome):
            return True
        if outcome is not Outcome.LIMIT:
            core.rest(outcome.value)
            if outcome is Outcome.WAIT_FOR_EVENT:
                self._waits_for_event(core)
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
        hardware = self._hardware
        self._quiet += 1
        if self._quiet < QUIET and any(self._looks_again(core) for core in running):
            return
        wishes = [core.wish for core in running if core.asleep == POLLING]
        wishes += [core.stream_at for core in running if core.asleep == EVENT and not core.looks]
        wishes = [moment for moment in wishes if moment < FAR]
        hope = wishes or any(self._interrupts.can_come(core) for core in running)
        if hope or hardware.goes_on:
            self._waits.wait(running, min([hardware.clock.next_event, *wishes]))
            return
        self._hopeless += 1
        if self._hopeless > HOPELESS or all(core.asleep != IDLE_LOOP for core in running):
            self._over(running)

    def _looks_again(self, core: Core) -> bool:
        """Whether a core that rests may find something to do in the next round."""
        if core.asleep == IDLE_LOOP or (core.asleep == EVENT and (core.looks or core.event)):
            return True
        return self._interrupts.wake(core)

    def _over(self, running: list[Core]) -> None:
        """Nothing will ever happen again: the program has ended, or it hangs."""
        hardware = self._hardware
        hardware.frames.finish()
        self.parking.remind(at_once=True)
        if self._end.is_reached:
            return
        crashes = [core.crash for core in running if core.asleep == STORM]
        if crashes and crashes[0] is not None:
            self._end.crash(crashes[0], reported=True)
            return
        watching = [core for core in running if core.asleep in (IDLE_LOOP, MASKED_WAIT)]
        self._cores.current = core = watching[0] if watching else running[0]
        place = hardware.places(core.cpu.pc)
        if watching:
            who = "the CPU" if len(running) == 1 else f"core {core.number}"
            if core.asleep == MASKED_WAIT:
                lines = pending_lines(hardware, core.number)
                self._end.hang(f"{who} at {place} waits in {MASKED_WAIT} ({lines})")
            else:
                self._end.hang(f"{who} at {place} waits in {IDLE_LOOP}, which nothing changes")
        else:
            self._end.halt(f"the program has ended in {core.asleep} at {place}")
