"""Builds messages and commands of 32-bit words whose fields are declared once.

    class SetStencilRef(Command, number=13):
        front: int = bits(0, 7, 0)
        back: int = bits(0, 15, 8)

    command = SetStencilRef.decode(data)      # SetStencilRef(front=3, back=0)
    command.encode() == data

A declaration is a frozen dataclass: its instances compare by value and print themselves. The first
argument of a field is the number of its word, counted from 0 after the header. Decoding, encoding,
printing, the limits and the tables of `docs/virgl.md` come from the declaration.
"""

from __future__ import annotations

import dataclasses
import struct
from typing import Any, ClassVar, Self, dataclass_transform

from vc4lab.mesa.protocol import fields
from vc4lab.mesa.protocol.fields import (
    REST,
    WORD,
    Malformed,
    Reader,
    Spec,
    array,
    bits,
    double,
    flag,
    of_header,
    real,
    rest,
    signed,
    value_text,
    word,
)


@dataclass_transform(
    frozen_default=True, field_specifiers=(array, bits, double, flag, of_header, real, rest, signed, word)
)
class Payload:
    """Base of everything that is declared.

    Class attributes
    ----------------
    first
        The number of the first word that is the payload's own; those before belong to others.
    fixed
        Words that every such payload has, from `first` on.
    lengths
        The numbers of words it may have from `first` on, if it does not go on to the end. Fields
        after the end of a shorter one have their defaults.
    specs
        The fields, in order of declaration.
    """

    first: ClassVar[int] = 0
    fixed: ClassVar[int] = 0
    lengths: ClassVar[tuple[int, ...]] = (0,)
    specs: ClassVar[dict[str, Spec]] = {}
    _formats: ClassVar[dict[int, struct.Struct]] = {0: struct.Struct("")}
    _tail: ClassVar[tuple[str, Spec] | None] = None
    _names: ClassVar[tuple[str, ...] | None] = ()
    """The fields in order, if each is one value as it is."""
    _readers: ClassVar[tuple[tuple[str, int, int, Reader | None], ...]] = ()
    """Each field's index among the values, its word, and the function that makes it of them."""
    _form: ClassVar[tuple[struct.Struct, int]] = struct.Struct(""), 0
    """The format of the fixed words, and its number of values."""
    _writers: ClassVar[tuple[tuple[str, int, int, int, Spec], ...] | None] = ()
    """Each field's index among the values, its lowest bit (or -1), its items; None where fields are
    written one by one."""

    def __init_subclass__(cls, *, first: int = 0, lengths: tuple[int, ...] = (), **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclasses.dataclass(frozen=True, repr=False)(cls)
        declared: Any = cls
        cls.specs = {one.name: one.metadata["spec"] for one in dataclasses.fields(declared)}
        cls.first = first
        own = {name: spec for name, spec in cls.specs.items() if spec.form != "h"}
        plain = {name: spec for name, spec in own.items() if spec.count != REST}
        tails = [(name, spec) for name, spec in own.items() if spec.count == REST]
        cls._tail = tails[0] if tails else None
        cls.fixed = max((spec.at + spec.words - first for spec in plain.values()), default=0)
        cls.lengths = lengths or (cls.fixed,)
        cls._formats = {size: struct.Struct(cls._letters(size)) for size in cls.lengths}
        doubles = [spec.at for spec in plain.values() if spec.form == "d"]
        cls._readers = tuple(
            (name, at - sum(one < spec.at for one in doubles), at, fields.reader(name, spec))
            for name, spec in plain.items()
            for at in (spec.at - first,)
        )
        in_order = [index for _, index, _, _ in cls._readers] == list(range(len(plain)))
        simple = in_order and all(read is None for _, _, _, read in cls._readers)
        cls._names = tuple(plain) if simple and len(cls.lengths) == 1 else None
        form = cls._formats.get(cls.fixed)
        cls._writers = None
        if len(cls.lengths) == 1 and form is not None:
            cls._form = form, len(form.unpack(bytes(form.size)))
            cls._writers = cls._writers_of(plain)

    @classmethod
    def _writers_of(cls, plain: dict[str, Spec]) -> tuple[tuple[str, int, int, int, Spec], ...] | None:
        """How the fields become values of the format; None if they do not each have their words."""
        if any(spec.form == "n" and not isinstance(spec.item, str) for spec in plain.values()):
            return None
        made = []
        for name, index, at, _ in cls._readers:
            spec = plain[name]
            if at + spec.words > cls.fixed:
                return None
            made.append((name, index, spec.lo if spec.form == "b" else -1,
                         spec.count if spec.form == "n" else 0, spec))  # fmt: skip
        return tuple(made)

    @classmethod
    def _letters(cls, size: int) -> str:
        """The format of `struct` for so many words."""
        letters = ["I"] * size
        for spec in cls.specs.values():
            at = spec.at - cls.first
            if spec.form == "h" or spec.count == REST or at + spec.words > size:
                continue
            if spec.form in ("i", "f"):
                letters[at] = spec.form
            elif spec.form == "d":
                letters[at : at + 2] = ["d", ""]
            elif spec.form == "n" and spec.item in ("f", "i"):
                letters[at : at + spec.words] = [spec.item] * spec.words
        return "<" + "".join(letters)

    @classmethod
    def decode(cls, data: Any, start: int = 0, words: int | None = None) -> Self:
        """The payload in `words` words from byte `start` of `data` on. Raises Malformed."""
        if words is None:
            words = (len(data) - start) // WORD
        size = words if cls._tail is None else cls.fixed
        form = cls._formats.get(size)
        if form is None or words < size:
            raise Malformed(f"it has {words + cls.first} words, not {cls.length_text()}")
        values = form.unpack_from(data, start)
        made = object.__new__(cls)
        found = made.__dict__
        if cls._names is not None:
            found.update(zip(cls._names, values, strict=True))
        else:
            for name, index, at, read in cls._readers:
                if at >= size:
                    found[name] = getattr(cls, name)
                elif read is None:
                    found[name] = values[index]
                else:
                    found[name] = read(values, index, data, start + at * WORD)
        if cls._tail is not None:
            name, spec = cls._tail
            end = start + size * WORD
            found[name] = fields.read_rest(name, spec, data, end, words - size)
        return made

    def encode(self) -> bytes:
        """The words. Raises ValueError or struct.error for values that do not fit."""
        tail = b""
        if self._tail is not None:
            tail = fields.packed(self._tail[1], getattr(self, self._tail[0]))
        if self._writers is None:
            return self._encode_fixed() + tail
        form, count = self._form
        values: list[Any] = [0] * count
        found = self.__dict__
        for name, index, shift, items, spec in self._writers:
            value = found[name]
            if items:
                if len(value) != items:
                    raise ValueError(f"{name}: {len(value)} values, not {items}")
                values[index : index + items] = value
            elif shift < 0:
                values[index] = value
            else:
                if not 0 <= value < 2 << (spec.hi - shift):
                    fields.packed(spec, value)  # raises ValueError
                values[index] |= int(value) << shift
        return form.pack(*values) + tail

    def _encode_fixed(self) -> bytes:
        """The words before those that go on to the end, field by field."""
        data = bytearray(self.size() * WORD)
        for name, spec in self.specs.items():
            if spec.form == "h" or spec.count == REST:
                continue
            written = fields.packed(spec, getattr(self, name))
            at = (spec.at - self.first) * WORD
            if spec.form == "b":
                old = int.from_bytes(data[at : at + WORD], "little")
                new = old | int.from_bytes(written, "little")
                data[at : at + WORD] = new.to_bytes(WORD, "little")
            elif at < len(data):
                data[at : at + len(written)] = written
        return bytes(data)

    def size(self) -> int:
        """Words before those that go on to the end; a declaration with several lengths chooses."""
        return self.fixed

    @classmethod
    def length_text(cls) -> str:
        """How many words there may be, those before `first` included."""
        if cls._tail is None:
            return " or ".join(str(length + cls.first) for length in cls.lengths)
        times = cls._tail[1].item_words
        own = "n" if times == 1 else f"{times}n"
        fixed = cls.fixed + cls.first
        return f"{fixed} + {own}" if fixed else own

    def text(self) -> str:
        """`name=value` of each field; of flags the names of those that are set."""
        return " ".join(self._parts())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._parts())})"

    def _parts(self) -> list[str]:
        parts = []
        for name, spec in self.specs.items():
            value = getattr(self, name)
            if not spec.is_flag:
                parts.append(f"{name}={value_text(value, spec)}")
            elif value:
                parts.append(name)
        return parts
