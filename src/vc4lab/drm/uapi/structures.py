"""C structures of the kernel's interface, declared as text: layout, parsing and bytes.

``Structure("drm_gem_close", "u32 handle, u32 pad")``: fields in order, aligned as a C compiler of a
64-bit machine does. ``u32[2] colour`` is a list, ``char[32] name`` bytes.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

CODES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i32": "i", "i64": "q", "char": "s"}
SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "i32": 4, "i64": 8, "char": 1}

_FIELD = re.compile(r"(\w+)(?:\[(\d+)\])?\s+(\w+)")


class Values:
    """A structure's values as attributes. Made by `Structure`."""

    __slots__ = ()
    structure: Structure

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={_number(getattr(self, name))}" for name in self.structure.names)
        return f"{self.structure.name}({fields})"


class Structure:
    """One C structure."""

    def __init__(self, name: str, fields: str) -> None:
        self.name = name
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
            code += f"{count or ''}{CODES[kind]}"
            place += size * (count or 1)
            counts.append((field, count if count and kind != "char" else 0))
        code += "x" * (-place % widest)
        self.names = list(self.types)
        self._struct = struct.Struct(code)
        self.size = self._struct.size
        self._class: type[Values] = type(name, (Values,), {"__slots__": tuple(self.names), "structure": self})
        self._counts = counts

    @cached_property
    def _fill(self) -> Callable[[tuple[Any, ...]], Any]:
        """Values from what the struct module unpacks.

        Written out for the structure, as `_pack` is, with the first ioctl that needs it: there are
        up to fifty fields, and thousands of ioctls a second.
        """
        lines, place = [], 0
        for name, count in self._counts:
            taken = f"list(v[{place}:{place + count}])" if count else f"v[{place}]"
            lines.append(f" r.{name} = {taken}")
            place += count or 1
        text = "\n".join(["def done(v):", " r = made()", *lines, " return r"])
        fill: Callable[[tuple[Any, ...]], Any] = _written(text, self._class)
        return fill

    @cached_property
    def _pack(self) -> Callable[[Any], bytes]:
        fields = ", ".join(f"{'*' if count else ''}v.{name}" for name, count in self._counts)
        text = f"def done(v):\n return made({fields})"
        pack: Callable[[Any], bytes] = _written(text, self._struct.pack)
        return pack

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
        return self._pack(values)

    def pack_all(self, many: Iterable[Any]) -> bytes:
        """Bytes of an array."""
        return b"".join(self.pack(values) for values in many)


def _written(text: str, made: Any) -> Any:
    """A function from its text. Field names match `_FIELD`, so the text holds nothing else."""
    space: dict[str, Any] = {"made": made}
    exec(text, space)
    return space["done"]


def _number(value: Any) -> str:
    if isinstance(value, int) and not -4096 < value < 4096:
        return hex(value)
    if isinstance(value, bytes):
        return repr(value.split(b"\0")[0])
    return str(value)
