"""Native walks of one compressed list, one for each list format: which vertices it uses."""

from __future__ import annotations

from typing import Any

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
    ptr,
    staged,
    store,
    vec,
)
from vc4lab.v3d.geometry import scan_context as sc
from vc4lab.v3d.geometry.primitive_decoder import (
    CONSECUTIVE_RUN,
    FORMATS,
    INDEX_16,
    INDEX_24,
    LIST_BUDGET,
    RUN,
    TRIANGLES,
    XY_32,
    Decoder,
    host,
    take_run,
)
from vc4lab.v3d.geometry.scan_context import DrawEntry, ScanContext


@staged
def take_rows(decoder: Any, used: Value) -> Value:
    """Takes triangles of consecutive vertices behind the last one, which was such; their number."""
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
    return taken


def _make_walker(primitive: int, data: int) -> Any:
    """Kernel that decodes one list and marks the vertices its primitives name."""

    @kernel(args=(ptr, i32, ptr), returns=i32)
    def walk(context: Value, address: Value, draw: Value) -> Value:
        c: Any = ScanContext.at(context)
        d: Any = DrawEntry.at(draw)
        budget = min_(c.budget, const(i32, LIST_BUDGET))
        decoder = Decoder(c.list_base, primitive, data)
        decoder.open(address)
        decoder.budget.set(budget)
        used = d.used
        first = d.first
        last = d.last
        count = const(i32, 0)
        mark = const(i8, 1)
        more = const(i1, True)
        while more:
            more = decoder.next()
            if more:
                count = count + 1
                if data != XY_32:
                    a, b, e = decoder.i0.get(), decoder.i1.get(), decoder.i2.get()
                    if data == INDEX_24:  # what lies behind the last vertex counts as the last
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


WALKERS = {code: _make_walker(code & 15, code >> 4) for code in FORMATS}
"""Native list walkers by the value of record 56."""
