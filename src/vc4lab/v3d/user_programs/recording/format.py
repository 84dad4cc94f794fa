"""How a user program's way is recorded: words of 32 bits, the same from both engines.

Where execution goes is known from the program but for its branches, and what it accesses but for
the addresses. So the record has an entry for each branch executed and for each access whose address
or shape the instruction itself does not say: a header and its words, in the order of execution::

    header = index of the instruction << 8 | Kind << 4 | TMU

Uniform reads have none: their addresses follow from SRQUA and `UNIFORMS`.
"""

from __future__ import annotations

from enum import IntEnum


class Kind(IntEnum):
    """Kinds of entries, and what their words are."""

    STRAIGHT = 0
    """A branch that was not taken."""
    TAKEN = 1
    """A branch that was taken: the address it goes to."""
    LOOKUP = 2
    """Memory is looked up by a TMU: the address of each lane."""
    TEXTURE = 3
    """A texture is sampled by a TMU: its first parameter, how many lines of memory each quad's
    texels lie in, all quads together, and these lines as in `memory/native.py`."""
    UNIFORMS = 4
    """The uniforms address is written: where the next uniform lies."""
    LOAD = 5
    """A DMA load starts: address, setup, stride register."""
    STORE = 6
    """A DMA store starts: address, setup, stride register."""
    NOSWAP = 7
    """TMU_NOSWAP is written: the word."""
    READ_SETUP = 8
    """A read set-up of the VPM, DMA set-ups included: the word."""


SITE_SHIFT, KIND_SHIFT = 8, 4

ROOM = 1 << 20
"""Bytes of a native QPU's record, after which its turn ends at the next loop."""

MAX_LINES = 128
"""Lines of a sample at most: of 16 pixels, four texels each of two levels."""

RESERVE = 1 << 22
"""Bytes after these, for what a region (`MAX_PLACES` instructions) writes without a loop."""

REFERENCE_WORDS = 1 << 16
"""Words of the interpreter's record after which it is reported."""


def header(site: int, kind: Kind, unit: int = 0) -> int:
    """The first word of an entry."""
    return site << SITE_SHIFT | kind << KIND_SHIFT | unit
