"""Maps of mip levels, texture cache misses and clocks over the pixels of a frame.

Levels come from the lines that samplers have read, misses and clocks from the timing model of the chip.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vc4lab.debug.frame.places import NoSuchPlace
from vc4lab.debug.frame.work import pixels_of, recorded_work
from vc4lab.memory import MEMORY_MASK
from vc4lab.memory.native import LINE_SHIFT, QUAD_SHIFT
from vc4lab.v3d.tmu.texture_state import MAX_LEVELS

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from vc4lab.debug.frame.runs import FrameRuns
    from vc4lab.timing.frames.frame import Frame
    from vc4lab.v3d.events import FrameWork

    Numbers = NDArray[np.int64]
    Reals = NDArray[np.float64]

NOTHING = -1
"""In `level_map`: no texture was sampled there."""
QUADS = 4
_LINE = (1 << QUAD_SHIFT) - 1


def level_map(frame: FrameRuns, draw: int) -> Reals:
    """The mip level that was sampled last at each pixel, up to a draw: shape (height, width).

    Of a quad that reads two levels it is the mean; NOTHING: no texture was sampled. Raises NoSuchPlace.
    """
    job = frame.job_of(draw)
    work, event = recorded_work(frame, job, draw)
    width, height = job.size
    levels = _levels_of_quads(work, event)
    places, blocks, lanes = pixels_of(work, "passed", width, height)
    values = levels[blocks, lanes // QUADS]
    sampled = values >= 0
    found = np.full(width * height, float(NOTHING))
    found[places[sampled]] = values[sampled]  # of several the last one stays
    return found.reshape(height, width)


def _levels_of_quads(work: Frame, event: FrameWork) -> Reals:
    """The level that each quad of each block has read last: shape (blocks, 4); NOTHING: none."""
    blocks, lines = work.blocks, work.lines
    request_of_line = np.repeat(np.arange(len(work.requests)), work.requests["lines"])
    block_of_request = np.repeat(np.arange(len(blocks)), blocks["requests"])
    block = block_of_request[request_of_line]
    quad = (lines >> QUAD_SHIFT & 3).astype(np.int64)
    draw = work.lists["draw"][work.list_of_block][block].astype(np.int64)
    number = work.requests["number"][request_of_line].astype(np.int64)
    address = (lines & _LINE).astype(np.int64) << LINE_SHIFT
    level = np.full(len(lines), float(NOTHING))
    for named in np.unique(draw * MAX_LEVELS * MAX_LEVELS + np.maximum(number, -1) + 1).tolist():
        which, request = divmod(named, MAX_LEVELS * MAX_LEVELS)
        textures = event.draws[which].textures
        texture: Any = textures[request - 1] if 0 < request <= len(textures) else None
        if texture is not None:
            chosen = (draw == which) & (number == request - 1)
            level[chosen] = _level_at(texture, address[chosen])
    found = np.full((len(blocks), QUADS), float(NOTHING))
    known = level >= 0
    place = request_of_line[known] * QUADS + quad[known]  # a quad's lines of a request
    size = len(work.requests) * QUADS
    sums, counts = np.bincount(place, level[known], size), np.bincount(place, minlength=size)
    (read,) = counts.nonzero()
    found[block_of_request[read // QUADS], read % QUADS] = sums[read] / counts[read]
    return found


def _level_at(texture: Any, address: Numbers) -> Numbers:
    """The level that lies at each address: the one that begins last before it."""
    count = int(texture.last_level) + 1
    bases = np.array([int(texture.base[level]) & MEMORY_MASK for level in range(count)], np.int64)
    order = np.argsort(bases)
    first = bases[order[0]] & -1 << LINE_SHIFT
    offset = (address - first) & MEMORY_MASK
    if texture.cube_stride:
        offset %= int(texture.cube_stride)
    place = np.searchsorted(bases[order] - first, offset + (1 << LINE_SHIFT) - 1, side="right") - 1
    levels: Numbers = order[np.maximum(place, 0)]
    return levels


class TimedMaps(NamedTuple):
    """How long pixels take on the chip: arrays of shape (height, width).

    Attributes
    ----------
    clocks
        Clocks for which threads of QPUs were held for a pixel, those of a vector shared among its pixels.
    misses
        Lines that were missing in the texture cache, shared likewise.
    frame_clocks
        Of the whole job: threads run side by side, so it is less than the sum.
    """

    clocks: Reals
    misses: Reals
    frame_clocks: int


def timed_maps(frame: FrameRuns, draw: int) -> TimedMaps:
    """Clocks and texture cache misses of each pixel, up to a draw, by the timing model.

    Raises NoSuchPlace, also where the model cannot time the job.
    """
    from vc4lab.timing.compute.model import NotTimed
    from vc4lab.timing.frame_times import FrameTimer
    from vc4lab.timing.graphics.model import RENDERING, FrameModel

    job = frame.job_of(draw)
    work, _event = recorded_work(frame, job, draw)
    width, height = job.size
    timer = FrameTimer()
    model = FrameModel(timer.chip, timer.speed)
    try:
        (timing,) = model.run([work])
    except NotTimed as error:
        raise NoSuchPlace(f"the timing model cannot time job {job.number}: {error}") from None
    rendering = model.tables[RENDERING].rendering
    assert rendering is not None
    vectors, quads = rendering.vectors, rendering.quads
    vector_of_quad = np.repeat(np.arange(len(vectors)), vectors["quads"])
    of_quad = np.full((len(work.blocks), QUADS), -1, np.int64)
    of_quad[quads["block"], quads["number"]] = vector_of_quad
    places, blocks, lanes = pixels_of(work, "flags", width, height)
    vector = of_quad[blocks, lanes // QUADS]
    shaded = vector >= 0
    places, vector = places[shaded], vector[shaded]
    pixels = np.maximum(np.bincount(vector, minlength=len(vectors)), 1)
    shape = height, width
    clocks, misses = (
        np.bincount(places, (vectors[name] / pixels)[vector], width * height).astype(float).reshape(shape)
        for name in ("clocks", "missed")
    )
    return TimedMaps(clocks, misses, timing.clocks)
