"""A binning as a frame of its own, without tiles: what thread 0 did before anything is rendered."""

from __future__ import annotations

import numpy as np

from vc4lab.timing.frames import columns as cols
from vc4lab.timing.frames.columns import table_of
from vc4lab.timing.frames.frame import Binning, Frame, Words
from vc4lab.v3d.state.tile_context import BlockWork, RequestWork

TILE = 64
"""Pixels of a tile; none is drawn."""


def binning_alone(binning: Binning, programs: tuple[Words, ...]) -> Frame:
    """A frame that is only binned."""
    columns, rows = binning.tiles
    return Frame(
        width=columns * TILE,
        height=rows * TILE,
        tile_width=TILE,
        tile_height=TILE,
        multisample=False,
        wide=False,
        binnings=(binning,),
        programs=programs,
        draws=np.zeros(0, cols.DRAW),
        textures=np.zeros(0, cols.TEXTURE),
        attributes=np.zeros(0, cols.ATTRIBUTE),
        tiles=np.zeros(0, cols.TILE),
        ops=np.zeros(0, cols.OP),
        lists=np.zeros(0, cols.LIST),
        records=np.zeros(0, cols.RECORD),
        vertices=np.zeros(0, np.uint32),
        blocks=table_of(b"", BlockWork),
        requests=table_of(b"", RequestWork),
        lines=np.zeros(0, np.uint32),
        surfaces=(),
        lost=0,
    )
