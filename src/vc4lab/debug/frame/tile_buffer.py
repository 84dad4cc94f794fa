"""Reads what a job's tile buffer holds when its tiles are stored, whatever it stores: colours, depth."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.debug.kept_memory import KeptMemory
from vc4lab.records.codes import Decimate
from vc4lab.records.declarations import StoreGeneral
from vc4lab.v3d.state.frame_mode import COLOUR, Surface
from vc4lab.v3d.tiles.collector import MAX_SURFACES
from vc4lab.v3d.tiles.job import OP_STORE, OP_STORE_FULL, OP_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vc4lab.debug.frame.index import FrameJob
    from vc4lab.debug.frame.stage import Stage
    from vc4lab.v3d.state.frame_mode import FrameMode
    from vc4lab.v3d.tiles.collector import Collector


@contextmanager
def stored_instead(stage: Stage, job: FrameJob, draw: int, buffer: int) -> Iterator[Surface]:
    """Run a job up to a draw, storing one buffer in raster order in place of all that it stores.

    The surface is in the stage's memory up to the end of the block. Samples become their mean for
    colours; of others the first one counts.
    """
    width, height = job.size
    resolves = job.mode.multisample and buffer == COLOUR
    decimate = int(Decimate.X4 if resolves else Decimate.SAMPLE_0)
    shape = Surface(0, width, height, buffer=buffer, decimate=decimate)
    size = shape.pitch * height
    place = stage.free_memory(size)
    kept = KeptMemory(stage.memory).take([(place, size)])

    def draw_it(mode: FrameMode, collector: Collector) -> None:
        _replace_stores(collector, StoreGeneral.make(address=place, buffer=buffer, decimate=decimate))
        stage.v3d.frames.draw(mode, collector)

    try:
        stage.run(job.number, keep=draw, draw=draw_it)
        yield Surface(place, width, height, buffer=buffer, decimate=decimate)
    finally:
        kept.put_back()


def _replace_stores(collector: Collector, payload: StoreGeneral) -> None:
    """Let every store of a job be this one."""
    context = collector.context
    number = min(int(context.surface_count), MAX_SURFACES - 1)
    ctypes.c_uint64.from_address(context.surfaces + 8 * number).value = payload.value
    context.surface_count = number + 1
    words: Any = (ctypes.c_int32 * (OP_WORDS * int(context.op_count))).from_address(context.ops)
    ops = np.frombuffer(words, np.int32).reshape(-1, OP_WORDS)
    stores = (ops[:, 0] == OP_STORE) | (ops[:, 0] == OP_STORE_FULL)
    ops[stores, 0], ops[stores, 1] = OP_STORE, number
