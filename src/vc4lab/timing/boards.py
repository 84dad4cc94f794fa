"""The boards of a chip: how fast their memory is for the V3D, and milliseconds from clocks.

Boards whose memory moves as many bytes in a clock of the V3D have the same clocks, so a model runs
once for each `Speeds.distinct`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vc4lab.timing.chip import Chip
from vc4lab.timing.result import BoardTime

BOARD = "pi3"
"""The board whose clocks are shown, unless another one is asked for."""


@dataclass(frozen=True)
class Speeds:
    """Of each board the bytes that its memory moves in a clock, as far as the V3D takes them."""

    of_board: Mapping[str, float]
    hertz: Mapping[str, float]

    @property
    def distinct(self) -> tuple[float, ...]:
        """The different ones."""
        return tuple(sorted(set(self.of_board.values())))

    def times(self, clocks: Mapping[float, int]) -> tuple[BoardTime, ...]:
        """Every board's time; clocks: by speed."""
        return tuple(
            BoardTime(name, hertz, clocks[self.of_board[name]],
                      1000 * clocks[self.of_board[name]] / hertz)
            for name, hertz in self.hertz.items()
        )  # fmt: skip


def speeds_of(chip: Chip) -> Speeds:
    """The boards of a chip."""
    moved, hertz = {}, {}
    most = chip.real("sdram", "bytes_per_clock")
    for name in chip.boards:
        hertz[name] = chip.real(f"boards.{name}", "clock")
        moved[name] = min(chip.real(f"boards.{name}", "memory") / hertz[name], most)
    return Speeds(moved, hertz)


def board_of(chip: Chip, board: str = "") -> str:
    """The board that is shown. Raises ValueError for one that the chip is not on."""
    boards = chip.boards
    chosen = board or (BOARD if BOARD in boards else boards[0])
    if chosen not in boards:
        raise ValueError(f"board {chosen[:40]!r}: {chip.name} is on {', '.join(boards)}")
    return chosen
