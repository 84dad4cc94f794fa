"""Objects of the display and their properties, which are its whole state."""

from __future__ import annotations

from dataclasses import dataclass, field

from vc4lab.bits import sign_extend

CRTC, CONNECTOR, ENCODER, MODE, PROPERTY, FRAME_BUFFER, BLOB, PLANE = (
    0xCCCCCCCC, 0xC0C0C0C0, 0xE0E0E0E0, 0xDEDEDEDE, 0xB0B0B0B0, 0xFBFBFBFB, 0xBBBBBBBB,
    0xEEEEEEEE,
)  # fmt: skip
ANY = 0
LEASABLE = frozenset((CRTC, CONNECTOR, PLANE))
"""Kinds of objects that a lease has or has not; everything else is there for every client."""
RANGE, IMMUTABLE, ENUM, IS_BLOB, BITMASK = 2, 4, 8, 16, 32
IS_OBJECT, SIGNED_RANGE = 1 << 6, 2 << 6
ATOMIC = 0x80000000
U32, U64, I32 = (1 << 32) - 1, (1 << 64) - 1, (1 << 31) - 1
I32_RANGE = ((1 << 64) - (1 << 31), I32)


def signed(value: int) -> int:
    """A property's 64 bits as a number with a sign."""
    return sign_extend(value, 64)


@dataclass(frozen=True)
class Property:
    """Says what a property may be.

    `values`: a range's ends, the type of the object, or of a bit mask the bits of which exactly one
    is set.
    """

    id: int
    name: str
    flags: int
    values: tuple[int, ...] = ()
    enums: tuple[tuple[int, str], ...] = ()

    def accepts(self, value: int) -> bool:
        """Whether the value is of the property's kind; objects are looked up elsewhere."""
        if self.flags & SIGNED_RANGE:
            low, high = map(signed, self.values)
            return low <= signed(value) <= high
        if self.flags & RANGE:
            return self.values[0] <= value <= self.values[1]
        if self.flags & ENUM:
            return any(value == number for number, _ in self.enums)
        if self.flags & BITMASK:
            known = sum(1 << number for number, _ in self.enums)
            return not value & ~known and (value & self.values[0]).bit_count() == 1
        return True


@dataclass
class DisplayObject:
    """A CRTC, a connector, an encoder or a plane: properties by id."""

    id: int
    kind: int
    state: dict[str, int] = field(default_factory=dict)
    """Property values by name."""
    properties: dict[str, Property] = field(default_factory=dict)

    def add(self, prop: Property, value: int = 0) -> None:
        """Give it a property."""
        self.properties[prop.name] = prop
        self.state[prop.name] = value


class Registry:
    """Numbers of all objects; objects share properties that are alike."""

    def __init__(self) -> None:
        self._next = 1
        self.objects: dict[int, DisplayObject] = {}
        self.properties: dict[int, Property] = {}
        self._made: dict[tuple[object, ...], Property] = {}

    def number(self) -> int:
        """A new one; no number is used twice."""
        self._next += 1
        return self._next - 1

    def make(self, kind: int) -> DisplayObject:
        """A new object."""
        made = DisplayObject(self.number(), kind)
        self.objects[made.id] = made
        return made

    def find(self, number: int, kind: int = ANY) -> DisplayObject | None:
        """The object with that number and kind."""
        found = self.objects.get(number)
        return found if found is not None and kind in (ANY, found.kind) else None

    def prop(
        self, name: str, flags: int, values: tuple[int, ...] = (), enums: tuple[tuple[int, str], ...] = ()
    ) -> Property:
        """The property of that name and range, made when it is first asked for."""
        key = name, flags, values, enums
        if key not in self._made:
            made = Property(self.number(), name, flags, values, enums)
            self._made[key] = self.properties[made.id] = made
        return self._made[key]
