"""A QPU whose user program is stepped: the interpreter, with its state to keep, and memory accesses seen.

Nothing of what an instruction does is here. The interpreter runs as it always does; what it loads
and stores passes through an eager run (`simd/eager.py`) that notes what lies in guest memory.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vc4lab.debug.stepped import Access, ObservedEager, Observer, Stepped, TmuState
from vc4lab.memory.native import LINE_SHIFT, QUAD_SHIFT, StreamMemory
from vc4lab.qpu.run.interpreter import SavedRun
from vc4lab.simd import Value, call
from vc4lab.simd.eager import Eager, running
from vc4lab.v3d.user_programs.environment import UserEnvironment
from vc4lab.v3d.user_programs.native import tmu as native_tmu
from vc4lab.v3d.user_programs.qpu import QpuStart, ReferenceQpu, RunState
from vc4lab.v3d.user_programs.recording.format import MAX_LINES
from vc4lab.v3d.user_programs.state import LOOKUPS, RESULTS

if TYPE_CHECKING:
    from vc4lab.qpu.program.program import Program

LINE_BYTES = 1 << LINE_SHIFT


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


class SteppedQpu(ReferenceQpu, Stepped):
    """A QPU of a session: an instruction a turn, with its state to keep and to restore.

    observer: told of accesses to guest memory; set before the first turn.
    """

    observer: Observer
    program: Program

    def __init__(self, start: QpuStart) -> None:
        super().__init__(start._replace(layer=SteppedEnvironment, recorded=False))
        self._shared = start.shared
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

    # -- looking -----------------------------------------------------------------------------------

    @property
    def uniform_address(self) -> int:
        return int(self.env.stream.get().constant) & 0xFFFFFFFF

    @property
    def waits(self) -> str:
        return self.waits_for(self._shared)

    def text_of(self) -> str:
        return self.text(self._shared)

    def tmu(self, number: int) -> TmuState:
        unit: Any = self.state.units[number]
        results = np.array(unit.results, np.int64).reshape(RESULTS, 16)
        count, head, written = int(unit.count), int(unit.head), int(unit.written)
        waiting = [results[(head + n) % RESULTS] & 0xFFFFFFFF for n in range(min(count, RESULTS))]
        coordinates = np.array(unit.coordinates, np.int64).reshape(4, 16) & 0xFFFFFFFF
        named = {"strb"[n]: coordinates[n].tolist() for n in range(4) if coordinates[n].any()}
        parameters = [int(word) & 0xFFFFFFFF for word in unit.parameters[: min(written, 4)]]
        return TmuState([row.tolist() for row in waiting], parameters, named, max(LOOKUPS - count, 0))

    def setups(self) -> dict[str, int]:
        state = self.state
        words = {
            "vpm read": state.reads.setup,
            "vpm reads left": state.reads.left,
            "vpm write": state.write_setup,
            "vpm write row": state.write_address,
            "dma load": state.load_setup,
            "dma load stride": state.load_stride,
            "dma store": state.store_setup,
            "dma store stride": state.store_stride,
        }
        return {name: int(word) & 0xFFFFFFFF for name, word in words.items()}


_FAULTS = (RunState.STOPPED, RunState.STUCK)
