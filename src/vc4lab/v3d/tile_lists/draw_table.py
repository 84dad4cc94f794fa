"""The distinct draws of a frame's tile lists: a hash table of the render states met so far."""

from __future__ import annotations

from vc4lab.simd import Value, const, i1, i8, i32, kernel, load, ptr, splat, staged, store, unroll
from vc4lab.v3d.state.render_state import STATE_WORDS
from vc4lab.v3d.tile_lists.scan_context import FNV_PRIME, FNV_START, MAX_VERTICES, DrawEntry, ScanContext


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
