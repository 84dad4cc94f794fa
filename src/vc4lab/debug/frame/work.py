"""The work of a captured job, recorded while it runs again: blocks of pixels, primitives, requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vc4lab.debug.frame.places import NoSuchPlace
from vc4lab.timing.frames.feed import FrameFeed
from vc4lab.v3d.state.frame_mode import LANE_X, LANE_Y

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vc4lab.debug.frame.index import FrameJob
    from vc4lab.debug.frame.runs import FrameRuns
    from vc4lab.timing.frames.frame import Frame
    from vc4lab.v3d.events import FrameWork

    Numbers = NDArray[np.int64]


def recorded_work(
    frame: FrameRuns, job: FrameJob, draw: int | None = None, only: int | None = None
) -> tuple[Frame, FrameWork]:
    """Record a job, up to a draw, or with only one; its tables and the event. Raises NoSuchPlace."""
    v3d, events = frame.stage.v3d, list["FrameWork"]()
    heard = v3d.listeners.frame_work.subscribe(events.append)
    try:
        with FrameFeed(v3d) as feed:
            frame.stage.run(job.number, keep=draw, only=only)
            found = feed.take()
    finally:
        heard.close()
    if not found or found[-1].lost:
        raise NoSuchPlace(f"the work of job {job.number} of frame {frame.number} is too much to be recorded")
    return found[-1], events[-1]


def pixels_of(work: Frame, lanes: str, width: int, height: int) -> tuple[Numbers, Numbers, Numbers]:
    """The pixels of all blocks, in order: place (y * width + x), block, lane of each.

    lanes: a column of the blocks, with a bit for each lane that counts.
    """
    blocks = work.blocks
    tiles = work.tiles[work.lists["tile"][work.list_of_block]]
    x = tiles["x"].astype(np.int64) + (blocks["place"] & 255)
    y = tiles["y"].astype(np.int64) + (blocks["place"] >> 8 & 255)
    bits = blocks[lanes].astype(np.int64)[:, None] >> np.arange(16) & 1
    columns, rows = x[:, None] + np.array(LANE_X), y[:, None] + np.array(LANE_Y)
    inside = (bits == 1) & (columns < width) & (rows < height)
    block, lane = np.nonzero(inside)
    return (rows * width + columns)[inside], block, lane
