"""Holds the results of `vc4lab profile`: each frame's time on every board, modules, draws, hints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from vc4lab.timing.graphics.result import FrameTiming
from vc4lab.timing.profile.timeline import Timeline
from vc4lab.timing.result import BoardTime, QueueUse

SAVES = 1.03
"""Times as fast from which a free module is said to bound a frame: less is noise of the order."""


@dataclass(frozen=True)
class Share:
    """A kind of module, all `count` of them: shares of the frame's clocks, 0 to 1.

    most: the share of the one that is busiest.
    """

    module: str
    count: int
    busy: float
    most: float
    starved: float
    blocked: float


@dataclass(frozen=True)
class QueueKind:
    """A kind of queue, all `count` of them: pieces of all, the most of any, means of them.

    mean: pieces; full: clocks.
    """

    queue: str
    count: int
    pieces: int
    depth: int
    peak: int
    mean: float
    full: float


@dataclass(frozen=True)
class WhatIf:
    """A frame's clocks in a second run of the model, with other figures of one module."""

    module: str
    changes: str
    clocks: int
    speedup: float


@dataclass(frozen=True)
class Hint:
    """A hint in words, with its code of the catalogue.

    draw: row of the frame's draws, -1 for the whole of it. clocks: what the frame would take
    without it, where the model was run again, else None.
    """

    code: str
    message: str
    draw: int = -1
    clocks: int | None = None

    def __str__(self) -> str:
        where = f" draw {self.draw}" if self.draw >= 0 else ""
        return f"{self.code}{where}: {self.message}"


@dataclass(frozen=True)
class FrameProfile:
    """A frame. totals: sums of its tables (`Frame.totals`)."""

    name: str
    width: int
    height: int
    timing: FrameTiming
    boards: tuple[BoardTime, ...]
    shares: tuple[Share, ...]
    totals: Mapping[str, int]
    what_if: tuple[WhatIf, ...] = ()
    hints: tuple[Hint, ...] = ()
    timeline: Timeline | None = None

    @property
    def critical(self) -> str:
        """The module that bounds the frame: the one that would save most if it were free; the
        busiest where none would save much (several bound it together) or where that was not asked.
        """
        best = min(self.what_if, key=lambda one: one.clocks, default=None)
        if best is not None and best.speedup >= SAVES:
            return best.module
        return busiest(self.shares)

    def board(self, name: str) -> BoardTime:
        """Its time on a board."""
        return next(one for one in self.boards if one.board == name)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        table = asdict(self)
        table["critical"] = self.critical
        table["boards"] = [one.to_json() for one in self.boards]
        return table


@dataclass(frozen=True)
class Profile:
    """A run on a chip; `board` is the one that is shown in detail."""

    run: str
    chip: str
    board: str
    hertz: float
    frames: tuple[FrameProfile, ...]
    hints: tuple[Hint, ...] = ()

    def total(self, board: str) -> float:
        """Milliseconds of all frames on a board."""
        return sum(frame.board(board).milliseconds for frame in self.frames)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "run": self.run,
            "chip": self.chip,
            "board": self.board,
            "hertz": self.hertz,
            "hints": [asdict(hint) for hint in self.hints],
            "frames": [frame.to_json() for frame in self.frames],
        }


def busiest(shares: tuple[Share, ...]) -> str:
    """The module with the largest share of clocks at work."""
    return max(shares, key=lambda share: share.busy).module if shares else ""


def shares_of(timing: FrameTiming) -> tuple[Share, ...]:
    """Shares by kind of module, in the order of the chip; those that never worked are left out."""
    kinds: dict[str, list[Any]] = {}
    for use in timing.modules:
        kinds.setdefault(use.module, []).append(use)
    clocks = max(timing.clocks, 1)
    return tuple(
        Share(
            name,
            len(uses),
            _part(sum(use.busy for use in uses), clocks * len(uses)),
            _part(max(use.busy for use in uses), clocks),
            _part(sum(use.starved for use in uses), clocks * len(uses)),
            _part(sum(use.blocked for use in uses), clocks * len(uses)),
        )
        for name, uses in kinds.items()
        if any(use.busy or use.blocked for use in uses)
    )


def queue_kinds(queues: Iterable[QueueUse]) -> list[QueueKind]:
    """Queues by kind, in the order of the chip."""
    kinds: dict[str, list[QueueUse]] = {}
    for use in queues:
        kinds.setdefault(use.queue, []).append(use)
    return [
        QueueKind(
            name,
            len(uses),
            sum(use.pieces for use in uses),
            uses[0].depth,
            max(use.peak for use in uses),
            sum(use.mean for use in uses) / len(uses),
            sum(use.full for use in uses) / len(uses),
        )
        for name, uses in kinds.items()
    ]


def _part(clocks: int, total: int) -> float:
    return min(max(clocks / total, 0.0), 1.0)
