"""Setup of triangles: a list is decoded and facing is tested, eight triangles at a time.

Compiled once for each kind of list and sampling, not for each draw state: the pipelines call it for
the next blocks to shade (`../fragment/triangle_batch.py`). Half of a closed model faces away, so
those that do not are collected until there are eight; these get edges and planes
(`triangle_group.py`) and a list of their blocks (`triangle_blocks.py`). Source: hardware reference
7.2-7.6.
"""

from __future__ import annotations

from vc4lab.optimisations import INDEX_RUNS
from vc4lab.records.codes import ListData
from vc4lab.simd.kernel import staged
from vc4lab.simd.members import i1, i32, i64
from vc4lab.simd.memory import gather, load, store
from vc4lab.simd.types import Type, vec
from vc4lab.simd.value import Value, const, select, splat
from vc4lab.simd.vector import compress, iota, mask_bits, min_, popcount_, umin
from vc4lab.v3d.pse import batch as tb
from vc4lab.v3d.pse.batch import BatchDraw, BatchResult, DecodedTriangles, DecoderState, TriangleBatch
from vc4lab.v3d.pse.setup import Box, Raster, VertexSource, substitute_clipped, window
from vc4lab.v3d.pse.triangle_blocks import list_blocks
from vc4lab.v3d.pse.triangle_group import Shape, corner, corner_ptr, queue_ptr, set_corner, set_up
from vc4lab.v3d.state.render_state import ENABLE_FORWARD, ENABLE_REVERSE
from vc4lab.v3d.state.tile_context import DrawParams, TileContext
from vc4lab.v3d.tile_lists.primitive_decoder import RUN_TRIANGLES, TRIANGLES, Decoder, runs, take_run

INDEX_CODES = {data.bits: int(data) for data in ListData}
"""Index bits → data type of record 56."""

_CELLS = ("i0", "i1", "i2", "clip_record", "clipped", "status", "budget")
"""Cells of a `Decoder` that a `DecoderState` keeps from one batch to the next, besides `cursor`."""

_i32x8, _i64x8 = vec(i32, tb.GROUP_SIZE), vec(i64, tb.GROUP_SIZE)


@staged
def next_batch(
    context_pointer: Value,
    params_pointer: Value,
    batch_pointer: Value,
    index_bits: int,
    raster: Raster,
    weights: str,
) -> None:
    """Lists the next covered blocks of a list's triangles."""
    context = TileContext.at(context_pointer)
    params = DrawParams.at(params_pointer)
    batch = TriangleBatch.at(batch_pointer)
    state, waiting, group = batch.decoder, batch.waiting, batch.group
    if state.fresh != 0:
        state.ended = 0
        waiting.count = 0
        group.ready = 0
        group.lane = 0
        group.slot = 0
        batch.decoded.next = 0
        batch.decoded.looked_at = 0
        for piece in (0, 4):
            store(batch.decoded.count + piece, 0)
    for name in BatchResult.fields:
        setattr(batch.result, name, 0)
    source = VertexSource.load(context, params)
    limits = window(context, params)
    groups = const(i32, 0)
    while True:
        if group.lane >= group.ready:
            drop_group(batch)
            while (waiting.count < tb.GROUP_SIZE) & (state.ended == 0):
                look_further(context, params, source, limits, batch, index_bits, raster, weights)
            ready = min_(waiting.count, tb.GROUP_SIZE)
            group.ready = ready
            group.lane = 0
            group.slot = (group.slot + 1) & (tb.GROUPS - 1)
            if ready > 0:
                set_up(source, limits, params, batch, raster)
        full = list_blocks(params, batch, raster)
        left = (waiting.count > group.ready) | (state.ended == 0)
        groups = groups + 1
        if full | ~left | (groups == tb.GROUPS):
            break
    more = (group.lane < group.ready) | (waiting.count > group.ready) | (state.ended == 0)
    batch.result.more = more.zext(i32)


@staged
def look_further(
    context: TileContext, params: DrawParams, source: VertexSource, limits: Box,
    batch: TriangleBatch, index_bits: int, raster: Raster, weights: str,
) -> None:  # fmt: skip
    """Queues those of the next eight triangles that face the right way; decodes eight more.

    They are stored in small pieces, which one load cannot read right afterwards: so they are
    decoded some time before.
    """
    state, decoded = batch.decoder, batch.decoded
    fresh = state.fresh != 0
    at = decoded.next
    here, there = at << 2, (at ^ 1) << 2
    count = load(i32, decoded.count + here)
    flags = load(i32, decoded.flags + here)
    decoded.next = at ^ 1
    state.ended = 1
    locate(source, batch, here, index_bits == 32)  # takes time, in which the next are decoded
    if fresh | (count == tb.GROUP_SIZE):
        state.ended = 0
        lists = select(params.lists != 0, params.lists, context.memory)
        decode(lists, state, decoded, there, index_bits, source)
    if count > 0:
        if flags != 0:  # the list's first triangle has substitutes
            substitute_first(context.memory, source, batch, flags, weights)
        live = choose(source, limits, params.facing, raster, batch, count)
        store(decoded.number, splat(decoded.looked_at, tb.GROUP_SIZE) + iota(tb.GROUP_SIZE))
        decoded.looked_at = decoded.looked_at + count
        append(batch, live)


@staged
def decode(
    lists: Value, state: DecoderState, decoded: DecodedTriangles, piece: Value, index_bits: int,
    source: VertexSource,
) -> None:  # fmt: skip
    """Decodes the next triangles of a list into a piece, four times whose number is given.

    Their positions are read in the call after this one, and by then are in the cache.
    """
    decoder = Decoder(lists, TRIANGLES, INDEX_CODES[index_bits])
    if state.fresh != 0:
        decoder.open(state.cursor)
        state.fresh = 0
    else:
        decoder.address.set(state.cursor)
        for name in _CELLS:
            getattr(decoder, name).set(getattr(state, name))
    count = const(i32, 0)
    flags = const(i32, 0)
    more = const(i1, True)
    quick = index_bits == 16 and INDEX_RUNS.serves()
    ahead = piece_ptr(decoded, piece)
    while True:
        place = ahead + (count << 2)
        together = const(i1, False)
        if quick:
            together = (count <= tb.GROUP_SIZE - RUN_TRIANGLES) & runs(decoder)
        if together:
            before, steps = take_run(decoder)
            for number, (start, step) in enumerate(zip(before, steps, strict=True)):
                indices = splat(start, RUN_TRIANGLES) + (iota(RUN_TRIANGLES) + 1) * splat(step, RUN_TRIANGLES)
                store(place + number * 4 * tb.GROUP_SIZE, indices & 0xFFFF)
            source.prefetch(decoder.i2.get())
            count = count + RUN_TRIANGLES
        else:
            more = decoder.next()
            if more:
                store(place, decoder.i0.get())
                store(place + 4 * tb.GROUP_SIZE, decoder.i1.get())
                store(place + 8 * tb.GROUP_SIZE, decoder.i2.get())
                flags = flags | decoder.flags.get()
                count = count + 1
                if index_bits != 32:  # the newest vertex: the others came with triangles before
                    source.prefetch(decoder.i2.get())
        if ~more | (count == tb.GROUP_SIZE):
            break
    state.cursor = decoder.address.get()
    for name in _CELLS:
        setattr(state, name, getattr(decoder, name).get())
    store(decoded.count + piece, count)
    store(decoded.flags + piece, flags)


def piece_ptr(decoded: DecodedTriangles, piece: Value) -> Value:
    """The address of a piece of the indices; all lanes of a corner, then those of the next."""
    return decoded.indices + piece * (tb.CORNERS * tb.GROUP_SIZE)


def _kept(batch: TriangleBatch) -> list[tuple[Value, Value, Type]]:
    """List what is kept of waiting triangles: (source in `decoded`, target in `waiting`, type)."""
    looked, waiting = batch.decoded, batch.waiting
    places: list[tuple[Value, Value, Type]] = [
        (looked.flat_words, waiting.flat_words, _i64x8),
        (looked.number, waiting.number, _i32x8),
    ]
    for k in range(tb.CORNERS):
        places += [
            (corner_ptr(looked.words, k, _i64x8), queue_ptr(waiting.words, k, _i64x8), _i64x8),
            (corner_ptr(looked.position, k), queue_ptr(waiting.position, k), _i32x8),
        ]
    return places


def append(batch: TriangleBatch, live: Value) -> None:
    """Appends the triangles of the lanes `live` to those that wait."""
    count = batch.waiting.count
    for looked, waiting, kind in _kept(batch):
        store(waiting + count * kind.elem.size, compress(load(kind, looked), live))
    batch.waiting.count = count + popcount_(mask_bits(live))


def drop_group(batch: TriangleBatch) -> None:
    """Moves the triangles after the group to the front."""
    for _, waiting, kind in _kept(batch):
        store(waiting, load(kind, waiting + kind.size))
    batch.waiting.count = batch.waiting.count - batch.group.ready


def locate(source: VertexSource, batch: TriangleBatch, piece: Value, positions_in_list: bool) -> None:
    """Find the words of the next triangles' corners, and their packed positions."""
    decoded = batch.decoded
    ahead = piece_ptr(decoded, piece)
    indices = [load(_i32x8, ahead + 4 * tb.GROUP_SIZE * number) for number in range(tb.CORNERS)]
    if positions_in_list:
        scratch = load(i64, batch.draw.pointer + BatchDraw.scratch.offset)
        words = splat(scratch - source.address, tb.GROUP_SIZE)
        for number, position in enumerate(indices):
            set_corner(decoded.position, position, number)
            set_corner(decoded.words, words, number)
        set_corner(decoded.flat_words, words)
        return
    first, limit = splat(source.first, tb.GROUP_SIZE), splat(source.limit, tb.GROUP_SIZE)
    offsets = splat(source.pitch, tb.GROUP_SIZE)
    for number, index in enumerate(indices):
        slot = umin(index - first, limit) + first
        offsets = slot.shr(4).zext(i64) * splat(source.pitch, tb.GROUP_SIZE)
        offsets = offsets + ((slot & 15) << 2).zext(i64)
        set_corner(decoded.words, offsets, number)
        packed = gather(i32, source.vertices, offsets, compact=True)
        set_corner(decoded.position, packed, number)
    set_corner(decoded.flat_words, offsets)


@staged
def substitute_first(
    memory: Value, source: VertexSource, batch: TriangleBatch, flags: Value, weights: str
) -> None:
    """Puts the vertices of a clip record in the place of the first triangle's."""
    draw, words = batch.draw, batch.decoded.words
    scratch = draw.clip_scratch
    offset = load(i64, draw.pointer + BatchDraw.clip_scratch.offset) - source.address
    originals = [source.vertices + load(i64, words + number * 8 * tb.GROUP_SIZE) for number in (0, 1, 2)]
    rows = (draw.first_row, draw.end_row)
    record = batch.decoder.clip_record
    substitute_clipped(memory, scratch, record, flags, originals, rows, weights)
    for number in (0, 1, 2):
        if (flags.shr(number) & 1) != 0:
            store(words + number * 8 * tb.GROUP_SIZE, offset + 4 * number)
            place = batch.decoded.position + number * 4 * tb.GROUP_SIZE
            store(place, load(i32, scratch + 4 * number))


def choose(
    source: VertexSource, limits: Box, facing: Value, raster: Raster, batch: TriangleBatch, count: Value
) -> Value:
    """The lanes of triangles to draw: they face the right way and touch the window."""
    position, result = batch.decoded.position, batch.result
    shape = Shape.of([corner(position, number) for number in range(tb.CORNERS)], source)
    forward = shape.forward(facing)
    enabled = (forward & splat((facing & ENABLE_FORWARD) != 0, tb.GROUP_SIZE)) | (
        ~forward & splat((facing & ENABLE_REVERSE) != 0, tb.GROUP_SIZE)
    )
    here = (shape.area != 0.0) & (iota(tb.GROUP_SIZE) < splat(count, tb.GROUP_SIZE))
    box = shape.box(limits, raster)
    turned = popcount_(mask_bits(here & ~enabled))
    result.turned = result.turned + turned
    result.valid = result.valid + (count - turned)
    return here & enabled & (box.left < box.right) & (box.top < box.bottom)
