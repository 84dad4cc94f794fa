"""The compiled form of the tiles of `rendering.py`: models of a tile, copied and patched."""

from __future__ import annotations

from typing import Any

from vc4lab.drm.kernel.native.bin_list import copy_bytes
from vc4lab.drm.kernel.native.context import RenderContext
from vc4lab.drm.kernel.rendering import TILE_LIST_BLOCK
from vc4lab.images.pixels import FULL_RES_TILE
from vc4lab.records import declarations as d
from vc4lab.records.control import RECORD_SIZES
from vc4lab.simd import Value, i8, i32, i64, kernel, load, ptr, select, store, table


@kernel(args=(ptr, ptr), returns=None)
def render_list(context: Value, out: Value) -> None:
    """All tiles at host address `out`. The models are those of a tile 0, 0."""
    c = RenderContext.at(context)
    sizes = table(i8, RECORD_SIZES)
    total: Any = (c.columns * c.rows).trunc(i32)
    column = c.start_x
    row = c.start_y
    left = c.columns
    for number in range(total):
        is_first, is_last = number == 0, number == total - 1
        model = select(is_first, c.first, select(is_last, c.last, c.middle))
        size = select(is_first, c.first_size, select(is_last, c.last_size, c.middle_size))
        list_offset = ((row * c.bin_tiles_x + column) * TILE_LIST_BLOCK).trunc(i32)
        full_res_offset = ((row * c.full_res_per_row + column) * FULL_RES_TILE).trunc(i32)
        end = model + size
        place = model
        while place != end:
            op = load(i8, place).zext(i32)
            length = load(i8, sizes + op.zext(i64)).zext(i64)
            copy_bytes(out, place, length)
            if op == d.TileCoordinates.id:
                store(out + 1, column.trunc(i8))
                store(out + 2, row.trunc(i8))
            elif op == d.BranchToSublist.id:
                store(out + 1, load(i32, place + 1) + list_offset)
            elif (op == d.LoadFull.id) | (op == d.StoreFull.id):
                store(out + 1, load(i32, place + 1) + full_res_offset)
            place = place + length
            out = out + length
        left = left - 1
        column = column + c.step_x
        if left == 0:
            left = c.columns
            column = c.start_x
            row = row + c.step_y
