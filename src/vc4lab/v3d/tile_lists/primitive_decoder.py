"""Decodes a compressed primitive list (records 48 and 49) natively, one primitive at a time.

The scanner of the tile lists and the fragment pipelines trace the same `Decoder` into their own
loops, so a list is read the same way everywhere. Encoding: AG100-R pp. 75-79,
Tables 40-41. A hostile list can only end early: every step costs budget, every address is masked.

Use inside a kernel::

    decoder = Decoder(base, TRIANGLES, INDEX_16)
    decoder.open(list_address)            # address of the 48 or 49 record
    while decoder.next():
        a, b, c = decoder.i0.get(), decoder.i1.get(), decoder.i2.get()
        flags = decoder.flags.get()       # record 49: bit k = vertex k comes from the clip record

Index lists give vertex indices; x/y lists give packed coordinates (x in 15:0, y in 31:16, s12.4).
Points use i2 only, lines and RHTs i0 and i1 (i2 repeats i1).

Runs of triangles, each with the step of the one before (two bytes), are taken together. Without this the
`Decoder` takes the triangles one by one, with the same result.
"""

from __future__ import annotations

from vc4lab.memory.native import host
from vc4lab.optimisations import INDEX_RUNS
from vc4lab.records.codes import ListData, ListPrimitive
from vc4lab.records.declarations import ClippedList, CompressedList
from vc4lab.records.primitives import ESCAPE_ABSOLUTE, ESCAPE_BRANCH, ESCAPE_END
from vc4lab.simd.kernel import Function, kernel, staged
from vc4lab.simd.members import i1, i8, i16, i32, i64, ptr
from vc4lab.simd.memory import load, store, var
from vc4lab.simd.types import vec
from vc4lab.simd.value import Value, const, select
from vc4lab.simd.vector import max_, min_
from vc4lab.v3d.tile_lists import scan_context as sc
from vc4lab.v3d.tile_lists.scan_context import DrawEntry, ScanContext

POINTS, LINES, TRIANGLES, RHTS = (int(primitive) for primitive in ListPrimitive)
"""Primitive types, as record 56 numbers them (bits 3:0)."""
INDEX_16, INDEX_24, XY_32 = (int(data) for data in ListData)
"""Data types, as record 56 numbers them (bits 7:4)."""

FORMATS = tuple(
    data << 4 | primitive
    for data in (INDEX_16, INDEX_24, XY_32)
    for primitive in (POINTS, LINES, TRIANGLES, RHTS)
    if (data, primitive) != (XY_32, POINTS)
)
"""Values of record 56 whose lists can be read."""

COMPRESSED_LIST, CLIPPED_LIST = CompressedList.id, ClippedList.id

LIST_BUDGET = 1 << 22
"""Primitives and branches one list may hold before the decoder gives up."""

MORE, ENDED, EXHAUSTED, MALFORMED = 1, 0, 2, 3
"""Values of `Decoder.status`."""

CLIP_ENTRY_BYTES = 32
"""One flagged vertex in a clip record: Xs, Ys, Zs, 1/Wc, three weights, two unused words."""


def field(word: Value, low: int, bits: int) -> Value:
    """Signed bit field of an i32 word."""
    return (word << (32 - bits - low)) >> (32 - bits)


class Decoder:
    """Cursor over one compressed list; its cells are staged variables, one set per `Decoder`."""

    def __init__(self, base: Value, primitive: int, data: int = INDEX_16, budget: int = LIST_BUDGET) -> None:
        self.base = base
        self.primitive = primitive
        self.data = data
        self.mask = {INDEX_16: 0xFFFF, INDEX_24: 0xFFFFFF, XY_32: -1}[data]
        self.budget_limit = budget
        self.address = var(i32, 0)
        self.i0 = var(i32, 0)
        self.i1 = var(i32, 0)
        self.i2 = var(i32, 0)
        self.flags = var(i32, 0)
        self.clip_record = var(i32, 0)
        self.clipped = var(i32, 0)
        self.status = var(i32, ENDED)
        self.budget = var(i32, budget)

    def open(self, address: Value) -> None:
        """Start at the 48 or 49 record at guest `address`."""
        _open(self, address)

    def next(self) -> Value:
        """Decode the next primitive into i0, i1, i2 and flags; i1 false at the end of the list.

        After the end `address` points to the record after the list and `status` says why.
        """
        return _next(self)


@staged
def _open(decoder: Decoder, address: Value) -> None:
    header = host(decoder.base, address)
    is_clipped = load(i8, header) == CLIPPED_LIST
    word = load(i32, header + 1)
    decoder.clipped.set(select(is_clipped, word & 7, const(i32, 0)))
    decoder.clip_record.set(select(is_clipped, word & ~7, const(i32, 0)))
    decoder.address.set(address + select(is_clipped, const(i32, 5), const(i32, 1)))
    for cell in (decoder.i0, decoder.i1, decoder.i2, decoder.flags):
        cell.set(0)
    decoder.status.set(MORE)
    decoder.budget.set(decoder.budget_limit)


@staged
def _next(decoder: Decoder) -> Value:
    address = decoder.address.get()
    budget = decoder.budget.get() - 1
    pointer = host(decoder.base, address)
    code = load(i8, pointer).zext(i32)
    while (code == ESCAPE_BRANCH) & (budget > 0):
        step = load(i16, pointer + 1).sext(i32)
        address = (address & ~31) + step * 32
        pointer = host(decoder.base, address)
        code = load(i8, pointer).zext(i32)
        budget = budget - 1
    decoder.budget.set(budget)
    more = const(i1, True)
    if (code == ESCAPE_END) | (budget <= 0):
        decoder.status.set(select(budget <= 0, const(i32, EXHAUSTED), const(i32, ENDED)))
        decoder.address.set(address + 1)
        more = const(i1, False)
    else:
        decoder.flags.set(decoder.clipped.get())  # only the first primitive is clipped
        decoder.clipped.set(0)
        if decoder.data == XY_32:
            length = _coordinates(decoder, pointer, code)
        else:
            length = _indices(decoder, pointer, code)
        decoder.address.set(address + length)
    return more


@staged
def _indices(decoder: Decoder, pointer: Value, code: Value) -> Value:
    word = load(i32, pointer)
    if decoder.primitive == TRIANGLES:
        length = _triangle(decoder, pointer, code, word)
    elif decoder.primitive == POINTS:
        length = _point(decoder, pointer, code, word)
    else:
        length = _line(decoder, pointer, code, word)
    return length


@staged
def _triangle(decoder: Decoder, pointer: Value, code: Value, word: Value) -> Value:
    wide = 3 if decoder.data == INDEX_24 else 2
    p0, p1, p2 = decoder.i0.get(), decoder.i1.get(), decoder.i2.get()
    n0, n1, n2 = p2, p1, p2 + field(word, 2, 6)  # coding 0
    length = const(i32, 1)
    if code == ESCAPE_ABSOLUTE:
        n0 = load(i32, pointer + 1)
        n1 = load(i32, pointer + (1 + wide))
        n2 = load(i32, pointer + (1 + 2 * wide))
        length = const(i32, 1 + 3 * wide)
    elif (code & 3) != 3:
        kind = code & 3
        n0 = select(kind == 0, p2, select(kind == 1, p0, p1))
        n1 = select(kind == 0, p1, select(kind == 1, p2, p0))
    elif (code & 15) != 15:
        n0 = p0 + field(word, 4, 4)
        n1 = p1 + field(word, 8, 4)
        n2 = p2 + field(word, 12, 4)
        length = const(i32, 2)
    else:
        n0 = load(i32, pointer + 2)
        n1 = n0 + field(word, 4, 6)
        n2 = n0 + field(word, 10, 6)
        length = const(i32, 2 + wide)
    decoder.i0.set(n0 & decoder.mask)
    decoder.i1.set(n1 & decoder.mask)
    decoder.i2.set(n2 & decoder.mask)
    return length


@staged
def _line(decoder: Decoder, pointer: Value, code: Value, word: Value) -> Value:
    wide = 3 if decoder.data == INDEX_24 else 2
    p0, p1 = decoder.i0.get(), decoder.i1.get()
    n0 = select((code & 1) == 0, p1, p0)  # coding 0
    n1 = p1 + field(word, 2, 6)
    length = const(i32, 1)
    if code == ESCAPE_ABSOLUTE:
        n0 = load(i32, pointer + 1)
        n1 = load(i32, pointer + (1 + wide))
        length = const(i32, 1 + 2 * wide)
    elif (code & 3) == 2:
        n0 = load(i32, pointer + 1)
        n1 = n0 + field(word, 2, 6)
        length = const(i32, 1 + wide)
    elif (code & 3) == 3:
        n0 = p0 + field(word, 4, 4)
        n1 = p1 + field(word, 8, 4)
        length = const(i32, 2)
    decoder.i0.set(n0 & decoder.mask)
    decoder.i1.set(n1 & decoder.mask)
    decoder.i2.set(n1 & decoder.mask)
    return length


@staged
def _point(decoder: Decoder, pointer: Value, code: Value, word: Value) -> Value:
    new = decoder.i2.get() + field(word, 2, 6)  # coding 0
    length = const(i32, 1)
    if code == ESCAPE_ABSOLUTE:
        new = load(i32, pointer + 1)
        length = const(i32, 4 if decoder.data == INDEX_24 else 3)
    elif (code & 3) == 3:
        new = decoder.i2.get() + field(word, 2, 14)
        length = const(i32, 2)
    for cell in (decoder.i0, decoder.i1, decoder.i2):
        cell.set(new & decoder.mask)
    return length


def add_xy(base: Value, dx: Value, dy: Value) -> Value:
    """Packed coordinates plus (dx, dy), each half wrapping on its own."""
    return ((base + dx) & 0xFFFF) | ((base & ~0xFFFF) + (dy << 16))


@staged
def _coordinates(decoder: Decoder, pointer: Value, code: Value) -> Value:
    """x/y lists of triangles and RHTs (lines use the RHT form)."""
    word = load(i32, pointer)
    p0, p1, p2 = decoder.i0.get(), decoder.i1.get(), decoder.i2.get()
    length = const(i32, 2)
    # coding 0: s7 dx is bits 7:2 with bit 8 as its lowest bit, dy is 15:9
    dx = (field(word, 2, 6) << 1) | (word.shr(8) & 1)
    dy = field(word, 9, 7)
    kind = code & 3
    if decoder.primitive == TRIANGLES:
        coding_1, coding_2 = (kind == 3) & ((code & 15) != 15), (code & 15) == 15
    else:
        coding_1, coding_2 = kind == 3, kind == 2
    if coding_1:
        kind = code.shr(2) & 3
        dx = field(word, 4, 10)
        dy = field(word, 14, 10)
        length = const(i32, 3)
    if decoder.primitive == TRIANGLES:
        n0 = select(kind == 0, p2, select(kind == 1, p0, p1))
        n1 = select(kind == 0, p1, select(kind == 1, p2, p0))
        n2 = add_xy(p2, dx, dy)
        if code == ESCAPE_ABSOLUTE:
            n0 = load(i32, pointer + 1)
            n1 = load(i32, pointer + 5)
            n2 = load(i32, pointer + 9)
            length = const(i32, 13)
        elif coding_2:
            n0 = load(i32, pointer + 4)
            n1 = add_xy(n0, field(word, 4, 7), field(word, 11, 7))
            n2 = add_xy(n0, field(word, 18, 7), field(word, 25, 7))
            length = const(i32, 8)
    else:
        n0 = select(kind == 1, p0, p1)
        n1 = add_xy(p1, dx, dy)
        if code == ESCAPE_ABSOLUTE:
            n0 = load(i32, pointer + 1)
            n1 = load(i32, pointer + 5)
            length = const(i32, 9)
        elif coding_2:
            n0 = load(i32, pointer + 2)
            n1 = add_xy(n0, dx, dy)
            length = const(i32, 6)
        n2 = n1
    decoder.i0.set(n0)
    decoder.i1.set(n1)
    decoder.i2.set(n2)
    return length


RUN_TRIANGLES = 4
"""Triangles that `runs` looks at and `take_run` takes."""

CONSECUTIVE_RUN = 0x3333333333333333
"""A run whose indices are always those before plus 3, as when vertices are drawn in order."""


@staged
def runs(decoder: Decoder) -> Value:
    """Whether the next `RUN_TRIANGLES` triangles (16-bit indices) each make the same step.

    Consecutive vertices give such runs: two bytes each, differences of three indices, all equal.
    """
    word = load(i64, host(decoder.base, decoder.address.get()))
    first = word & 0xFFFF
    near = ((first & 3) == 3) & ((first & 15) != 15) & (word == first * 0x0001000100010001)
    return near & (decoder.budget.get() > RUN_TRIANGLES) & (decoder.clipped.get() == 0)


@staged
def take_run(decoder: Decoder) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    """Goes on by `RUN_TRIANGLES` triangles of a run; what was i0, i1, i2 before, and the steps."""
    word = load(i32, host(decoder.base, decoder.address.get()))
    before = (decoder.i0.get(), decoder.i1.get(), decoder.i2.get())
    steps = (field(word, 4, 4), field(word, 8, 4), field(word, 12, 4))
    cells = (decoder.i0, decoder.i1, decoder.i2)
    for cell, index, step in zip(cells, before, steps, strict=True):
        cell.set((index + step * RUN_TRIANGLES) & decoder.mask)
    decoder.flags.set(0)
    decoder.address.set(decoder.address.get() + 2 * RUN_TRIANGLES)
    decoder.budget.set(decoder.budget.get() - RUN_TRIANGLES)
    return before, steps


@staged
def take_rows(decoder: Decoder, used: Value) -> Value:
    """Takes triangles of consecutive vertices after the last one, which was such; their number."""
    taken = const(i32, 0)
    going = load(i64, host(decoder.base, decoder.address.get())) == CONSECUTIVE_RUN
    while going:
        i0, i2 = decoder.i0.get(), decoder.i2.get()
        plain = (decoder.i1.get() == i0 + 1) & (i2 == i0 + 2) & (i2 <= 0xFFFF - 3 * RUN_TRIANGLES)
        going = plain & (decoder.budget.get() > RUN_TRIANGLES)
        if going:
            store(used + i2 + 1, const(vec(i8, 8), 1))
            store(used + i2 + 9, const(vec(i8, 4), 1))
            take_run(decoder)
            taken = taken + RUN_TRIANGLES
            going = load(i64, host(decoder.base, decoder.address.get())) == CONSECUTIVE_RUN
    return taken


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
