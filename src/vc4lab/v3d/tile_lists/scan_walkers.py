"""Native walks of one compressed list, one for each list format: which vertices it uses."""

from __future__ import annotations

from typing import Any

from vc4lab.memory.pointers import host
from vc4lab.simd import (
    Value,
    const,
    i1,
    i8,
    i32,
    i64,
    kernel,
    load,
    max_,
    min_,
    popcount_,
    ptr,
    select,
    staged,
    store,
    vec,
)
from vc4lab.v3d.tile_lists import scan_context as sc
from vc4lab.v3d.tile_lists.primitive_decoder import (
    CONSECUTIVE_RUN,
    FORMATS,
    INDEX_16,
    INDEX_24,
    RUN,
    TRIANGLES,
    XY_32,
    Decoder,
    take_run,
)
from vc4lab.v3d.tile_lists.scan_context import DrawEntry, ScanContext


@staged
def take_rows(decoder: Decoder, used: Value) -> Value:
    """Takes triangles of consecutive vertices after the last one, which was such; their number."""
    taken = const(i32, 0)
    going = load(i64, host(decoder.base, decoder.address.get())) == CONSECUTIVE_RUN
    while going:
        i0, i2 = decoder.i0.get(), decoder.i2.get()
        plain = (decoder.i1.get() == i0 + 1) & (i2 == i0 + 2) & (i2 <= 0xFFFF - 3 * RUN)
        going = plain & (decoder.budget.get() > RUN)
        if going:
            store(used + i2 + 1, const(vec(i8, 8), 1))
            store(used + i2 + 9, const(vec(i8, 4), 1))
            take_run(decoder)
            taken = taken + RUN
            going = load(i64, host(decoder.base, decoder.address.get())) == CONSECUTIVE_RUN
    return taken + take_rest(decoder, used)


@staged
def take_rest(decoder: Decoder, used: Value) -> Value:
    """The same for fewer than `RUN` triangles."""
    i0, last = decoder.i0.get(), decoder.i2.get()
    other = load(i64, host(decoder.base, decoder.address.get())) ^ CONSECUTIVE_RUN
    # the lowest bit that differs is in the coding after the last that is such
    count = popcount_((other & -other) - 1).trunc(i32) >> 4
    plain = (decoder.i1.get() == i0 + 1) & (last == i0 + 2) & (last <= 0xFFFF - 3 * RUN)
    plain = plain & (decoder.budget.get() > RUN) & (count < RUN)
    count = select(plain, count, const(i32, 0))
    if count != 0:
        marks = const(i64, 0x0101010101010101).shr((max_(8 - count * 3, 0) << 3).zext(i64))
        store(used + last + 1, load(i64, used + last + 1) | marks)
        ninth = select(count == 3, const(i8, 1), const(i8, 0))
        store(used + last + 9, load(i8, used + last + 9) | ninth)
        for cell in (decoder.i0, decoder.i1, decoder.i2):
            cell.set(cell.get() + count * 3)
        decoder.flags.set(0)
        decoder.address.set(decoder.address.get() + count * 2)
        decoder.budget.set(decoder.budget.get() - count)
    return count


def _make_walker(primitive: int, data: int) -> Any:
    """Kernel that decodes one list and marks the vertices its primitives name."""

    @kernel(args=(ptr, i32, ptr), returns=i32)
    def walk(context: Value, address: Value, draw: Value) -> Value:
        c = ScanContext.at(context)
        d = DrawEntry.at(draw)
        budget = min_(c.budget, c.list_budget)
        decoder = Decoder(c.list_base, primitive, data)
        decoder.open(address)
        decoder.budget.set(budget)
        used = d.used
        first: Value = d.first
        last: Value = d.last
        c.walk_first = first
        c.walk_last = last
        count = const(i32, 0)
        mark = const(i8, 1)
        more = const(i1, True)
        while more:
            more = decoder.next()
            if more:
                count = count + 1
                if data != XY_32:
                    a, b, e = decoder.i0.get(), decoder.i1.get(), decoder.i2.get()
                    if data == INDEX_24:  # what lies beyond the last vertex counts as the last
                        top = const(i32, sc.MAX_VERTICES - 1)
                        a, b, e = min_(a, top), min_(b, top), min_(e, top)
                    store(used + a, mark)
                    store(used + b, mark)
                    store(used + e, mark)
                    first = min_(first, min_(a, min_(b, e)))
                    last = max_(last, max_(a, max_(b, e)))
                if (primitive, data) == (TRIANGLES, INDEX_16):
                    taken = take_rows(decoder, used)
                    count = count + taken
                    last = max_(last, decoder.i2.get())
        d.first = first
        d.last = last
        c.walk_end = decoder.address.get()
        c.walk_count = count
        c.budget = c.budget - (budget - decoder.budget.get())
        return decoder.status.get()

    return walk


@kernel(args=(ptr, ptr), returns=None)
def forget_walk(context: Value, draw: Value) -> None:
    """The list walked last is left out: vertices that only it used are not."""
    c = ScanContext.at(context)
    d = DrawEntry.at(draw)
    used, before, last = d.used, c.walk_first, c.walk_last
    for k in range(d.first, d.last + 1):
        if (k < before) | (k > last):
            store(used + k, const(i8, 0))
    d.first = before
    d.last = last


WALKERS = {code: _make_walker(code & 15, code >> 4) for code in FORMATS}
"""Native list walkers by the value of record 56."""
