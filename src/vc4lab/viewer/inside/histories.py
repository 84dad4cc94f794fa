"""Histories of pixels and vertices as documents of JSON for pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vc4lab.debug.frame.pixel import PixelHistory, history_of
from vc4lab.debug.frame.places import NoSuchPlace
from vc4lab.debug.frame.texts import history_dict, history_lines, touch_lines, touch_name
from vc4lab.debug.frame.touch import UNCOVERED
from vc4lab.debug.frame.vertex import CLIP_NAMES, SHADED_NAMES, vertex_dict, vertex_lines
from vc4lab.viewer.inside.programs import steps_document
from vc4lab.viewer.inside.session import job_of

if TYPE_CHECKING:
    from vc4lab.debug.frame.capture import CapturedFrame
    from vc4lab.debug.frame.touch import Touch


def pixel_document(frame: CapturedFrame, job: int, x: int, y: int) -> dict[str, Any]:
    """Return the history of a pixel of a job's surface. Raises NoSuchPlace, CaptureError."""
    history = _history(frame, job, x, y, program=False)
    return _document(history)


def _history(frame: CapturedFrame, number: int, x: int, y: int, *, program: bool) -> PixelHistory:
    job = job_of(frame, number)
    width, height = job.size
    if not (0 <= x < width and 0 <= y < height):
        raise NoSuchPlace(f"job {number} draws {width}x{height} pixels: there is no ({x}, {y})")
    return history_of(frame, job, x, y, program=program)


def _document(history: PixelHistory) -> dict[str, Any]:
    found = history_dict(history)
    blue = history.is_blue_first
    touches = covering(history)
    for one, touch in zip(found["touches"], touches, strict=True):
        one["name"] = touch_name(touch)
        one["lines"] = list(touch_lines(touch, is_blue_first=blue))[1:]
        one["instructions"] = len(touch.block.draw.program)
        one["uniforms_address"] = touch.block.uniforms_address
        one["lane"] = touch.block.lane
    found["title"] = next(line for line in history_lines(history) if not line.startswith(" "))
    found["earlier"] = None if history.earlier is None else _document(history.earlier)
    return found


def covering(history: PixelHistory) -> list[Touch]:
    """Return the touches of primitives that cover the pixel, in order."""
    return [one for one in history.touches if one.outcome != UNCOVERED]


def run_document(frame: CapturedFrame, job: int, x: int, y: int, touch: int) -> dict[str, Any]:
    """Return the run of the program for a touch of a pixel's history, in all lanes.

    touch: its number among those of the history, from 0 on. Raises NoSuchPlace, CaptureError.
    """
    history = _history(frame, job, x, y, program=True)
    touches = covering(history)
    if not 0 <= touch < len(touches):
        raise NoSuchPlace(f"{len(touches)} primitives cover the pixel: there is no {touch}")
    one = touches[touch]
    block = one.block
    return {
        "title": f"{touch_name(one)} at {x},{y}",
        "draw": None if one.draw is None else one.draw.number,
        "stage": "fragment",
        **steps_document(block.program, block.lane, block.draw.program.address, one.code),
    }


def vertex_document(frame: CapturedFrame, draw: int, index: int) -> dict[str, Any]:
    """Return the history of a vertex, with its programs' runs. Raises NoSuchPlace, CaptureError."""
    history = frame.vertex(draw, index)
    found = vertex_dict(history)
    found["lines"] = list(vertex_lines(history))
    for name, run, names in (
        ("coordinate", history.coordinate, CLIP_NAMES),
        ("vertex_program", history.vertex, SHADED_NAMES),
    ):
        if run is not None:
            base = run.steps[0].address if run.steps else 0
            found[name]["names"] = [
                names[row] if row < len(names) else f"varying {row - len(names)}"
                for row in range(len(run.rows_out))
            ]
            found[name]["run"] = {
                "title": f"draw {draw}, vertex {index}",
                "draw": draw,
                "stage": "coordinate" if name == "coordinate" else "vertex",
                **steps_document(run.steps, run.lane, base, run.code),
            }
            del found[name]["steps"]
    return found
