"""Some registers of one core, read or written by one call of the engine.

The engine's Python binding needs two microseconds for each register; exceptions need a dozen.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

COPROCESSOR_NUMBERS = 7
"""The members of the engine's description of a coprocessor register before its value."""
SLOT, VALUE = 5, 4
"""Size of a description and place of the value, in units of 64 bits."""

Name = int | tuple[int, ...]
"""A register's number, or for a coprocessor register the engine's seven numbers of it."""
Call = Callable[[Any, Any, int], int]


class RegisterBatch:
    """Registers in a fixed order; writing happens in that order.

    Parameters
    ----------
    read, write
        The engine's functions for it: numbers, places of the values, how many.
    coprocessor
        The engine's register number that stands for all registers of coprocessors.
    """

    def __init__(self, read: Call, write: Call, coprocessor: int, names: Sequence[Name]) -> None:
        self._read, self._write = read, write
        size = len(names)
        self._buffer = (ctypes.c_uint64 * (SLOT * size))()
        base = ctypes.addressof(self._buffer)
        self._numbers = (ctypes.c_int * size)()
        self._places = (ctypes.c_void_p * size)()
        for slot, name in enumerate(names):
            at = base + 8 * SLOT * slot
            self._numbers[slot] = name if isinstance(name, int) else coprocessor
            self._places[slot] = at + 8 * VALUE if isinstance(name, int) else at
            if not isinstance(name, int):
                (ctypes.c_uint32 * COPROCESSOR_NUMBERS).from_address(at)[:] = list(name)
        self._size = size
        self._values: Any = memoryview(self._buffer).cast("B").cast("Q")[VALUE::SLOT]

    def read(self) -> list[int]:
        """The registers' values now."""
        if self._read(self._numbers, self._places, self._size):
            raise RuntimeError("the CPU engine does not know a register")
        values: list[int] = self._values.tolist()
        return values

    def write(self, *values: int) -> None:
        """Write all of them, the first one first."""
        for slot, value in enumerate(values):
            self._values[slot] = value
        if self._write(self._numbers, self._places, self._size):
            raise RuntimeError("the CPU engine does not know a register")
