"""Finds the trapped instructions in a page of code.

Words are searched by native code: Linux executes hundreds of pages before its first message. Thumb
code is rare, and searched with the means of Python.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from vc4lab.simd import Value, build, const, i1, i8, i32, kernel, load, ptr, store
from vc4lab.soc.cores.code.traps import A64_TRAPS, ARM_TRAPS, THUMB_EVENTS, Action, Trap

LONGEST = 0x2000
"""Bytes that are searched at once, at most."""
_UNCONDITIONAL = 0xE0000000
"""The upper bits of a Thumb coprocessor instruction, as its two halves stand in order."""

Places = list[tuple[int, Action]]
"""Offsets of trapped instructions."""


def search(raw: bytes, more: tuple[Trap, ...], *, wide: bool) -> Places:
    """Trapped instructions of AArch64 or AArch32 code (which may be Thumb); `more`: others, too.

    Raises ValueError if there are more than `LONGEST` bytes.
    """
    if len(raw) > LONGEST:
        raise ValueError(f"raw: {len(raw)} bytes, not {LONGEST} at most")
    if wide:
        return _matches(raw, more + A64_TRAPS)
    words, thumb = _by_state(more + ARM_TRAPS)
    found = _matches(raw, words) + _thumb_matches(raw, thumb)
    for half, action in THUMB_EVENTS.items():
        found += [(2 * at, action) for at in _halves(raw, half)]
    return found


@cache
def _by_state(traps: tuple[Trap, ...]) -> tuple[tuple[Trap, ...], tuple[Trap, ...]]:
    """Those of ARM code and those of Thumb code; coprocessor instructions are in both."""
    words = tuple(t for t in traps if not t.thumb)
    both = (t for t in words if t.of_coprocessor)
    return words, (*(t for t in traps if t.thumb), *both)


@cache
def _first_bytes(traps: tuple[Trap, ...], top: int) -> bytes:
    """For each value of bits 31:24 whether a trapped instruction can begin with it (0, 1)."""
    ways = [((t.mask >> 24) | (0xF0 if top else 0), (t.match | top) >> 24) for t in traps]
    return bytes(any(value & mask == match for mask, match in ways) for value in range(256))


@kernel(args=(ptr, i32, ptr, ptr, i32, ptr), returns=i32)
def find_words(
    code: Value, words: Value, first_bytes: Value, ways: Value, count: Value, found: Value
) -> Value:
    """Numbers of the words that one of `count` pairs (mask, match) fits; returns how many."""
    places = const(i32, 0)
    for at in range(words):
        word = load(i32, code + at * 4)
        if load(i8, first_bytes + word.shr(24)) != 0:
            fits = const(i1, 0)
            for number in range(count):
                way = ways + number * 8
                fits = fits | ((word & load(i32, way)) == load(i32, way + 4))
            if fits:
                store(found + places * 4, at)
                places = places + 1
    return places


@cache
def _native() -> Any:
    kernels = {"find_words": find_words}
    return build("soc_search", kernels, float_mode="default", key="soc-search")["find_words"]


@cache
def _ways(traps: tuple[Trap, ...]) -> Any:
    numbers = [number for trap in traps for number in (trap.mask, trap.match)]
    return (ctypes.c_uint32 * len(numbers))(*numbers)


_found = (ctypes.c_int32 * (LONGEST // 4))()


def _matches(raw: bytes, traps: tuple[Trap, ...]) -> Places:
    """Places of trapped instructions among words, in order."""
    ways, first = _ways(traps), _first_bytes(traps, 0)
    place = ctypes.addressof(_found)
    count = _native()(raw, len(raw) // 4, first, ctypes.addressof(ways), len(traps), place)
    found: Places = []
    for at in _found[:count]:
        word = int.from_bytes(raw[4 * at : 4 * at + 4], "little")
        found += [(4 * at, t.action) for t in traps if word & t.mask == t.match]
    return found


def _marked(column: bytes, table: bytes) -> Iterator[int]:
    """Places of a column of bytes that the table marks; quick, because hardly any is."""
    return (found.start() for found in re.finditer(b"\1", column.translate(table)))


def _thumb_matches(raw: bytes, traps: tuple[Trap, ...]) -> Places:
    found = []
    for place in _marked(raw[1:-2:2], _first_bytes(traps, _UNCONDITIONAL)):
        first, second = (int.from_bytes(raw[at : at + 2], "little") for at in (2 * place, 2 * place + 2))
        pair = first << 16 | second
        found += [
            (2 * place, t.action) for t in traps if pair & (t.mask | 0xF0000000) == (t.match | _UNCONDITIONAL)
        ]
    return found


def _halves(raw: bytes, half: int) -> Iterator[int]:
    """Numbers of the 16-bit units that hold `half`."""
    places = (found.start() for found in re.finditer(re.escape(half.to_bytes(2, "little")), raw))
    return (place // 2 for place in places if place % 2 == 0)
