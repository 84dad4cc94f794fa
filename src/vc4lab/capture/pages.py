"""Pages of guest memory in a capture: 4 KiB each, kept once for the same bytes.

pages/sums.txt      a check sum of each page, one a line: BLAKE2b of 128 bits in hexadecimal
pages/0.bin …       their bytes, `PACK` pages in each file, the last one shorter
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from vc4lab.capture.errors import CaptureError
from vc4lab.capture.lines import decoded

if TYPE_CHECKING:
    from vc4lab.capture.files import Files

PAGE = 4096
PACK = 256
"""Pages in a file."""
MAX_PAGES = 1 << 18
"""All of guest memory."""
SUMS = "pages/sums.txt"
_SUM = re.compile(r"[0-9a-f]{32}")
_OPEN_PACKS = 16
"""Files that a reader keeps: it goes through them in about the order in which they were written."""


def page_sum(data: bytes | memoryview) -> str:
    """The check sum of bytes, as `pages/sums.txt` and the lines `stored` have it."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def pack_name(number: int) -> str:
    """The file of pages from `PACK * number` on."""
    return f"pages/{number}.bin"


class Pages(Protocol):
    """Pages by their numbers."""

    def __len__(self) -> int: ...

    def page(self, number: int) -> bytes:
        """The bytes of a page. Raises CaptureError."""
        ...


class Full(Exception):  # noqa: N818 - a fact about the capture
    """There is no room for another page."""


class PageKeeper:
    """Keeps pages while something runs: each once, packed as soon as there are enough.

    limit: bytes of all pages together.
    """

    def __init__(self, limit: int) -> None:
        self._most = min(limit // PAGE, MAX_PAGES)
        self._numbers: dict[str, int] = {}
        self._packs: list[bytes] = []
        self._open = bytearray()
        self._unpacked = -1, b""
        """The pack that was read last: readers go through them in order."""

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, data: bytes) -> int:
        """The number of a page with these bytes. Raises Full."""
        key = page_sum(data)
        known = self._numbers.get(key)
        if known is not None:
            return known
        if len(self._numbers) >= self._most:
            raise Full
        number = self._numbers[key] = len(self._numbers)
        self._open += data
        if len(self._open) == PAGE * PACK:
            self._packs.append(zlib.compress(self._open, 1))
            self._open.clear()
        return number

    def page(self, number: int) -> bytes:
        """The bytes of a page."""
        pack, place = divmod(number, PACK)
        if pack == len(self._packs):
            data: bytes | bytearray = self._open
        else:
            if self._unpacked[0] != pack:
                self._unpacked = pack, zlib.decompress(self._packs[pack])
            data = self._unpacked[1]
        return bytes(data[PAGE * place : PAGE * (place + 1)])

    def files(self) -> Iterator[tuple[str, bytes]]:
        """The files of all pages."""
        for number, packed in enumerate(self._packs):
            yield pack_name(number), zlib.decompress(packed)
        if self._open:
            yield pack_name(len(self._packs)), bytes(self._open)
        yield SUMS, "".join(f"{one}\n" for one in self._numbers).encode()


class StoredPages:
    """The pages of an archive or a folder, each checked when it is read."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._packs: OrderedDict[int, bytes] = OrderedDict()
        text = decoded(files.read(SUMS, MAX_PAGES * 34), SUMS) if SUMS in files else ""
        self._sums = text.split()
        for line, one in enumerate(self._sums, 1):
            if _SUM.fullmatch(one) is None:
                raise CaptureError("CAP-006", f"{one[:40]!r} is no check sum", SUMS, line)
        if len(self._sums) > MAX_PAGES:
            raise CaptureError("CAP-002", f"it has more than {MAX_PAGES} pages", SUMS)

    def __len__(self) -> int:
        return len(self._sums)

    def page(self, number: int) -> bytes:
        """The bytes of a page. Raises CaptureError."""
        pack, place = divmod(number, PACK)
        data = self._packs.get(pack)
        name = pack_name(pack)
        if data is None:
            data = self._files.read(name, PAGE * PACK)
            while len(self._packs) >= _OPEN_PACKS:
                self._packs.popitem(last=False)
            self._packs[pack] = data
        found = data[PAGE * place : PAGE * (place + 1)]
        if len(found) != PAGE:
            raise CaptureError("CAP-010", f"page {number} is missing", name)
        if page_sum(found) != self._sums[number]:
            text = f"page {number} has not the check sum of {SUMS}, line {number + 1}"
            raise CaptureError("CAP-010", text, name)
        return found
