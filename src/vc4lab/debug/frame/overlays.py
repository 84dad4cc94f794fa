"""Pictures of how a frame was drawn: overdraw, visible primitives and their edges, depth.

What was drawn comes from the tables of work that recording pipelines make (`work.py`), depth
from the tile buffer: the job's stores write it in place of colours. Textures and times are in
`texture_overlays.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.debug.frame.places import NoSuchPlace
from vc4lab.debug.frame.texture_overlays import level_map, timed_maps
from vc4lab.debug.frame.tile_buffer import stored_instead
from vc4lab.debug.frame.work import pixels_of, recorded_work
from vc4lab.v3d.state.frame_mode import ZS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from PIL.Image import Image

    from vc4lab.debug.frame.runs import FrameRuns
    from vc4lab.timing.frames.frame import Frame

    Numbers = NDArray[np.int64]

OVERLAYS = ("overdraw", "depth", "primitives", "wireframe", "levels", "misses", "clocks")
NOTHING = -1
"""In `primitive_map`: no primitive is seen there."""
_PRIMES = (73856093, 19349663, 83492791)
_HASH = (1 << 31) - 1


def overdraw(frame: FrameRuns, draw: int) -> Numbers:
    """How often each pixel's program has run, up to a draw: shape (height, width)."""
    job = frame.job_of(draw)
    work, _event = recorded_work(frame, job, draw)
    width, height = job.size
    places, _blocks, _lanes = pixels_of(work, "flags", width, height)
    return np.bincount(places, minlength=width * height).reshape(height, width)


def primitive_map(frame: FrameRuns, draw: int) -> Numbers:
    """A number for the primitive that passed the depth test last at each pixel; NOTHING: none.

    It is the same for a primitive in all tiles. Programs that discard do not count as such.
    """
    job = frame.job_of(draw)
    work, _event = recorded_work(frame, job, draw)
    width, height = job.size
    places, blocks, _lanes = pixels_of(work, "passed", width, height)
    found = np.full(width * height, NOTHING, np.int64)
    found[places] = _names(work)[blocks]  # of several the last one stays
    return found.reshape(height, width)


def depth_map(frame: FrameRuns, draw: int) -> Numbers:
    """Depth (24 bits) at each pixel after a draw; with four samples that of the first one."""
    job = frame.job_of(draw)
    width, height = job.size
    with stored_instead(frame.stage, job, draw, ZS) as surface:
        words = frame.stage.memory.array(surface.address, surface.pitch // 4 * height, "<u4")
        return (words.reshape(height, -1)[:, :width] >> 8).astype(np.int64)


def primitive_pixels(frame: FrameRuns, draw: int, vertices: Sequence[int]) -> list[tuple[int, int]]:
    """Column and row of the pixels that a draw's primitives with these vertices cover in their job."""
    job = frame.jobs[frame.draws[draw - 1].job - 1]
    work, _event = recorded_work(frame, job, only=draw)
    width, height = job.size
    places, blocks, _lanes = pixels_of(work, "flags", width, height)
    each, first = _corners(work)
    wanted = np.sort(np.array(vertices, np.int64))
    found = np.flatnonzero(each == len(wanted))
    corners = first[found, None] + np.arange(len(wanted))
    if not len(found) or not len(work.vertices):
        return []
    rows = np.sort(work.vertices[np.minimum(corners, len(work.vertices) - 1)].astype(np.int64), axis=1)
    chosen = np.zeros(len(each), bool)
    chosen[found[(rows == wanted).all(axis=1)]] = True
    pixels = np.unique(places[chosen[blocks]])
    return [(int(place) % width, int(place) // width) for place in pixels]


def overlay_picture(frame: FrameRuns, name: str, draw: int | None = None) -> Image:
    """An overlay as a picture; draw: the last that counts, None: all. Raises NoSuchPlace."""
    from PIL import Image

    number = len(frame.draws) if draw is None else draw
    if name == "overdraw":
        shades = _shades(overdraw(frame, number))
    elif name == "depth":
        shades = _near_is_bright(depth_map(frame, number))
    elif name == "primitives":
        shades = _colours(primitive_map(frame, number))
    elif name == "wireframe":
        shades = _edges(primitive_map(frame, number))
    elif name == "levels":
        shades = _coloured_levels(level_map(frame, number))
    elif name == "misses":
        shades = _shades(timed_maps(frame, number).misses)
    elif name == "clocks":
        shades = _shades(timed_maps(frame, number).clocks)
    else:
        raise NoSuchPlace(f"there is no overlay {name[:40]!r}, but {', '.join(OVERLAYS)}")
    return Image.fromarray(shades)


def _corners(work: Frame) -> tuple[Numbers, Numbers]:
    """Count the vertices of each block's primitive; and where the first one is in `work.vertices`."""
    lists, owner = work.lists, work.list_of_block
    counts = np.maximum(lists["primitives"], 1)
    each = (lists["vertices"] // counts)[owner].astype(np.int64)
    return each, lists["first_vertex"][owner].astype(np.int64) + work.blocks["position"].astype(
        np.int64
    ) * each


def _names(work: Frame) -> Numbers:
    """A number for the primitive of each block, made of its vertices and its draw."""
    lists, owner = work.lists, work.list_of_block
    each, first = _corners(work)
    names = lists["draw"][owner].astype(np.int64) * 1000003
    limit = max(len(work.vertices) - 1, 0)
    for corner, prime in enumerate(_PRIMES):
        vertex = np.zeros(len(owner), np.int64)
        if len(work.vertices):
            vertex = work.vertices[np.minimum(first + corner, limit)].astype(np.int64)
        names ^= np.where(each > corner, (vertex + 1) * prime, 0)
    without = each == 0  # coordinates stand in the list
    return np.where(without, names ^ work.blocks["position"].astype(np.int64) * _PRIMES[0], names) & _HASH


def _shades(counts: NDArray[Any]) -> NDArray[np.uint8]:
    """Counts from black over red and yellow to white; the scale is the highest count."""
    scale = counts / max(float(counts.max()), 1e-9)
    parts = [np.clip(3 * scale - k, 0, 1) for k in range(3)]
    return np.round(np.stack(parts, axis=-1) * 255).astype(np.uint8)


LEVEL_COLOURS = (
    (230, 60, 50), (240, 150, 40), (235, 220, 60), (90, 190, 80), (60, 170, 200), (70, 100, 220),
    (150, 80, 200),
)  # fmt: skip
"""Colours of level 0, 1 …; levels between two are mixed, those after have the last one."""


def _coloured_levels(levels: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Each mip level in its colour; black: no texture was sampled."""
    known = np.arange(len(LEVEL_COLOURS))
    parts = [np.interp(levels, known, [colour[k] for colour in LEVEL_COLOURS]) for k in range(3)]
    return np.where(levels[..., None] < 0, 0, np.round(np.stack(parts, axis=-1))).astype(np.uint8)


def _near_is_bright(depths: Numbers) -> NDArray[np.uint8]:
    """Depths as grey: what is near is bright, the farthest black; the range is that of the picture."""
    low, high = int(depths.min()), int(depths.max())
    seen = depths[depths < high]
    top = int(seen.max()) if len(seen) else high
    grey = np.where(depths >= high, 0.0, 255 - 205 * (depths - low) / max(top - low, 1))
    return np.repeat(np.round(grey).astype(np.uint8)[..., None], 3, axis=2)


def _colours(names: Numbers) -> NDArray[np.uint8]:
    """Each primitive in a colour of its own."""
    mixed = names * 2654435761 & 0xFFFFFF
    parts = [64 + (mixed >> shift & 0xFF) * 3 // 4 for shift in (0, 8, 16)]
    found = np.where(names[..., None] == NOTHING, 0, np.stack(parts, axis=-1))
    return np.asarray(found).astype(np.uint8)


def _edges(names: Numbers) -> NDArray[np.uint8]:
    """White where a primitive ends to the right or below, on black."""
    edge = np.zeros(names.shape, bool)
    edge[:, :-1] |= names[:, :-1] != names[:, 1:]
    edge[:-1] |= names[:-1] != names[1:]
    return np.repeat((edge * np.uint8(255))[..., None], 3, axis=2)
