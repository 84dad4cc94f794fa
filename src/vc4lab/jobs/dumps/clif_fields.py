"""Records as CLIF has them: a name, and a value for each field in a fixed order.

Names and fields are those of the declarations in `records/`, from the lowest bit up, as Mesa sorts
them, from whose files this is learned (src/broadcom/clif, src/broadcom/cle). What it calls or places
otherwise is in the tables below; what it does not declare cannot be said in CLIF, and is written as
bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from vc4lab.bits import Bits, Layout
from vc4lab.jobs.fields_text import SMALLEST, float_word, word_text
from vc4lab.records.control import RECORDS
from vc4lab.records.declarations import ClearColours, LoadGeneral, StoreGeneral
from vc4lab.records.payload import Address, Fixed, Float
from vc4lab.records.states import ConfigurationBits, GlShaderState

NAMES = {
    24: "Store Multi-sample Resolved Tile Color Buffer",
    25: "Store Multi-sample Resolved Tile Color Buffer and EOF",
    26: "Store Full Resolution Tile Buffer",
    27: "Re-load Full Resolution Tile Buffer",
    114: "Clear Colors",
    254: "GEM Relocations",
}
"""Records that Mesa calls otherwise, by their ids."""
_ABSENT: dict[type[Layout], frozenset[str]] = {
    StoreGeneral: frozenset(("disable_swap",)),
    ConfigurationBits: frozenset(("coverage_update",)),
    ClearColours: frozenset(("colour", "colour_high")),
}
"""Fields that Mesa does not declare, or not as they are here."""
UINT, FLOAT, HALF, ADDRESS, FIXED = "uint", "float", "upper half of a float", "address", "fixed"


class Field(NamedTuple):
    """A field: name, lowest bit after the id, bits, and how its value is written."""

    name: str
    low: int
    width: int
    form: str
    shift: int = 0
    """Low bits of an address that are not stored."""


_ADDED: dict[type[Layout], tuple[Field, ...]] = {
    LoadGeneral: (Field("decimate", 6, 2, UINT),),
    ClearColours: (Field("colour", 0, 64, UINT),),
}
"""Fields that only Mesa declares, or otherwise."""
_BEFORE_ALL: dict[type[Layout], str] = {GlShaderState: "address"}
"""Fields that begin at bit 0 for Mesa, over bits of others: 28 bits, as the kernel's relocations are."""


_known: dict[type[Layout], tuple[Field, ...]] = {}


def fields_of(kind: type[Layout]) -> tuple[Field, ...]:
    """The fields of a record in the order of CLIF."""
    known = _known.get(kind)
    if known is None:
        known = _known[kind] = _fields(kind)
    return known


def _fields(kind: type[Layout]) -> tuple[Field, ...]:
    absent = _ABSENT.get(kind, frozenset())
    found = [_field(bits) for name, bits in kind.layout_fields.items() if name not in absent]
    found += _ADDED.get(kind, ())
    first = _BEFORE_ALL.get(kind)
    return tuple(sorted(found, key=lambda one: -1 if one.name == first else one.low))


def _field(bits: Bits) -> Field:
    if isinstance(bits, Address):
        return Field(bits.name, bits.lo, bits.width, ADDRESS, bits.shift)
    if isinstance(bits, Float):
        return Field(bits.name, bits.lo, bits.width, FLOAT if bits.width == 32 else HALF)
    return Field(bits.name, bits.lo, bits.width, FIXED if isinstance(bits, Fixed) else UINT)


def clif_name(title: str) -> str:
    """A title as CLIF has it."""
    return title.replace(" ", "_").replace("(", "").replace(")", "").replace(",", "").upper()


RECORD_NAMES: dict[int, str] = {
    number: clif_name(NAMES.get(number, kind.title)) for number, kind in RECORDS.items() if not kind.variable
}
"""Names of records by their ids; lists of primitives have none."""
BY_CLIF_NAME: dict[str, int] = {name: number for number, name in RECORD_NAMES.items()}

AddressText = Callable[[int], tuple[str, str]]
"""An address as `[buffer+0x…]`, and a comment."""


class Value(NamedTuple):
    """A field's value as it is written, and what people read beside it."""

    name: str
    text: str
    comment: str = ""

    @property
    def line(self) -> str:
        """The line of the field."""
        return f"  /* {self.name:>20}: */ {self.text}" + f" /* {self.comment} */" * bool(self.comment)


def values_of(kind: type[Layout], word: int, address_text: AddressText) -> list[Value]:
    """The values of the fields of a record, whose bits after the id are `word`."""
    found = []
    for one in fields_of(kind):
        raw = word >> one.low & (1 << one.width) - 1
        if one.form == ADDRESS:
            found.append(Value(one.name, *address_text(raw << one.shift)))
        elif one.form == FLOAT:
            found.append(Value(one.name, word_text(raw, SMALLEST, math.inf)))
        else:
            bits = kind.layout_fields.get(one.name)
            is_named = bits is not None and bits.enum is not None and raw in bits.enum._value2member_map_
            found.append(Value(one.name, str(raw), bits.text(word) if is_named and bits is not None else ""))
    return found


def word_of(kind: type[Layout], values: Sequence[str], resolve: Callable[[str], int]) -> int:
    """The bits of a record. resolve: the address that `[buffer+0x…]` is. Raises ValueError."""
    fields = fields_of(kind)
    if len(values) != len(fields):
        names = ", ".join(one.name for one in fields) or "none"
        raise ValueError(f"{len(values)} values, but {len(fields)} fields ({names})")
    word = 0
    for one, text in zip(fields, values, strict=True):
        try:
            raw = _raw(one, text, resolve)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{one.name}: {str(error)[:80]}") from None
        if raw < 0:
            raw &= (1 << one.width) - 1
        if raw >> one.width:
            raise ValueError(f"{one.name}: {text[:40]} needs more than {one.width} bits")
        word |= raw << one.low
    return word


def _raw(one: Field, text: str, resolve: Callable[[str], int]) -> int:
    """The bits of a field. Raises ValueError."""
    if text.startswith("["):
        address = resolve(text)
        return address >> one.shift  # the bits below are other fields, which Mesa may have in it
    if text.lower().startswith(("0x", "-0x")):
        value = int(text, 16)
        return value >> one.shift if one.form == ADDRESS else value
    if one.form == FLOAT or (one.form == HALF and "." in text):
        return float_word(text) >> 32 - one.width
    if one.form == FIXED and "." in text:
        return round(float(text) * 16)
    value = int(text)
    if value < -(1 << one.width - 1) and one.width:
        raise ValueError(f"{text[:40]} needs more than {one.width} bits")
    return value >> one.shift if one.form == ADDRESS else value
