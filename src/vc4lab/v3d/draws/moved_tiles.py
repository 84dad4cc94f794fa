"""Reports what a frame is about to load, store and draw, for listeners (`FrameTiles`)."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from vc4lab.images.pixels import FULL_RES_TILE
from vc4lab.v3d.events import FrameTiles
from vc4lab.v3d.tile_lists.scan_context import NO_END
from vc4lab.v3d.tiles.job import OP_LOAD_FULL, OP_STORE, OP_STORE_FULL, OP_WORDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vc4lab.v3d.state.frame_mode import Surface
    from vc4lab.v3d.tiles.collector import CollectContext

_WORD = 0xFFFFFFFF


def frame_tiles(surfaces: Sequence[Surface], context: CollectContext) -> FrameTiles:
    """The event of a frame that was collected."""
    import numpy as np

    words = (ctypes.c_int32 * (OP_WORDS * context.op_count)).from_address(context.ops)
    ops = np.frombuffer(memoryview(words).cast("B"), np.int32).reshape(-1, OP_WORDS)
    full = ops[(ops[:, 0] == OP_LOAD_FULL) | (ops[:, 0] == OP_STORE_FULL)].tolist()
    starts, ends = (
        (ctypes.c_int32 * context.piece_count).from_address(place)
        for place in (context.pieces, context.piece_ends)
    )
    return FrameTiles(
        surfaces,
        [(at & _WORD, FULL_RES_TILE * parts.bit_count()) for _kind, at, parts, _ in full],
        [
            (start & _WORD, None if end == NO_END else end & _WORD)
            for start, end in zip(starts, ends, strict=True)
        ],
        int((ops[:, 0] == OP_STORE).sum()),
    )
