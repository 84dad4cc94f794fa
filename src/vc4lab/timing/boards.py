"""The boards of a chip: how fast they are, and milliseconds from clocks.

Boards that are as fast have the same clocks, so a model runs once for each `Speeds.distinct`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from vc4lab.timing.chip import Chip
from vc4lab.timing.result import BoardTime

BOARD = "pi3"
"""The board whose clocks are shown, unless another one is asked for."""


class BoardSpeed(NamedTuple):
    """A board's clock of the V3D in Hz, and bytes a second of its SDRAM, beside what its chip has."""

    clock: float
    memory: float


@dataclass(frozen=True)
class Speeds:
    """How fast each board is."""

    of_board: Mapping[str, BoardSpeed]

    @property
    def distinct(self) -> tuple[BoardSpeed, ...]:
        """The different ones."""
        return tuple(sorted(set(self.of_board.values())))

    def times(self, clocks: Mapping[BoardSpeed, int]) -> tuple[BoardTime, ...]:
        """Every board's time; clocks: by speed."""
        return tuple(
            BoardTime(name, speed.clock, clocks[speed], 1000 * clocks[speed] / speed.clock)
            for name, speed in self.of_board.items()
        )  # fmt: skip


def speeds_of(chip: Chip) -> Speeds:
    """The boards of a chip."""
    found = {}
    for name in chip.boards:
        section = f"boards.{name}"
        found[name] = BoardSpeed(chip.real(section, "clock"), chip.real(section, "memory"))
    return Speeds(found)


def board_of(chip: Chip, board: str = "") -> str:
    """The board that is shown. Raises ValueError for one that the chip is not on."""
    boards = chip.boards
    chosen = board or (BOARD if BOARD in boards else boards[0])
    if chosen not in boards:
        raise ValueError(f"board {chosen[:40]!r}: {chip.name} is on {', '.join(boards)}")
    return chosen
