"""Struct: one declaration of a memory block that Python fills and kernels read."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, ClassVar

from vc4lab.simd.memory import load, store
from vc4lab.simd.trace import staged_error, tracing
from vc4lab.simd.types import Type, f32, f64, i1, i8, i16, i32, i64, ptr
from vc4lab.simd.value import Value, coerce

_CTYPES: dict[Type, Any] = {
    i1: ctypes.c_bool,
    i8: ctypes.c_int8,
    i16: ctypes.c_int16,
    i32: ctypes.c_int32,
    i64: ctypes.c_int64,
    f32: ctypes.c_float,
    f64: ctypes.c_double,
    ptr: ctypes.c_uint64,
}
_RESERVED = ("size", "align", "address", "at", "offset", "field_ptr", "fields", "buffer")


class Array:
    """A field of `count` elements: scalars, vectors or Structs."""

    def __init__(self, elem: Any, count: int) -> None:
        self.elem = elem
        self.count = count

    if TYPE_CHECKING:

        def __get__(self, instance: object, owner: object) -> Any: ...
        def __set__(self, instance: object, value: Any) -> None: ...


def _measure(kind: Any) -> tuple[int, int]:
    """Size and alignment in bytes of a field type."""
    if isinstance(kind, Array):
        size, align = _measure(kind.elem)
        return size * kind.count, align
    if isinstance(kind, Type):
        if kind.lanes and kind.elem is i1:
            raise TypeError("a mask has no memory layout; store mask_bits()")
        return kind.size, min(64, 1 << (kind.size - 1).bit_length())
    return kind.size, kind.align


def _ctype(kind: Any) -> Any:
    if isinstance(kind, Array):
        return _ctype(kind.elem) * kind.count
    if isinstance(kind, Type):
        return _CTYPES[kind.elem] * kind.lanes if kind.lanes else _CTYPES[kind]
    return ctypes.c_uint8 * kind.size


class Field:
    """One member: where it is, and Python's way to read and write it."""

    def __init__(self, name: str, kind: Any, offset: int) -> None:
        self.name = name
        self.kind = kind
        self.offset = offset
        self.size, self.align = _measure(kind)
        self.ctype = _ctype(kind)
        self.scalar = isinstance(kind, Type) and not kind.lanes

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        if isinstance(self.kind, type):  # a nested Struct: a view that keeps the outer alive
            kind: Any = self.kind
            return kind._view(instance, instance.address + self.offset)
        if self.scalar:
            return getattr(instance._plain, self.name)
        return self.ctype.from_buffer(instance.buffer, instance._start + self.offset)

    def __set__(self, instance: Any, value: Any) -> None:
        if self.scalar:
            setattr(instance._plain, self.name, value)
            return
        place = self.ctype.from_buffer(instance.buffer, instance._start + self.offset)
        if isinstance(value, bytes | bytearray | memoryview):
            data = bytes(value)
            if len(data) != self.size:
                raise ValueError(f"{self.name} has {self.size} bytes, not {len(data)}")
            ctypes.memmove(place, data, self.size)
        elif isinstance(self.kind, type):
            raise TypeError(f"set the members of {self.name} one by one")
        else:
            values = list(value)
            if len(values) != len(place):
                raise ValueError(f"{self.name} has {len(place)} elements, not {len(values)}")
            place[:] = values


def _plain_structure(name: str, fields: dict[str, Field]) -> type[ctypes.Structure]:
    """The scalar members as a ctypes Structure: the quickest way for Python to read and write."""
    members: list[tuple[str, Any]] = []
    end = 0
    for field in sorted(fields.values(), key=lambda member: member.offset):
        if not field.scalar:
            continue
        if field.offset > end:
            members.append((f"_pad_{end}", ctypes.c_uint8 * (field.offset - end)))
        members.append((field.name, field.ctype))
        end = field.offset + field.size
    return type(name, (ctypes.Structure,), {"_fields_": members})


class Struct:
    """A block of memory with named members, 64-byte aligned, zero at first.

    Python:  `c = Ctx(); c.width = 3; c.address; c.colour[5]` (arrays are ctypes arrays).
    Kernels: `s = Ctx.at(p); s.width; s.width = v; s.field_ptr("colour")`.
    Layout:  members in order, each at its natural alignment (vectors up to 64), as in C.
    """

    fields: ClassVar[dict[str, Field]] = {}
    _plain_type: ClassVar[type[ctypes.Structure]] = ctypes.Structure
    size: ClassVar[int] = 0
    align: ClassVar[int] = 1

    def __init_subclass__(cls) -> None:
        fields = dict(cls.fields)
        end = max((f.offset + f.size for f in fields.values()), default=0)
        align = cls.align
        for name, kind in list(vars(cls).items()):
            is_struct = isinstance(kind, type) and issubclass(kind, Struct)
            if not isinstance(kind, Type | Array) and not is_struct:
                continue
            if name in _RESERVED:
                raise TypeError(f"a Struct member cannot be called {name!r}")
            size, own = _measure(kind)
            field = Field(name, kind, -(-end // own) * own)
            fields[name] = field
            setattr(cls, name, field)
            end, align = field.offset + size, max(align, own)
        cls.fields, cls.align = fields, align
        cls.size = -(-end // align) * align
        cls._plain_type = _plain_structure(cls.__name__, fields)

    def __init__(self, **values: Any) -> None:
        self.buffer: Any = ctypes.create_string_buffer(self.size + 64)
        base = ctypes.addressof(self.buffer)
        self._start = -base % 64
        self.address = base + self._start
        self._plain = self._plain_type.from_buffer(self.buffer, self._start)
        for name, value in values.items():
            if name not in self.fields:
                raise AttributeError(f"{type(self).__name__} has no member {name!r}")
            setattr(self, name, value)

    @classmethod
    def _view(cls, outer: Any, address: int) -> Any:
        view = cls.__new__(cls)
        object.__setattr__(view, "buffer", outer.buffer)
        object.__setattr__(view, "address", address)
        start = outer._start + address - outer.address
        object.__setattr__(view, "_start", start)
        object.__setattr__(view, "_plain", cls._plain_type.from_buffer(outer.buffer, start))
        return view

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.fields and name not in ("buffer", "_start", "address", "_plain"):
            raise AttributeError(f"{type(self).__name__} has no member {name!r}")
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        shown = (f"{n}={getattr(self, n)!r}" for n, f in self.fields.items() if f.scalar)
        return f"{type(self).__name__}({', '.join(shown)})"

    def element(self, name: str, index: int) -> Any:
        """A Struct element of an Array member, as a view."""
        field = self.fields[name]
        if not (isinstance(field.kind, Array) and isinstance(field.kind.elem, type)):
            raise TypeError(f"{name} is not an array of Structs")
        if not 0 <= index < field.kind.count:
            raise IndexError(f"{name}[{index}]")
        inner: Any = field.kind.elem
        return inner._view(self, self.address + field.offset + index * inner.size)

    @classmethod
    def offset(cls, name: str) -> int:
        """Byte offset of a member."""
        return cls.fields[name].offset

    @classmethod
    def at(cls, p: Value, align: int = 64) -> StructRef:
        """The Struct at a staged address, which is a multiple of min(align, natural alignment)."""
        if not tracing():
            raise RuntimeError(f"{cls.__name__}.at() is for kernels")
        return StructRef(cls, coerce(p, ptr), align)


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

    def element(self, name: str, index: Any) -> StructRef:
        """A reference to element `index` of an Array of Structs."""
        field = self._field(name)
        if not (isinstance(field.kind, Array) and isinstance(field.kind.elem, type)):
            raise staged_error(f"{name} is not an array of Structs")
        inner: Any = field.kind.elem
        place = self.pointer + field.offset + index * inner.size
        return StructRef(inner, place, self._align)

    def __repr__(self) -> str:
        return f"<{self._struct.__name__} at {self.pointer!r}>"

    # how variables that hold a reference merge in staged control flow
    def __staged_parts__(self) -> Any:
        return (self.pointer,)

    def __staged_merge__(self, parts: Any) -> StructRef:
        return StructRef(self._struct, parts[0], self._align)
