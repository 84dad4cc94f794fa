"""Constant buffers as tables: a row for each register, named as in TGSI.

    name,x,y,z,w
    CONST[0],0.5,-1.0,0.0,1.0
    CONST[1],0x00000003,0.0,0.0,0.0

A word is a number (a single) or its bits in hex: integers are written so.
"""

from __future__ import annotations

import struct

from vc4lab.capture.errors import CaptureError
from vc4lab.driver.capture.state_text import parse_float
from vc4lab.driver.queue.text import real_text

HEADER = "name,x,y,z,w"
_SMALLEST = 1 << 23
"""Bits of the smallest normal single: below are integers rather than numbers."""


def word_text(word: int) -> str:
    """The number that a word is as a single, or its bits."""
    magnitude = word & 0x7FFFFFFF
    if word and (magnitude < _SMALLEST or magnitude >= 0x7F800000):
        return f"0x{word:08x}"
    return real_text(struct.unpack("<f", struct.pack("<I", word))[0], single=True)


def parse_word(text: str) -> int:
    """The word of a cell. Raises ValueError, OverflowError."""
    if text[:2].lower() == "0x":
        if len(text) > 10:
            raise ValueError(text)
        return int(text, 16)
    found: int = struct.unpack("<I", struct.pack("<f", parse_float(text)))[0]
    return found


def constants_rows(data: bytes) -> list[list[str]]:
    """Name and four words of each register."""
    words = struct.unpack(f"<{len(data) // 4}I", data[: len(data) & ~3])
    return [
        [f"CONST[{first // 4}]", *(word_text(word) for word in words[first : first + 4])]
        for first in range(0, len(words), 4)
    ]


def constants_csv(data: bytes) -> str:
    """The table of a buffer."""
    return "".join(f"{line}\n" for line in [HEADER, *map(",".join, constants_rows(data))])


def parse_constants(text: str, file: str) -> bytes:
    """The buffer of a table. Raises CaptureError."""
    words: list[int] = []
    lines = text.rstrip().split("\n")
    if lines[0].strip() != HEADER:
        raise CaptureError("CAP-006", f"the first line is not {HEADER}", file, 1)
    for number, line in enumerate(lines[1:], 2):
        cells = [cell.strip() for cell in line.split(",")]
        if cells[0] != f"CONST[{number - 2}]":
            raise CaptureError("CAP-006", f"{cells[0][:40]!r} is not CONST[{number - 2}]", file, number)
        if not 2 <= len(cells) <= 5 or (len(cells) < 5 and number <= len(lines) - 1):
            raise CaptureError("CAP-006", f"{len(cells) - 1} words, but there must be 4", file, number)
        for cell in cells[1:]:
            try:
                words.append(parse_word(cell))
            except (ValueError, OverflowError):
                wrong = f"{cell[:40]!r} is neither a number nor 0x and eight digits"
                raise CaptureError("CAP-006", wrong, file, number) from None
    if len(words) > 1 << 16:
        raise CaptureError("CAP-006", "more than 65536 words", file)
    return struct.pack(f"<{len(words)}I", *words)
