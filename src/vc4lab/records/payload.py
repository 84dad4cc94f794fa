"""Declares, by a record's class, where the record may stand, its purpose, and what executes it.

The parser, printer, handlers, native readers and list hints take it from here or from `control.py`: a
new record is one class in `declarations.py` or `states.py`, and the code that executes it. The
kinds of record are the base classes below; a `State` needs no code but that which uses the state.

Fields are plain integers or one of the kinds below: addresses, floats, fixed point.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from vc4lab.bits import Bits, Layout
from vc4lab.simd import f32
from vc4lab.simd.members import Field

BINNING, RENDERING, TILE = "B", "R", "T"
"""The letters of `Payload.legal` and `Payload.native`: the list of thread 0, that of thread 1, and
the tile lists that the binner writes and thread 1 reads."""


class StateField(NamedTuple):
    """The place of a member of the render state in a record: byte offset after the id, width in bytes."""

    name: str
    offset: int
    width: int
    signed: bool = False
    real: bool = False


class Payload(Layout):
    """The bytes of a record after its id. The subclasses with an id are the declarations."""

    id: ClassVar[int] = -1
    title: ClassVar[str] = ""
    size: ClassVar[int] = 1
    """Fixed size in bytes, the id byte included."""
    legal: ClassVar[str] = ""
    """The lists where the record belongs. A hint, not a refusal."""
    native: ClassVar[str] = ""
    """The lists (`BINNING`, `RENDERING`) whose native reader executes the record."""
    variable: ClassVar[bool] = False
    """A list of primitives follows the fixed part."""

    def __init_subclass__(
        cls,
        *,
        id: int = -1,
        size: int = 1,
        title: str = "",
        legal: str | None = None,
        native: str | None = None,
        variable: bool = False,
    ) -> None:
        super().__init_subclass__(width=8 * (size - 1))
        cls.id, cls.size, cls.title, cls.variable = id, size, title, variable
        cls.legal = cls.legal if legal is None else legal
        cls.native = cls.native if native is None else native

    def text(self) -> str:
        """`name=value` pairs; a one-bit field is named when it is set."""
        parts = []
        for name, bits in self.layout_fields.items():
            if bits.width > 1:
                parts.append(f"{name}={bits.text(self.value)}")
            elif bits.extract(self.value):
                parts.append(name)
        return " ".join(parts)


class Flow(Payload):
    """Says at which address the list goes on."""


class Ignored(Payload, legal="BR", native="BR"):
    """One byte, and nothing that is drawn depends on it."""


class Semaphore(Payload, legal="BR"):
    """One thread waits for the other."""


class Frame(Payload):
    """Structures a frame: modes, tiles, loads and stores, flushes."""


class Primitives(Payload, legal="BR"):
    """Draws."""


class Compressed(Payload, legal="RT"):
    """Draws, as the binner writes them into tile lists."""


class BinnerState(Payload, legal="B", native="B"):
    """State that the binner alone uses, and does not write into tile lists."""


class State(Payload, legal="BRT", native="BR"):
    """Sets members of the render state, and is copied into the tile lists that want it."""

    state_fields: ClassVar[tuple[StateField, ...]] = ()
    """The members of the render state that the record sets."""
    initial: ClassVar[Mapping[str, float]] = MappingProxyType({})
    """Members of the state that are not 0 before any record set them."""

    def __init_subclass__(
        cls,
        *,
        id: int = -1,
        size: int = 1,
        title: str = "",
        sets: tuple[Field, ...] | Mapping[str, Field] = (),
        initial: Mapping[str, float] | None = None,
    ) -> None:
        """`sets`: a tuple has a member of `RenderState` for each word of the payload, of which the
        last may be shorter; a mapping has them for fields of the record.
        """
        super().__init_subclass__(id=id, size=size, title=title)
        if isinstance(sets, Mapping):
            members = [_member(field, cls.layout_fields[name]) for name, field in sets.items()]
        else:
            places = zip(sets, range(0, size - 1, 4), strict=True)
            members = [StateField(to.name, at, min(4, size - 1 - at)) for to, at in places]
        cls.state_fields = tuple(members)
        cls.initial = MappingProxyType(dict(initial or {}))


class ShaderState(State):
    """Names the shaders. These records replace each other: the last one holds."""


def _member(member: Field, bits: Bits) -> StateField:
    """A field of a record as a member of the state."""
    if bits.lo % 8 or bits.width not in (8, 16, 32):
        raise TypeError(f"{bits.name}: a member of the state has whole bytes")
    real = member.kind is f32
    return StateField(member.name, bits.lo // 8, bits.width // 8, bits.signed, real)


class Address(Bits):
    """A bus address whose low `shift` bits are not stored; reading gives the full address."""

    __slots__ = ("shift",)

    def __init__(self, hi: int, lo: int, shift: int = 0, *, doc: str = "") -> None:
        super().__init__(hi, lo, doc=doc)
        self.shift = shift

    def extract(self, word: int) -> int:
        return ((word & self.mask) >> self.lo) << self.shift

    def insert(self, word: int, value: Any) -> int:
        address = int(value)
        if address & ((1 << self.shift) - 1):
            raise ValueError(f"{self.name}: address 0x{address:x} is not a multiple of {1 << self.shift}")
        return super().insert(word, address >> self.shift)

    def text(self, word: int) -> str:
        return f"0x{self.extract(word):08x}"


class Flags(Bits):
    """A set of bits, printed in hex."""

    __slots__ = ()

    def text(self, word: int) -> str:
        return f"0x{self.extract(word):x}"


class Float(Bits):
    """An IEEE single; a field of 16 bits holds its upper half (1-8-7 bits)."""

    __slots__ = ()

    def __init__(self, hi: int, lo: int, *, doc: str = "") -> None:
        super().__init__(hi, lo, doc=doc)
        if self.width not in (16, 32):
            raise ValueError("a float field has 16 or 32 bits")

    def extract(self, word: int) -> float:
        raw = ((word & self.mask) >> self.lo) << (32 - self.width)
        value: float = struct.unpack("<f", struct.pack("<I", raw))[0]
        return value

    def insert(self, word: int, value: Any) -> int:
        try:
            raw: int = struct.unpack("<I", struct.pack("<f", float(value)))[0]
        except OverflowError:
            raise ValueError(f"{self.name}: {value} is beyond single precision") from None
        return (word & ~self.mask) | ((raw >> (32 - self.width)) << self.lo)

    def text(self, word: int) -> str:
        return f"{self.extract(word):.7g}"


class Fixed(Bits):
    """A signed 12.4 fixed point number of sixteenths of a pixel; its value is the raw integer."""

    __slots__ = ()

    def __init__(self, hi: int, lo: int, *, doc: str = "") -> None:
        super().__init__(hi, lo, signed=True, doc=doc)

    def text(self, word: int) -> str:
        return f"{self.extract(word) / 16:g}px"
