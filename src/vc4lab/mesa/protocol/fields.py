"""The kinds of field that messages and commands have: where they are, and what values they take."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable
from enum import IntEnum
from typing import Any

WORD = 4
"""Bytes of a word."""
REST = -1
"""The count of a field that goes on to the end of the payload."""
LONGEST = 16
"""Items of a field that are printed."""


class Malformed(ValueError):  # noqa: N818 - a fact about what came
    """Words that no declaration allows; the text says which field, and what it may be."""


Reader = Callable[[tuple[Any, ...], int, Any, int], Any]
"""Makes a field of the payload's values, the index among them, the data and the byte there."""


@dataclasses.dataclass(frozen=True)
class Spec:
    """A field's place in a payload, and the values that it may have."""

    at: int
    form: str
    """u, i, f: one word; d: a double in two; b: bits of a word; n: a number of `item`s; h: what the
    header says, which is no word of the payload."""
    hi: int = 31
    lo: int = 0
    count: int = 1
    enum: type[IntEnum] | None = None
    below: int | None = None
    is_flag: bool = False
    item: Any = None
    """The item that a field of form n repeats: a `Payload`, or u, i, f (words) or s (bytes)."""
    hex: bool = False
    doc: str = ""
    ref: str = ""
    """The kind of thing that the number names, where it lies elsewhere: "resource"."""

    @property
    def item_words(self) -> int:
        """Words of one item."""
        return 1 if isinstance(self.item, str) else int(self.item.fixed)

    @property
    def words(self) -> int:
        """Words from `at` on; of a field that goes on to the end, none."""
        if self.form == "n":
            return max(self.count, 0) * self.item_words
        return 2 if self.form == "d" else 1

    @property
    def place(self) -> str:
        """The words, and the bits if it has not all: `3`, `1 [14:12]`, `4 …`."""
        if self.form == "h":
            return "header [15:8]"
        if self.form == "b":
            bits = str(self.hi) if self.hi == self.lo else f"{self.hi}:{self.lo}"
            return f"{self.at} [{bits}]"
        if self.count == REST:
            return f"{self.at} …"
        return str(self.at) if self.words == 1 else f"{self.at}-{self.at + self.words - 1}"


def _declared(spec: Spec, default: Any) -> Any:
    if spec.enum is not None:
        default = next(iter(spec.enum))
    return dataclasses.field(default=default, metadata={"spec": spec})


def word(
    at: int,
    *,
    enum: type[IntEnum] | None = None,
    below: int | None = None,
    hex: bool = False,
    doc: str = "",
    ref: str = "",
) -> Any:
    """An unsigned word; with `enum` one of its members, with `below` a smaller number."""
    return _declared(Spec(at, "u", enum=enum, below=below, hex=hex, doc=doc, ref=ref), 0)


def signed(at: int, *, doc: str = "") -> Any:
    """A word in two's complement."""
    return _declared(Spec(at, "i", doc=doc), 0)


def real(at: int, *, doc: str = "") -> Any:
    """An IEEE single."""
    return _declared(Spec(at, "f", doc=doc), 0.0)


def double(at: int, *, doc: str = "") -> Any:
    """An IEEE double in two words, the low one first."""
    return _declared(Spec(at, "d", doc=doc), 0.0)


def bits(
    at: int,
    hi: int,
    lo: int | None = None,
    *,
    enum: type[IntEnum] | None = None,
    below: int | None = None,
    hex: bool = False,
    doc: str = "",
) -> Any:
    """Bits `hi` down to `lo` of a word."""
    low = hi if lo is None else lo
    return _declared(Spec(at, "b", hi, low, enum=enum, below=below, hex=hex, doc=doc), 0)


def flag(at: int, bit: int = 0, *, doc: str = "") -> Any:
    """One bit of a word, as a bool; printed by its name when it is set."""
    return _declared(Spec(at, "b", bit, bit, is_flag=True, doc=doc), False)


def array(at: int, item: Any, count: int, *, doc: str = "") -> Any:
    """`count` items in a row, as a tuple."""
    default = tuple(0 if isinstance(item, str) else item() for _ in range(count))
    return _declared(Spec(at, "n", count=count, item=item, doc=doc), default)


def rest(at: int, item: Any, *, below: int | None = None, doc: str = "") -> Any:
    """Items up to the end of the payload, fewer than `below`: a tuple, or bytes for "s"."""
    spec = Spec(at, "n", count=REST, item=item, below=below, doc=doc)
    return _declared(spec, b"" if item == "s" else ())


def of_header(enum: type[IntEnum], *, doc: str = "") -> Any:
    """Declare a field for the header's bits 15:8."""
    return _declared(Spec(-1, "h", enum=enum, doc=doc), 0)


def reader(name: str, spec: Spec) -> Reader | None:
    """Return the function that makes a field of a payload's values; None: its one value as it is."""
    if spec.form == "n":
        return _array_reader(spec)
    if spec.is_flag:
        bit = 1 << spec.lo
        return lambda values, index, _data, _start: values[index] & bit != 0
    mask, shift, below = (1 << (spec.hi - spec.lo + 1)) - 1, spec.lo, spec.below
    if spec.enum is not None:
        return _enum_reader(name, spec.enum, mask, shift)
    if below is not None:

        def bounded(values: tuple[Any, ...], index: int, _data: Any, _start: int) -> int:
            value: int = values[index] >> shift & mask
            if value >= below:
                raise Malformed(f"{name} is {value}, but must be below {below}")
            return value

        return bounded
    if spec.form == "b":
        return lambda values, index, _data, _start: values[index] >> shift & mask
    return None


def _enum_reader(name: str, enum: type[IntEnum], mask: int, shift: int) -> Reader:
    known = enum._value2member_map_

    def read(values: tuple[Any, ...], index: int, _data: Any, _start: int) -> Any:
        value = values[index] >> shift & mask
        member = known.get(value)
        if member is None:
            raise Malformed(f"{name} is {value}, which is no {enum.__name__}")
        return member

    return read


def _array_reader(spec: Spec) -> Reader:
    count, item = spec.count, spec.item
    if isinstance(item, str):
        return lambda values, index, _data, _start: values[index : index + count]
    step = spec.item_words * WORD

    def items(_values: tuple[Any, ...], _index: int, data: Any, start: int) -> tuple[Any, ...]:
        words = spec.item_words
        return tuple(item.decode(data, start + number * step, words) for number in range(count))

    return items


def read_rest(name: str, spec: Spec, data: Any, start: int, words: int) -> Any:
    """The field that goes on to the end. Raises Malformed."""
    count, odd = divmod(words, spec.item_words)
    if odd:
        raise Malformed(f"{name}: {words} words are no multiple of {spec.item_words}")
    if spec.below is not None and count >= spec.below:
        raise Malformed(f"{name}: {count} of them, but there must be fewer than {spec.below}")
    if spec.item == "s":
        return bytes(data[start : start + words * WORD])
    if isinstance(spec.item, str):
        letter = "I" if spec.item == "u" else spec.item
        return struct.unpack_from(f"<{count}{letter}", data, start)
    step = spec.item_words * WORD
    return tuple(spec.item.decode(data, start + number * step, spec.item_words) for number in range(count))


def packed(spec: Spec, value: Any) -> bytes:
    """The words of a field, as `encode` writes them; of bits, of the whole word."""
    if spec.form == "b":
        width = spec.hi - spec.lo + 1
        if not 0 <= int(value) < 1 << width:
            raise ValueError(f"value {int(value)} doesn't fit in {width} bits")
        return struct.pack("<I", int(value) << spec.lo)
    if spec.form == "n":
        if spec.item == "s":
            return bytes(value) + bytes(-len(value) % WORD)
        if isinstance(spec.item, str):
            letter = "I" if spec.item == "u" else spec.item
            return struct.pack(f"<{len(value)}{letter}", *value)
        return b"".join(one.encode() for one in value)
    return struct.pack({"u": "<I", "i": "<i", "f": "<f", "d": "<d"}[spec.form], value)


def value_text(value: Any, spec: Spec | None = None) -> str:
    """A field's value for people."""
    if isinstance(value, IntEnum):
        return str(value)
    if isinstance(value, float):
        return f"{value:.7g}"
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, tuple):
        parts = [value_text(one, spec) for one in value[:LONGEST]]
        more = f", … {len(value)} in all" if len(value) > LONGEST else ""
        return f"[{', '.join(parts)}{more}]"
    if hasattr(value, "text"):
        return f"({value.text()})"
    if spec is not None and spec.hex:
        return f"0x{value:x}"
    return str(value)
