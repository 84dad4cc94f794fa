"""The tables of programs: shaders as draws use them, their segments, and the routes of runs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vc4lab.timing.compute.kinds import LINE
from vc4lab.timing.frames.columns import Table, dtype_of
from vc4lab.timing.frames.frame import Frame
from vc4lab.timing.graphics.shaders.programs import SegmentedProgram, Words, segmented
from vc4lab.timing.graphics.shaders.state import Segment
from vc4lab.timing.graphics.state import Shader

_COLUMNS = ("meets", "first", "slots", "words", "line", "uniforms", "tile")
_NAMES = ("code", "uniforms", "program", "threads", "instructions", "first_step", "steps")
_LEAST = 256


class ShaderTables:
    """Segments, and what is counted of them, stay from frame to frame; shaders are of one frame.

    ahead: words of uniforms that are fetched ahead.

    Attributes
    ----------
    segments, routes, shaders
        The tables that native code reads; `segments` and `routes` may move when a row is added.
    programs
        The words of each program.
    labels
        The first user of each shader of this frame: kind (fragment, vertex, coordinate), draw.
    owners
        The number of each segment's program.
    inexact
        Rows of this frame without a route of as many instructions as were executed.
    """

    def __init__(self, ahead: int) -> None:
        self.ahead = ahead
        self.programs: list[Words] = []
        self.owners: list[int] = []
        self.labels: list[tuple[str, int]] = []
        self.inexact = 0
        self._segments = np.zeros(_LEAST, dtype_of(Segment))
        self._routes = np.zeros(_LEAST, np.int32)
        self._steps = 0
        self._numbers: dict[Words, int] = {}
        self._segmented: dict[tuple[Words, int], tuple[SegmentedProgram, dict[int, int]]] = {}
        self._ways: dict[tuple[int, ...], int] = {}
        self._rows: dict[tuple[Any, ...], int] = {}
        self._shaders: list[tuple[int, ...]] = []

    def begin(self) -> None:
        """Another frame: its shaders count from 0."""
        self._rows.clear()
        self._shaders.clear()
        self.labels = []
        self.inexact = 0

    def row(
        self,
        words: Words,
        code: int,
        uniforms: int,
        threads: int = 1,
        instructions: int = 0,
        label: tuple[str, int] = ("", -1),
    ) -> int:
        """The shader of a program that executes so many instructions (0: not known).

        code, uniforms: guest addresses; threads: 2 if two of them share a QPU; label: as `labels`.
        """
        key = (words, code, uniforms, threads, instructions)
        number = self._rows.get(key)
        if number is None:
            number = self._rows[key] = len(self._shaders)
            self._shaders.append(self._shader(*key))
            self.labels.append(label)
        return number

    def rows_of_vectors(self, frame: Frame, vectors: Table) -> NDArray[np.int32]:
        """The shader of each vector, by its draw (as `shader` has it) and its instructions."""
        pairs = vectors["shader"].astype(np.int64) << 32 | vectors["instructions"]
        distinct, places = np.unique(pairs, return_inverse=True)
        rows = np.zeros(len(distinct), np.int32)
        for place, pair in enumerate(distinct.tolist()):
            draw = frame.draws[pair >> 32]
            executed = 0 if draw["reference"] else pair & 0xFFFFFFFF
            rows[place] = self.row(
                frame.programs[draw["program"]],
                int(draw["code"]),
                int(draw["uniforms"]),
                int(draw["threads"]),
                executed,
                ("fragment", pair >> 32),
            )
        return rows[places]

    @property
    def segments(self) -> Table:
        return self._segments[: len(self.owners)]

    @property
    def routes(self) -> NDArray[np.int32]:
        return self._routes[: self._steps]

    @property
    def shaders(self) -> Table:
        table = np.zeros(max(len(self._shaders), 1), dtype_of(Shader))
        for name, column in zip(_NAMES, zip(*self._shaders, strict=True), strict=False):
            table[name][: len(column)] = np.array(column, np.int64).astype(np.int32)
        return table

    # -- rows

    def _shader(
        self, words: Words, code: int, uniforms: int, threads: int, instructions: int
    ) -> tuple[int, ...]:
        number = self._numbers.setdefault(words, len(self.programs))
        if number == len(self.programs):
            self.programs.append(words)
        offset = uniforms % LINE // 4
        key = words, offset
        if key not in self._segmented:
            self._segmented[key] = segmented(words, offset, self.ahead), {}
        program, known = self._segmented[key]
        way = program.way(instructions)
        self.inexact += not way.exact
        route = tuple(self._segment(program, known, run, number) for run in way.runs)
        step = self._ways.get(route)
        if step is None:
            step = self._ways[route] = self._steps
            self._routes = _with_room(self._routes, self._steps + len(route))
            self._routes[step : step + len(route)] = route
            self._steps += len(route)
        return code, uniforms, number, threads, way.instructions, step, len(route)

    def _segment(self, program: SegmentedProgram, known: dict[int, int], run: int, number: int) -> int:
        """The number of a segment in the table."""
        place = known.get(run)
        if place is None:
            place = known[run] = len(self.owners)
            self.owners.append(number)
            self._segments = _with_room(self._segments, place + 1)
            for name in _COLUMNS:
                self._segments[name][place] = int(getattr(program.runs[run], name))
        return place


def _with_room(table: NDArray[Any], count: int) -> NDArray[Any]:
    """A table with room for so many rows."""
    if count <= len(table):
        return table
    found = np.zeros(max(count, 2 * len(table)), table.dtype)
    found[: len(table)] = table
    return found
