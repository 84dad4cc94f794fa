"""The types of staged values: integers (signless), floats, pointers and short vectors of them."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

__all__ = ["Type", "f32", "f32x16", "f64", "i1", "i8", "i8x16", "i16", "i16x16", "i32", "i32x16",
           "i64", "i64x16", "mask16", "ptr", "vec"]  # fmt: skip


class Type:
    """One LLVM type. Types are interned: compare them with `is` or `==`.

    `text` is the LLVM spelling, `name` the one shown to people (`i32x16`), `bits` the width of one
    element, `lanes` the number of elements (0 for a scalar), `elem` the element type.
    """

    __slots__ = ("bits", "elem", "is_float", "is_int", "is_ptr", "lanes", "name", "text")

    def __init__(self, name: str, text: str, bits: int, elem: Type | None, lanes: int) -> None:
        self.name = name
        self.text = text
        self.bits = bits
        self.lanes = lanes
        self.elem: Type = elem or self
        self.is_float: bool = elem.is_float if elem else name[0] == "f"
        self.is_ptr: bool = elem.is_ptr if elem else name == "ptr"
        self.is_int: bool = not (self.is_float or self.is_ptr)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return (vec, (self.elem, self.lanes)) if self.lanes else (_scalar, (self.name,))

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return max(1, (self.bits * (self.lanes or 1) + 7) // 8)

    def like(self, other: Type) -> Type:
        """This type's element with the lanes of `other`."""
        return vec(self.elem, other.lanes) if other.lanes else self.elem


i1 = Type("i1", "i1", 1, None, 0)
i8 = Type("i8", "i8", 8, None, 0)
i16 = Type("i16", "i16", 16, None, 0)
i32 = Type("i32", "i32", 32, None, 0)
i64 = Type("i64", "i64", 64, None, 0)
f32 = Type("f32", "float", 32, None, 0)
f64 = Type("f64", "double", 64, None, 0)
ptr = Type("ptr", "ptr", 64, None, 0)

_SCALARS = {t.name: t for t in (i1, i8, i16, i32, i64, f32, f64, ptr)}


def _scalar(name: str) -> Type:
    return _SCALARS[name]


@cache
def vec(elem: Type, n: int) -> Type:
    """The vector type of `n` lanes of the scalar type `elem`."""
    if elem.lanes or n < 1:
        raise TypeError(f"vec() wants a scalar type and a positive count, not {elem}, {n}")
    return Type(f"{elem.name}x{n}", f"<{n} x {elem.text}>", elem.bits, elem, n)


i32x16 = vec(i32, 16)
f32x16 = vec(f32, 16)
i16x16 = vec(i16, 16)
i8x16 = vec(i8, 16)
i64x16 = vec(i64, 16)
mask16 = vec(i1, 16)


def number_to_bits(type_: Type, number: Any) -> int:
    """The raw bits of one element of `type_` that holds the Python `number`; integers wrap."""
    elem = type_.elem
    if elem.is_float:
        value = float(number)
        if elem is f64:
            return int.from_bytes(struct.pack("<d", value), "little")
        try:
            return int.from_bytes(struct.pack("<f", value), "little")
        except OverflowError:  # beyond the largest float: infinity
            return 0x7F800000 if value > 0 else 0xFF800000
    index = getattr(number, "__index__", None)
    if index is None:
        raise TypeError(f"{number!r} is not a {elem.name} constant")
    return int(index()) & ((1 << elem.bits) - 1)


def bits_to_number(type_: Type, bits: int) -> int | float | bool:
    """The Python number of raw element bits: signed integers, floats, bool for i1."""
    elem = type_.elem
    if elem is f32:
        return float(struct.unpack("<f", bits.to_bytes(4, "little"))[0])
    if elem is f64:
        return float(struct.unpack("<d", bits.to_bytes(8, "little"))[0])
    if elem is i1:
        return bool(bits)
    return bits - (1 << elem.bits) if elem.is_int and bits >> (elem.bits - 1) else bits


def literal(elem: Type, bits: int) -> str:
    """The LLVM spelling of one constant element (NaNs keep their payload)."""
    if elem is i1:
        return "true" if bits else "false"
    if elem.is_int:
        return str(bits_to_number(elem, bits))
    if elem.is_ptr:
        return f"inttoptr (i64 {bits} to ptr)" if bits else "null"
    if elem is f64:
        return f"0x{bits:016x}"
    if bits & 0x7F800000 == 0x7F800000 and bits & 0x7FFFFF:
        return f"bitcast (i32 {bits} to float)"
    value = struct.unpack("<f", bits.to_bytes(4, "little"))[0]
    return f"0x{int.from_bytes(struct.pack('<d', value), 'little'):016x}"


def splat_literal(type_: Type, bits: int) -> str:
    """The LLVM spelling of a constant with every lane equal."""
    elem = type_.elem
    if not type_.lanes:
        return literal(elem, bits)
    if not bits:
        return "zeroinitializer"
    one = literal(elem, bits)
    if one.startswith("bitcast"):
        return "<" + ", ".join([f"{elem.text} {one}"] * type_.lanes) + ">"
    return f"splat ({elem.text} {one})"
