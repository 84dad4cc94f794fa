"""All cores wait: time skips, and the iterations of their loops are counted, not executed.

`Clock.changes` says whether anything has happened since that a core could notice. If not, and if
`SteadyWait` has proved of each core that looks up at events that a look changes nothing, the next
looks are as long as the last ones.
"""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.soc.clock import FAR
from vc4lab.soc.cores.cores import IDLE_LOOP, POLLING, Core
from vc4lab.soc.cores.exceptions.outcome import EVENT, INTERRUPT, SELF, Outcome
from vc4lab.soc.hardware import Hardware
from vc4lab.soc.native import SPINS
from vc4lab.soc.slices.run_end import RunEnd

LOOKING = (IDLE_LOOP, EVENT)
"""Waits that a core looks up from at every event (from a wfe only if it `looks`)."""


class Waits:
    """Knows how the cores wait."""

    def __init__(self, hardware: Hardware, end: RunEnd, rest: Callable[[], None]) -> None:
        self._hardware = hardware
        self._end = end
        self._rest = rest
        self._undisturbed = -1
        """`Clock.changes` when time skipped last."""
        self._turn: int | None = None
        """Instructions of all cores' looks in vain, if they are known."""

    def disturb(self) -> None:
        """Something has happened that the clock does not know of."""
        self._undisturbed = -1

    # -- a core's turn -----------------------------------------------------------------------------

    def begin_turn(self, core: Core) -> None:
        """A core gets its turn."""
        core.activity = self._activity(core)
        core.began = self._hardware.counter.count

    def execute(self, core: Core, limit: int) -> Outcome:
        """Run a core; block by block for a turn of its loop if that can prove something."""
        counter = self._hardware.counter
        if core.steady.wants_proof:
            core.steady.begin()
            return self._prove(core, core.cpu.run(counter.count), limit)
        if counter.count >= limit:
            return Outcome.LIMIT
        return core.cpu.run(limit)

    def go_on(self, core: Core, outcome: Outcome, limit: int) -> Outcome:
        """Go on as `execute` after native code has let a core run to a block of its loop."""
        if core.steady.blocks and (self.touched(core) or self._end.is_reached):
            return outcome
        return self._prove(core, outcome, limit)

    def _prove(self, core: Core, outcome: Outcome, limit: int) -> Outcome:
        """Run a core block by block, then as usual; `outcome` is that of its way to the block where it is."""
        counter, cpu = self._hardware.counter, core.cpu
        while outcome is Outcome.LIMIT and counter.count < limit:
            if not core.steady.note_block(counter.block, counter.size):
                return cpu.run(limit)
            outcome = cpu.run(counter.count + 1)
            if self.touched(core) or self._end.is_reached:
                break
        return outcome

    def touched(self, core: Core) -> bool:
        """Whether it had to do with devices, its counter or exceptions in its turn."""
        return self._activity(core) != core.activity

    def note(self, core: Core) -> None:
        """A core's turn has ended in a wait."""
        count = self._hardware.counter.count - core.began
        core.steady.rested(count, touched=self.touched(core))

    def _activity(self, core: Core) -> tuple[int, int, int, int]:
        hardware = self._hardware
        bus, taken = hardware.bus, core.cpu.exceptions_taken
        return bus.accesses, hardware.local_bus.accesses, bus.own_reads, taken

    # -- all of them -------------------------------------------------------------------------------

    def wait(self, running: list[Core], moment: int) -> None:
        """All cores wait: let time go on to `moment`."""
        self._turn = self._looks(running)
        self._skip_to(moment)

    def again(self, running: list[Core]) -> bool:
        """An event has come; if it makes no difference, count the cores' looks and wait on."""
        hardware, turn = self._hardware, self._turn
        clock, counter = hardware.clock, hardware.counter
        if clock.changes != self._undisturbed or turn is None or hardware.is_watched:
            return False
        if clock.limit <= counter.count + 2 * turn:
            return False
        counter.add(turn)
        for core in running:
            if core.asleep == IDLE_LOOP:
                core.idle.look_again()
            if core.asleep in LOOKING and len(running) > 1:
                core.rest(core.asleep)
        self._skip_to(clock.next_event)
        return True

    def _looks(self, running: list[Core]) -> int | None:
        """Instructions that the cores would execute if they looked again, None if not known."""
        turn = 0
        for core in running:
            if core.asleep == SELF:
                turn += SPINS - 1 if len(running) == 1 else 0
            elif core.asleep == EVENT and not core.looks:
                if core.stream_at < FAR:
                    return None
            elif core.asleep != INTERRUPT:
                if not core.steady.turn or core.asleep == POLLING:
                    return None
                turn += core.steady.turn
        return turn

    def _skip_to(self, moment: int) -> None:
        hardware = self._hardware
        self._rest()
        hardware.clock.skip(max(moment - hardware.clock.now, 0))
        self._undisturbed = hardware.clock.changes
