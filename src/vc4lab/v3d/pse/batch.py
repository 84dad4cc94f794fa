"""Structures that triangle setup and the pipelines share: triangles in groups of eight, their blocks.

A pipeline opens a `TriangleBatch` on its stack and calls `triangle_setup.py` to fill it, again and
again: each time the planes of a few groups are in it, and their covered blocks stand in a list.
"""

from __future__ import annotations

from dataclasses import dataclass

from vc4lab.simd import Array, Struct, Value, f32, i16, i32, i64, nested, ptr

SLOT_SHIFT = 3
GROUP_SIZE = 1 << SLOT_SHIFT
"""Triangles that are set up together."""
GROUPS = 4
"""Groups whose planes are kept, so that a pipeline calls the setup less often."""
BATCH_SIZE = GROUPS * GROUP_SIZE
CORNERS = 3
MAX_DELTAS = 3
"""Samples of a pixel besides the first."""
WAITING_SIZE = 2 * GROUP_SIZE
"""Places for triangles that wait to be set up: fewer than eight, and what the next eight leave."""

OPTION_DEPTH_OFFSET, OPTION_FLOAT_UNIT, OPTION_CLIPPED_QUADS = 1, 2, 4
"""Bits of `BatchDraw.options`: the draw has a depth offset; its unit depends on the depth
(unknown "depth_offset_unit"); Z planes clip whole quads (unknown "z_clip_pixels").
"""


class CoveredBlock(Struct):
    """A 4x4 block of which a triangle covers a pixel.

    `dx`, `dy`: its first pixel's centre minus the planes' reference point, in pixels. `place`: a
    whole number, as a float, so that all three move to the next block in one addition; as an
    integer its corner in the tile (x in 7:0, y in 15:8), four times the triangle's lane among
    all groups (22:16), and whether that faces backwards (23). `covered`: lanes that any
    sample covers; `flags` and `others`: what of it lies between the Z planes, for the first sample
    and the others.
    """

    dx = f32
    dy = f32
    place = f32
    covered = i16
    flags = i16
    others = Array(i16, 4)


PLACE_REVERSE = 23


@dataclass
class BlockPlace:
    """`CoveredBlock.place`, taken apart: corner, bytes to the triangle's lane, facing."""

    x: Value
    y: Value
    lane: Value
    reverse: Value

    @classmethod
    def of(cls, listed: CoveredBlock) -> BlockPlace:
        """Unpack the place of a `CoveredBlock`."""
        word = listed.place.to_int(i32, inside=True)
        lane = word.shr(16) & (4 * BATCH_SIZE - 1)
        return cls(word & 0xFF, word.shr(8) & 0xFF, lane, word.shr(PLACE_REVERSE) != 0)


def block_bytes(samples: int) -> int:
    """Distance of the blocks in the list of a draw whose samples are told apart."""
    return CoveredBlock.size if samples > 1 else CoveredBlock.others.offset


LIST_THRESHOLD = 256
"""Blocks after which the list is handed over before the next triangle."""
LIST_BYTES = (LIST_THRESHOLD + 17 * 17 + 16) * CoveredBlock.size
"""Blocks of a tile begin at even pixels: 17 in a row of 64 pixels. Reading may go 16 too far."""

PLANE_PART = 4 * BATCH_SIZE
PLANE_ROW = 3 * PLANE_PART
"""Bytes of a plane of all triangles: all A, all B, all C (`setup.Planes`)."""
FIXED_PLANES = 2
"""Depth and 1/Wc, before the varyings."""


class BatchDraw(Struct):
    """Filled in by the pipeline: values of the draw, and where results go.

    `depth_scale`: steps in a Zs of 1.0. `first_row`, `end_row`: offsets in bytes of a vertex's
    varyings; `flat`: bits of those that are not interpolated. `scratch`, `clip_scratch`: vertices
    of lists with positions, and those of a clip record.
    """

    options = i32
    depth_scale = f32
    first_row = i32
    end_row = i32
    flat = i32
    scratch = ptr
    clip_scratch = ptr
    planes = ptr
    blocks = ptr


class DecoderState(Struct):
    """The decoding's place in the list: cells of its `Decoder`.

    The pipeline fills in `fresh` (1), `cursor` (the list's address) and `status` (0). `ended`:
    nothing is left to decode.
    """

    fresh = i32
    cursor = i32
    i0 = i32
    i1 = i32
    i2 = i32
    clip_record = i32
    clipped = i32
    status = i32
    budget = i32
    ended = i32


class BatchResult(Struct):
    """The result of a call.

    `more`: whether to call again; `end`: bytes in the list of blocks; `quads` in them; `suspects`:
    lanes with a NaN in their planes; `turned`: triangles that face away and are not drawn; `valid`
    others, of which `drawn` have blocks.
    """

    more = i32
    end = i32
    quads = i32
    suspects = i32
    turned = i32
    valid = i32
    drawn = i32


class DecodedTriangles(Struct, align=64):
    """Two pieces of indices decoded already, and the triangles that are being looked at.

    Of the pieces: all lanes of corner 0, then those of the next; how many triangles; their flags.
    `next` says which comes next. Of the triangles: where the corners' word 0 is, counted from
    `DrawParams.vertices`; the provoking vertex's own; packed positions; `number` in the list.
    `looked_at`: how many came before.
    """

    indices = Array(i32, 2 * CORNERS * GROUP_SIZE)
    words = Array(i64, CORNERS * GROUP_SIZE)
    flat_words = Array(i64, GROUP_SIZE)
    position = Array(i32, CORNERS * GROUP_SIZE)
    number = Array(i32, GROUP_SIZE)
    next = i32
    looked_at = i32
    count = Array(i32, 2)
    flags = Array(i32, 2)


class WaitingTriangles(Struct, align=64):
    """Triangles that wait for setup, those of the group first; `count` of all."""

    words = Array(i64, CORNERS * WAITING_SIZE)
    flat_words = Array(i64, WAITING_SIZE)
    position = Array(i32, CORNERS * WAITING_SIZE)
    number = Array(i32, WAITING_SIZE)
    count = i32


class TriangleGroup(Struct, align=64):
    """The group being listed, lane by lane.

    `place`, `dx`, `dy` of its first block; `width`, `height` (pixels from there to the box's end);
    lanes in the box of its first blocks (`first_columns`, `first_rows`); edges at its pixel (0, 0),
    their steps to the next pixel and to the next block. `ready` triangles are in it, `lane` is the
    next to be listed; `slot`: its number among all groups; `clipped_lanes`: bits of those that the
    Z planes may cut.
    """

    first_columns = Array(i64, GROUP_SIZE)
    first_rows = Array(i64, GROUP_SIZE)
    place = Array(f32, GROUP_SIZE)
    dx = Array(f32, GROUP_SIZE)
    dy = Array(f32, GROUP_SIZE)
    width = Array(i32, GROUP_SIZE)
    height = Array(i32, GROUP_SIZE)
    edge_start = Array(i32, CORNERS * GROUP_SIZE)
    step_x = Array(i32, CORNERS * GROUP_SIZE)
    step_y = Array(i32, CORNERS * GROUP_SIZE)
    right = Array(i32, CORNERS * GROUP_SIZE)
    down = Array(i32, CORNERS * GROUP_SIZE)
    deltas = Array(i32, CORNERS * MAX_DELTAS * GROUP_SIZE)
    ready = i32
    lane = i32
    slot = i32
    clipped_lanes = i32


class PlaneOrigins(Struct, align=64):
    """Reference points and depths of the planes of all groups, each from lane 8 * its `slot` on.

    `x2`, `y2`: where they are counted from; `z_low`, `z_high`: range of Zs; `z_first`, `z_last`:
    the same as 24-bit depths; `number`: of each triangle in its list.
    """

    x2 = Array(i32, BATCH_SIZE)
    y2 = Array(i32, BATCH_SIZE)
    z_low = Array(f32, BATCH_SIZE)
    z_high = Array(f32, BATCH_SIZE)
    z_first = Array(f32, BATCH_SIZE)
    z_last = Array(f32, BATCH_SIZE)
    z_offset = Array(f32, BATCH_SIZE)
    number = Array(i32, BATCH_SIZE)


class TriangleBatch(Struct):
    """Triangles on their way from a list to their blocks.

    Arrays of corners and edges hold all lanes of number 0, then those of the next.
    """

    draw = nested(BatchDraw)
    decoder = nested(DecoderState)
    result = nested(BatchResult)
    decoded = nested(DecodedTriangles)
    waiting = nested(WaitingTriangles)
    group = nested(TriangleGroup)
    origins = nested(PlaneOrigins)
