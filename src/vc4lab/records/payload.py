"""What a record's class says of the record: where it may stand, what it is for, what executes it.

The parser, printer, handlers, native readers and list hints take it from here or from `use.py`: a
new record is one class in `declarations.py` or `states.py`, and the code that executes it. The
kinds of record are the base classes below; a `State` needs no code but that which uses the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from vc4lab.bits import Bits, Layout
from vc4lab.simd import f32
from vc4lab.simd.members import Field

BINNING, RENDERING, TILE = "B", "R", "T"
"""The letters of `Payload.legal` and `Payload.native`: the list of thread 0, that of thread 1, and
the tile lists that the binner writes and thread 1 reads."""


class StateField(NamedTuple):
    """Where a record holds a member of the render state: byte offset after the id, width."""

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
    """Where the list goes on."""


class Ignored(Payload, legal="BR", native="BR"):
    """One byte, and nothing that is drawn depends on it."""


class Semaphore(Payload, legal="BR"):
    """One thread waits for the other."""


class Frame(Payload):
    """What a frame is made of: modes, tiles, loads and stores, flushes."""


class Primitives(Payload, legal="BR"):
    """Draws."""


class Compressed(Payload, legal="RT"):
    """Draws, as the binner writes them into tile lists."""


class BinnerState(Payload, legal="B", native="B"):
    """State that the binner alone uses, and does not write into tile lists."""


class State(Payload, legal="BRT", native="BR"):
    """Sets members of the render state, and is copied into the tile lists that want it."""

    state_fields: ClassVar[tuple[StateField, ...]] = ()
    """What the record sets."""
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
