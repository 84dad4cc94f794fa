"""C structures of the kernel's interface, declared as text: layout, parsing and bytes.

``Structure("drm_gem_close", "u32 handle, u32 pad")``: fields in order, aligned as a C compiler of a
64-bit machine does. ``u32[2] colour`` is a list, ``char[32] name`` bytes.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable
from itertools import repeat
from operator import attrgetter
from typing import Any

CODES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i32": "i", "i64": "q", "char": "s"}
SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "i32": 4, "i64": 8, "char": 1}

_FIELD = re.compile(r"(\w+)(?:\[(\d+)\])?\s+(\w+)")


class Values:
    """A structure's values as attributes. Made by `Structure`."""

    __slots__ = ()
    structure: Structure

    def __repr__(self) -> str:
        fields = ", ".join(
            f"{name}={_number(getattr(self, name))}" for name in self.structure.names
        )
        return f"{self.structure.name}({fields})"


class Structure:
    """One C structure."""

    def __init__(self, name: str, fields: str) -> None:
        self.name = name
        self.names: list[str] = []
        self.offsets: dict[str, int] = {}
        self.types: dict[str, str] = {}
        code, place, widest = "<", 0, 1
        counts: list[tuple[str, int]] = []
        for text in fields.split(",") if fields else ():
            match = _FIELD.fullmatch(text.strip())
            if match is None:
                raise ValueError(f"{name}: field {text!r}")
            kind, count, field = match[1], int(match[2] or 0), match[3]
            size = SIZES[kind]
            widest = max(widest, size)
            code += "x" * (-place % size)
            place += -place % size
            self.offsets[field] = place
            self.types[field] = f"{kind}[{count}]" if count else kind
            self.names.append(field)
            code += f"{count or ''}{CODES[kind]}"
            place += size * (count or 1)
            counts.append((field, count if count and kind != "char" else 0))
        code += "x" * (-place % widest)
        self._struct = struct.Struct(code)
        self._arrays = [(number, count) for number, (_, count) in enumerate(counts) if count]
        names = self.names
        several = len(names) > 1
        self._get: Callable[[Any], Any] = (
            attrgetter(*names) if several else lambda values: [getattr(values, n) for n in names]
        )
        self.size = self._struct.size
        self._class: type[Values] = type(
            name, (Values,), {"__slots__": tuple(self.names), "structure": self}
        )

    def parse(self, data: bytes | bytearray | memoryview) -> Any:
        """The values in exactly `size` bytes."""
        return self._fill(self._struct.unpack(data))

    def parse_all(self, data: bytes) -> list[Any]:
        """The values of an array of this structure."""
        return [self._fill(values) for values in self._struct.iter_unpack(data)]

    def make(self, **values: Any) -> Any:
        """A structure with these fields, the others 0."""
        result = self.parse(bytes(self.size))
        for name, value in values.items():
            setattr(result, name, value)
        return result

    def pack(self, values: Any) -> bytes:
        """Bytes of the values. Raises struct.error for one that does not fit."""
        fields = self._get(values)
        if self._arrays:
            fields = list(fields)
            for place, _ in reversed(self._arrays):
                fields[place : place + 1] = fields[place]
        return self._struct.pack(*fields)

    def pack_all(self, many: Iterable[Any]) -> bytes:
        """Bytes of an array."""
        return b"".join(self.pack(values) for values in many)

    def _fill(self, values: tuple[Any, ...]) -> Values:
        fields: Any = values
        if self._arrays:
            fields = list(values)
            for place, count in self._arrays:
                fields[place : place + count] = [fields[place : place + count]]
        result = self._class()
        for _ in map(setattr, repeat(result), self.names, fields):
            pass
        return result


def _number(value: Any) -> str:
    if isinstance(value, int) and not -4096 < value < 4096:
        return hex(value)
    if isinstance(value, bytes):
        return repr(value.split(b"\0")[0])
    return str(value)
