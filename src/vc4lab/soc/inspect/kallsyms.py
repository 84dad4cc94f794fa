"""The names that a Linux kernel has of its own functions: kallsyms, found in the memory it runs in.

An image as it is installed has no symbol table that a linker made, but one of the kernel's own:

* `token_table`: 256 texts, of which names are made; `token_index`: where each begins;
* `names`: for each symbol the number of its tokens and the tokens, the type's letter first;
  `markers`: where every 256th begins; `num_syms`; some kernels have an order by name, too;
* `offsets` from `relative_base`, in order.

Nothing says where they are. The digits stand for themselves in the table of tokens, one after
another, which is found; the others lie around it. The kernel moves `relative_base` when it starts
at another address (KASLR), so names are right then, too.
Source: Linux, scripts/kallsyms.c (the order changed in 6.4) and kernel/kallsyms.c.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

TOKENS = 256
PER_MARKER = 256
SHORTEST, LONGEST_AVERAGE = 2, 100
"""Bytes of a packed name, at least, and on average over those from one marker to the next."""
DIGITS = b"".join(b"%d\0" % digit for digit in range(10))
FIRST_DIGIT = ord("0")
LONGEST_TOKEN, LONGEST_NAME, LONG = 64, 512, 0x80
"""LONG: of a name's length; the next byte has its upper bits then (since 6.1)."""
MAX_SYMBOLS = 1_000_000
MAX_NAMES = 32 << 20
FARTHEST = 1 << 20
"""A symbol names so many bytes after it, if no other begins there."""


class BadKallsyms(ValueError):  # noqa: N818 - there are no names then
    """The bytes that were found are no table of symbols."""


class Kallsyms:
    """Names by address and addresses by name.

    Parameters
    ----------
    image
        The kernel in memory.
    wide
        Whether it is one of 64 bits.

    Raises
    ------
    BadKallsyms
        The image has no such table.
    """

    def __init__(self, image: bytes, *, wide: bool) -> None:
        self._image = image
        self._unit = 8 if wide else 4
        self._tokens, table, index_end = self._find_tokens()
        markers_at, self._markers = self._find_markers(table)
        count, self._names = self._find_names(markers_at)
        offsets, self.base = self._find_offsets(count, index_end)
        # Of the image, 100 MB, only the names are needed from here on; views would hold it.
        self.offsets, self._markers = offsets.copy(), self._markers.copy()
        self._image, self._names = self._image[self._names : markers_at], 0
        self._known: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.offsets)

    def name(self, address: int) -> str | None:
        """ "schedule+0x14" for an address, None if no symbol covers it."""
        distance = address - self.base
        if not 0 <= distance <= int(self.offsets[-1]) + FARTHEST:
            return None
        last = int(np.searchsorted(self.offsets, distance, "right")) - 1
        if last < 0:
            return None
        begin = int(self.offsets[last])
        first = int(np.searchsorted(self.offsets, begin, "left"))
        if distance - begin >= FARTHEST:
            return None
        return self._text(first) + (f"+0x{distance - begin:x}" if distance > begin else "")

    def address(self, name: str) -> int | None:
        """The address of the first symbol with this name."""
        for number, text in enumerate(self._texts(self._names, len(self))):
            if text == name:
                return self.base + int(self.offsets[number])
        return None

    # -- finding them ------------------------------------------------------------------------------

    def _align(self, at: int) -> int:
        return at + -at % self._unit

    def _find_tokens(self) -> tuple[list[bytes], int, int]:
        """The texts, where they begin, and the end of what follows them."""
        image = self._image
        at = image.find(DIGITS)
        while at >= 0:
            start = at
            for _token in range(FIRST_DIGIT):
                low = max(start - LONGEST_TOKEN, 0)
                start = max(image.rfind(b"\0", low, max(start - 1, 0)) + 1, low)
            # The first one may seem to begin before the table: what is there need not end in 0.
            for place in range(self._align(start), start + 2 * LONGEST_TOKEN, 4):
                found = self._tokens_at(place)
                if found is not None:
                    return found
            at = image.find(DIGITS, at + 1)
        raise BadKallsyms("there is no table of tokens")

    def _tokens_at(self, start: int) -> tuple[list[bytes], int, int] | None:
        tokens, index, at = [], [], start
        for _token in range(TOKENS):
            end = self._image.find(b"\0", at, at + LONGEST_TOKEN)
            if end < 0:
                return None
            index.append(at - start)
            tokens.append(self._image[at:end])
            at = end + 1
        place = self._align(at)
        packed = struct.pack(f"<{TOKENS}H", *index)
        if start % self._unit or self._image[place : place + len(packed)] != packed:
            return None
        return tokens, start, place + len(packed)

    def _find_markers(self, end: int) -> tuple[int, np.ndarray]:
        """Find the markers and their place: the longest row of words that rise as names do."""
        low = max(end - MAX_NAMES, 0) & -4
        words = np.frombuffer(self._image, "<u4", (end - low) // 4, low).astype(np.int64)
        steps = np.diff(words)
        rises = (steps >= PER_MARKER * SHORTEST) & (steps <= PER_MARKER * LONGEST_AVERAGE)
        ends = np.flatnonzero(~np.concatenate([[False], rises, [False]]))
        firsts = ends[:-1]  # a row is what is between two steps that do not fit
        if not len(firsts):
            raise BadKallsyms("there are no markers")
        row = int(np.argmax(np.diff(ends)))
        first, last = int(firsts[row]), int(ends[row + 1])
        if words[first] or last - first < 2:
            raise BadKallsyms("there are no markers")
        return low + 4 * first, words[first:last]

    def _find_names(self, end: int) -> tuple[int, int]:
        """How many names there are, and where they begin."""
        groups = len(self._markers)
        image, unit = self._image, self._unit
        low = max(end - MAX_NAMES, 0)
        low += -low % unit
        kind = "<u8" if unit == 8 else "<u4"
        words = np.frombuffer(image, kind, (end - low) // unit, low)
        fits = (words > (groups - 1) * PER_MARKER) & (words <= groups * PER_MARKER)
        for position in np.flatnonzero(fits)[::-1]:
            start = low + (int(position) + 1) * unit
            if self._markers_fit(start, groups, end):
                return int(words[position]), start
        raise BadKallsyms("there are no names")

    def _markers_fit(self, start: int, groups: int, end: int) -> bool:
        """Whether names that begin here are where the markers say; a few of the groups are read."""
        if start + int(self._markers[groups - 1]) >= end:
            return False
        for group in {0, groups // 2, max(groups - 2, 0)} - {groups - 1}:
            at = start + int(self._markers[group])
            for _symbol in range(PER_MARKER):
                length, at = self._length(at)
                at += length
            if at != start + int(self._markers[group + 1]):
                return False
        return True

    def _find_offsets(self, count: int, index_end: int) -> tuple[np.ndarray, int]:
        """Before 6.4 they come first, since then last."""
        unit, size = self._unit, 4 * count
        before = self._names - 2 * unit  # the base; then the number of names
        after = self._align(index_end)
        for start, place in ((before - self._align(size), before), (after, self._align(after + size))):
            if start < 0 or place + unit > len(self._image):
                continue
            offsets = np.frombuffer(self._image, "<u4", count, start)
            base = int.from_bytes(self._image[place : place + unit], "little")
            rising = count > 1 and bool((offsets[1:] >= offsets[:-1]).all())
            if rising and offsets[-1] and base >> (8 * unit - 1):
                return offsets, base
        raise BadKallsyms("there are no addresses")

    # -- names -------------------------------------------------------------------------------------

    def _length(self, at: int) -> tuple[int, int]:
        """How many tokens a name has, and where they begin."""
        if at + 1 >= len(self._image):
            return 0, at
        length = self._image[at]
        if length & LONG:
            return length & LONG - 1 | self._image[at + 1] << 7, at + 2
        return length, at + 1

    def _texts(self, at: int, count: int) -> Iterator[str]:
        for _symbol in range(count):
            length, at = self._length(at)
            raw = b"".join([self._tokens[token] for token in self._image[at : at + length]])
            yield raw[1 : LONGEST_NAME + 1].decode("ascii", "replace")
            at += length

    def _text(self, number: int) -> str:
        known = self._known.get(number)
        if known is None:
            start = self._names + int(self._markers[number // PER_MARKER])
            known = self._known[number] = list(self._texts(start, number % PER_MARKER + 1))[-1]
        return known
