"""Bit fields declared once: encoding, decoding, repr and range errors come from one declaration.

    class Clear(Layout, width=24):
        colour = Bits(7, 0, doc="the colour")
        delta = Bits(11, 8, signed=True)

    Clear.make(colour=3, delta=-2).value      # 0xe03
    Clear(0xE03).delta                        # -2

Registers, instructions and records share this descriptor, so a table row of a manual is one line
here.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any, ClassVar, Self


def sign_extend(value: int, width: int) -> int:
    """The two's complement meaning of the low `width` bits of `value`."""
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def signed32(word: int) -> int:
    """A 32-bit word as the signed number that native code and i32 members take."""
    return sign_extend(word, 32)


class Bits:
    """One field, bits `hi` down to `lo` of an integer (both inclusive).

    `enum` names the values: reading gives a member where one exists, else the plain integer,
    because hardware meets reserved codes too.
    """

    __slots__ = ("doc", "enum", "hi", "lo", "mask", "name", "plain", "signed", "width")

    def __init__(
        self,
        hi: int,
        lo: int | None = None,
        *,
        signed: bool = False,
        enum: type[IntEnum] | None = None,
        doc: str = "",
    ) -> None:
        self.hi = hi
        self.lo = hi if lo is None else lo
        if not 0 <= self.lo <= self.hi:
            raise ValueError(f"field bits {hi}:{lo} are not in descending order")
        self.width = self.hi - self.lo + 1
        self.mask = ((1 << self.width) - 1) << self.lo
        self.signed = signed
        self.enum = enum
        self.plain = not signed and enum is None and type(self).extract is Bits.extract
        self.doc = doc
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def extract(self, word: int) -> Any:
        """The field's value in `word`: an int, or a member of `enum`."""
        raw = (word & self.mask) >> self.lo
        if self.signed:
            return sign_extend(raw, self.width)
        if self.enum is not None:
            return self.enum._value2member_map_.get(raw, raw)
        return raw

    def insert(self, word: int, value: Any) -> int:
        """`word` with this field replaced. Raises ValueError when `value` does not fit."""
        number = int(value)
        low = -(1 << (self.width - 1)) if self.signed else 0
        high = low + (1 << self.width) - 1
        if not low <= number <= high:
            kind = "signed bits" if self.signed else "bits"
            if self.width == 1:
                kind = kind[:-1]
            place = f"{self.name}: " if self.name else ""
            raise ValueError(f"{place}value {number} doesn't fit in {self.width} {kind}")
        return (word & ~self.mask) | ((number << self.lo) & self.mask)

    def text(self, word: int) -> str:
        """The field's value in `word`, for people: enum names in lower case."""
        value = self.extract(word)
        if isinstance(value, IntEnum):
            return value.name.lower()
        return str(value)

    def __get__(self, instance: Layout | None, owner: type | None = None) -> Any:
        if instance is None:
            return self
        if self.plain:  # nearly all fields, read millions of times
            return (instance.value & self.mask) >> self.lo
        return self.extract(instance.value)

    def __set__(self, instance: Layout, value: Any) -> None:
        instance.value = self.insert(instance.value, value)


class Layout:
    """An integer of `width` bits seen through its `Bits` fields; compares by value."""

    bit_width: ClassVar[int] = 32
    layout_fields: ClassVar[dict[str, Bits]] = {}
    value: int
    __slots__ = ("value",)

    def __init_subclass__(cls, *, width: int | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if width is not None:
            cls.bit_width = width
        own = {name: bits for name, bits in vars(cls).items() if isinstance(bits, Bits)}
        cls.layout_fields = {**cls.layout_fields, **own}
        for name, bits in own.items():
            if bits.hi >= cls.bit_width:
                raise TypeError(f"{cls.__name__}.{name}: bit {bits.hi} of {cls.bit_width} bits")

    def __init__(self, value: int = 0) -> None:
        if not 0 <= value < 1 << self.bit_width:
            raise ValueError(f"{type(self).__name__}: value {value} doesn't fit in {self.bit_width} bits")
        self.value = value

    @classmethod
    def make(cls, **fields: Any) -> Self:
        """A value from its fields; the fields not named are 0. Raises ValueError, TypeError."""
        return cls().replace(**fields)

    def replace(self, **fields: Any) -> Self:
        """A copy with some fields changed. Raises ValueError (range), TypeError (no such)."""
        value = self.value
        for name, field_value in fields.items():
            bits = self.layout_fields.get(name)
            if bits is None:
                known = ", ".join(self.layout_fields)
                raise TypeError(f"{type(self).__name__} has no field {name!r} (fields: {known})")
            value = bits.insert(value, field_value)
        return type(self)(value)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Decode `width / 8` little-endian bytes."""
        return cls(int.from_bytes(data[: (cls.bit_width + 7) // 8], "little"))

    def to_bytes(self) -> bytes:
        """The value as `width / 8` little-endian bytes."""
        return self.value.to_bytes((self.bit_width + 7) // 8, "little")

    def items(self) -> Iterator[tuple[str, Any]]:
        """(field name, value) in order of declaration."""
        for name, bits in self.layout_fields.items():
            yield name, bits.extract(self.value)

    def as_dict(self) -> dict[str, Any]:
        """The fields as a dictionary, in order of declaration."""
        return dict(self.items())

    def text(self) -> str:
        """`name=value` pairs, as lists and diagnostics print them."""
        return " ".join(f"{n}={b.text(self.value)}" for n, b in self.layout_fields.items())

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Layout):
            return type(self) is type(other) and self.value == other.value
        return NotImplemented

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.value))

    def __repr__(self) -> str:
        text = self.text()
        return f"{type(self).__name__}(0x{self.value:x}{': ' + text if text else ''})"
