"""Which pages of code have changed: a sum of each page's words, all compared by one native call.

With four cores Linux asks for all of them hundreds of times while it boots, and a core knows about
a thousand pages.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from vc4lab.memory import MEMORY_MASK
from vc4lab.simd import (
    Struct,
    Value,
    build,
    const,
    i32,
    i32x16,
    i64,
    kernel,
    load,
    ptr,
    splat,
    staged,
    store,
    unroll,
)

PAGE = 4096
LANES, COLUMNS = 16, 4
"""Words in a vector; vectors that are summed beside each other, since a product takes a while."""
STEP = 4 * LANES * COLUMNS
WORD_FACTOR, LANE_FACTOR = 0x1E3779B1, 0x1E3779B97F4A7C15
"""Odd, so that each word counts."""
FIRST_ROOM = 256
LONG = (1 << 64) - 1


class KnownPage(Struct):
    """A page: its virtual and its physical address, and the sum of its words."""

    page = i64
    start = i64
    sum = i64


@staged
def sum_of(place: Value) -> Value:
    """Sum the words of a page at a host address: another sum for any other word, and in another order."""
    columns = [splat(const(i32, 0), LANES) for _column in range(COLUMNS)]
    for at in range(0, PAGE, STEP):
        for column in unroll(COLUMNS):
            words = load(i32x16, place + at + 4 * LANES * column)
            columns[column] = columns[column] * WORD_FACTOR + words
    lanes = columns[0]
    for column in unroll(COLUMNS - 1):
        lanes = lanes * WORD_FACTOR + columns[column + 1]
    total = const(i64, 0)
    for lane in unroll(LANES):
        total = total * LANE_FACTOR + lanes[lane].zext(i64)
    return total


@kernel(args=(ptr, ptr))
def note_page(ram: Value, at: Value) -> None:
    """Sum a page."""
    known = KnownPage.at(at)
    known.sum = sum_of(ram + (known.start & MEMORY_MASK))


@kernel(args=(ptr, ptr, i32, ptr), returns=i32)
def find_changed(ram: Value, pages: Value, count: Value, changed: Value) -> Value:
    """Numbers of the pages whose sum is another one now; returns how many."""
    found = const(i32, 0)
    for number in range(count):
        known = KnownPage.at(pages + number * KnownPage.size)
        if sum_of(ram + (known.start & MEMORY_MASK)) != known.sum:
            store(changed + found * 4, number)
            found = found + 1
    return found


@cache
def _native() -> Any:
    kernels = {"note_page": note_page, "find_changed": find_changed}
    return build("soc_pages", kernels, float_mode="default", key="soc-pages")


class PageSums:
    """The pages that one core has executed, by virtual address.

    Parameters
    ----------
    ram
        Host address of the guest's RAM.
    """

    def __init__(self, ram: int) -> None:
        self._ram = ram
        self._numbers: dict[int, int] = {}
        self._make_room(FIRST_ROOM)

    def _make_room(self, room: int) -> None:
        self._room = room
        kind: Any = KnownPage.python
        self._pages = (kind * room)()
        self._changed = (ctypes.c_int32 * room)()

    def __len__(self) -> int:
        return len(self._numbers)

    def note(self, page: int, start: int) -> None:
        """The page at a virtual address is as it is now; `start`: its physical address."""
        number = self._numbers.setdefault(page, len(self._numbers))
        if number == self._room:
            old = self._pages
            self._make_room(2 * number)
            ctypes.memmove(self._pages, old, ctypes.sizeof(old))
        known = self._pages[number]
        known.page, known.start = ctypes.c_int64(page).value, start
        _native()["note_page"](self._ram, ctypes.addressof(known))

    def take_changed(self) -> list[int]:
        """Virtual addresses of the pages that have changed, which are forgotten."""
        numbers, pages = self._numbers, self._pages
        changed = ctypes.addressof(self._changed)
        count = _native()["find_changed"](self._ram, ctypes.addressof(pages), len(numbers), changed)
        found = self._changed[:count]
        gone = [pages[number].page & LONG for number in found]
        for number, page in zip(reversed(found), reversed(gone), strict=True):
            del numbers[page]
            last = len(numbers)
            if number != last:
                pages[number] = pages[last]
                numbers[pages[number].page & LONG] = number
        return gone

    def clear(self) -> None:
        """Forget all."""
        self._numbers.clear()
