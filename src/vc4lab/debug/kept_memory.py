"""Keeps ranges of guest memory, to put them back: what lists that run again may overwrite."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from vc4lab.memory import MEMORY_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vc4lab.memory import GuestMemory


class TooLarge(Exception):  # noqa: N818 - no error: there is no answer then
    """More memory would be overwritten than is kept."""


class KeptMemory:
    """Ranges of memory as they were. most: bytes that are kept; None: any number."""

    def __init__(self, memory: GuestMemory, most: int | None = None) -> None:
        self._memory, self._most = memory, most
        self._parts: list[tuple[int, bytes]] = []
        self._bytes = 0

    def take(self, ranges: Iterable[tuple[int, int]]) -> KeptMemory:
        """Keep ranges (address and bytes); the object itself is returned. Raises TooLarge."""
        for address, size in ranges:
            size = min(size, MEMORY_SIZE)
            self._bytes += size
            if self._most is not None and self._bytes > self._most:
                raise TooLarge
            self._parts.append((address, self._memory.read(address, size)))
        return self

    @contextmanager
    def filled(self, byte: int) -> Iterator[None]:
        """Let all that was kept be this byte up to the end of the block."""
        for address, data in self._parts:
            self._memory.write(address, bytes([byte]) * len(data))
        try:
            yield
        finally:
            self.put_back()

    def put_back(self) -> None:
        """Write all of them again, those that were taken first last."""
        for address, data in reversed(self._parts):
            self._memory.write(address, data)
