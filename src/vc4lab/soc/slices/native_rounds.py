"""Begins turns in native code, and takes back for Python what they leave (`native_steps.py`).

They begin only where nothing has to be seen by Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from vc4lab.optimisations import NATIVE_TURNS
from vc4lab.simd import Struct
from vc4lab.soc.address.polling import PollState
from vc4lab.soc.clock import FAR
from vc4lab.soc.cores.code.native_events import MOST_CORES
from vc4lab.soc.cores.code.native_places import host_address
from vc4lab.soc.cores.cores import IDLE_LOOP, POLLING, Core
from vc4lab.soc.cores.exceptions.exceptions import THUMB, ArmException
from vc4lab.soc.cores.exceptions.native_entry import batch_members
from vc4lab.soc.cores.exceptions.outcome import EVENT, INTERRUPT, Taken
from vc4lab.soc.hardware import Hardware
from vc4lab.soc.native import NOWHERE_SEEN
from vc4lab.soc.slices.native_interrupts import InterruptState, OpenState
from vc4lab.soc.slices.native_steps import module
from vc4lab.soc.slices.native_turns import (
    AWAKE,
    IN_LOOP,
    IN_WFE,
    IN_WFI,
    POLLS,
    TURN_BEGINS,
    TURN_ENDS,
    CoreTurn,
    TurnState,
)

HOW = {"": AWAKE, INTERRUPT: IN_WFI, POLLING: POLLS, EVENT: IN_WFE, IDLE_LOOP: IN_LOOP}
NAMES = {number: name for name, number in HOW.items()}
"""A core's state between its turns, here and there."""
POLLS_AT = CoreTurn.offset("polls")
IRQS_AT = CoreTurn.offset("irqs")
OPEN_AT = IRQS_AT + InterruptState.offset("first")
ON_EVENTS = ctypes.CFUNCTYPE(ctypes.c_int32)
ON_STORM = ON_ACCESSES = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64)


def _first(struct: type[Struct], name: str) -> int:
    """A member as `words_of` numbers it."""
    return struct.offset(name) // 8


QUIET_AT, HOPELESS_AT, ROUNDS, SLICES, CORE, REST, WORKED, ALONE_AT, ERROR = (
    _first(TurnState, name)
    for name in (*("quiet", "hopeless", "rounds", "slices", "core", "rest", "worked", "alone", "error"),)
)
ACCESSES, LOCAL_ACCESSES, OWN_READS, TAKEN, BEGAN = (
    _first(TurnState, name) for name in ("accesses", "local_accesses", "own_reads", "taken", "began")
)
EVENTS_SEEN, PROVES, UNTIL = (_first(TurnState, name) for name in ("events_seen", "proves", "until"))
DELIVERS, HANDLER = ((IRQS_AT + InterruptState.offset(name)) // 8 for name in ("delivers", "handler"))
OPENED, RENEWED = OPEN_AT // 8, (OPEN_AT + OpenState.offset("renewed")) // 8
OPEN_WORDS = OpenState.size // 8
IRQ_VECTOR = ArmException.IRQ.value.vector
SLEEPS, WISH, WAKE_AT, VAIN, RAN, SLEPT, POLLED = (
    _first(CoreTurn, name) for name in (*("sleeps", "wish", "wake_at", "vain", "ran", "slept", "polled"),)
)


class NativeTurns:
    """The rounds of a board.

    Attributes
    ----------
    begun
        The core whose slice Python is to finish, or to begin.
    rest
        The cores whose turn comes after it in the same round.
    alone
        Whether it runs while all others rest.
    before
        What `Polls.exchange` gave when its turn began.
    worked
        How many cores before it have worked in that round.
    error
        The engine's number of what ended its run, 0 for nothing.
    until
        While it is executed block by block (`Waits.go_on`): the end of its slice, as a count of
        instructions. Else None.
    """

    begun: Core
    rest: list[Core]
    alone: bool
    before: bytes
    worked: int
    error: int
    until: int | None

    def __init__(self, hardware: Hardware, ended: Callable[[], bool]) -> None:
        self._hardware = hardware
        self._ended = ended
        self._cores = hardware.processors.all
        fits = 1 < len(self._cores) <= MOST_CORES and hardware.local is not None
        self._serves = NATIVE_TURNS.serves() and fits and not hardware.forgiving
        self._is_set_up = False

    def _set_up(self) -> bool:
        """Lay out what rounds need, before the first one; False if this version of the engine is not known.

        Most programs let one core run alone, so that this is not done when a machine is built.
        """
        hardware, cores = self._hardware, self._cores
        bus, local_bus, clock, local = (hardware.bus, hardware.local_bus, hardware.clock, hardware.local)
        assert local is not None
        watches = hardware.board.cpu64 is not None
        if watches and not all(core.cpu.calls.context for core in cores):
            return False
        self._note_lines = local.note_lines
        address_of = cores[0].cpu.calls.address_of
        self._callbacks = (ON_EVENTS(self._meet_events), ON_ACCESSES(self._look), ON_STORM(self._is_storm))
        meet_events, look, is_storm = map(host_address, self._callbacks)
        self._state = state = TurnState(
            slice=clock.counter.address,
            time=clock.address,
            events=hardware.processors.events.address,
            polling=bus.polls.address,
            bus=bus.address,
            local_bus=local_bus.address,
            start=address_of("uc_emu_start"),
            save=address_of("uc_context_save"),
            lines=local.line_address,
            nowhere=NOWHERE_SEEN,
            meet_events=meet_events,
            look=look,
            is_storm=is_storm,
            masks=cores[0].cpu.mask_register[0],
        )
        state.calls.read = address_of("uc_reg_read_batch")
        state.calls.write = address_of("uc_reg_write_batch")
        state.calls.ram = hardware.memory.base
        self._bytes = memoryview(state).cast("B")
        self._words = self._bytes.cast("q")
        self._fresh = bus.polls.fresh
        self._bytes[TurnState.offset("fresh") :][: PollState.size] = self._fresh
        for core in cores:
            cpu = core.cpu
            turn = state.cores[core.number]
            turn.engine = cpu.calls.handle
            turn.end_address = cpu.LAST_ADDRESS - ((cpu.LAST_ADDRESS >> 63) << 64)
            turn.thumb = 0 if cpu.WIDE else THUMB
            turn.pages, turn.alignment = cpu.page_table, cpu.alignment.address
            turn.own = cpu.events.address
            turn.idle, turn.steady = core.idle.address, core.steady.address
            parts = [(turn.place, cpu.place)]
            timer = cpu.links.timer
            if timer is not None:
                turn.irqs.pace = timer.pace.address
            before, ways = cpu.entry_batches
            turn.irqs.wide = cpu.WIDE
            parts.append((turn.irqs.before, batch_members(before)))
            parts += zip(turn.irqs.after, map(batch_members, ways), strict=False)
            for part, members in parts:
                for name, value in members.items():
                    setattr(part, name, value)
            if watches:
                turn.context, turn.monitor = cpu.calls.context, cpu.monitor_place
        return True

    def _meet_events(self) -> bool:
        """An event is due that rounds go on after; whether they do."""
        try:
            return self._hardware.clock.run_those_that_go_on()
        except BaseException as error:
            self._hardware.counter.fail(error)
            return False

    def _look(self, accesses: int) -> bool:
        """A core has accessed devices, some of them not of the local block: do the rounds go on?"""
        try:
            self._note_lines()
            return not (self._ended() or (accesses and self._hardware.v3d is not None))
        except BaseException as error:
            self._hardware.counter.fail(error)
            return False

    def _is_storm(self, pc: int) -> bool:
        """An interrupt follows another one at `pc`: is the core to be given up?"""
        try:
            hardware = self._hardware
            storm = hardware.processors.current.interrupt_storm
            return storm.grows(pc, hardware.counter.count, hardware.signs())
        except BaseException as error:
            self._hardware.counter.fail(error)
            return True

    def serve(self, running: list[Core]) -> bool:
        """Whether rounds can begin in native code: all is as it should be."""
        hardware = self._hardware
        if not self._serves or hardware.is_watched or hardware.is_paced:
            return False
        for core in running:
            how = HOW.get(core.asleep)
            cpu = core.cpu
            if how is None or cpu.needs_python:
                return False
            if how == IN_WFE and (core.looks or core.stream_at < FAR):
                return False
            timer = cpu.links.timer
            if timer is None or timer.has_streams:
                return False
        if not self._is_set_up:
            self._serves = self._is_set_up = self._set_up()
        return self._is_set_up

    def run(self, running: list[Core], quiet: int, hopeless: int, events_seen: int) -> int:
        """Rounds, as long as native code can do them: where Python goes on."""
        words, view = self._words, self._bytes
        words[QUIET_AT], words[HOPELESS_AT], words[EVENTS_SEEN] = quiet, hopeless, events_seen
        words[SLICES] = words[ROUNDS] = 0
        running[0].cpu.alignment.enter()
        self._state.running_place = running[0].cpu.alignment.running_place()
        for core in running:
            at = self._at(core)
            words[at + SLEEPS] = HOW[core.asleep]
            words[at + WISH], words[at + WAKE_AT] = core.wish, core.wake_at
            words[at + VAIN] = core.vain
            words[at + RAN] = words[at + SLEPT] = 0
            view[8 * at + POLLS_AT :][: PollState.size] = core.polls or self._fresh
            cpu = core.cpu
            cpu.allow_events()
            words[at + DELIVERS] = not cpu.exception_taken.subscriptions
            words[at + HANDLER] = cpu.handler_at(IRQ_VECTOR)
            for index, member in enumerate(cpu.open_exceptions.members):
                words[at + OPENED + index] = member
            words[at + RENEWED] = 0
        attentions = self._hardware.processors.attentions
        where = int(module()["take_turns"](self._state.address))
        begun = words[CORE] if where == TURN_ENDS else None
        called = self._hardware.processors.attentions != attentions
        for core in running:
            at = self._at(core)
            if words[at + RAN]:
                self._take_back(core, at, begun == core.number)
                if called:
                    core.attend()
        if where in (TURN_BEGINS, TURN_ENDS):
            self._hand_over(running, words[CORE], where == TURN_ENDS)
        return where

    @property
    def quiet(self) -> tuple[int, int]:
        """`Turns._quiet` and `_hopeless` after the last `run`."""
        return self._words[QUIET_AT], self._words[HOPELESS_AT]

    @property
    def events_seen(self) -> int:
        """`Clock.events_run` when the last round began."""
        return self._words[EVENTS_SEEN]

    @property
    def rounds(self) -> int:
        """Rounds that the last `run` has begun."""
        return self._words[ROUNDS]

    @property
    def slices(self) -> int:
        """Turns that the last `run` has begun."""
        return self._words[SLICES]

    def _at(self, core: Core) -> int:
        """The place of the words of its `CoreTurn`."""
        return (TurnState.offset("cores") + core.number * CoreTurn.size) // 8

    def _take_back(self, core: Core, at: int, begun: bool) -> None:
        """Take back what a core that has had turns waits for now."""
        words = self._words
        core.cpu.refresh()
        self._follow(core, at)
        core.vain = words[at + VAIN]
        core.wish, core.wake_at = words[at + WISH], words[at + WAKE_AT]
        if words[at + SLEPT]:
            core.looks = False
        if begun:
            return
        core.asleep = NAMES[words[at + SLEEPS]]
        core.polled = words[at + POLLED] != 0
        kept = bytes(self._bytes[8 * at + POLLS_AT :][: PollState.size])
        core.polls = None if core.asleep == EVENT else kept

    def _follow(self, core: Core, at: int) -> None:
        """Take over what is known of the exceptions whose handlers run."""
        words = self._words
        opened = words[at + OPENED : at + OPENED + OPEN_WORDS]
        _known, status, modes, taken, count, renewed, address, vector = opened
        first = Taken(ArmException.IRQ, address, vector, status, None) if renewed else None
        core.cpu.open_exceptions.follow(modes, taken, count, first)

    def _hand_over(self, running: list[Core], number: int, begun: bool) -> None:
        """A core's slice has ended in another way than in a wait, or has not `begun`."""
        words = self._words
        self.begun = core = self._cores[number]
        if begun:
            core.asleep = ""
            core.activity = (*(words[ACCESSES], words[LOCAL_ACCESSES]), *(words[OWN_READS], words[TAKEN]))
            core.began = words[BEGAN]
        later = words[REST] << number + 1
        self.rest = [other for other in running if later >> other.number & 1]
        self.alone = words[ALONE_AT] != 0
        self.worked, self.error = words[WORKED], words[ERROR]
        self.until = words[UNTIL] if begun and words[PROVES] else None
        at = TurnState.offset("base")
        self.before = bytes(self._bytes[at : at + PollState.size])
