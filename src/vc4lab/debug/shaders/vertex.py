"""A coordinate or vertex program, stepped on its batch of 16 vertices: attributes, VPM, clip coordinates."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vc4lab.debug.frame.vertex import CLIP_NAMES, SHADED_NAMES
from vc4lab.debug.shaders.listing import KnownProgram, Meanings, source_of
from vc4lab.debug.shaders.qpu import ShaderQpu, words_of
from vc4lab.debug.stage import Row, Section, Stage
from vc4lab.diagnostics import Reporter
from vc4lab.qpu.run.environment import REFERENCE_BUDGET
from vc4lab.qpu.run.staged import EagerWideInterpreter
from vc4lab.simd import Cell
from vc4lab.simd.eager import running
from vc4lab.simd.eager_wide import WideEager
from vc4lab.v3d.vertex.reference import InterpretedVertices
from vc4lab.v3d.vpm.shader_rows import LANES, ROW_BYTES, WINDOW_ROWS

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from vc4lab.debug.frame.vertex_batch import VertexBatch
    from vc4lab.debug.stepped import Observer
    from vc4lab.memory import GuestMemory
    from vc4lab.qpu.run.environment import Noted
    from vc4lab.simd import Value
    from vc4lab.simd.types import Type

_WORD = 0xFFFFFFFF
_FIELDS = ("taken", "uniforms", "moved")


class _Observed(WideEager):
    """Loads from guest memory are seen."""

    observer: Observer | None = None

    def load(self, type_: Type, place: Value) -> Value:
        if self.observer is not None and self.bytes_at(place) is None:
            self.observer.read(place._bits or 0, type_.size)
        return super().load(type_, place)


class SavedVertices(NamedTuple):
    """The state of a batch between two instructions."""

    cells: dict[str, Cell]
    fields: tuple[Any, ...]
    memories: tuple[NDArray[np.uint8], ...]
    requests: Noted


class SteppedVertices(InterpretedVertices):
    """The environment of one batch, with its state to keep."""

    run: _Observed

    def eager(self) -> WideEager:
        return _Observed("default", np.arange(self.blocks))

    def carrying_out(self) -> AbstractContextManager[Any]:
        """The environment is staged code."""
        return running(self.run)

    def breakpoint(self) -> None:
        """The session has stopped before it; going on passes over it."""

    @property
    def uniform_address(self) -> int:
        """Guest address of the next word of the stream."""
        with running(self.run):
            base = int(self.uniforms.constant)
            return (base + (int(self.stream.get().constant) if self.branchy else self.taken)) & _WORD

    def setups(self) -> dict[str, int]:
        """The VPM's setup words."""
        with running(self.run):
            words = {
                "vpm read": self.reads.setup,
                "vpm reads left": self.reads.left,
                "vpm write": self.write_setup.get(),
                "vpm write row": self.write_address.get(),
            }
            return {name: int(word.constant) & _WORD for name, word in words.items()}

    def rows_of(self, place: Value) -> NDArray[np.uint32]:
        """The 64 rows of a VPM."""
        data = self._window(place)[0][: WINDOW_ROWS * ROW_BYTES]
        rows: NDArray[np.uint32] = data.view(np.uint32).reshape(WINDOW_ROWS, LANES)
        return rows

    def saved(self) -> SavedVertices:
        """The state between two instructions."""
        return SavedVertices(
            {name: copy.copy(one) for name, one in vars(self).items() if isinstance(one, Cell)},
            tuple(getattr(self, name) for name in _FIELDS),
            tuple(memory.copy() for _, memory in self.run.memories),
            self.requests.noted(),
        )

    def restore(self, saved: SavedVertices) -> None:
        """Back to a state."""
        for name, cell in saved.cells.items():
            setattr(self, name, copy.copy(cell))
        for name, value in zip(_FIELDS, saved.fields, strict=True):
            setattr(self, name, value)
        for (_, memory), data in zip(self.run.memories, saved.memories, strict=False):
            memory[...] = data
        self.requests.recall(saved.requests)


class VertexProgramStage(Stage):
    """The program of a batch of vertices.

    Attributes
    ----------
    lane
        Of the vertex that was asked for.
    keep
        Objects whose host memory the batch refers to.
    """

    def __init__(
        self, memory: GuestMemory, batch: VertexBatch, index: int, keep: object, *, vertex: bool,
        known: KnownProgram | None = None,
    ) -> None:  # fmt: skip
        self.batch, self.lane, self.keep = batch, index % LANES, keep
        program = batch.interpreter.program
        program = program if program.address else replace(program, address=batch.code)
        self._names = SHADED_NAMES if vertex else CLIP_NAMES
        self.meanings = Meanings(memory, program, batch.uniforms, known)
        kind = "vertex" if vertex else "coordinate"
        super().__init__(memory, source_of(kind, program, self.meanings, known), Reporter())
        environment = batch.environment(SteppedVertices)
        assert isinstance(environment, SteppedVertices)
        self.environment = environment
        environment.run.observer = self.observer
        settings = batch.key.unknowns
        with running(environment.run):
            machine = EagerWideInterpreter(program, environment, settings=settings)
        self.qpus[0] = ShaderQpu(machine, environment, REFERENCE_BUDGET)
        self.sections = (
            Section("vertices", "vertices of the batch", self._vertices),
            Section("attributes", "rows that were fetched", self._attributes),
            Section("outputs", "rows that are written", self._outputs),
        )

    def meaning(self, address: int) -> str:
        return self.meanings.of(address)

    def report(self, qpu: Any) -> None:
        if qpu.code and not self.reporter.counts[qpu.code]:
            self.reporter.report(qpu.code, qpu.reason, address=qpu.address)

    def vpm_rows(self) -> Any:
        """The rows that the program writes."""
        return self.environment.rows_of(self.environment.outputs)

    def lanes(self, name: str) -> Any:
        """The number of each vertex, as indices name it."""
        first = self.batch.first // LANES * LANES
        return np.arange(first, first + LANES, dtype=np.uint32) if name == "vertex" else None

    # -- what is shown -----------------------------------------------------------------------------

    def _vertices(self) -> list[Row]:
        first, last = self.batch.first, self.batch.last
        return [
            Row("vertex", words_of(self.lanes("vertex")), f"{first} to {last} are of the draw", "int"),
            Row("lane", (), f"the vertex that was asked for is lane {self.lane}"),
        ]

    def _attributes(self) -> list[Row]:
        table = self.environment.rows_of(self.environment.inputs)
        rows = [Row(f"row {n}", words_of(table[n]), form="float") for n in range(self.batch.key.rows_in)]
        for one in self.batch.fetched(self.batch.first):
            rows.append(
                Row(f"array {one.number}", (), f"of vertex {self.batch.first} at 0x{one.address:08x}")
            )
        return rows

    def _outputs(self) -> list[Row]:
        table, rows = self.vpm_rows(), []
        for number in range(self.batch.rows):
            name = (
                self._names[number] if number < len(self._names) else f"varying {number - len(self._names)}"
            )
            rows.append(
                Row(f"{number:2} {name}", words_of(table[number]), form="hex" if ":" in name else "float")
            )
        return rows
