"""Lists the 4x4 blocks of which a triangle covers a pixel: two rows and two columns at a time.

Most triangles lie in two by two blocks. Their coverage is found without a branch, and a block
without a pixel is overwritten by the next one: a processor could not guess which are empty.
"""

from __future__ import annotations

from vc4lab.optimisations import COMPRESSED_BLOCKS
from vc4lab.simd.control import unroll
from vc4lab.simd.kernel import staged
from vc4lab.simd.members import Field, f32, f32x16, i16, i32, i32x16, i64
from vc4lab.simd.memory import load, store, table
from vc4lab.simd.trace import current
from vc4lab.simd.types import Type, vec
from vc4lab.simd.value import Value, const, select, splat
from vc4lab.simd.vector import compress, fmax_, fmin_, mask_bits, min_, popcount_, shuffle
from vc4lab.v3d.pse import batch as tb
from vc4lab.v3d.pse.batch import CoveredBlock, TriangleBatch, TriangleGroup, block_bytes
from vc4lab.v3d.pse.coverage import COLUMNS_BELOW, ROWS_BELOW, lanes_of_quads, quads_of
from vc4lab.v3d.pse.setup import Raster
from vc4lab.v3d.state.frame_mode import BLOCK, LANE_X, LANE_Y
from vc4lab.v3d.state.tile_context import DrawParams

_PAIR = 2 * BLOCK
FOUR = ((0, 0), (1, 0), (0, 1), (1, 1))
"""Two by two blocks, column and row. Their lanes make a word of 64 bits, in this order."""


def four_words(lanes: list[int]) -> int:
    """The word with these lanes of four blocks."""
    return sum(bits << 16 * number for number, bits in enumerate(lanes))


def _left(below: list[int], axis: int) -> list[int]:
    """Lanes of four blocks by how many columns (axis 0) or rows of the box are left."""
    return [
        four_words([below[min(max(count - BLOCK * at[axis], 0), BLOCK)] for at in FOUR])
        for count in range(_PAIR + 1)
    ]


_COLUMNS, _ROWS = _left(COLUMNS_BELOW, 0), _left(ROWS_BELOW, 1)
ROW_PLACE = 256
"""The value of a row in `CoveredBlock.place`."""
_DISTANCES = [
    float(step)
    for column, row in FOUR
    for step in (BLOCK * column, BLOCK * row, BLOCK * (column + ROW_PLACE * row), 0)
]
_RIGHT, _DOWN = [_PAIR, 0, _PAIR, 0] * 4, [0, _PAIR, _PAIR * ROW_PLACE, 0] * 4
"""How `dx`, `dy` and `place` change."""
_QUADS = 0x1111111111111111
_SPREAD = [number if lane in (6, 7) else 4 for number in range(4) for lane in range(8)]
_LANES_OF = [4 * number + 3 for number in range(4) for _ in range(4)]


@staged
def list_blocks(params: DrawParams, batch: TriangleBatch, raster: Raster) -> Value:
    """Lists blocks of the group's next triangles; whether the list is full."""
    group, result = batch.group, batch.result
    lane, ready = group.lane, group.ready
    end: Value = result.end.zext(i64)
    quads, drawn = result.quads, result.drawn
    step = block_bytes(len(raster.points))
    while (lane < ready) & (end < tb.LIST_THRESHOLD * step):
        before = end
        end, found = triangle(group, batch.draw.blocks, lane, end, raster)
        if (group.clipped_lanes.shr(lane) & 1) != 0:
            clip(params, batch, lane, before, end, raster)
        quads = quads + found
        drawn = drawn + (end != before).zext(i32)
        lane = lane + 1
    group.lane = lane
    result.end = end.trunc(i32)
    result.quads = quads
    result.drawn = drawn
    return end >= tb.LIST_THRESHOLD * step


@staged
def triangle(
    group: TriangleGroup, blocks: Value, lane: Value, end: Value, raster: Raster
) -> tuple[Value, Value]:
    """Adds the blocks of one triangle at `end` of the list; its new end, and how many quads."""
    here = group.pointer + (lane << 2).zext(i64)
    lane_x, lane_y = const(i32x16, LANE_X), const(i32x16, LANE_Y)
    columns, rows = table(i64, _COLUMNS), table(i64, _ROWS)

    def member(field: Field, number: int = 0, kind: Type = i32) -> Value:
        return load(kind, here + (field.offset + number * tb.GROUP_SIZE * 4))

    def first(place: Value) -> Value:
        return load(i64, place + (lane << 3).zext(i64))

    edges = (0, 1, 2)[: tb.CORNERS]
    inside = [
        splat(member(TriangleGroup.edge_start, k))
        + lane_x * splat(member(TriangleGroup.step_x, k))
        + lane_y * splat(member(TriangleGroup.step_y, k))
        for k in edges
    ]
    starts = list(inside)  # a list of its own: staged loops update lists in place
    right = [splat(member(TriangleGroup.right, k)) for k in edges]
    down = [splat(member(TriangleGroup.down, k)) for k in edges]
    deltas = [
        [splat(member(TriangleGroup.deltas, k * tb.MAX_DELTAS + d)) for k in edges]
        for d in unroll(len(raster.points) - 1)
    ]
    full_width = member(TriangleGroup.width)
    width, height = full_width, member(TriangleGroup.height)
    all_columns = first(group.first_columns)
    first_columns, first_rows = all_columns, first(group.first_rows)
    corner = const(vec(f32, 4), 0.0)
    for number, field in enumerate((TriangleGroup.dx, TriangleGroup.dy, TriangleGroup.place)):
        corner = corner.insert(number, member(field, kind=f32))
    row_places = shuffle(corner, [0, 1, 2, 3] * 4) + const(f32x16, _DISTANCES)
    places = row_places
    quads = const(i32, 0)
    while True:
        in_columns = load(i64, columns + (min_(width, _PAIR) << 3), 8) & first_columns
        in_rows = load(i64, rows + (min_(height, _PAIR) << 3), 8) & first_rows
        beside = [value + step for value, step in zip(inside, right, strict=True)]
        four = [inside, beside]
        for values in (inside, beside):
            four.append([value + step for value, step in zip(values, down, strict=True)])
        samples = covered_lanes(four, deltas, in_columns & in_rows)
        some = any_bits(samples)
        some = some | some.shr(1)
        quads = quads + popcount_((some | some.shr(2)) & _QUADS).trunc(i32)
        end = put(blocks, end, places, samples)
        width = width - _PAIR
        if (width <= 0) & (height <= _PAIR):
            break
        if width > 0:
            first_columns = const(i64, -1)
            places = places + const(f32x16, _RIGHT)
            inside = [value + step for value, step in zip(beside, right, strict=True)]
        else:
            width, height = full_width, height - _PAIR
            first_columns, first_rows = all_columns, const(i64, -1)
            row_places = row_places + const(f32x16, _DOWN)
            places = row_places
            starts = [value + step + step for value, step in zip(starts, down, strict=True)]
            inside = list(starts)
    return end, quads


def covered_lanes(four: list[list[Value]], deltas: list[list[Value]], allowed: Value) -> list[Value]:
    """Lanes of `allowed` inside the edges, of four blocks and for each sample."""
    result = []
    for steps in [None, *deltas]:
        masks = []
        for values in four:
            if steps is not None:
                values = [value + step for value, step in zip(values, steps, strict=True)]
            masks.append((values[0] | values[1] | values[2]) >= 0)
        result.append(join(masks) & allowed)
    return result


def join(masks: list[Value]) -> Value:
    """Four masks of 16 lanes as one word."""
    if _by_masks():
        halves = [shuffle(masks[k], masks[k + 1], list(range(32))) for k in (0, 2)]
        return shuffle(halves[0], halves[1], list(range(64))).bitcast(i64)
    word = mask_bits(masks[0]).zext(i64)
    for number, mask in enumerate(masks[1:], 1):
        word = word | (mask_bits(mask).zext(i64) << 16 * number)
    return word


def _by_masks() -> bool:
    """Whether the processor has registers for masks, and moves lanes by them."""
    return COMPRESSED_BLOCKS.serves(current().module.target.level)


def any_bits(samples: list[Value]) -> Value:
    """Lanes of any sample."""
    bits = samples[0]
    for other in samples[1:]:
        bits = bits | other
    return bits


def put(blocks: Value, end: Value, places: Value, samples: list[Value]) -> Value:
    """Adds those of four blocks that have a lane; the new end of the list."""
    if len(samples) == 1 and _by_masks():
        words = samples[0].bitcast(vec(i16, 4))
        lanes = shuffle(words, const(vec(i16, 4), 0), _SPREAD).bitcast(vec(i32, 16))
        kept = shuffle(lanes, _LANES_OF) != 0
        store(blocks + end, compress(places.bitcast(i32) | lanes, kept))
        return end + (popcount_(mask_bits(kept)) << 2).zext(i64)
    any_sample = any_bits(samples)
    step = const(i64, block_bytes(len(samples)))
    for number in range(4):
        block = blocks + end
        store(block, shuffle(places, list(range(4 * number, 4 * number + 4))))
        covered, *flags = (bits.shr(16 * number).trunc(i16) for bits in (any_sample, *samples))
        for k, bits in enumerate((covered, *flags)):
            store(block + (CoveredBlock.covered.offset + 2 * k), bits)
        end = end + select(covered != 0, step, const(i64, 0))
    return end


@staged
def clip(
    params: DrawParams, batch: TriangleBatch, lane: Value, first: Value, end: Value, raster: Raster
) -> None:
    """Takes away what the Z planes (record 104) cut off the blocks of one triangle."""
    draw, origins = batch.draw, batch.origins
    offset = ((lane + (batch.group.slot << tb.SLOT_SHIFT)) << 2).zext(i64)
    plane = draw.planes + offset
    low, high = (splat(load(f32, place + offset)) for place in (origins.z_low, origins.z_high))
    a, b, c = (splat(load(f32, plane + part * tb.PLANE_PART)) for part in (0, 1, 2))
    nearest, furthest = splat(params.z_min), splat(params.z_max)
    by_quads = (draw.options & tb.OPTION_CLIPPED_QUADS) != 0
    while first < end:
        block = CoveredBlock.at(draw.blocks + first, 1)
        dx = const(f32x16, [float(x) for x in LANE_X]) + splat(block.dx)
        dy = const(f32x16, [float(y) for y in LANE_Y]) + splat(block.dy)
        depth = fmin_(fmax_(dx * a + dy * b + c, low), high)
        lanes = mask_bits((depth >= nearest) & (depth <= furthest))
        if by_quads:
            lanes = mask_bits(lanes_of_quads(quads_of(lanes)))
        block.flags = (block.flags.zext(i32) & lanes).trunc(i16)
        for number in unroll(len(raster.points) - 1):
            other = block.others + 2 * number
            store(other, (load(i16, other).zext(i32) & lanes).trunc(i16))
        first = first + block_bytes(len(raster.points))
