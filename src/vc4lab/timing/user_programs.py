"""Times user programs: listens to what they do, and moves a model of the chip on with it.

::

    timing = ProgramTiming("videocore4", "pi1")
    with timing.listen(experiment.programs.listeners):
        experiment.run(12)
    print(timing.result().text())
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from vc4lab.timing.boards import board_of, speeds_of
from vc4lab.timing.chip import Chip, load_chip
from vc4lab.timing.compute.deadlock import deadlock, waits_for
from vc4lab.timing.compute.kinds import CAUSE_TEXT
from vc4lab.timing.compute.memory import FROM_L2, FROM_LOADER, FROM_STORER
from vc4lab.timing.compute.model import ComputeModel, Listing
from vc4lab.timing.compute.sdram import OTHERS
from vc4lab.timing.compute.state import CUT_OFF
from vc4lab.timing.hints import Hint, hints_of
from vc4lab.timing.program_use import ProgramUse, alus_of, loops_of, seen_instruction
from vc4lab.timing.result import CacheUse, HotInstruction, ModuleTime, QpuTime, QueueUse, Timing

if TYPE_CHECKING:
    from vc4lab.v3d.event_listeners import V3DListeners
    from vc4lab.v3d.events import ProgramRecorded

MAX_HOT = 64
MAX_LOOPS = 64


class ProgramTiming:
    """Times the user programs that start while it listens, on every board of a chip.

    chip: a name, a file, or a `Chip`; board: the one that is shown in detail. Raises BadChip,
    ValueError, OSError.
    """

    def __init__(self, chip: Chip | str | os.PathLike[str] = "videocore4", board: str = "") -> None:
        self.chip = chip if isinstance(chip, Chip) else load_chip(chip)
        self.board = board_of(self.chip, board)
        self.speeds = speeds_of(self.chip)
        # boards that are as fast have the same clocks
        self.models = {speed: ComputeModel(self.chip, speed) for speed in self.speeds.distinct}
        self._tasks: dict[int, int] = {}
        self.programs: tuple[ProgramUse, ...] = ()
        """Clocks of each program, by instruction and loop; set by `result`."""

    @contextmanager
    def listen(self, listeners: V3DListeners) -> Iterator[None]:
        """Listens to a V3D's user programs, which are recorded from now on."""
        with listeners.program_recorded.subscribe(self.take):
            yield
        listeners.raise_failure()

    def take(self, event: ProgramRecorded) -> None:
        """Programs have done something. Raises BadChip."""
        first = event.serial not in self._tasks
        for model in self.models.values():
            if first:
                task = model.start(event.qpu, event.uniforms, event.program, event.seen)
                self._tasks[event.serial] = task
            model.feed(self._tasks[event.serial], event.program, event.record, event.executed)
        if event.executed:
            for model in self.models.values():
                model.advance()

    def hints(self) -> list[Hint]:
        """Find what could make the programs quicker; after `result`."""
        slot = self.chip.whole("qpu", "slot")
        found = [hint for program in self.programs for hint in hints_of(program, slot)]
        return sorted(found, key=lambda hint: -hint.clocks)

    def result(self) -> Timing:
        """Return the timing: call it when the programs have ended."""
        for model in self.models.values():
            model.end_feed()
            model.advance()
        model = self.models[self.speeds.of_board[self.board]]
        qpus = tuple(_qpu_time(model, number) for number in model.started)
        clocks = _clocks(model)
        cut = [number for number in model.started if model.qpus[number].ended == CUT_OFF]
        notes = [f"QPU {qpu.qpu} {qpu.waits}" for qpu in qpus if qpu.qpu in cut]
        notes += deadlock(model)
        self.programs = programs = _programs(model)
        return Timing(
            self.chip.name,
            self.board,
            clocks,
            self.speeds.times({speed: _clocks(one) for speed, one in self.models.items()}),
            qpus,
            _hot(programs),
            _modules(model, clocks),
            _queues(model, clocks),
            _caches(model),
            _moved(model),
            tuple(notes),
            tuple(one.alus for one in programs),
            tuple(loop for one in programs for loop in one.loops)[:MAX_LOOPS],
            _of_peak(model, programs, clocks),
        )


def _moved(model: ComputeModel) -> dict[str, int]:
    """Bytes that the memory moved, by who asked."""
    moved = model.machine.states["sdram"][0].bytes
    who = {"l2": FROM_L2, "loads": FROM_LOADER, "stores": FROM_STORER, "others": OTHERS}
    return {name: int(moved[source]) for name, source in who.items()}


def _clocks(model: ComputeModel) -> int:
    """From the first write of SRQPC to the end of the last program."""
    ends = [int(model.qpus[n].stopped or model.machine.engine.clock) for n in model.started]
    return max(ends, default=0)


def _qpu_time(model: ComputeModel, number: int) -> QpuTime:
    qpu = model.qpus[number]
    stalls = {CAUSE_TEXT[cause]: int(qpu.stalls[cause]) for cause in CAUSE_TEXT}
    waits = ""
    address = model.listing_of(number).program.address_of(max(int(qpu.site), 0))
    if not qpu.stopped:
        waits = waits_for(model, number)
    elif qpu.ended == CUT_OFF:
        waits = f"has not ended: timed up to 0x{address:08x}, where it stands"
    executed = _executed(qpu)
    busy = executed * model.chip.whole("qpu", "slot")
    ended = int(qpu.stopped) or int(model.machine.engine.clock)
    programs = int(qpu.programs)
    return QpuTime(number, int(qpu.started), ended, executed, busy, stalls, waits, programs)


def _executed(qpu: Any) -> int:
    """Instructions of all programs that a QPU had."""
    return int(qpu.done) + int(qpu.executed)


def _seen(model: ComputeModel, listing: Listing) -> list[HotInstruction]:
    """Return the counts of each word of a program."""
    slot = model.chip.whole("qpu", "slot")
    program = listing.program
    return [
        seen_instruction(
            word,
            program.address_of(site),
            int(listing.code(site).executed),
            listing.stalls(site),
            slot,
            CAUSE_TEXT,
        )
        for site, word in enumerate(program.words)
    ]


def _programs(model: ComputeModel) -> tuple[ProgramUse, ...]:
    slot = model.chip.whole("qpu", "slot")
    found = []
    for listing in model.listings:
        program, seen = listing.program, _seen(model, listing)
        alus = alus_of(zip(program.words, seen, strict=True), slot)
        found.append(ProgramUse(program, tuple(seen), alus, tuple(loops_of(program, seen, slot))))
    return tuple(found)


def _of_peak(model: ComputeModel, programs: tuple[ProgramUse, ...], clocks: int) -> float:
    slots = len(model.qpus) * clocks / model.chip.whole("qpu", "slot")
    return sum(one.alus.add + one.alus.mul for one in programs) / (2 * slots) if slots else 0.0


def _hot(programs: tuple[ProgramUse, ...]) -> tuple[HotInstruction, ...]:
    found = [
        (-one.clocks, site, number, one)
        for number, program in enumerate(programs)
        for site, one in enumerate(program.seen)
        if one.clocks
    ]
    return tuple(one for *_, one in sorted(found, key=lambda item: item[:3])[:MAX_HOT])


def _modules(model: ComputeModel, clocks: int) -> tuple[ModuleTime, ...]:
    found = []
    for (name, number), instance in zip(model.machine.names, model.machine.instances, strict=True):
        busy = int(instance.busy)
        if name == "qpu":
            busy = _executed(model.qpus[number]) * model.chip.whole("qpu", "slot")
        found.append(ModuleTime(name, number, busy, busy / max(clocks, 1)))
    return tuple(found)


def _queues(model: ComputeModel, clocks: int) -> tuple[QueueUse, ...]:
    return tuple(
        QueueUse(
            name,
            number,
            int(queue.writes),
            int(queue.depth),
            int(queue.peak),
            int(queue.filled) / max(clocks, 1),
            int(queue.full),
        )
        for name, queues in model.machine.queues.items()
        for number, queue in enumerate(queues)
        if queue.writes
    )


def _caches(model: ComputeModel) -> tuple[CacheUse, ...]:
    """Counted as the chip's counters count."""
    found = []
    states = model.machine.states
    for number in range(model.slices):
        first = number * model.per_slice
        mine = model.qpus[first : first + model.per_slice]
        fetched = sum(_executed(qpu) for qpu in mine)
        read = sum(int(qpu.uniforms) for qpu in mine)
        for kind, hits in (("instruction_cache", fetched), ("uniform_cache", read)):
            found.append(CacheUse(kind, number, hits, int(states[kind][number].tags.misses)))
    for kind in ("tmu", "l2"):
        for number, state in enumerate(states[kind]):
            found.append(CacheUse(kind, number, int(state.tags.hits), int(state.tags.misses)))
    return tuple(found)
