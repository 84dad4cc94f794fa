"""A word of 32 bits as people read it: hex, integer, float, two halves, four bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Final

LANES: Final = 16


def _float(word: int) -> str:
    (value,) = struct.unpack("<f", struct.pack("<I", word))
    return f"{value:.6g}"


def _halves(word: int) -> str:
    low, high = struct.unpack("<ee", struct.pack("<I", word))
    return f"{low:.4g},{high:.4g}"


def _bytes(word: int) -> str:
    return " ".join(f"{word >> shift & 0xFF:02x}" for shift in (0, 8, 16, 24))


FORMATS: Final[dict[str, Callable[[int], str]]] = {
    "hex": lambda word: f"{word:08x}",
    "int": lambda word: str(word - (1 << 32) if word >> 31 else word),
    "uint": str,
    "float": _float,
    "half": _halves,
    "bytes": _bytes,
}
"""Name of a view -> a word in it. Halves and bytes: the lowest one first."""

LETTERS: Final = {"x": "hex", "d": "int", "u": "uint", "f": "float", "h": "half", "b": "bytes"}
"""A letter after a slash, as in gdb's `p/x`, -> the view."""


def word_text(word: int, form: str) -> str:
    """A word in a view of `FORMATS`."""
    return FORMATS[form](int(word) & 0xFFFFFFFF)


WIDTH: Final = 100
"""Columns of a line, if nothing else is said."""


def per_row(width: int, columns: int) -> int:
    """How many words of a width go in a row of so many columns: 16, 8, 4, 2 or 1."""
    return next((count for count in (16, 8, 4, 2) if count * (width + 1) <= columns), 1)


def lane_rows(words: Sequence[int], form: str, columns: int = WIDTH) -> list[str]:
    """The words in rows that fit, in columns, with the number of each row's first lane."""
    shown = [word_text(word, form) for word in words]
    width = max(map(len, shown), default=0)
    count = min(per_row(width, columns - 10), 8)
    return [
        f"[{first:2}] " + " ".join(text.rjust(width) for text in shown[first : first + count])
        for first in range(0, len(shown), count)
    ]


def brief(words: Iterable[int], form: str) -> str:
    """All lanes in one piece of text; one value where all lanes have the same."""
    shown = [word_text(word, form) for word in words]
    if len(shown) == LANES and len(set(shown)) == 1:
        return f"{shown[0]} (all lanes)"
    return " ".join(shown)
