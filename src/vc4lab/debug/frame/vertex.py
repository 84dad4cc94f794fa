"""The history of a vertex: what was fetched for it, its programs' runs, where it came to lie.

The draw's job runs again up to its tiles; then the programs run in the interpreter, for the batch with
the vertex, on memory as it is then.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.debug.frame.places import NoSuchPlace
from vc4lab.debug.frame.texts import written_text
from vc4lab.debug.frame.vertex_batch import FetchedAttribute, VertexBatch
from vc4lab.debug.frame.watch import ProgramStep, kept_step
from vc4lab.qpu.run.environment import REFERENCE_BUDGET, Unsupported
from vc4lab.qpu.run.staged import EagerWideInterpreter
from vc4lab.simd.eager_wide import Diverged
from vc4lab.v3d.vertex.context import COORDINATE_ROWS, LEFT
from vc4lab.v3d.vertex.reference import Ended
from vc4lab.v3d.vpm.shader_rows import LANES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vc4lab.debug.frame.index import FrameDraw
    from vc4lab.debug.frame.runs import FrameRuns
    from vc4lab.records.shader import GlShader
    from vc4lab.v3d.vertex.shading import VertexStage

CLIP_NAMES = ("Xc", "Yc", "Zc", "Wc", "Ys:Xs", "Zs", "1/Wc", "point size")
SHADED_NAMES = ("Ys:Xs", "Zs", "1/Wc")
"""Rows of the VPM that a coordinate and a vertex program write."""


@dataclass(frozen=True)
class VertexRun:
    """A program's run for a vertex.

    Attributes
    ----------
    code, uniforms
        Guest addresses.
    attributes
        What was fetched.
    rows_in, rows_out
        Words of the vertex's column of the VPM before and after.
    steps
        Instructions; in each, the vertex is the lane `lane`.
    failure
        Why it did not come to its end, or "".
    """

    code: int
    uniforms: int
    attributes: tuple[FetchedAttribute, ...]
    rows_in: tuple[int, ...]
    rows_out: tuple[int, ...]
    steps: tuple[ProgramStep, ...]
    lane: int
    failure: str = ""


@dataclass(frozen=True)
class VertexHistory:
    """Holds the history of a vertex of a draw.

    Attributes
    ----------
    frame, draw, index
        Number of the frame; the draw; the vertex, as indices name it.
    coordinate, vertex
        Its programs' runs; None: it was shaded beforehand (NV mode).
    words
        Of a vertex that was shaded beforehand.
    places
        Its places among the draw's vertices (numbers from 0 on), the first few.
    """

    frame: int
    draw: FrameDraw
    index: int
    coordinate: VertexRun | None
    vertex: VertexRun | None
    words: tuple[int, ...] = ()
    places: tuple[int, ...] = ()

    @property
    def clip(self) -> tuple[float, float, float, float] | None:
        """Xc, Yc, Zc and Wc."""
        if self.coordinate is None or len(self.coordinate.rows_out) < 4:
            return None
        x, y, z, w = (_single(word) for word in self.coordinate.rows_out[:4])
        return x, y, z, w

    @property
    def outside(self) -> tuple[str, ...]:
        """The planes of the view volume beyond which it lies."""
        if self.clip is None:
            return ()
        x, y, z, w = self.clip
        sides = ((x < -w, "left"), (x > w, "right"), (y < -w, "bottom"), (y > w, "top"))
        depth = ((z < -w, "near"), (z > w, "far"), (w <= 0, "eye"))
        return tuple(name for beyond, name in (*sides, *depth) if beyond)

    @property
    def screen(self) -> tuple[float, float] | None:
        """Xs and Ys in pixels, from the viewport's offset (record 103) on."""
        word = None
        if self.coordinate is not None and len(self.coordinate.rows_out) > 4:
            word = self.coordinate.rows_out[4]
        elif self.words:
            word = self.words[0]
        if word is None:
            return None
        x, y = struct.unpack("<hh", struct.pack("<I", word))
        return x / 16, y / 16


def vertex_history(frame: FrameRuns, number: int, index: int) -> VertexHistory:
    """Return the history of a vertex of a draw. Raises NoSuchPlace, CaptureError."""
    if not 1 <= number <= len(frame.draws):
        raise NoSuchPlace(f"frame {frame.number} has no draw {number}: it has {len(frame.draws)}")
    draw = frame.draws[number - 1]
    stage = frame.stage
    stage.run(draw.job, keep=number)
    places = places_of(frame, draw, index)
    if not places:
        raise NoSuchPlace(f"draw {number} has no vertex {index}: it uses {draw.first} to {draw.last}")
    shader = draw.shader
    if shader is None or shader.vector_graphics:
        raise NoSuchPlace(f"the vertices of draw {number} are coordinates in a list")
    if shader.gl is None:
        assert shader.nv is not None
        stride = int(shader.nv.stride)
        data = stage.memory.read(int(shader.nv.vertices) + stride * index, stride & ~3)
        words = struct.unpack(f"<{len(data) // 4}I", data)
        return VertexHistory(frame.number, draw, index, None, None, words, places)
    coordinates, shaded = (
        _run(*stage_of(frame, shader.gl, vertex=kind), draw, index, vertex=kind) for kind in (False, True)
    )
    return VertexHistory(frame.number, draw, index, coordinates, shaded, (), places)


def stage_of(frame: FrameRuns, shader: GlShader, *, vertex: bool) -> tuple[VertexStage, GlShader, int]:
    """Return the stage that runs a program of a shader record, that record, and the rows that it writes."""
    record, v3d = shader.record, frame.stage.v3d
    point = int(record.point_size)
    if not vertex:
        return v3d.binning.coordinates, shader, COORDINATE_ROWS + point
    return v3d.frames.preparer.vertices, shader, len(SHADED_NAMES) + int(record.fs_varyings) + point


MOST_PLACES = 8
MOST_VERTICES = 1 << 22


def places_of(frame: FrameRuns, draw: FrameDraw, index: int) -> tuple[int, ...]:
    """Return the places of a vertex among those of a draw, the first few."""
    length = min(draw.length, MOST_VERTICES)
    if not draw.index_bits:
        place = index - draw.place
        return (place,) if 0 <= place < length else ()
    found = frame.stage.memory.array(draw.place, length, f"u{draw.index_bits // 8}")
    return tuple(np.flatnonzero(found == index)[:MOST_PLACES].tolist())


def _run(
    stage: VertexStage, shader: GlShader, rows: int, draw: FrameDraw, index: int, *, vertex: bool
) -> VertexRun:
    """A program's run for a vertex, in the batch in which it is shaded."""
    lane, steps = index % LANES, list[ProgramStep]()
    first, last = max(index - lane, draw.first), min(index - lane + LANES - 1, draw.last)
    batch = VertexBatch(stage, shader, rows, first, last, vertex=vertex)
    environment = batch.environment()
    machine = EagerWideInterpreter(
        batch.interpreter.program,
        environment,
        settings=batch.key.unknowns,
        trace=lambda step: steps.append(kept_step(step)),
    )
    failure = ""
    try:
        if machine.advance(REFERENCE_BUDGET):
            raise Diverged  # which one batch cannot
    except Unsupported as verdict:
        failure = str(verdict)
    except Ended as verdict:
        failure = "it leaves its program" if verdict.status == LEFT else "it does not end"
    except Diverged:
        failure = "the interpreter cannot run it"
    return VertexRun(
        batch.code,
        batch.uniforms,
        batch.fetched(index),
        tuple(batch.inputs[0, : batch.key.rows_in, lane].tolist()),
        tuple(batch.written(environment)[:, lane].tolist()),
        tuple(steps),
        lane,
        failure,
    )


def _single(word: int) -> float:
    """A word as a single."""
    (value,) = struct.unpack("<f", struct.pack("<I", word))
    return float(value)


def _row_text(name: str, word: int) -> str:
    """A row of the VPM in words."""
    if name == "Ys:Xs":
        x, y = struct.unpack("<hh", struct.pack("<I", word))
        return f"{name} {word:08x} ({x / 16:g}, {y / 16:g})"
    return f"{name} {word:08x} ({_single(word):.6g})"


def _run_lines(title: str, run: VertexRun, names: tuple[str, ...], *, program: bool) -> Iterator[str]:
    """A program's run."""
    yield f"{title} program 0x{run.code:08x}, {len(run.steps)} instructions, uniforms 0x{run.uniforms:08x}"
    for one in run.attributes:
        yield f"  array {one.number}  0x{one.address:08x}: {one.data.hex(' ', 4)}"
    for row, word in enumerate(run.rows_in):
        yield f"  row {row:2} in   {word:08x} ({_single(word):.6g})"
    if program:
        for step in run.steps:
            yield f"    {written_text(step, run.lane)}"
    for row, word in enumerate(run.rows_out):
        name = names[row] if row < len(names) else f"varying {row - len(names)}"
        yield f"  row {row:2} out  {_row_text(name, word)}"
    if run.failure:
        yield f"  {run.failure}"


def vertex_lines(history: VertexHistory, *, program: bool = False) -> Iterator[str]:
    """A vertex's history. program: with each run, instruction by instruction."""
    places = ", ".join(map(str, history.places))
    yield f"frame {history.frame}, draw {history.draw.number}, vertex {history.index} (place {places})"
    if history.words:
        for row, word in enumerate(history.words):
            name = SHADED_NAMES[row] if row < len(SHADED_NAMES) else f"word {row}"
            yield f"  {_row_text(name, word)}"
    if history.coordinate is not None:
        yield from _run_lines("coordinate", history.coordinate, CLIP_NAMES, program=program)
    if history.clip is not None:
        x, y, z, w = history.clip
        where = (
            "beyond the planes: " + ", ".join(history.outside) if history.outside else "inside of all planes"
        )
        yield f"clip coordinates {x:.6g}, {y:.6g}, {z:.6g}, {w:.6g}: {where}"
    if history.screen is not None:
        x, y = history.screen
        yield f"{x:g},{y:g} pixels from the viewport's offset"
    if history.vertex is not None:
        yield from _run_lines("vertex", history.vertex, SHADED_NAMES, program=program)
    counts = history.draw.counts
    yield "the draw's primitives: " + ", ".join(
        f"{counts[name]} {name}" for name in counts if name != "blocks"
    )


def vertex_dict(history: VertexHistory) -> dict[str, Any]:
    """A vertex's history as JSON has it."""
    return {
        "frame": history.frame,
        "draw": history.draw.as_dict(),
        "vertex": history.index,
        "places": list(history.places),
        "words": [f"{word:08x}" for word in history.words],
        "clip": history.clip,
        "outside": list(history.outside),
        "screen": history.screen,
        **{
            name: None if run is None else _run_dict(run)
            for name, run in (("coordinate", history.coordinate), ("vertex_program", history.vertex))
        },
    }


def _run_dict(run: VertexRun) -> dict[str, Any]:
    return {
        "code": run.code,
        "uniforms": run.uniforms,
        "attributes": [
            {"array": one.number, "address": one.address, "data": one.data.hex()} for one in run.attributes
        ],
        "rows_in": [f"{word:08x}" for word in run.rows_in],
        "rows_out": [f"{word:08x}" for word in run.rows_out],
        "steps": [
            {
                "address": step.address,
                "text": step.text,
                "writes": {name: f"{value[run.lane]:08x}" for name, value, _mask in step.writes},
            }
            for step in run.steps
        ],
        "failure": run.failure,
    }
