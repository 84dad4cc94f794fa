"""Native walks of one compressed list, one for each list format: which vertices it uses."""

from __future__ import annotations

from typing import Any

from vc4lab.simd import Value, const, i8, i32, kernel, max_, min_, ptr, store
from vc4lab.v3d.geometry import scan_context as sc
from vc4lab.v3d.geometry.primitive_decoder import FORMATS, INDEX_24, LIST_BUDGET, XY_32, Decoder
from vc4lab.v3d.geometry.scan_context import DrawEntry, ScanContext


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
        while decoder.next():
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
        d.first = first
        d.last = last
        c.walk_end = decoder.address.get()
        c.walk_count = count
        c.budget = c.budget - (budget - decoder.budget.get())
        return decoder.status.get()

    return walk


WALKERS = {code: _make_walker(code & 15, code >> 4) for code in FORMATS}
"""Native list walkers by the value of record 56."""
