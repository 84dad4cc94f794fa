"""A QPU whose program is stepped: the interpreter, with its state to keep, and memory accesses seen.

Nothing of what an instruction does is here. The interpreter runs as it always does; what it loads
and stores passes through an eager run (`simd/eager.py`) that notes what lies in guest memory.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from vc4lab.memory import MEMORY_SIZE
from vc4lab.memory.guest import PAD
from vc4lab.memory.native import LINE_SHIFT, QUAD_SHIFT, StreamMemory
from vc4lab.qpu.isa.encoding import LINK_OFFSET, Branch
from vc4lab.qpu.isa.operations import Signal
from vc4lab.qpu.isa.registers import ACCUMULATOR_WRITE, REGFILE_SIZE
from vc4lab.qpu.run.interpreter import SavedRun
from vc4lab.simd import Value, call
from vc4lab.simd.eager import Eager, running
from vc4lab.simd.types import Type
from vc4lab.v3d.user_programs.environment import UserEnvironment
from vc4lab.v3d.user_programs.native import tmu as native_tmu
from vc4lab.v3d.user_programs.qpu import QpuStart, ReferenceQpu, RunState
from vc4lab.v3d.user_programs.recording.format import MAX_LINES

LINE_BYTES = 1 << LINE_SHIFT


def keeps_link(word: int) -> bool:
    """Whether an instruction is a branch that writes the address after it to a register: a call."""
    if word >> 60 != Signal.BRANCH:
        return False
    targets = Branch(word).write_addresses()
    return any(address < REGFILE_SIZE or address in ACCUMULATOR_WRITE for _, address in targets)


def is_return(word: int) -> bool:
    """Whether an instruction is a branch to a register that is no call."""
    return word >> 60 == Signal.BRANCH and bool(Branch(word).register) and not keeps_link(word)


class Access(NamedTuple):
    """Bytes of guest memory that an instruction has read or written."""

    is_write: bool
    address: int
    size: int


class Observer:
    """Notes each access to memory. before_write: called before the bytes change."""

    def __init__(self, base: int, before_write: Callable[[int, int], None]) -> None:
        self.base = base
        self.before_write = before_write
        self.accesses: list[Access] = []

    def read(self, place: int, size: int) -> None:
        offset = place - self.base
        if 0 <= offset < MEMORY_SIZE + PAD:
            self._add(Access(False, offset, size))

    def write(self, place: int, size: int) -> None:
        offset = place - self.base
        if 0 <= offset < MEMORY_SIZE + PAD:
            self.before_write(offset, size)
            self._add(Access(True, offset, size))

    def _add(self, access: Access) -> None:
        last = self.accesses[-1] if self.accesses else None
        if last and last.is_write == access.is_write and last.address + last.size == access.address:
            self.accesses[-1] = last._replace(size=last.size + access.size)
        else:
            self.accesses.append(access)


class ObservedEager(Eager):
    """An eager run whose accesses to guest memory are seen."""

    def __init__(self, observer: Observer) -> None:
        super().__init__("default", {})
        self.observer = observer

    def load(self, type_: Type, place: Value) -> Value:
        self.observer.read(place._bits or 0, type_.size)
        return super().load(type_, place)

    def store(self, place: Value, value: Value) -> None:
        if self.trace.block is not None:
            self.observer.write(place._bits or 0, value.type.size)
        super().store(place, value)

    def gather(self, type_: Type, base: Value, offsets: Value | None, mask: Value, default: Value) -> Value:
        size = type_.bits // 8
        for _, place in self._places(base, offsets, mask, size):
            self.observer.read(place, size)
        return super().gather(type_, base, offsets, mask, default)

    def scatter(self, base: Value, offsets: Value | None, value: Value, mask: Value) -> None:
        if self.trace.block is not None:
            size = value.type.bits // 8
            for _, place in self._places(base, offsets, mask, size):
                self.observer.write(place, size)
        super().scatter(base, offsets, value, mask)


class SteppedEnvironment(UserEnvironment):
    """Adapts the environment to stepped programs: a breakpoint goes on, textures say what they read."""

    lines: StreamMemory
    seen: Callable[[bytes], None]

    def breakpoint(self) -> None:
        """The session has stopped before it; going on passes over it."""

    def _sample(self, unit: int, value: Value) -> None:
        self.lines.clear()
        call(native_tmu.sample_recorded, self.shared_address, self.qpu_address, unit, value)
        self.seen(self.lines.content)


class SavedQpu(NamedTuple):
    """All that a turn of a QPU may change, guest memory and the shared state excepted."""

    run: SavedRun
    state: bytes
    cells: tuple[Value, ...]
    fields: tuple[Any, ...]
    watched: bytes
    watch: tuple[Any, ...]


_FIELDS = ("run_state", "need", "reason", "code", "site", "instructions", "end_reported")


class SteppedQpu(ReferenceQpu):
    """A QPU of a session: an instruction a turn, with its state to keep and to restore.

    observer: told of accesses to guest memory; set before the first turn.
    """

    observer: Observer

    def __init__(self, start: QpuStart) -> None:
        super().__init__(start._replace(layer=SteppedEnvironment, recorded=False))
        env = self.env
        assert isinstance(env, SteppedEnvironment)
        self._lines = StreamMemory(self.state.lines, 4 * MAX_LINES)
        self.state.record = self.state.lines.base  # not 0: samplers that say which lines they read
        env.lines, env.seen = self._lines, self._texels
        self._noted = 0
        self._run = self._observed  # type: ignore[assignment]

    @contextmanager
    def _observed(self) -> Iterator[Eager]:
        with running(ObservedEager(self.observer)) as eager:
            yield eager

    def _texels(self, content: bytes) -> None:
        for at in range(0, len(content), 4):
            word = int.from_bytes(content[at : at + 4], "little")
            line = (word & ((1 << QUAD_SHIFT) - 1)) << LINE_SHIFT
            self.observer.accesses.append(Access(False, line, LINE_BYTES))

    # -- where it is ---------------------------------------------------------------------------

    @property
    def next_address(self) -> int:
        """Return the address of the next instruction, or of the one at which it ended or stopped."""
        return self.machine.address if self.run_state in _GOES_ON else self.address

    @property
    def next_index(self) -> int | None:
        """Return the index in `program` of the instruction at `next_address`; None: there is none."""
        if self.run_state not in _GOES_ON:
            return self.site
        return self.machine.follow()

    @property
    def next_word(self) -> int | None:
        """The instruction itself."""
        index = self.next_index
        return None if index is None or index >= len(self.program.words) else self.program.words[index]

    @property
    def at_breakpoint(self) -> bool:
        """Whether the next instruction has the signal `bkpt`."""
        word = self.next_word
        return word is not None and word != 0 and word >> 60 == Signal.BREAKPOINT

    @property
    def call_return(self) -> int | None:
        """Return the address after a call, if one is next: a branch that keeps its link. None: none is."""
        word = self.next_word
        return self.next_address + LINK_OFFSET if word is not None and keeps_link(word) else None

    def take_news(self) -> bool:
        """Whether there is something to report since the last call."""
        notes = 0 if self.watch is None else len(self.watch.notes)
        news = notes != self._noted or bool(self.state.findings)
        self._noted = notes
        return news or (self.run_state in _FAULTS and not self.end_reported)

    # -- keeping and restoring -------------------------------------------------------------------

    def saved(self) -> SavedQpu:
        """Its state between two turns."""
        watched = self.watched_qpu
        watch = self.watch
        return SavedQpu(
            self.machine.saved(),
            bytes(self.state),
            tuple(cell.get() for cell in self._cells),
            tuple(getattr(self, name) for name in _FIELDS),
            b"" if watched is None else bytes(watched.state),
            ()
            if watch is None
            else (watch.moved, frozenset(watch.loads), watch.store, dict(watch.notes), watch.last),
        )

    def restore(self, saved: SavedQpu) -> None:
        """Back to a state."""
        self.machine.restore(saved.run)
        ctypes.memmove(self.state.address, saved.state, len(saved.state))
        with running():
            for cell, value in zip(self._cells, saved.cells, strict=True):
                cell.set(value)
        for name, value in zip(_FIELDS, saved.fields, strict=True):
            setattr(self, name, value)
        if self.watched_qpu is not None and self.watch is not None:
            ctypes.memmove(self.watched_qpu.state.address, saved.watched, len(saved.watched))
            moved, loads, self.watch.store, notes, self.watch.last = saved.watch
            self.watch.moved, self.watch.loads, self.watch.notes = moved, set(loads), dict(notes)
            self._noted = len(notes)

    @property
    def _cells(self) -> tuple[Any, ...]:
        env = self.env
        trail = getattr(env, "trail", None)
        return (env.stream, env.instructions, env.status, *([trail] if trail is not None else []))

    @property
    def uniform_address(self) -> int:
        """Return the address of the next word of its uniform stream."""
        return int(self.env.stream.get().constant) & 0xFFFFFFFF


_FAULTS = (RunState.STOPPED, RunState.STUCK)
_GOES_ON = (RunState.READY, RunState.WAITING)
