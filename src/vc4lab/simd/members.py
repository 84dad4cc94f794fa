"""Declares the members of a Struct (types, Arrays, other Structs), and says what they are.

A type checker sees a member as what it is in kernels and in Python at once: `width = i32` is a
`Value` and an int. That one class is both is only said to the type checker; there is no such class
when the program runs.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from vc4lab.simd import types
from vc4lab.simd.types import Type

E = TypeVar("E")
S = TypeVar("S")

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vc4lab.simd.value import Value

    M = TypeVar("M")

    class Whole(Value, int):  # type: ignore[misc]
        """An integer or an address."""

    class Real(Value, float):  # type: ignore[misc]
        """A float."""

    class Elements(Value, Generic[E]):
        """An Array: its address in kernels, a ctypes array in Python."""

        def __getitem__(self, index: Any) -> E: ...  # type: ignore[override]
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __len__(self) -> int: ...
        def __iter__(self) -> Iterator[E]: ...
        def __buffer__(self, flags: int, /) -> memoryview: ...

    class MemberType(Type, Generic[M, E]):
        """A type that declares a member: an `M`, set to a `Value`, in Python to an `E`."""

        @overload
        def __get__(self, instance: None, owner: type) -> Field: ...
        @overload
        def __get__(self, instance: object, owner: type) -> M: ...
        def __get__(self, instance: object, owner: type) -> Any: ...
        def __set__(self, instance: object, value: Value | E) -> None: ...

    class Nested(Generic[S]):
        """Stands for a Struct in another one, as `nested` declares it."""

        @overload
        def __get__(self, instance: None, owner: type) -> Field: ...
        @overload
        def __get__(self, instance: object, owner: type) -> S: ...
        def __get__(self, instance: object, owner: type) -> Any: ...


def _member(kind: Type) -> Any:
    return kind


i1: MemberType[Whole, int] = _member(types.i1)
i8: MemberType[Whole, int] = _member(types.i8)
i16: MemberType[Whole, int] = _member(types.i16)
i32: MemberType[Whole, int] = _member(types.i32)
i64: MemberType[Whole, int] = _member(types.i64)
f32: MemberType[Real, float] = _member(types.f32)
f64: MemberType[Real, float] = _member(types.f64)
ptr: MemberType[Whole, int] = _member(types.ptr)
i8x16: MemberType[Value, Iterable[int]] = _member(types.i8x16)
i16x16: MemberType[Value, Iterable[int]] = _member(types.i16x16)
i32x16: MemberType[Value, Iterable[int]] = _member(types.i32x16)
i64x16: MemberType[Value, Iterable[int]] = _member(types.i64x16)
f32x16: MemberType[Value, Iterable[float]] = _member(types.f32x16)

CTYPES: dict[Type, Any] = {
    i1: ctypes.c_bool,
    i8: ctypes.c_int8,
    i16: ctypes.c_int16,
    i32: ctypes.c_int32,
    i64: ctypes.c_int64,
    f32: ctypes.c_float,
    f64: ctypes.c_double,
    ptr: ctypes.c_uint64,
}


class Array(Generic[E]):
    """A field of `count` elements: scalars, vectors or Structs."""

    @overload
    def __init__(self: Array[E], elem: MemberType[Any, E], count: int) -> None: ...
    @overload
    def __init__(self: Array[S], elem: type[S], count: int) -> None: ...
    @overload
    def __init__(self: Array[Any], elem: Array[Any] | Type, count: int) -> None: ...
    def __init__(self, elem: Any, count: int) -> None:
        self.elem = elem
        self.count = count

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type) -> Field: ...
        @overload
        def __get__(self, instance: object, owner: type) -> Elements[E]: ...
        def __get__(self, instance: object, owner: type) -> Any: ...
        def __set__(self, instance: object, value: bytes | bytearray | memoryview | Iterable[E]) -> None: ...


def nested(struct: type[S]) -> Nested[S]:
    """Declares a member that is a Struct: in kernels a reference to it, in Python a view."""
    return cast("Nested[S]", struct)


def measure(kind: Any) -> tuple[int, int]:
    """Size and alignment in bytes of a field type."""
    if isinstance(kind, Array):
        size, align = measure(kind.elem)
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
        return CTYPES[kind.elem] * kind.lanes if kind.lanes else CTYPES[kind]
    return kind.python


class Field:
    """One member: its type and where it is."""

    def __init__(self, name: str, kind: Any, offset: int) -> None:
        self.name = name
        self.kind = kind
        self.offset = offset
        self.size, self.align = measure(kind)
        self.ctype = _ctype(kind)
        self.scalar = isinstance(kind, Type) and not kind.lanes
