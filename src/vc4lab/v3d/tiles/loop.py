"""The native loop of a worker thread: takes chains from a shared counter and runs them.

A driver that goes on with a picture has all its tiles loaded and stored, wherever it draws. So a
load is put off until something needs the tile buffer; a store to where the tile would come from
writes what is there already. What is counted of loads and stores is the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from vc4lab.memory.native import Stream, append
from vc4lab.optimisations import UNTOUCHED_TILES
from vc4lab.simd import i32 as word
from vc4lab.simd.floatmode import call_pointer
from vc4lab.simd.kernel import staged
from vc4lab.simd.members import i1, i32, i64, ptr
from vc4lab.simd.memory import atomic_add, load, store
from vc4lab.simd.value import Value, const, select
from vc4lab.simd.vector import popcount_
from vc4lab.v3d.fragment.counting import add, place_of
from vc4lab.v3d.state import tile_context as tc
from vc4lab.v3d.state.frame_mode import COLOUR, TILE_WORDS, SurfaceOp
from vc4lab.v3d.state.tile_context import (
    LIST_COUNTERS,
    STREAMS,
    BlockWork,
    ChainWork,
    DrawParams,
    ListWork,
    TileContext,
    TileWork,
)
from vc4lab.v3d.tile_lists.scan_context import Segment
from vc4lab.v3d.tiles import job as tj
from vc4lab.v3d.tiles.job import DrawCall, TileJob, TileOp, TileRecord
from vc4lab.v3d.tlb.whole_tile import clear_colour, fill_words, move_full
from vc4lab.v3d.unknowns import Unknowns


def _surface(job: TileJob, number: Value) -> SurfaceOp:
    return SurfaceOp.at(job.surfaces + number * SurfaceOp.size)


def _held(context: TileContext, surface: SurfaceOp) -> Value:
    """1 + the surface whose load into the same part of the tile buffer is put off; 0: none."""
    return select(surface.part == COLOUR, context.held_colour, context.held_zs)


def hold(context: TileContext, surface: SurfaceOp, number: Value) -> None:
    """Puts a load off."""
    is_colour = surface.part == COLOUR
    context.held_colour = select(is_colour, number + 1, context.held_colour)
    context.held_zs = select(is_colour, context.held_zs, number + 1)


@staged
def stays(job: TileJob, context: TileContext, number: Value) -> Value:
    """Whether a store would write what is there: the tile would come from there, untouched."""
    surface = _surface(job, number)
    held = _held(context, surface)
    same = const(i1, False)
    if (surface.twin != 0) & (held != 0):
        same = _surface(job, held - 1).twin == surface.twin
    return same


@staged
def needs_tile(job: TileJob, context: TileContext, op: TileOp) -> Value:
    """Whether an operation can only be done when the loads are done that were put off."""
    kind = op.kind
    needed = const(i1, True)
    if kind == tj.OP_TILE:
        needed = (op.a != context.tile_x) | (op.b != context.tile_y)
    elif kind == tj.OP_LOAD:
        surface = _surface(job, op.a)
        needed = (surface.twin == 0) | (_held(context, surface) != 0)
    elif kind == tj.OP_STORE:
        needed = ~stays(job, context, op.a)
    elif kind == tj.OP_DRAW_PIECES:
        first = load(word, job.piece_first + op.a * 4)
        needed = first < load(word, job.piece_first + (op.a + op.b) * 4)
    return needed


def _stream(context: TileContext, name: str) -> Stream:
    """A stream of the thread."""
    work: Stream = getattr(TileWork.at(context.work), name)
    return work


@staged
def mark_chain(job: TileJob, context: TileContext, chain: Value, thread: Value, side: str) -> None:
    """Notes how far the streams are at the `side` ("start", "end") of a chain."""
    record = ChainWork.at(job.works + chain * ChainWork.size)
    record.thread = thread
    for number, name in enumerate(STREAMS):
        store(record.field_ptr(side) + 8 * number, _stream(context, name).used)


class ListMark:
    """Counts when a list began, and how many bytes of blocks there were."""

    def __init__(self, context: TileContext) -> None:
        self.counters = [load(i32, place_of(context, name)) for name in LIST_COUNTERS]
        self.blocks = _stream(context, "blocks").used

    def finish(self, context: TileContext, segment: Value) -> None:
        """The list has been drawn."""
        record = ListWork.at(append(_stream(context, "lists"), ListWork.size))
        record.segment = segment
        blocks = (_stream(context, "blocks").used - self.blocks).trunc(i32)
        record.blocks = blocks.udiv(BlockWork.size)
        for number, name in enumerate(LIST_COUNTERS):
            amount = load(i32, place_of(context, name)) - self.counters[number]
            store(record.counters + 4 * number, amount)


FULL_BYTES = 4 * TILE_WORDS
"""Bytes of a part of the tile buffer."""

PUTS_OFF = UNTOUCHED_TILES.serves()

MOVE_COUNTERS = ("tiles_moved", "bytes_moved")
"""Counters that the loop adds up itself."""

_DRAW = (ptr, ptr, i32)
"""Arguments of a pipeline: context, parameters, guest address of the list."""


@staged
def run_tiles(unknowns: Unknowns, job_pointer: Value, thread: Value, recording: bool, works: bool) -> None:
    """Runs chains until none is left.

    `recording`: with a `TileRecord` of each tile; `works`: with the pieces of work of each chain.
    """
    job = TileJob.at(job_pointer)
    context_pointer = load(ptr, job.contexts + thread * 8)
    context = TileContext.at(context_pointer)
    context.memory = job.memory
    context.mode = job.mode
    context.tile_width, context.tile_height = job.tile_width, job.tile_height
    context.frame_width, context.frame_height = job.frame_width, job.frame_height
    context.budget = job.budget
    context.clean = 0
    clear_counters(context)
    place = atomic_add(job.pointer + TileJob.next.offset, const(i32, 1))
    while place < job.order_count:
        chain = load(i32, job.order + place * 4)
        if works:
            mark_chain(job, context, chain, thread, "start")
        status = run_chain(unknowns, job, context, context_pointer, chain, recording, works)
        if works:
            mark_chain(job, context, chain, thread, "end")
        result = job.statuses + chain * (4 * tj.STATUS_WORDS)
        store(result, status)
        store(result + 4, context.draw)
        store(result + 8, context.left)
        if status != tc.STATUS_OK:
            job.failed = 1
        if context.drew != 0:
            if status == tc.STATUS_OK:
                add_counters(context)
            clear_counters(context)
        place = atomic_add(job.pointer + TileJob.next.offset, const(i32, 1))


def clear_counters(context: TileContext) -> None:
    """Clears the counters of the chain at hand."""
    context.drew = 0
    for counter in range(len(tc.COUNTERS)):
        store(context.counters + counter * 4, const(i32, 0))


def add_counters(context: TileContext) -> None:
    """Adds what the draws of a finished chain counted to the thread's totals."""
    for counter, name in enumerate(tc.COUNTERS):
        if name not in MOVE_COUNTERS:
            add_total(context, name, load(i32, context.counters + counter * 4))


def add_total(context: TileContext, name: str, amount: Value) -> None:
    """Adds to a total of the thread."""
    total = context.totals + tc.COUNTERS.index(name) * 8
    store(total, load(i64, total) + amount.zext(i64))


def change_record(
    job: TileJob, context: TileContext, number: Value, moved: Sequence[Value], sign: int
) -> None:
    """Takes the counters from a tile's record before it is drawn (-1), or adds them to it (1).

    `moved` are `MOVE_COUNTERS` of the chain so far.
    """
    record = job.records + number * TileRecord.size
    for counter, name in enumerate(tc.COUNTERS):
        place = record + counter * 4
        if name in MOVE_COUNTERS:
            amount = moved[MOVE_COUNTERS.index(name)]
        else:
            amount = load(i32, context.counters + counter * 4)
        store(place, load(i32, place) + amount if sign > 0 else -amount)


@staged
def run_chain(
    unknowns: Unknowns,
    job: TileJob,
    context: TileContext,
    context_pointer: Value,
    chain: Value,
    recording: bool,
    works: bool,
) -> Value:
    """Runs the operations of one chain; stops at the first draw that fails."""
    number = load(i32, job.chains + chain * 4)
    end = load(i32, job.chains + chain * 4 + 4)
    status = const(i32, tc.STATUS_OK)
    tiles = moved = const(i32, 0)  # loads and stores of tiles, their bytes
    tile = number  # its operation
    context.held_colour = 0
    context.held_zs = 0
    if recording:
        change_record(job, context, tile, (tiles, moved), -1)
    while (number < end) & (status == tc.STATUS_OK):
        pointer = job.ops + number * TileOp.size
        op = TileOp.at(pointer)
        kind = op.kind
        if PUTS_OFF:
            if (context.held_colour | context.held_zs) != 0:
                if needs_tile(job, context, op):
                    status = load_held(job, context, context_pointer)
        if status != tc.STATUS_OK:
            pass
        elif kind == tj.OP_TILE:
            context.tile_x = op.a
            context.tile_y = op.b
            if recording:
                change_record(job, context, tile, (tiles, moved), 1)
                tile = number
                change_record(job, context, tile, (tiles, moved), -1)
        elif (kind == tj.OP_CLEAR_COLOUR) | (kind == tj.OP_CLEAR_ZS) | (kind == tj.OP_CLEAR_MASK):
            clear(unknowns, context, kind, op.a, op.b)
        elif kind == tj.OP_LOAD_FULL:
            context.clean = 0
            move_full(context, op.a, op.b, False, unknowns)
            tiles, moved = tiles + 1, moved + popcount_(op.b) * FULL_BYTES
        elif kind == tj.OP_STORE_FULL:
            move_full(context, op.a, op.b, True, unknowns)
            tiles, moved = tiles + 1, moved + popcount_(op.b) * FULL_BYTES
        elif kind == tj.OP_LOAD:
            tiles, moved = tiles + 1, moved + moved_bytes(job, op.a)
            if PUTS_OFF:
                status = put_off(job, context, context_pointer, op.a)
            else:
                context.clean = 0
                status = move(job, context, context_pointer, op.a, "loader")
        elif kind == tj.OP_STORE:
            tiles, moved = tiles + 1, moved + moved_bytes(job, op.a)
            if PUTS_OFF:
                if ~stays(job, context, op.a):
                    status = move(job, context, context_pointer, op.a, "storer")
            else:
                status = move(job, context, context_pointer, op.a, "storer")
        elif kind == tj.OP_DRAW_PIECES:
            first = load(i32, job.piece_first + op.a * 4)
            past = load(i32, job.piece_first + (op.a + op.b) * 4)
            status = run_segments(job, context, context_pointer, first, past, works)
        number = number + 1
    if recording:
        change_record(job, context, tile, (tiles, moved), 1)
    if status == tc.STATUS_OK:
        add_total(context, "tiles_moved", tiles)
        add_total(context, "bytes_moved", moved)
    return status


@staged
def clear(unknowns: Unknowns, context: TileContext, kind: Value, low: Value, high: Value) -> None:
    """Fills a buffer, if it does not hold just that already: many tiles stay empty."""
    clean = context.clean
    if kind == tj.OP_CLEAR_COLOUR:
        same = (context.clean_low == low) & (context.clean_high == high)
        if ((clean & tc.CLEAN_COLOUR) == 0) | ~same:
            clear_colour(context, low, high, unknowns)
            context.clean_low = low
            context.clean_high = high
            context.clean = clean | tc.CLEAN_COLOUR
    elif kind == tj.OP_CLEAR_ZS:
        if ((clean & tc.CLEAN_ZS) == 0) | (context.clean_zs != low):
            fill_words(context.zs, low, low, 0, TILE_WORDS)
            context.clean_zs = low
            context.clean = clean | tc.CLEAN_ZS
    elif ((clean & tc.CLEAN_MASK) == 0) | (context.clean_mask != low):
        fill_words(context.mask, low, low, 0, TILE_WORDS)
        context.clean_mask = low
        context.clean = clean | tc.CLEAN_MASK


@staged
def move(job: TileJob, context: TileContext, context_pointer: Value, number: Value, member: str) -> Value:
    """Stores or loads the tile through the surface's own code, if that is compiled already: OK, or
    NEEDS_TRANSFER.
    """
    pointer = job.surfaces + number * SurfaceOp.size
    surface = SurfaceOp.at(pointer)
    function = getattr(surface, member)
    status = const(i32, tc.STATUS_OK)
    if function == 0:
        context.draw = number * 2 + int(member == "storer")
        status = const(i32, tc.STATUS_NEEDS_TRANSFER)
    else:
        call_pointer(function, None, (ptr, ptr), context_pointer, pointer)
    return status


def moved_bytes(job: TileJob, number: Value) -> Value:
    """Bytes of a tile in a surface."""
    surface = SurfaceOp.at(job.surfaces + number * SurfaceOp.size)
    return surface.pixel_bytes * job.tile_width * job.tile_height


@staged
def put_off(job: TileJob, context: TileContext, context_pointer: Value, number: Value) -> Value:
    """A load, as `move`, but done later if that makes no difference."""
    surface = SurfaceOp.at(job.surfaces + number * SurfaceOp.size)
    status = const(i32, tc.STATUS_OK)
    if surface.twin != 0:
        hold(context, surface, number)
    else:
        context.clean = 0
        status = move(job, context, context_pointer, number, "loader")
    return status


@staged
def load_held(job: TileJob, context: TileContext, context_pointer: Value) -> Value:
    """Does the loads that were put off, as `move`."""
    colour, zs = context.held_colour, context.held_zs
    context.held_colour = 0
    context.held_zs = 0
    context.clean = 0
    status = const(i32, tc.STATUS_OK)
    if colour != 0:
        status = move(job, context, context_pointer, colour - 1, "loader")
    if (zs != 0) & (status == tc.STATUS_OK):
        status = move(job, context, context_pointer, zs - 1, "loader")
    return status


@staged
def run_segments(
    job: TileJob, context: TileContext, context_pointer: Value, first: Value, end: Value, works: bool
) -> Value:
    """Calls the pipeline of each segment; `works`: with a `ListWork`."""
    status = const(i32, tc.STATUS_OK)
    while (first < end) & (status == tc.STATUS_OK):
        segment = Segment.at(job.segments + first * Segment.size)
        number = segment.draw
        entry = DrawCall.at(job.draws + number * DrawCall.size)
        context.draw = number
        function = entry.function
        if function != 0:
            context.clean = 0
            context.drew = 1
            if works:
                status = run_recorded(context, context_pointer, function, entry, segment, first)
            else:
                status = run_list(context, context_pointer, function, entry, segment)
        first = first + 1
    return status


@staged
def run_list(
    context: TileContext, context_pointer: Value, function: Value, entry: DrawCall, segment: Segment
) -> Value:
    """Calls the pipeline of a segment, and counts."""
    before = load(i32, place_of(context, "quads_valid"))
    outcome = call_pointer(function, i32, _DRAW, context_pointer, entry.params, segment.list_address)
    params = DrawParams.at(entry.params)
    quads = load(i32, place_of(context, "quads_valid")) - before
    add(context, "primitives", segment.primitives)
    add(context, "fragment_instructions", quads * params.instructions)
    add(context, "lookups", quads * params.lookups)
    return outcome


@staged
def run_recorded(
    context: TileContext,
    context_pointer: Value,
    function: Value,
    entry: DrawCall,
    segment: Segment,
    number: Value,
) -> Value:
    """As `run_list`, with a `ListWork` of segment `number`."""
    mark = ListMark(context)
    outcome = run_list(context, context_pointer, function, entry, segment)
    mark.finish(context, number)
    return outcome
