"""The vertices of a draw before and after its coordinate program, for a page that draws them."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.debug.frame.places import NoSuchPlace
from vc4lab.debug.why.corners import corners_of
from vc4lab.v3d.state.render_state import INDEX_8, INDEX_ARRAY
from vc4lab.viewer.inside.programs import drawn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vc4lab.debug.frame.capture import CapturedFrame
    from vc4lab.debug.frame.index import FrameDraw

MOST_VERTICES = 1 << 16
MOST_INDICES = 1 << 18


def mesh_document(frame: CapturedFrame, number: int) -> dict[str, Any]:
    """Return a draw's vertices: numbers of arrays are base64 of little-endian singles or words.

    Raises NoSuchPlace, CaptureError.
    """
    draw = drawn(frame, number)
    shader = draw.shader
    if shader is None or shader.vector_graphics:
        raise NoSuchPlace(f"the vertices of draw {number} are coordinates in a list")
    frame.stage.run(draw.job, keep=number)
    indices = _indices(frame, draw)
    after = corners_of(frame.stage.v3d, _row(draw), MOST_VERTICES)
    names = np.unique(indices) if after is None else after.number
    found: dict[str, Any] = {
        "draw": number,
        "mode": draw.mode,
        "vertices": _text(names, "<u4"),
        "count": len(names),
        "indices": _text(indices, "<u4"),
        "total": draw.length,
        "arrays": _arrays(frame, draw, names),
        "clip": None,
        "screen": None,
    }
    if after is not None:
        found["screen"] = _text(np.concatenate([after.screen, after.depth[:, None]], axis=1), "<f4")
        found["clip"] = None if after.clip is None else _text(after.clip, "<f4")
        found["outside"] = int((after.planes != 0).sum())
    return found


def _row(draw: FrameDraw) -> dict[str, int]:
    """The draw as the binner's table has it."""
    kind = INDEX_ARRAY if not draw.index_bits else INDEX_8 + (draw.index_bits == 16)
    return {
        "first": draw.first,
        "last": draw.last,
        "index_type": kind,
        "place": draw.place,
        "length": draw.length,
    }


def _indices(frame: CapturedFrame, draw: FrameDraw) -> NDArray[Any]:
    length = min(draw.length, MOST_INDICES)
    if not draw.index_bits:
        return np.arange(draw.place, draw.place + length, dtype=np.int64)
    return frame.stage.memory.array(draw.place, length, f"u{draw.index_bits // 8}").astype(np.int64)


def _arrays(frame: CapturedFrame, draw: FrameDraw, names: NDArray[Any]) -> list[dict[str, Any]]:
    """The attribute arrays that are singles, as far as can be told: whole words."""
    shader = draw.shader
    if shader is None or shader.gl is None:
        return []
    found = []
    for number, one in enumerate(shader.gl.attributes):
        words = one.size // 4
        if not 1 <= words <= 4 or one.size % 4 or not len(names):
            continue
        first, last = int(names.min()), int(names.max())
        data = frame.stage.memory.read(
            one.address + one.stride * first, one.stride * (last - first) + one.size
        )
        if len(data) < one.stride * (last - first) + one.size:
            continue
        places = (names - first)[:, None] * one.stride + np.arange(one.size)
        values = np.frombuffer(data, np.uint8)[places].copy().view("<f4")
        found.append({"array": number, "words": words, "values": _text(values, "<f4")})
    return found


def _text(values: NDArray[Any], kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values).astype(kind).tobytes()).decode("ascii")
