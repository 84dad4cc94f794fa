"""Checks the start of a list before it runs: orders of records that only fail on a board.

Only the first records of the first few lists are read, so that long lists and many frames cost
nothing. Source: hardware reference 3.3, 3.10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.memory import MEMORY_MASK
from vc4lab.records.control import RECORD_SIZES
from vc4lab.records.payload import Compressed, Flow, Primitives, ShaderState
from vc4lab.records.states import PrimitiveListFormat
from vc4lab.records.use import ids_of, records_of

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.memory import GuestMemory

MAX_RECORDS = 512
MAX_LISTS = 64
FORMAT = PrimitiveListFormat.id
SHADERS = frozenset(ids_of(ShaderState))
PRIMITIVES = frozenset(ids_of(Primitives, Compressed))
JUMPS = frozenset(kind.id for kind in records_of() if kind.variable or issubclass(kind, Flow))
"""After these another list or bytes of another kind follow."""


class OrderCheck:
    """Looks at the lists of one V3D as they are started."""

    def __init__(self, memory: GuestMemory, reporter: Reporter) -> None:
        self._memory = memory
        self._reporter = reporter
        self._seen: set[int] = set()

    def list(self, start: int, end: int) -> None:
        """A list is about to run from `start` to `end`."""
        if start in self._seen or len(self._seen) >= MAX_LISTS:
            return
        self._seen.add(start)
        size = min((end - start) & 0xFFFFFFFF, 16 * MAX_RECORDS)
        data = self._memory.view(start & MEMORY_MASK, size)
        at, format_at = 0, -1
        for _ in range(MAX_RECORDS):
            if at >= len(data) or not RECORD_SIZES[data[at]]:
                return
            identity = data[at]
            if identity == FORMAT:
                format_at = at
            elif identity in SHADERS:
                format_at = -1
            elif identity in PRIMITIVES and format_at >= 0:
                self._reporter.report(
                    "CLE-025",
                    "a primitive comes after record 56 with no shader state (64-67) between them",
                    address=start + format_at,
                )
                return
            if identity in JUMPS:
                return
            at += RECORD_SIZES[identity]
