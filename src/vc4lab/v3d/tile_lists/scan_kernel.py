"""The native scan of the tile lists: records, sub-lists, state, draws, used vertices.

Every loop is bounded by a budget; a list that breaks a rule ends in an error entry and the next
tile goes on with the state reached.
"""

from __future__ import annotations

from collections.abc import Mapping

from vc4lab.memory.native import host
from vc4lab.records.control import STATE_RECORD_BYTES, ids_of, records_of
from vc4lab.records.declarations import Branch, BranchToSublist, Halt, Return
from vc4lab.records.payload import BinnerState, Compressed, Frame, Ignored, Primitives, Semaphore
from vc4lab.records.states import RenderState
from vc4lab.simd.control import unroll
from vc4lab.simd.kernel import Function, call, kernel, staged
from vc4lab.simd.members import i1, i8, i32, ptr
from vc4lab.simd.memory import alloca, load, store
from vc4lab.simd.value import Value, const, select, splat
from vc4lab.simd.vector import min_
from vc4lab.v3d.state.native_records import is_one_of, note_record, size_among
from vc4lab.v3d.state.render_state import STATE_WORDS, apply_record_native
from vc4lab.v3d.tile_lists import scan_context as sc
from vc4lab.v3d.tile_lists.primitive_decoder import ENDED, EXHAUSTED, LIST_BUDGET, LIST_SCANNERS, discard_list
from vc4lab.v3d.tile_lists.scan_context import (
    FNV_PRIME,
    FNV_START,
    MAX_VERTICES,
    DrawEntry,
    ErrorEntry,
    ScanContext,
    Segment,
)


@staged
def _state_hash(state: Value) -> Value:
    code = const(i32, FNV_START)
    for k in unroll(STATE_WORDS):
        code = (code ^ load(i32, state + 4 * k)) * FNV_PRIME
        code = code ^ code.shr(15)
    return code


@staged
def _same_state(a: Value, b: Value) -> Value:
    different = const(i32, 0)
    for k in unroll(STATE_WORDS):
        different = different | (load(i32, a + 4 * k) ^ load(i32, b + 4 * k))
    return different == 0


@kernel(args=(ptr,), returns=i32)
def find_draw(context: Value) -> Value:
    """Number of the draw with the current state, made if new; -1 = no room."""
    c = ScanContext.at(context)
    state = c.state
    code = _state_hash(state)
    mask = c.table_mask
    slot = code & mask
    found = const(i32, -1)
    searching = const(i1, True)
    tried = const(i32, 0)
    while searching & (tried <= mask):
        entry = load(i32, c.table + slot * 4)
        tried = tried + 1
        if entry == 0:
            searching = const(i1, False)
        else:
            place = c.draws + (entry - 1) * DrawEntry.size
            candidate = DrawEntry.at(place)
            if candidate.hash == code:
                if _same_state(state, place):
                    found = entry - 1
                    searching = const(i1, False)
            if searching:
                slot = (slot + 1) & mask
    if (found < 0) & (c.draw_count < c.draw_capacity):
        found = c.draw_count
        c.draw_count = found + 1
        place = c.draws + found * DrawEntry.size
        new = DrawEntry.at(place)
        for k in unroll(STATE_WORDS):
            store(place + 4 * k, load(i32, state + 4 * k))
        used = new.used
        for k in range(new.first >> 4, (new.last >> 4) + 1):  # as the scan before left it
            store(used + k * 16, splat(const(i8, 0)))
        new.hash = code
        new.first = MAX_VERTICES
        new.last = -1
        new.primitives = 0
        store(c.table + slot * 4, found + 1)
    return found


Scanners = Mapping[int, Function[Value]]
"""Kernel by format."""
HALT, BRANCH, SUB_LIST, RETURN = Halt.id, Branch.id, BranchToSublist.id, Return.id

SYSTEM_RECORDS = {kind.id: kind.size for kind in records_of(Semaphore, Frame, BinnerState)}
"""Records of a rendering list besides state and primitives; Python executes them."""


@staged
def _fail(c: ScanContext, tile: Value, address: Value, byte: Value, reason: Value | int) -> Value:
    status = const(i32, sc.DONE)
    count = c.error_count
    if count < c.error_capacity:
        entry = ErrorEntry.at(c.errors + count * ErrorEntry.size)
        entry.tile = tile
        entry.where = address
        entry.byte = byte
        entry.reason = reason
        c.error_count = count + 1
        if reason == sc.ENDLESS:
            c.tile_budget = const(i32, sc.BUDGET_AFTER_ENDLESS)
            c.list_budget = const(i32, sc.BUDGET_AFTER_ENDLESS)
    else:
        status = const(i32, sc.NEED_ERRORS)
    return status


@staged
def _segment(c: ScanContext, tile: Value, draw: Value, address: Value) -> None:
    entry = Segment.at(c.segments + c.segment_count * Segment.size)
    entry.tile = tile
    entry.draw = draw
    entry.list_address = address
    entry.primitives = c.list_count
    c.segment_count = c.segment_count + 1


@staged
def _scan_list(
    scanners: Scanners, context: Value, c: ScanContext, tile: Value, draw: Value, address: Value, op: Value
) -> Value:
    """Decode one list into a segment; returns a scan status, list_end = where to go on."""
    status = const(i32, sc.DONE)
    state = RenderState.at(c.state)
    form = state.list_format
    end = const(i32, -1)
    if c.segment_count >= c.segment_capacity:
        status = const(i32, sc.NEED_SEGMENTS)
    else:
        place = c.draws + draw * DrawEntry.size
        for code, scanner in scanners.items():
            if form == code:
                end = call(scanner, context, address, place)
        if (end != -1) & (end != ENDED):
            call(discard_list, context, place)
        if end == -1:
            if len(scanners) < len(LIST_SCANNERS):
                status = const(i32, sc.NEED_FORMATS)
            else:
                status = _fail(c, tile, address, op, sc.BAD_FORMAT)
        elif end == ENDED:
            _segment(c, tile, draw, address)
        else:
            status = _fail(c, tile, address, op, sc.ENDLESS)
    c.list_status = end
    return status


@staged
def _expansion(c: ScanContext, address: Value) -> Value:
    """Pointer to the entry of the primitive record at `address`, or to a free one."""
    slot = (address * FNV_PRIME).shr(7) & c.expansion_mask
    place = c.expansions + slot * sc.Expansion.size
    while (load(i32, place) != 0) & (load(i32, place + 4) != address):
        slot = (slot + 1) & c.expansion_mask
        place = c.expansions + slot * sc.Expansion.size
    return place


@staged
def _draw_record(scanners: Scanners, context: Value, tile: Value, address: Value) -> Value:
    """A primitive record outside of compressed lists becomes a segment of its expanded list."""
    c = ScanContext.at(context)
    state = RenderState.at(c.state)
    status = const(i32, sc.DONE)
    op = load(i8, host(c.memory, address)).zext(i32)
    entry = sc.Expansion.at(_expansion(c, address))
    c.list_end = address
    c.list_status = ENDED
    if entry.taken == 0:
        if c.expansions_full != 0:
            status = _fail(c, tile, address, op, sc.TOO_MANY)
            c.list_status = EXHAUSTED
        else:
            status = const(i32, sc.NEED_EXPANSION)
    else:
        if entry.start >= 0:
            state.list_format = entry.form | sc.EXPANDED
            draw = call(find_draw, context)
            state.list_format = entry.form
            c.list_base = c.expanded
            if draw < 0:
                status = const(i32, sc.NEED_DRAWS)
            else:
                status = _scan_list(scanners, context, c, tile, draw, entry.start, op)
            c.list_base = c.memory
        c.list_end = entry.after
    return status


@staged
def _scan_tile(  # noqa: C901
    scanners: Scanners, draw_record: Function[Value], recording: bool, context: Value, tile: Value
) -> Value:
    """Scan one tile's list, or one piece of rendering list; state carries on in the context.

    `recording`: it notes the records of tile lists; those of the piece itself were executed before.
    """
    c = ScanContext.at(context)
    state = c.state
    start = c.budget
    floor = start - min_(start, c.tile_budget)
    address = load(i32, c.tiles + tile * 4)
    end = load(i32, c.ends + tile * 4)
    stack = alloca(16)
    level = const(i32, 0)
    draw = const(i32, -1)
    status = const(i32, sc.DONE)
    running = const(i1, True)
    s = RenderState.at(state)
    own_format = s.list_format
    if (c.separate_format != 0) & (end == sc.NO_END):
        s.list_format = c.tile_format
    while running:
        here = host(c.memory, address)
        op = load(i8, here).zext(i32)
        if recording:
            at, failed = address, c.error_count
            inside = (level != 0) | (end == sc.NO_END)
        c.budget = c.budget - 1
        if (level == 0) & (address == end) & (end != sc.NO_END):
            running = const(i1, False)
        elif c.budget <= floor:
            status = _fail(c, tile, address, op, sc.ENDLESS)
            running = const(i1, False)
        elif is_one_of(op, ids_of(Compressed)):
            if draw < 0:
                draw = call(find_draw, context)
            if draw < 0:
                status = const(i32, sc.NEED_DRAWS)
                running = const(i1, False)
            else:
                status = _scan_list(scanners, context, c, tile, draw, address, op)
                address = c.list_end
                running = (status == sc.DONE) & (c.list_status == ENDED)
        elif is_one_of(op, ids_of(Primitives)):
            status = call(draw_record, context, tile, address)
            address = c.list_end
            draw = const(i32, -1)
            running = (status == sc.DONE) & (c.list_status == ENDED)
        elif (op >= min(STATE_RECORD_BYTES)) & (size_among(op, SYSTEM_RECORDS) == 0):
            known = const(i1, False)
            size = const(i32, 0)
            for identifier, length in STATE_RECORD_BYTES.items():
                if op == identifier:
                    apply_record_native(state, identifier, here + 1)
                    size = const(i32, length)
                    known = const(i1, True)
            if known:
                address = address + size
                draw = const(i32, -1)
            else:
                status = _fail(c, tile, address, op, sc.ILLEGAL_RECORD)
                running = const(i1, False)
        elif op == BRANCH:
            address = load(i32, here + 1)
        elif op == SUB_LIST:
            if level >= c.sub_depth:
                status = _fail(c, tile, address, op, sc.TOO_DEEP)
                running = const(i1, False)
            else:
                store(stack + level * 4, address + BranchToSublist.size)
                if (c.separate_format != 0) & (level == 0) & (end != sc.NO_END):
                    own_format = s.list_format
                    s.list_format = c.tile_format
                    draw = const(i32, -1)
                level = level + 1
                address = load(i32, here + 1)
        elif op == RETURN:
            if level == 0:
                running = const(i1, False)
            else:
                level = level - 1
                address = load(i32, stack + level * 4)
                if (c.separate_format != 0) & (level == 0) & (end != sc.NO_END):
                    c.tile_format = s.list_format
                    s.list_format = own_format
                    draw = const(i32, -1)
        elif is_one_of(op, ids_of(Ignored)):
            address = address + 1
        elif (level == 0) & (end != sc.NO_END) & (size_among(op, SYSTEM_RECORDS) != 0):
            address = address + size_among(op, SYSTEM_RECORDS)
        else:
            halted = op == HALT
            reason = select(halted, const(i32, sc.HALTED), const(i32, sc.ILLEGAL_RECORD))
            status = _fail(c, tile, address, op, reason)
            running = const(i1, False)
        if recording:
            if inside & (c.error_count == failed):
                note_record(c, at, op)
    if (c.separate_format != 0) & ((end == sc.NO_END) | (level != 0)):
        c.tile_format = s.list_format
        s.list_format = own_format
    return status


@staged
def _begin(c: ScanContext) -> None:
    """Nothing is found yet; the state stays as it is."""
    c.fresh = 0
    c.tile = 0
    c.draw_count = 0
    c.segment_count = 0
    c.error_count = 0
    c.budget = sc.FRAME_BUDGET
    c.tile_budget = const(i32, sc.TILE_BUDGET)
    c.list_budget = const(i32, LIST_BUDGET)
    c.list_base = c.memory
    for group in range((c.table_mask + 1) >> 4):  # of 16 places; there are 64 or more
        store(c.table + group * 64, splat(const(i32, 0)))


@staged
def _scan(scan_tile: Function[Value], recording: bool, context: Value) -> Value:
    """Scan all tiles from the resume point; NEED_x leaves the current tile untouched."""
    c = ScanContext.at(context)
    if c.fresh != 0:
        _begin(c)
    state = c.state
    saved = c.saved_state
    status = const(i32, sc.DONE)
    tile = c.tile
    while (tile < c.tile_count) & (status == sc.DONE):
        for k in unroll(STATE_WORDS):
            store(saved + 4 * k, load(i32, state + 4 * k))
        segments = c.segment_count
        errors = c.error_count
        budget, tile_budget, list_budget = c.budget, c.tile_budget, c.list_budget
        tile_format = c.tile_format
        store(c.tile_first + tile * 4, segments)
        full = const(i1, False)
        if recording:
            executed = c.executed
            store(c.executed_first + tile * 8, executed)
            full = executed > c.executed_last
        if full:
            status = const(i32, sc.NEED_NOTES)
        else:
            status = call(scan_tile, context, tile)
        if status == sc.DONE:
            tile = tile + 1
        else:
            for k in unroll(STATE_WORDS):
                store(state + 4 * k, load(i32, saved + 4 * k))
            c.segment_count = segments
            c.error_count = errors
            c.budget = budget
            c.tile_budget = tile_budget
            c.list_budget = list_budget
            c.tile_format = tile_format
            if recording:
                c.executed = executed
    c.tile = tile
    if status == sc.DONE:
        store(c.tile_first + tile * 4, c.segment_count)
        total = const(i32, 0)
        for k in range(c.segment_count):
            entry = Segment.at(c.segments + k * Segment.size)
            count = entry.primitives
            drawn = DrawEntry.at(c.draws + entry.draw * DrawEntry.size)
            drawn.primitives = drawn.primitives + count
            total = total + count
        c.entries = total
    return status


def make_scan(formats: tuple[int, ...], recording: bool = False) -> Function[Value]:
    """The native scan for some list formats (values of record 56); others need another build.

    `recording`: it notes the records of tile lists that it executes.
    """
    scanners = {code: LIST_SCANNERS[code] for code in formats}

    @kernel(args=(ptr, i32, i32), returns=i32)
    def draw_record(context: Value, tile: Value, address: Value) -> Value:
        return _draw_record(scanners, context, tile, address)

    @kernel(args=(ptr, i32), returns=i32)
    def scan_tile(context: Value, tile: Value) -> Value:
        return _scan_tile(scanners, draw_record, recording, context, tile)

    @kernel(args=(ptr,), returns=i32)
    def scan(context: Value) -> Value:
        return _scan(scan_tile, recording, context)

    return scan
