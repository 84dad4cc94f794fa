"""Compressed primitive lists (records 48, 49) and VG inline lists, decoded in Python.

This is the reference form, for listings; drawing decodes the same bytes natively. A list is
a run of codes told apart by their first byte: 0x80 ends it, 0x82 branches, 0x81 names all vertices,
and three shorter codings say how a primitive differs from the previous one.
Source: AG100-R pp. 75-79 and Mesa's compressed list tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vc4lab.bits import Bits, Layout, sign_extend
from vc4lab.records.codes import ListData, ListPrimitive, VgPrimitive

ESCAPE_END = 0x80
ESCAPE_ABSOLUTE = 0x81
ESCAPE_BRANCH = 0x82
VG_TERMINATOR = 0xBFFF0000
VG_DUMMY = 0xBFFF0001

VG_ENDS = {
    VgPrimitive.RHT: (1, 2),
    VgPrimitive.RHT_STRIP: (1, 1),
    VgPrimitive.TRIANGLES: (2, 3),
    VgPrimitive.TRIANGLE_STRIP: (2, 1),
    VgPrimitive.TRIANGLE_FAN: (1, 1),
}
"""Numbers of the vertices in whose place the end code of a VG list counts: the first, and every
n-th after it."""

MAX_PRIMITIVES = 1 << 16
"""A single list of more codes is taken for a loop."""

Vertex = Any
"""An index, or (x, y) in sixteenths of a pixel."""
Primitive = tuple[Vertex, ...]

STRIP_TURNS = ((2, 1), (0, 2), (1, 0))
"""Triangles, coding 0: by k, which previous vertices become vertex 0 and 1."""
LINE_TURNS = ((1,), (0,))
"""Lines and RHTs, coding 0: by k, which previous vertex becomes vertex 0."""


class ListFormat(Layout, width=8):
    """Payload of record 56: what a compressed list holds and how it names a vertex."""

    type = Bits(3, 0, enum=ListPrimitive)
    data = Bits(7, 4, enum=ListData)

    @property
    def vertices(self) -> int:
        """Vertices of a primitive, 0 for a reserved type."""
        return {0: 1, 1: 2, 2: 3, 3: 2}.get(int(self.type), 0)

    @property
    def valid(self) -> bool:
        """Whether this combination is documented."""
        if self.data == ListData.XY:
            return self.type in (ListPrimitive.TRIANGLES, ListPrimitive.RHT)
        return self.vertices > 0 and self.data in (ListData.INDEX16, ListData.INDEX24)

    @property
    def vertex_bits(self) -> int:
        """Bits of an absolute vertex: index size, or 32 for x and y."""
        return self.data.bits if isinstance(self.data, ListData) else 32

    def __str__(self) -> str:
        return f"{_name(self.type)} {_name(self.data)}"


def _name(code: Any) -> str:
    return code.name.lower() if hasattr(code, "name") else f"reserved {code}"


@dataclass(frozen=True)
class DecodedList:
    """A decoded list.

    Attributes
    ----------
    items
        Primitives as tuples of vertices.
    next
        Address after the end code.
    first_size
        Bytes in a straight line: to the end code or through the first branch.
    problem
        The error in the list, None if it ended well.
    branches
        Target addresses of the branches taken.
    ends
        Addresses after the codes of the items.
    """

    items: tuple[Primitive, ...]
    next: int
    first_size: int
    problem: str | None = None
    branches: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()


def _add(vertex: Vertex, delta: Any, bits: int) -> Vertex:
    """A vertex moved by a difference; each component wraps."""
    if isinstance(vertex, tuple):
        return tuple(sign_extend(v + d, 16) for v, d in zip(vertex, delta, strict=True))
    return (vertex + delta) & ((1 << bits) - 1)


def _field(word: int, hi: int, lo: int) -> int:
    return (word >> lo) & ((1 << (hi - lo + 1)) - 1)


def _signed(word: int, hi: int, lo: int) -> int:
    return sign_extend(word >> lo, hi - lo + 1)


def _split_x(word: int) -> int:
    """The s7 whose upper six bits are 7:2 and whose lowest bit is 8."""
    return sign_extend((_field(word, 7, 2) << 1) | _field(word, 8, 8), 7)


def _xy(word: int) -> tuple[int, int]:
    return sign_extend(word, 16), sign_extend(word >> 16, 16)


def _vertex(word: int, form: ListFormat) -> Vertex:
    return _xy(word) if form.data == ListData.XY else word & ((1 << form.vertex_bits) - 1)


def code_size(first: int, form: ListFormat) -> int:
    """Bytes of the code that begins with `first` in a list of this format; 0 if there is none."""
    absolute = form.vertex_bits // 8
    if first == ESCAPE_END:
        return 1
    if first == ESCAPE_BRANCH:
        return 3
    if first == ESCAPE_ABSOLUTE:
        return 1 + absolute * form.vertices
    coding = _coding(first, form)
    if form.data == ListData.XY:
        return (2, 3, 8 if form.type == ListPrimitive.TRIANGLES else 6)[coding]
    if form.type == ListPrimitive.POINTS:
        return (1, 2, 0)[coding]
    return (1, 2, absolute + (2 if form.type == ListPrimitive.TRIANGLES else 1))[coding]


def _coding(first: int, form: ListFormat) -> int:
    if form.type == ListPrimitive.TRIANGLES:
        return 2 if first & 15 == 15 else 1 if first & 3 == 3 else 0
    return {2: 2, 3: 1}.get(first & 3, 0)


def decode_code(word: int, previous: Primitive, form: ListFormat) -> Primitive:
    """The primitive of one code (`word`: its bytes, little endian) after `previous`."""
    bits = form.vertex_bits
    first = word & 0xFF
    if first == ESCAPE_ABSOLUTE:
        return tuple(_vertex(word >> (8 + bits * n), form) for n in range(form.vertices))
    coding = _coding(first, form)
    if form.data == ListData.XY:
        return _decode_xy(word, coding, previous, form)
    if form.type == ListPrimitive.POINTS:
        delta = _signed(word, 7, 2) if coding == 0 else _signed(word, 15, 2)
        return (_add(previous[0], delta, bits),)
    triangles = form.type == ListPrimitive.TRIANGLES
    if coding == 0:
        turns = STRIP_TURNS if triangles else LINE_TURNS
        kept = tuple(previous[n] for n in turns[word & 3])
        return (*kept, _add(previous[-1], _signed(word, 7, 2), bits))
    if coding == 1:
        return tuple(
            _add(vertex, _signed(word, 7 + 4 * n, 4 + 4 * n), bits) for n, vertex in enumerate(previous)
        )
    if triangles:
        base = _vertex(word >> 16, form)
        return (base, _add(base, _signed(word, 9, 4), bits), _add(base, _signed(word, 15, 10), bits))
    base = _vertex(word >> 8, form)
    return base, _add(base, _signed(word, 7, 2), bits)


def _decode_xy(word: int, coding: int, previous: Primitive, form: ListFormat) -> Primitive:
    triangles = form.type == ListPrimitive.TRIANGLES
    if coding == 2 and triangles:
        base = _xy(word >> 32)
        one = (_signed(word, 10, 4), _signed(word, 17, 11))
        two = (_signed(word, 24, 18), _signed(word, 31, 25))
        return base, _add(base, one, 16), _add(base, two, 16)
    if coding == 2:
        base = _xy(word >> 16)
        return base, _add(base, (_split_x(word), _signed(word, 15, 9)), 16)
    if coding == 0:
        turn, delta = word & 3, (_split_x(word), _signed(word, 15, 9))
    else:
        turn, delta = _field(word, 3, 2), (_signed(word, 13, 4), _signed(word, 23, 14))
    turns = STRIP_TURNS[turn] if triangles else LINE_TURNS[1 if turn == 1 else 0]
    return (*(previous[n] for n in turns), _add(previous[-1], delta, 16))


def decode_compressed(
    read: Callable[[int, int], bytes], address: int, form: ListFormat, limit: int = MAX_PRIMITIVES
) -> DecodedList:
    """Decode the list at `address`. Damage of any kind ends it with `problem`; nothing raises."""
    items: list[Primitive] = []
    branches: list[int] = []
    ends: list[int] = []
    start = address
    straight: int | None = None

    def ended(after: int, problem: str | None = None) -> DecodedList:
        size = straight if straight is not None else after - start
        return DecodedList(tuple(items), after, size, problem, tuple(branches), tuple(ends))

    if not form.valid:
        return ended(address, f"primitive list format {form} is not documented")
    zero: Vertex = (0, 0) if form.data == ListData.XY else 0
    previous: Primitive = (zero,) * form.vertices
    for _ in range(limit):
        code = read(address, 16)
        if not code:
            return ended(address, "compressed primitive list leaves memory")
        size = code_size(code[0], form)
        if size == 0:
            return ended(address, "run length code, which hardware does not have")
        if len(code) < size:
            return ended(address, "compressed primitive list leaves memory")
        if code[0] == ESCAPE_END:
            return ended(address + 1)
        word = int.from_bytes(code[:size], "little")
        if code[0] == ESCAPE_BRANCH:
            straight = address + size - start if straight is None else straight
            address = ((address & ~31) + 32 * _signed(word, 23, 8)) & 0xFFFFFFFF
            branches.append(address)
            continue
        previous = decode_code(word, previous, form)
        items.append(previous)
        address += size
        ends.append(address)
    return ended(address, f"compressed primitive list not ended after {limit} codes")


def decode_vg_inline(
    read: Callable[[int, int], bytes], address: int, kind: int, limit: int = MAX_PRIMITIVES
) -> DecodedList:
    """The vertices after record 42 (each item one vertex ((x, y),)), up to the end code.

    The end code counts only where the last vertex of a primitive may stand; in front of it the
    unfinished primitive's vertices are given too.
    """
    items: list[Primitive] = []
    start = address
    if kind not in VG_ENDS:
        return DecodedList((), address, 0, f"VG primitive type {kind} is not documented")
    first, step = VG_ENDS[VgPrimitive(kind)]
    for count in range(limit):
        data = read(address, 4)
        if len(data) < 4:
            return DecodedList(tuple(items), address, address - start, "VG list leaves memory")
        address += 4
        word = int.from_bytes(data, "little")
        if word == VG_TERMINATOR and count >= first and (count - first) % step == 0:
            if kind == VgPrimitive.TRIANGLE_FAN and count == 1:
                address += 4  # three vertices are present even so
            return DecodedList(tuple(items), address, address - start)
        items.append((_xy(word),))
    return DecodedList(tuple(items), address, address - start, f"VG list not ended after {limit} vertices")
