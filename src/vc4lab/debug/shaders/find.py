"""Finds the run of a shader that a question names: of a pixel, a primitive, a vertex of a captured frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vc4lab.debug.frame.overlays import primitive_pixels
from vc4lab.debug.frame.pixel import history_of, moment_of
from vc4lab.debug.frame.places import NoSuchPlace, Position
from vc4lab.debug.frame.texts import touch_name
from vc4lab.debug.frame.tile_list import primitives_of
from vc4lab.debug.frame.touch import DRAWN, UNCOVERED
from vc4lab.debug.frame.vertex import places_of, stage_of
from vc4lab.debug.frame.vertex_batch import VertexBatch
from vc4lab.debug.session import Session
from vc4lab.debug.shaders.fragment import FragmentStage
from vc4lab.debug.shaders.vertex import VertexProgramStage
from vc4lab.v3d.vpm.shader_rows import LANES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vc4lab.debug.frame.capture import Capture, CapturedFrame
    from vc4lab.debug.frame.pixel import PixelHistory
    from vc4lab.debug.frame.touch import Touch
    from vc4lab.debug.shaders.listing import KnownProgram
    from vc4lab.v3d.state.frame_mode import FrameMode
    from vc4lab.v3d.tiles.collector import Collector

TRIES = 4
"""Pixels of a primitive whose histories are looked at, so that one has it."""
MOST_NAMED = 8
"""Primitives that a message names."""


@dataclass(frozen=True)
class Question:
    """Names a run of a shader.

    Attributes
    ----------
    frame
        Its number; None: the last one.
    position
        A link: `#f3/j1/d14/p7`; "": none.
    pixel
        Column and row of the picture (of the job's surface, if the link names a job).
    vertex
        Number of a vertex, as indices name it.
    draw
        From 1 on; 0: the one that made the pixel.
    coordinate
        Whether the vertex's coordinate program is meant.
    """

    frame: int | None = None
    position: str = ""
    pixel: tuple[int, int] | None = None
    vertex: int | None = None
    draw: int = 0
    coordinate: bool = False


def shader_session(
    capture: Capture, question: Question, known: Iterable[KnownProgram] = ()
) -> tuple[Session, list[str]]:
    """The session of a run, which has not begun, and what it is, in lines.

    known: what is known of programs. Raises NoSuchPlace, CaptureError.
    """
    frame, position = _place(capture, question)
    programs = {(one.kind, one.words): one for one in known}
    if question.vertex is not None:
        return _of_vertex(frame, position, question, programs)
    if question.pixel is None:
        if position.primitive is None or not position.draw:
            raise NoSuchPlace("which pixel or vertex? Its block of 16 is what a program runs for")
        return _of_primitive(frame, position, programs)
    history = _history(frame, position, question.pixel)
    found = _touch(history, position)
    if found is None:
        raise NoSuchPlace(_nothing(history, position))
    return _of_touch(frame, *found, programs)


def _place(capture: Capture, question: Question) -> tuple[CapturedFrame, Position]:
    if question.position:
        frame, position = capture.at(question.position)
    else:
        frame = capture.frame(question.frame)
        position = Position(frame.number)
    if question.draw:
        if question.draw > len(frame.draws):
            raise NoSuchPlace(f"frame {frame.number} has no draw {question.draw}: it has {len(frame.draws)}")
        position = position._replace(draw=question.draw)
    return frame, position


# -- fragments -------------------------------------------------------------------------------------


def _history(frame: CapturedFrame, position: Position, pixel: tuple[int, int]) -> PixelHistory:
    """The history of a pixel: of the picture, or of the job that is meant."""
    number = position.job or (frame.draws[position.draw - 1].job if position.draw else 0)
    if not number or frame.jobs[number - 1] is frame.job:
        return frame.pixel(*pixel)
    job = frame.jobs[number - 1]
    width, height = job.size
    if not (0 <= pixel[0] < width and 0 <= pixel[1] < height):
        raise NoSuchPlace(f"job {number} draws {width}x{height} pixels: no ({pixel[0]}, {pixel[1]})")
    return history_of(frame, job, *pixel)


def _candidates(history: PixelHistory) -> Iterator[tuple[PixelHistory, Touch]]:
    """All touches whose program has run for the pixel, the last one first, with their job's history."""
    one: PixelHistory | None = history
    while one is not None:
        for touch in reversed(one.touches):
            if touch.outcome != UNCOVERED:
                yield one, touch
        one = one.earlier


def _touch(history: PixelHistory, position: Position) -> tuple[PixelHistory, Touch] | None:
    """The touch that is meant: the last of the draw and the primitive, or the last that was drawn."""
    found = list(_candidates(history))
    if position.draw:
        found = [one for one in found if one[1].draw is not None and one[1].draw.number == position.draw]
        if position.primitive is not None:
            found = [one for one in found if one[1].primitive == position.primitive]
        return found[0] if found else None
    drawn = [one for one in found if one[1].outcome == DRAWN]
    return drawn[0] if drawn else found[0] if found else None


def _nothing(history: PixelHistory, position: Position) -> str:
    names = [touch_name(touch) for _, touch in _candidates(history)][:MOST_NAMED]
    where = f"the pixel {history.x},{history.y} of frame {history.frame}"
    if not names:
        return f"no program has run for {where}"
    return f"{position} has not touched {where}, but: {'; '.join(dict.fromkeys(names))}"


def _of_touch(
    frame: CapturedFrame, history: PixelHistory, touch: Touch,
    known: dict[tuple[str, tuple[int, ...]], KnownProgram],
) -> tuple[Session, list[str]]:  # fmt: skip
    moment, works = moment_of(frame, history, touch)
    owner = frame.give_stage()
    words = touch.block.draw.program.words
    stage = FragmentStage(
        owner.memory, moment, touch.code, (owner, works, touch), known.get(("fragment", words))
    )
    position = Position(
        history.frame, history.job.number, 0 if touch.draw is None else touch.draw.number, touch.primitive
    )
    what = f"{position}: {touch_name(touch)}, pixel {history.x},{history.y} (lane {stage.lane})"
    return Session(stage), [f"{what}; {touch.outcome}"]


def _of_primitive(
    frame: CapturedFrame, position: Position, known: dict[tuple[str, tuple[int, ...]], KnownProgram]
) -> tuple[Session, list[str]]:
    """The run for a primitive at a pixel near its middle."""
    draw = frame.draws[position.draw - 1]
    primitive = position.primitive
    rows = primitives_of(frame.stage.memory, draw)
    if rows is None or primitive is None:
        raise NoSuchPlace(f"which pixel? The primitives of draw {draw.number} have coordinates, no vertices")
    if primitive >= len(rows):
        raise NoSuchPlace(f"draw {draw.number} has no primitive {primitive}: it has {len(rows)}")
    job = frame.jobs[draw.job - 1]
    pixels = primitive_pixels(frame, draw.number, rows[primitive].tolist())
    for part in range(1, 2 * TRIES, 2):
        if pixels:
            history = history_of(frame, job, *pixels[len(pixels) * part // (2 * TRIES)])
            found = _touch(history, position)
            if found is not None:
                return _of_touch(frame, *found, known)
    text = "was not found at its pixels: name one (--pixel)" if pixels else "has run no program"
    raise NoSuchPlace(f"primitive {primitive} of draw {draw.number} {text}")


# -- vertices --------------------------------------------------------------------------------------


def _of_vertex(
    frame: CapturedFrame, position: Position, question: Question,
    known: dict[tuple[str, tuple[int, ...]], KnownProgram],
) -> tuple[Session, list[str]]:  # fmt: skip
    index, number = question.vertex, position.draw
    assert index is not None
    if not number:
        raise NoSuchPlace(f"whose vertex {index}? A draw from 1 to {len(frame.draws)}")
    draw = frame.draws[number - 1]
    frame.stage.run(draw.job, keep=number, draw=_no_tiles)
    if not places_of(frame, draw, index):
        raise NoSuchPlace(f"draw {number} has no vertex {index}: it uses {draw.first} to {draw.last}")
    if draw.shader is None or draw.shader.gl is None:
        raise NoSuchPlace(f"draw {number} has no vertex program: its vertices were shaded beforehand")
    vertex = not question.coordinate
    stage, shader, rows = stage_of(frame, draw.shader.gl, vertex=vertex)
    first = index // LANES * LANES
    batch = VertexBatch(
        stage, shader, rows, max(first, draw.first), min(first + LANES - 1, draw.last), vertex=vertex
    )
    kind = "vertex" if vertex else "coordinate"
    owner = frame.give_stage()
    found = VertexProgramStage(
        owner.memory, batch, index, owner, vertex=vertex, known=known.get((kind, batch.key.words))
    )
    what = f"{Position(frame.number, draw.job, number)}: {kind} program, vertex {index} (lane {found.lane})"
    return Session(found), [what]


def _no_tiles(mode: FrameMode, collector: Collector) -> None:
    """Memory stays as it was before the tiles were drawn."""
