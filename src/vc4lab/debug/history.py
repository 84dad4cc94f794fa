"""Going back: checkpoints, the bytes that stores have overwritten, which QPU had which turn.

A position is a number of turns: a QPU executes an instruction in its turn, or finds that it has to
wait. Turns go round, so a position is reached again by going on from a checkpoint before it.
"""

from __future__ import annotations

import ctypes
from array import array
from bisect import bisect_right
from collections import deque
from typing import Any, NamedTuple

FIRST_INTERVAL = 256
"""Turns from checkpoint to checkpoint, at first."""
MOST_CHECKPOINTS = 128
"""With more, every second one is dropped, and the interval doubles."""
MOST_OVERWRITTEN = 256 << 20
"""Bytes of overwritten memory that are kept; positions before are given up."""
IDLE = 255
"""In place of a QPU's number: it had a turn and waited."""


class Checkpoint(NamedTuple):
    """The state after so many turns. stores: entries of the journal by then; turning: whose turn it
    is; still: turns in a row in which all that had one waited.
    """

    turn: int
    qpus: dict[int, Any]
    shared: Any
    stores: int
    turning: int
    still: int


class Journal:
    """The bytes of guest memory that were overwritten, to put them back."""

    def __init__(self, base: int) -> None:
        self.base = base
        self.dropped = 0
        """Entries that are no longer there."""
        self._entries: deque[tuple[int, bytes]] = deque()
        self._bytes = 0

    @property
    def count(self) -> int:
        """Return the number of all entries since the beginning."""
        return self.dropped + len(self._entries)

    def before_write(self, offset: int, size: int) -> None:
        """Bytes are about to change."""
        self._entries.append((offset, ctypes.string_at(self.base + offset, size)))
        self._bytes += size
        while self._bytes > MOST_OVERWRITTEN:
            self._bytes -= len(self._entries.popleft()[1])
            self.dropped += 1

    def undo(self, count: int) -> None:
        """Memory as it was when there were so many entries."""
        while self.count > count:
            offset, data = self._entries.pop()
            self._bytes -= len(data)
            ctypes.memmove(self.base + offset, data, len(data))


class History:
    """Checkpoints in their order, and who had each turn."""

    def __init__(self) -> None:
        self.checkpoints: list[Checkpoint] = []
        self.interval = FIRST_INTERVAL
        self.turns = array("B")
        """The QPU that executed an instruction in each turn; `IDLE`: it waited."""

    def is_due(self, turn: int) -> bool:
        """Whether a checkpoint is to be kept here."""
        return turn % self.interval == 0 and (not self.checkpoints or self.checkpoints[-1].turn < turn)

    def keep(self, checkpoint: Checkpoint) -> None:
        """Takes one that is due."""
        self.checkpoints.append(checkpoint)
        if len(self.checkpoints) > MOST_CHECKPOINTS:
            self.interval *= 2
            self.checkpoints = [one for one in self.checkpoints if one.turn % self.interval == 0]

    def drop_before(self, stores: int) -> None:
        """Checkpoints from which memory can no longer be put back."""
        if self.checkpoints and self.checkpoints[0].stores < stores:
            self.checkpoints = [one for one in self.checkpoints if one.stores >= stores]

    def drop_after(self, turn: int) -> None:
        """Drop the turns and checkpoints after a turn: they will not come again."""
        self.checkpoints = [one for one in self.checkpoints if one.turn <= turn]
        del self.turns[turn:]

    def before(self, turn: int) -> Checkpoint | None:
        """The last checkpoint at or before a turn."""
        at = bisect_right(self.checkpoints, turn, key=lambda one: one.turn)
        return self.checkpoints[at - 1] if at else None

    def last_of(self, qpu: int, turn: int) -> int | None:
        """The last turn before `turn` in which a QPU executed something."""
        for at in range(min(turn, len(self.turns)) - 1, -1, -1):
            if self.turns[at] == qpu:
                return at
        return None
