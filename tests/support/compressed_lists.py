"""Compressed primitive lists (records 48, 49), encoded in their shortest codes."""

from collections.abc import Sequence

from vc4lab.records.codes import ListData, ListPrimitive
from vc4lab.records.primitives import (
    ESCAPE_ABSOLUTE,
    ESCAPE_BRANCH,
    ESCAPE_END,
    ListFormat,
    Primitive,
    Vertex,
    code_size,
    decode_code,
)


def encode_compressed(
    primitives: Sequence[Primitive], list_format: int = 0x12, *, absolute: bool = False
) -> bytes:
    """The list in its shortest codes (or only coding 3), end code included.

    Vertices are indices or (x, y) in sixteenths. Raises ValueError for a format without a coding or
    a vertex that does not fit.
    """
    form = ListFormat(list_format)
    if not form.valid:
        raise ValueError(f"primitive list format {form} is not documented")
    out = bytearray()
    previous: Primitive | None = None
    for primitive in primitives:
        _check(primitive, form)
        candidates = [_absolute(primitive, form)]
        if not absolute:
            candidates += _relative_codes(primitive, previous, form)
        out += min(candidates, key=len)
        previous = tuple(primitive)
    out.append(ESCAPE_END)
    return bytes(out)


def _check(primitive: Primitive, form: ListFormat) -> None:
    if len(primitive) != form.vertices:
        raise ValueError(f"{len(primitive)} vertices in a list of {form}")
    for vertex in primitive:
        if form.data == ListData.XY:
            fits = all(-0x8000 <= part <= 0x7FFF for part in vertex)
        else:
            fits = 0 <= vertex < 1 << form.vertex_bits
        if not fits:
            raise ValueError(f"vertex {vertex} doesn't fit in a list of {form}")


def _absolute(primitive: Primitive, form: ListFormat) -> bytes:
    out = bytearray([ESCAPE_ABSOLUTE])
    for vertex in primitive:
        if form.data == ListData.XY:
            out += (vertex[0] & 0xFFFF).to_bytes(2, "little")
            out += (vertex[1] & 0xFFFF).to_bytes(2, "little")
        else:
            out += int(vertex).to_bytes(form.vertex_bits // 8, "little")
    return bytes(out)


def _relative_codes(primitive: Primitive, previous: Primitive | None, form: ListFormat) -> list[bytes]:
    """Every shorter code that decodes to `primitive`: proposed, then decoded to check."""
    proposals: list[int] = []
    base, last = primitive[0], primitive[-1]
    if form.data == ListData.XY:
        offsets = [tuple(b - a for a, b in zip(base, v, strict=True)) for v in primitive[1:]]
        if form.type == ListPrimitive.TRIANGLES:
            word = 15
            for n, part in enumerate([*offsets[0], *offsets[1]]):
                word |= (part & 0x7F) << (4 + 7 * n)
            proposals.append(word | (base[0] & 0xFFFF) << 32 | (base[1] & 0xFFFF) << 48)
        else:
            dx, dy = offsets[0]
            word = 2 | (dx >> 1 & 63) << 2 | (dx & 1) << 8 | (dy & 0x7F) << 9
            proposals.append(word | (base[0] & 0xFFFF) << 16 | (base[1] & 0xFFFF) << 32)
        if previous is not None:
            dx, dy = (b - a for a, b in zip(previous[-1], last, strict=True))
            for turn in range(form.vertices):
                short = turn | (dx >> 1 & 63) << 2 | (dx & 1) << 8 | (dy & 0x7F) << 9
                proposals += [short, 3 | turn << 2 | (dx & 0x3FF) << 4 | (dy & 0x3FF) << 14]
    else:
        if form.type == ListPrimitive.TRIANGLES:
            one, two = primitive[1] - base, last - base
            proposals.append(15 | (one & 63) << 4 | (two & 63) << 10 | base << 16)
        elif form.vertices == 2:
            proposals.append(2 | (last - base & 63) << 2 | base << 8)
        if previous is not None:
            delta = last - previous[-1]
            proposals += [turn | (delta & 63) << 2 for turn in range(form.vertices)]
            if form.vertices == 1:
                proposals.append(3 | (delta & 0x3FFF) << 2)
            else:
                word = 3
                for n, (old, new) in enumerate(zip(previous, primitive, strict=True)):
                    word |= (new - old & 15) << (4 + 4 * n)
                proposals.append(word)
    return [
        word.to_bytes(size, "little")
        for word in proposals
        if (size := _decodes_to(word, primitive, previous, form))
    ]


def _decodes_to(word: int, primitive: Primitive, previous: Primitive | None, form: ListFormat) -> int:
    """Size of the code `word` if it means `primitive`, else 0."""
    first = word & 0xFF
    if first in (ESCAPE_END, ESCAPE_ABSOLUTE, ESCAPE_BRANCH):
        return 0
    size = code_size(first, form)
    zero: Vertex = (0, 0) if form.data == ListData.XY else 0
    meant = decode_code(word, previous or (zero,) * form.vertices, form)
    return size if meant == tuple(primitive) else 0
