"""Struct: one declaration of a memory block that Python fills and kernels read."""

from __future__ import annotations

import ctypes
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from vc4lab.simd.members import Array, Field, measure
from vc4lab.simd.memory import load, store
from vc4lab.simd.trace import staged_error, tracing
from vc4lab.simd.types import Type, ptr
from vc4lab.simd.value import Value, coerce

_RESERVED = ("size", "align", "address", "at", "offset", "field_ptr", "fields", "struct", "python",
             "storage")  # fmt: skip
ALIGNMENT = 64


class _Block(ctypes.Structure):
    """Holds a Struct for Python: a ctypes Structure, so that members cost no Python code."""

    __slots__ = ()
    struct: ClassVar[type[Struct]]

    @property
    def address(self) -> int:
        """Return the address of the block in this process."""
        return ctypes.addressof(self)

    def __repr__(self) -> str:
        fields = self.struct.fields.items()
        shown = (f"{n}={getattr(self, n)!r}" for n, f in fields if f.scalar)
        return f"{type(self).__name__}({', '.join(shown)})"


def _python_side(struct: type[Struct]) -> type[_Block]:
    """The Structure with the same layout. Arrays are members `_name`, each with a property."""
    members: list[tuple[str, Any]] = []
    namespace: dict[str, Any] = {"__slots__": (), "_pack_": 1, "struct": struct}
    end = 0
    for field in sorted(struct.fields.values(), key=lambda member: member.offset):
        if field.offset > end:
            members.append((f"_pad_{end}", ctypes.c_uint8 * (field.offset - end)))
        plain = field.scalar or isinstance(field.kind, type)
        members.append((field.name if plain else f"_{field.name}", field.ctype))
        if not plain:
            namespace[field.name] = _array_property(field)
        end = field.offset + field.size
    if struct.size > end:
        members.append((f"_pad_{end}", ctypes.c_uint8 * (struct.size - end)))
    return type(struct.__name__, (_Block,), namespace | {"_fields_": members})


def _array_property(field: Field) -> property:
    get = attrgetter(f"_{field.name}")

    def put(block: Any, value: Any) -> None:
        place = get(block)
        if isinstance(value, bytes | bytearray | memoryview):
            data = bytes(value)
            if len(data) != field.size:
                raise ValueError(f"{field.name} has {field.size} bytes, not {len(data)}")
            ctypes.memmove(place, data, field.size)
        else:
            values = list(value)
            if len(values) != len(place):
                raise ValueError(f"{field.name} has {len(place)} elements, not {len(values)}")
            place[:] = values

    return property(get, put)


class Struct:
    """A block of memory with named members, 64-byte aligned, zero at first.

    Python:  `c = Ctx(); c.width = 3; c.address; c.colour[5]` (arrays are ctypes arrays).
    Kernels: `s = Ctx.at(p); s.width; s.width = v; s.field_ptr("colour")`.
    Layout:  members in order, each at its natural alignment (vectors up to 64), as in C; a member
    that is a Struct is declared with `nested`.
    """

    fields: ClassVar[dict[str, Field]] = {}
    python: ClassVar[type[Self]] = cast("Any", _Block)
    """The type of what calling the Struct returns."""
    storage: ClassVar[Any] = ctypes.c_char * ALIGNMENT
    """The type of the bytes after a block, which is aligned in them."""
    size: ClassVar[int] = 0
    align: ClassVar[int] = 1

    def __init_subclass__(cls, *, align: int = 1) -> None:
        """align: what its place in another Struct is a multiple of at least."""
        fields = dict(cls.fields)
        end = max((f.offset + f.size for f in fields.values()), default=0)
        align = max(align, cls.align)
        for name, kind in list(vars(cls).items()):
            is_struct = isinstance(kind, type) and issubclass(kind, Struct)
            if not isinstance(kind, Type | Array) and not is_struct:
                continue
            if name in _RESERVED:
                raise TypeError(f"a Struct member cannot be called {name!r}")
            if name in fields:
                raise TypeError(f"{cls.__name__} has a second member called {name!r}")
            size, own = measure(kind)
            field = Field(name, kind, -(-end // own) * own)
            fields[name] = field
            setattr(cls, name, field)
            end, align = field.offset + size, max(align, own)
        cls.fields, cls.align = fields, align
        cls.size = -(-end // align) * align
        cls.python = cast("Any", _python_side(cls))
        cls.storage = ctypes.c_char * (cls.size + ALIGNMENT)

    def __new__(cls, **values: Any) -> Self:
        """A block of its own."""
        buffer = cls.storage()
        block: Any = cls.python.from_buffer(buffer, -ctypes.addressof(buffer) % ALIGNMENT)
        for name, value in values.items():
            if name not in cls.fields:
                raise AttributeError(f"{cls.__name__} has no member {name!r}")
            setattr(block, name, value)
        return cast("Self", block)

    if TYPE_CHECKING:  # a `_Block` and a `StructRef` are of the declared class to a type checker
        pointer: Value

        @property
        def address(self) -> int: ...
        def field_ptr(self, name: str) -> Value: ...
        def __buffer__(self, flags: int, /) -> memoryview: ...
        @classmethod
        def from_buffer(cls, source: Any, offset: int = 0) -> Self: ...
        @classmethod
        def from_address(cls, address: int) -> Self: ...

    @classmethod
    def offset(cls, name: str) -> int:
        """Byte offset of a member."""
        return cls.fields[name].offset

    @classmethod
    def at(cls, p: Value, align: int = 64) -> Self:
        """The Struct at a staged address, which is a multiple of min(align, natural alignment)."""
        if not tracing():
            raise RuntimeError(f"{cls.__name__}.at() is for kernels")
        return cast("Self", StructRef(cls, coerce(p, ptr), align))


class StructRef:
    """A Struct in memory as a kernel sees it: members load and store."""

    __slots__ = ("_align", "_struct", "pointer")

    _align: int
    _struct: type[Struct]
    pointer: Value

    def __init__(self, struct: type[Struct], pointer: Value, align: int) -> None:
        object.__setattr__(self, "_struct", struct)
        object.__setattr__(self, "pointer", pointer)
        object.__setattr__(self, "_align", align)

    def _field(self, name: str) -> Field:
        field = self._struct.fields.get(name)
        if field is None:
            raise AttributeError(f"{self._struct.__name__} has no member {name!r}")
        return field

    def field_ptr(self, name: str) -> Value:
        """The address of a member."""
        return self.pointer + self._field(name).offset

    def __getattr__(self, name: str) -> Any:
        """Loads a member; arrays give their address, nested Structs a reference."""
        if name.startswith("__"):
            raise AttributeError(name)
        field = self._field(name)
        place = self.pointer + field.offset
        if isinstance(field.kind, Type):
            return load(field.kind, place, min(field.align, self._align))
        if isinstance(field.kind, Array):
            return place
        return StructRef(field.kind, place, self._align)

    def __setattr__(self, name: str, value: Any) -> None:
        field = self._field(name)
        if not isinstance(field.kind, Type):
            raise staged_error(f"{name} is not a scalar or vector; store to field_ptr({name!r})")
        new = coerce(value, field.kind)
        store(self.pointer + field.offset, new, min(field.align, self._align))

    def __repr__(self) -> str:
        return f"<{self._struct.__name__} at {self.pointer!r}>"

    # how variables that hold a reference merge in staged control flow
    def __staged_parts__(self) -> Any:
        return (self.pointer,)

    def __staged_merge__(self, parts: Any) -> StructRef:
        return StructRef(self._struct, parts[0], self._align)
