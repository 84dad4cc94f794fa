"""Differences between draws and jobs that belong together, each with its meaning in both frames."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.debug.compare.align import aligned
from vc4lab.jobs.fields_text import word_text
from vc4lab.jobs.texture_views import CHANNELS
from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES
from vc4lab.qpu.text.disassembler import disassemble
from vc4lab.records.texture import BITS_PER_TEXEL, TextureType

if TYPE_CHECKING:
    from vc4lab.debug.frame.facts import (
        ContentFact,
        Contents,
        DrawFact,
        JobFact,
        ProgramFact,
        RecordFact,
        TextureFact,
        UniformFact,
    )

STATE, SHADER, PROGRAM, UNIFORM, TEXTURE = "state", "shader record", "program", "uniform", "texture"
CONTENT, LIST, SURFACE, MEMORY = "content", "list", "surface", "memory"
MOST_OF_A_KIND = 20
"""Differences of one program, list or array that are named one by one."""


@dataclass(frozen=True)
class Difference:
    """A difference.

    Attributes
    ----------
    kind
        One of the constants above.
    what, where
        The record, program … and the field, instruction … in it; `where` may be "".
    a, b
        What each frame has, in words; None: it is not there. "": `b` is about both.
    places
        Guest addresses in both frames; None: not there, or of no interest.
    """

    kind: str
    what: str
    where: str
    a: str | None
    b: str | None
    places: tuple[int | None, int | None] = (None, None)

    def text(self) -> str:
        """The difference in one line."""
        name = f"{self.what}: {self.where}" if self.where else self.what
        found = [f"0x{one:08x}" for one in dict.fromkeys(self.places) if one is not None]
        at = f"  [{', '.join(found)}]" if found else ""
        if self.a == "":
            return f"{name}: {self.b}{at}"
        if self.b is None:
            return f"{name} only in A: {self.a}{at}"
        if self.a is None:
            return f"{name} only in B: {self.b}{at}"
        return f"{name} {self.a} -> {self.b}{at}"

    def as_dict(self) -> dict[str, Any]:
        """The difference as JSON has it."""
        return {
            "kind": self.kind,
            "what": self.what,
            "where": self.where,
            "a": self.a,
            "b": self.b,
            "addresses": list(self.places),
        }


@dataclass(frozen=True)
class Sides:
    """Holds what lay in the memory of both frames, by digest."""

    a: Contents
    b: Contents

    def bytes_of(self, one: ContentFact, two: ContentFact) -> tuple[bytes, bytes] | None:
        """The content of both; None: it was too much to be kept."""
        found = self.a.get(one.digest), self.b.get(two.digest)
        return None if found[0] is None or found[1] is None else (found[0], found[1])


def draw_differences(one: DrawFact, two: DrawFact, sides: Sides) -> list[Difference]:
    """List the differences between two draws."""
    found = list(_records(STATE, (one.record,), (two.record,)))
    found += _by_title(STATE, one.states, two.states)
    found += _by_title(SHADER, one.shader, two.shader)
    for first, second in zip_longest(one.programs, two.programs):
        found += _program(first, second, sides)
    for before, after in _named(one.contents, two.contents):
        found += _content(CONTENT, before, after, sides)
    return found


def job_differences(one: JobFact, two: JobFact, sides: Sides) -> list[Difference]:
    """List the differences between two jobs besides their draws: control lists, what surfaces hold."""
    found: list[Difference] = []
    for first, second in zip_longest(one.lists, two.lists):
        if first is None or second is None:
            name, records = first or second or ("", ())
            a, b = (f"{len(records)} records" if side else None for side in (first, second))
            found.append(Difference(LIST, name, "", a, b))
        else:
            found += _list(first[0], first[1], second[1])
    for before, after in zip_longest(one.surfaces, two.surfaces):
        found += _content(SURFACE, before, after, sides)
    return found


def program_differences(one: ProgramFact | None, two: ProgramFact | None, sides: Sides) -> list[Difference]:
    """List the differences between two runs of user programs."""
    return list(_program(one, two, sides))


def memory_differences(
    one: Sequence[ContentFact], two: Sequence[ContentFact], sides: Sides
) -> list[Difference]:
    """List the differences in the memory that a frame's user programs have left."""
    return [d for pair in zip_longest(one, two) for d in _content(MEMORY, *pair, sides)]


# -- records -----------------------------------------------------------------------------------------


def _by_title(kind: str, one: Sequence[RecordFact], two: Sequence[RecordFact]) -> Iterator[Difference]:
    """Records of which there is one of each title."""
    first, second = ({record.title: record for record in side} for side in (one, two))
    for title in dict.fromkeys((*first, *second)):
        yield from _record(kind, first.get(title), second.get(title))


def _records(kind: str, one: Sequence[RecordFact], two: Sequence[RecordFact]) -> Iterator[Difference]:
    for first, second in zip_longest(one, two):
        yield from _record(kind, first, second)


def _record(kind: str, one: RecordFact | None, two: RecordFact | None) -> Iterator[Difference]:
    """The fields in which records differ."""
    if one is None or two is None or one.title != two.title:
        if one is not None and two is not None:
            yield Difference(kind, "record", "", _whole(one), _whole(two), (one.address, two.address))
            return
        there = one or two
        assert there is not None
        a, b = (None if side is None else _fields(side) for side in (one, two))
        yield Difference(kind, there.title, "", a, b, _addresses(one, two))
        return
    for (name, before), (_, after) in zip(one.fields, two.fields, strict=True):
        if before != after:
            yield Difference(kind, one.title, name, before, after, (one.address, two.address))


def _addresses(one: Any, two: Any) -> tuple[int | None, int | None]:
    return (None if one is None else one.address, None if two is None else two.address)


def _fields(record: RecordFact) -> str:
    return " ".join(f"{name}={value}" for name, value in record.fields) or "without fields"


def _whole(record: RecordFact) -> str:
    return f"{record.title} {_fields(record)}" if record.fields else record.title


def _list(name: str, one: Sequence[RecordFact], two: Sequence[RecordFact]) -> Iterator[Difference]:
    """The records in which lists differ; those that differ alike count as one difference."""
    if one == two:
        return
    titles = [record.title for record in one], [record.title for record in two]
    counts: dict[tuple[Any, ...], int] = {}
    firsts: dict[tuple[Any, ...], Difference] = {}
    for a, b in aligned((one, two), titles):
        pair = None if a is None else one[a], None if b is None else two[b]
        for found in _record(LIST, *pair):
            key = found.what, found.where, found.a, found.b
            counts[key] = counts.get(key, 0) + 1
            firsts.setdefault(key, found)
    for key, found in list(firsts.items())[:MOST_OF_A_KIND]:
        times = f" ({counts[key]} times)" if counts[key] > 1 else ""
        yield Difference(LIST, f"{name}, {found.what}{times}", found.where, found.a, found.b, found.places)
    if len(firsts) > MOST_OF_A_KIND:
        yield Difference(LIST, name, "more", "", f"{len(firsts) - MOST_OF_A_KIND} other differences")


# -- programs ----------------------------------------------------------------------------------------


def _program(one: ProgramFact | None, two: ProgramFact | None, sides: Sides) -> Iterator[Difference]:
    if one is None or two is None or one.kind != two.kind:
        for side, found in enumerate((one, two)):
            if found is not None:
                text = f"{len(found.words)} instructions"
                a, b = (None, text) if side else (text, None)
                yield Difference(PROGRAM, f"{found.kind} program", "", a, b, (found.address, found.address))
        return
    name = f"{one.kind} program"
    yield from _instructions(name, one, two)
    yield from _uniforms(name, one.uniforms, two.uniforms)
    for first, second in zip_longest(one.textures, two.textures):
        yield from _texture(name, first, second, sides)


def _instructions(name: str, one: ProgramFact, two: ProgramFact) -> Iterator[Difference]:
    if one.words == two.words:
        return
    changed = [(a, b) for a, b in aligned((one.words, two.words)) if not _same(one, a, two, b)]
    for a, b in changed[:MOST_OF_A_KIND]:
        texts = [
            None if place is None else disassemble(side.words[place], INSTRUCTION_BYTES * place)
            for side, place in ((one, a), (two, b))
        ]
        places = tuple(
            None if place is None else side.address + INSTRUCTION_BYTES * place
            for side, place in ((one, a), (two, b))
        )
        where = f"instruction {a if a is not None else b}"
        yield Difference(PROGRAM, name, where, texts[0], texts[1], (places[0], places[1]))
    if len(changed) > MOST_OF_A_KIND:
        text = f"{len(changed) - MOST_OF_A_KIND} other instructions differ"
        yield Difference(PROGRAM, name, "more", "", text)


def _same(one: ProgramFact, a: int | None, two: ProgramFact, b: int | None) -> bool:
    return a is not None and b is not None and one.words[a] == two.words[b]


def _uniforms(name: str, one: Sequence[UniformFact], two: Sequence[UniformFact]) -> Iterator[Difference]:
    meanings = [u.meaning for u in one], [u.meaning for u in two]
    if meanings[0] == meanings[1]:
        return
    purposes = [u.purpose for u in one], [u.purpose for u in two]
    pairs = zip_longest(one, two) if len(one) == len(two) else _pairs(one, two, aligned(meanings, purposes))
    for before, after in pairs:
        if before is not None and after is not None and before.meaning[1] == after.meaning[1]:
            continue  # only where it is read differs, which the program's differences say
        there = before or after
        assert there is not None
        what = f"uniform {there.number}, {there.purpose}"
        a, b = (None if side is None else _uniform_text(side) for side in (before, after))
        yield Difference(UNIFORM, name, what, a, b, _addresses(before, after))


def _uniform_text(uniform: UniformFact) -> str:
    return word_text(uniform.word) if uniform.target is None else f"memory at 0x{uniform.word:08x}"


def _pairs(one: Sequence[Any], two: Sequence[Any], places: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    for a, b in places:
        yield None if a is None else one[a], None if b is None else two[b]


def _texture(
    name: str, one: TextureFact | None, two: TextureFact | None, sides: Sides
) -> Iterator[Difference]:
    if one is None or two is None:
        there = one or two
        assert there is not None
        a, b = (None if side is None else _size(side) for side in (one, two))
        places = tuple(None if side is None else side.content.address for side in (one, two))
        yield Difference(TEXTURE, name, f"texture {there.request}", a, b, (places[0], places[1]))
        return
    places = one.config.base, two.config.base
    what = f"{name}, texture {one.request}"
    for (field, before), (_, after) in zip(one.fields, two.fields, strict=True):
        if before != after:
            yield Difference(TEXTURE, what, field, before, after, places)
    if one.fields == two.fields and one.content != two.content:
        yield Difference(TEXTURE, f"{what}, {_size(one)}", "", "", _texels(one, two, sides), places)


def _size(texture: TextureFact) -> str:
    config = texture.config
    kind = getattr(config.type, "name", f"type {config.type}").lower()
    return f"{kind} {config.width}x{config.height}"


def _texels(one: TextureFact, two: TextureFact, sides: Sides) -> str:
    """How much of a texture's content differs."""
    bits = BITS_PER_TEXEL.get(TextureType(one.config.type), 0) if one.config.type in CHANNELS else 0
    unit = "texels" if bits >= 8 else "bytes"
    return _changed(one.content, two.content, sides, max(bits // 8, 1), unit)


# -- content -----------------------------------------------------------------------------------------


def _named(
    one: Sequence[ContentFact], two: Sequence[ContentFact]
) -> Iterator[tuple[ContentFact | None, ContentFact | None]]:
    first, second = ({fact.name: fact for fact in side} for side in (one, two))
    for name in dict.fromkeys((*first, *second)):
        yield first.get(name), second.get(name)


def _content(
    kind: str, one: ContentFact | None, two: ContentFact | None, sides: Sides
) -> Iterator[Difference]:
    if one is None or two is None:
        there = one or two
        assert there is not None
        a, b = (None if side is None else f"{side.size} bytes" for side in (one, two))
        yield Difference(kind, there.name, "", a, b, _addresses(one, two))
        return
    if one == two:
        return
    places = one.address, two.address
    if (one.name, one.size, one.row, one.first) != (two.name, two.size, two.row, two.first):
        a, b = (_described(side, one.name != two.name) for side in (one, two))
        yield Difference(kind, one.name, "", a, b, places)
        return
    rows = _rows(one, two, sides) if kind == CONTENT else None
    if rows is None:
        unit = {SURFACE: "pixels"}.get(kind, "bytes")
        row = one.row if kind == SURFACE else 1
        yield Difference(kind, one.name, "", "", _changed(one, two, sides, row, unit), places)
        return
    yield from rows


def _described(content: ContentFact, with_name: bool) -> str:
    name = f"{content.name}, " if with_name else ""
    return f"{name}{content.size // max(content.row, 1)} of {content.row} bytes, from {content.first} on"


def _different(one: ContentFact, two: ContentFact, sides: Sides, row: int) -> Any:
    """The numbers of the rows that differ; None: their bytes were not kept."""
    found = sides.bytes_of(one, two)
    if found is None:
        return None
    first, second = (np.frombuffer(data, np.uint8) for data in found)
    changed = np.flatnonzero(first != second)
    return np.unique(changed // max(row, 1))


def _changed(one: ContentFact, two: ContentFact, sides: Sides, row: int, unit: str) -> str:
    """How many rows of bytes differ."""
    rows = _different(one, two, sides, row)
    if rows is None or one.size != two.size:
        return "other bytes"
    return f"{len(rows)} of {one.size // max(row, 1)} {unit} differ"


def _rows(one: ContentFact, two: ContentFact, sides: Sides) -> list[Difference] | None:
    """The vertices or indices that differ."""
    numbers = _different(one, two, sides, one.row)
    found = sides.bytes_of(one, two)
    if numbers is None or found is None:
        return None
    what = "index" if one.name == "indices" else "vertex"
    made = []
    for number in numbers[:MOST_OF_A_KIND].tolist():
        start = number * one.row
        a, b = (_row_text(data[start : start + one.row], what) for data in found)
        places = one.address, two.address
        made.append(Difference(CONTENT, one.name, f"{what} {one.first + number}", a, b, places))
    if len(numbers) > MOST_OF_A_KIND:
        text = f"{len(numbers) - MOST_OF_A_KIND} other rows differ"
        made.append(Difference(CONTENT, one.name, "more", "", text))
    return made


def _row_text(data: bytes, what: str) -> str:
    if what == "index":
        return str(int.from_bytes(data, "little"))
    if len(data) % 4:
        return data.hex(" ")
    return "(" + ", ".join(word_text(word) for word in struct.unpack(f"<{len(data) // 4}I", data)) + ")"
