"""Native scans of one compressed list, one for each list format: which vertices it uses."""

from __future__ import annotations

from vc4lab.optimisations import INDEX_RUNS
from vc4lab.simd import Function, Value, const, i1, i8, i32, kernel, max_, min_, ptr, store
from vc4lab.v3d.tile_lists import scan_context as sc
from vc4lab.v3d.tile_lists.index_runs import take_rows
from vc4lab.v3d.tile_lists.primitive_decoder import FORMATS, INDEX_16, INDEX_24, TRIANGLES, XY_32, Decoder
from vc4lab.v3d.tile_lists.scan_context import DrawEntry, ScanContext


def _make_scanner(primitive: int, data: int) -> Function[Value]:
    """Kernel that decodes one list and marks the vertices its primitives name."""

    @kernel(args=(ptr, i32, ptr), returns=i32)
    def scan_list(context: Value, address: Value, draw: Value) -> Value:
        c = ScanContext.at(context)
        d = DrawEntry.at(draw)
        budget = min_(c.budget, c.list_budget)
        decoder = Decoder(c.list_base, primitive, data)
        decoder.open(address)
        decoder.budget.set(budget)
        used = d.used
        first: Value = d.first
        last: Value = d.last
        c.list_first = first
        c.list_last = last
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
                if (primitive, data) == (TRIANGLES, INDEX_16) and INDEX_RUNS.serves():
                    taken = take_rows(decoder, used)
                    count = count + taken
                    last = max_(last, decoder.i2.get())
        d.first = first
        d.last = last
        c.list_end = decoder.address.get()
        c.list_count = count
        c.budget = c.budget - (budget - decoder.budget.get())
        return decoder.status.get()

    return scan_list


@kernel(args=(ptr, ptr), returns=None)
def discard_list(context: Value, draw: Value) -> None:
    """Leaves out the list scanned last: vertices that only it used are unused again."""
    c = ScanContext.at(context)
    d = DrawEntry.at(draw)
    used, before, last = d.used, c.list_first, c.list_last
    for k in range(d.first, d.last + 1):
        if (k < before) | (k > last):
            store(used + k, const(i8, 0))
    d.first = before
    d.last = last


LIST_SCANNERS = {code: _make_scanner(code & 15, code >> 4) for code in FORMATS}
"""Native list scanners by the value of record 56."""
