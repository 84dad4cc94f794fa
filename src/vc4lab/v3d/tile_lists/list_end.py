"""Finds the end of a list that stands in the middle of a control list: records 42, 48 and 49."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from vc4lab.bits import signed32
from vc4lab.memory import MEMORY_MASK
from vc4lab.records.codes import VgPrimitive
from vc4lab.simd import NativeFunction, Struct, Value, build, const, i32, kernel, ptr

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory


class ListEnd(Struct):
    """A list's (record 48 or 49) beginning, its format (record 56), and its end."""

    memory = ptr
    start = i32
    format = i32
    end = i32


@lru_cache(maxsize=1)
def _native() -> NativeFunction:
    from vc4lab.v3d.tile_lists import primitive_decoder as pd

    @kernel(args=(ptr,), returns=i32)
    def find_end(pointer: Value) -> Value:
        """0 if the list ends, 2 if it does not, 3 for a format that does not exist."""
        where = ListEnd.at(pointer)
        status = const(i32, pd.MALFORMED)
        for code in pd.FORMATS:
            if where.format == code:
                decoder = pd.Decoder(where.memory, code & 15, code >> 4)
                decoder.open(where.start)
                while decoder.next():
                    pass
                where.end = decoder.address.get()
                status = decoder.status.get()
        return status

    functions = {"find_end": find_end}
    return build("list_end", functions, float_mode="default", key="list_end")["find_end"]


def list_end(memory: GuestMemory, address: int, list_format: int) -> int | None:
    """The address after the list of the record at `address`; None if it has no end."""
    where = ListEnd()
    where.memory = memory.base
    where.start = signed32(address)
    where.format = list_format
    return None if _native()(where.address) else int(where.end) & 0xFFFFFFFF


MAX_INLINE = 1 << 22
"""Vertices a list may have."""

_CHUNK = 1 << 12


def inline_length(memory: GuestMemory, address: int, kind: int) -> int | None:
    """Words of the list at a guest address, end code included; None if it has no end."""
    import numpy as np

    from vc4lab.records.primitives import VG_ENDS, VG_TERMINATOR

    first, step = VG_ENDS[VgPrimitive(kind)] if kind in VG_ENDS else (0, 1)
    for start in range(0, MAX_INLINE, _CHUNK):
        here = address + 4 * start & MEMORY_MASK
        words = np.frombuffer(memory.read(here, 4 * _CHUNK).ljust(4 * _CHUNK, b"\0"), "<u4")
        for found in np.flatnonzero(words == VG_TERMINATOR).tolist():
            number = start + found
            if number >= first and (number - first) % step == 0:
                # a fan that ends with its second vertex has three even so
                return 3 if kind == VgPrimitive.TRIANGLE_FAN and number == 1 else number + 1
    return None
