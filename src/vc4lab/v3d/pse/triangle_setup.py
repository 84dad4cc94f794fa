"""Setup of triangles: what a list names is decoded and faced, eight at a time.

Compiled once for each kind of list and sampling, not for each draw state: the pipelines call it for
the next blocks to shade (`../fragment/triangle_batch.py`). Half of a closed model faces away, so
those that do not are collected until there are eight; these get edges (`triangle_group.py`), planes
(`triangle_planes.py`) and a list of their blocks (`triangle_blocks.py`). Source: hardware reference
7.2-7.6.
"""

from __future__ import annotations

from typing import Any

from vc4lab.records.codes import ListData
from vc4lab.simd import (
    Value,
    compress,
    const,
    gather,
    i1,
    i32,
    i64,
    iota,
    load,
    mask_bits,
    min_,
    popcount_,
    select,
    splat,
    staged,
    store,
    umin,
    vec,
)
from vc4lab.v3d.pse.batch import BATCH, CORNERS, GROUPS, WAITING, TriangleBatch
from vc4lab.v3d.pse.samples import Raster
from vc4lab.v3d.pse.setup import (
    Box,
    VertexSource,
    substitute_clipped,
    window,
)
from vc4lab.v3d.pse.triangle_blocks import list_blocks
from vc4lab.v3d.pse.triangle_group import Shape, corner, set_corner, set_up
from vc4lab.v3d.state.render_state import (
    ENABLE_FORWARD,
    ENABLE_REVERSE,
)
from vc4lab.v3d.state.tile_context import DrawParams, TileContext
from vc4lab.v3d.tile_lists.primitive_decoder import RUN, TRIANGLES, Decoder, runs, take_run

INDEX_CODES = {data.bits: int(data) for data in ListData}
"""Index bits → data type of record 56."""

_CELLS = ("i0", "i1", "i2", "clip_record", "clipped", "status", "budget")
"""Cells of a `Decoder` that `TriangleBatch` keeps from one batch to the next, besides `cursor`."""

_i32x8, _i64x8 = vec(i32, BATCH), vec(i64, BATCH)

_WAITING = (
    *(("words", "waiting_words", number) for number in range(CORNERS)),
    ("flat_words", "waiting_flat", 0),
    *(("position", "waiting_position", number) for number in range(CORNERS)),
)
"""What is kept of triangles that wait: member, queue of it, number of the corner."""


@staged
def next_batch(
    context_pointer: Value,
    params_pointer: Value,
    batch_pointer: Value,
    index_bits: Any,
    raster: Raster,
    weights: Any,
) -> None:
    """Lists the next covered blocks of a list's triangles."""
    context = TileContext.at(context_pointer)
    params = DrawParams.at(params_pointer)
    batch = TriangleBatch.at(batch_pointer)
    if batch.fresh != 0:
        for name in ("ended", "waiting", "ready", "lane", "slot", "ahead_at"):
            setattr(batch, name, 0)
        for piece in (0, 4):
            store(batch.ahead_count + piece, 0)
    batch.turned = 0
    batch.valid = 0
    batch.suspects = 0
    batch.quads = 0
    batch.drawn = 0
    batch.end = 0
    source = VertexSource.load(context, params)
    limits = window(context, params)
    groups = const(i32, 0)
    while True:
        if batch.lane >= batch.ready:
            drop_group(batch)
            while (batch.waiting < BATCH) & (batch.ended == 0):
                look_further(context, params, source, limits, batch, index_bits, raster, weights)
            ready = min_(batch.waiting, BATCH)
            batch.ready = ready
            batch.lane = 0
            batch.slot = (batch.slot + 1) & (GROUPS - 1)
            if ready > 0:
                set_up(source, limits, params, batch, raster)
        full = list_blocks(params, batch, raster)
        left = (batch.waiting > batch.ready) | (batch.ended == 0)
        groups = groups + 1
        if full | ~left | (groups == GROUPS):
            break
    more = (batch.lane < batch.ready) | (batch.waiting > batch.ready) | (batch.ended == 0)
    batch.more = more.zext(i32)


@staged
def look_further(
    context: TileContext, params: DrawParams, source: VertexSource, limits: Box,
    batch: TriangleBatch, index_bits: Any, raster: Raster, weights: Any,
) -> None:  # fmt: skip
    """Lets those of the next eight triangles wait that face the right way; decodes eight more.

    These come in small pieces, which cannot be read at once as a whole: that is why they are
    decoded some time before.
    """
    fresh = batch.fresh != 0
    at = batch.ahead_at
    here, there = at << 2, (at ^ 1) << 2
    count = load(i32, batch.ahead_count + here)
    flags = load(i32, batch.ahead_flags + here)
    batch.ahead_at = at ^ 1
    batch.ended = 1
    locate(source, batch, here, index_bits == 32)  # takes time, in which the next are decoded
    if fresh | (count == BATCH):
        batch.ended = 0
        lists = select(params.lists != 0, params.lists, context.memory)
        decode(lists, batch, there, index_bits)
    if count > 0:
        if flags != 0:  # the list's first triangle has substitutes
            substitute_first(context.memory, source, batch, flags, weights)
        live = choose(source, limits, params.facing, raster, batch, count)
        append(batch, live)


@staged
def decode(lists: Value, batch: TriangleBatch, piece: Value, index_bits: Any) -> None:
    """Decodes the next triangles of a list into a piece of `ahead`, four times whose number is
    given."""
    decoder = Decoder(lists, TRIANGLES, INDEX_CODES[index_bits])
    if batch.fresh != 0:
        decoder.open(batch.cursor)
        batch.fresh = 0
    else:
        decoder.address.set(batch.cursor)
        for name in _CELLS:
            getattr(decoder, name).set(getattr(batch, name))
    count = const(i32, 0)
    flags = const(i32, 0)
    more = const(i1, True)
    quick = index_bits == 16
    ahead = ahead_ptr(batch, piece)
    while True:
        place = ahead + (count << 2)
        together = const(i1, False)
        if quick:
            together = (count <= BATCH - RUN) & runs(decoder)
        if together:
            before, steps = take_run(decoder)
            for number, (start, step) in enumerate(zip(before, steps, strict=True)):
                indices = splat(start, RUN) + (iota(RUN) + 1) * splat(step, RUN)
                store(place + number * 4 * BATCH, indices & 0xFFFF)
            count = count + RUN
        else:
            more = decoder.next()
            if more:
                store(place, decoder.i0.get())
                store(place + 4 * BATCH, decoder.i1.get())
                store(place + 8 * BATCH, decoder.i2.get())
                flags = flags | decoder.flags.get()
                count = count + 1
        if ~more | (count == BATCH):
            break
    batch.cursor = decoder.address.get()
    for name in _CELLS:
        setattr(batch, name, getattr(decoder, name).get())
    store(batch.ahead_count + piece, count)
    store(batch.ahead_flags + piece, flags)


def ahead_ptr(batch: TriangleBatch, piece: Value) -> Value:
    """Where a piece of `ahead` is; all lanes of a corner, then those of the next."""
    place: Value = batch.ahead + piece * (CORNERS * BATCH)
    return place


def append(batch: TriangleBatch, live: Value) -> None:
    """Puts the triangles of the lanes `live` after those that wait."""
    waiting = batch.waiting
    for name, queue, number in _WAITING:
        kind = _i32x8 if name == "position" else _i64x8
        place = batch.field_ptr(queue) + number * WAITING * (kind.elem.bits // 8)
        lanes = compress(corner(batch, name, number, kind), live)
        store(place + waiting * (kind.elem.bits // 8), lanes)
    batch.waiting = waiting + popcount_(mask_bits(live))


def drop_group(batch: TriangleBatch) -> None:
    """Those after the group move to the front."""
    for name, queue, number in _WAITING:
        kind = _i32x8 if name == "position" else _i64x8
        size = kind.elem.bits // 8
        place = batch.field_ptr(queue) + number * WAITING * size
        store(place, load(kind, place + BATCH * size))
    batch.waiting = batch.waiting - batch.ready


def locate(
    source: VertexSource, batch: TriangleBatch, piece: Value, positions_in_list: bool
) -> None:
    """Where the words of the next triangles' corners are, and their packed positions."""
    ahead = ahead_ptr(batch, piece)
    indices = [load(_i32x8, ahead + 4 * BATCH * number) for number in range(CORNERS)]
    if positions_in_list:
        words = splat(
            load(i64, batch.pointer + TriangleBatch.scratch.offset) - source.address, BATCH
        )
        for number, position in enumerate(indices):
            set_corner(batch, "position", position, number)
            set_corner(batch, "words", words, number)
        set_corner(batch, "flat_words", words)
        return
    first, limit = splat(source.first, BATCH), splat(source.limit, BATCH)
    offsets = splat(source.pitch, BATCH)
    for number, index in enumerate(indices):
        slot = umin(index - first, limit) + first
        offsets = slot.shr(4).zext(i64) * splat(source.pitch, BATCH)
        offsets = offsets + ((slot & 15) << 2).zext(i64)
        set_corner(batch, "words", offsets, number)
        packed = gather(i32, source.vertices, offsets, compact=True)
        set_corner(batch, "position", packed, number)
    set_corner(batch, "flat_words", offsets)


@staged
def substitute_first(
    memory: Value, source: VertexSource, batch: TriangleBatch, flags: Value, weights: Any
) -> None:
    """Puts the vertices of a clip record in the place of the first triangle's."""
    words = batch.words
    scratch = batch.clip_scratch
    offset = load(i64, batch.pointer + TriangleBatch.clip_scratch.offset) - source.address
    originals = [source.vertices + load(i64, words + number * 8 * BATCH) for number in (0, 1, 2)]
    rows = (batch.first_row, batch.end_row)
    substitute_clipped(memory, scratch, batch.clip_record, flags, originals, rows, weights)
    for number in (0, 1, 2):
        if (flags.shr(number) & 1) != 0:
            store(words + number * 8 * BATCH, offset + 4 * number)
            place = batch.position + number * 4 * BATCH
            store(place, load(i32, scratch + 4 * number))


def choose(
    source: VertexSource,
    limits: Box,
    facing: Value,
    raster: Raster,
    batch: TriangleBatch,
    count: Value,
) -> Value:
    """The lanes of triangles to draw: they face the right way and touch the window."""
    shape = Shape.of([corner(batch, "position", number) for number in range(CORNERS)], source)
    forward = shape.forward(facing)
    enabled = (forward & splat((facing & ENABLE_FORWARD) != 0, BATCH)) | (
        ~forward & splat((facing & ENABLE_REVERSE) != 0, BATCH)
    )
    here = (shape.area != 0.0) & (iota(BATCH) < splat(count, BATCH))
    box = shape.box(limits, raster)
    turned = popcount_(mask_bits(here & ~enabled))
    batch.turned = batch.turned + turned
    batch.valid = batch.valid + (count - turned)
    return here & enabled & (box.left < box.right) & (box.top < box.bottom)
