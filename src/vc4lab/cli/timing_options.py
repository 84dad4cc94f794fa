"""Commands with `--timing` share this: the options of chips and boards, and lines of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from vc4lab.cli.exit_codes import failed
from vc4lab.cli.groups import Group
from vc4lab.cli.options import Number
from vc4lab.files import why
from vc4lab.ranges import SLOWER

if TYPE_CHECKING:
    from vc4lab.cli.live_timing import LiveTiming
    from vc4lab.timing.frame_times import FrameTime, FrameTimer
    from vc4lab.timing.result import BoardTime

CHIP = "videocore4"


@dataclass(frozen=True)
class TimingOptions(Group):
    """Says how recorded work is timed."""

    timing: Annotated[bool, typer.Option("--timing", help="Say how long the chip takes, and why.")] = False
    chip: Annotated[
        str | None, typer.Option(metavar="FILE", help=f"With --timing: a chip's file; default: {CHIP}.")
    ] = None
    board: Annotated[
        str | None, typer.Option(help="With --timing: the board shown in detail; default: pi3.")
    ] = None
    as_json: Annotated[bool, typer.Option("--json", help="With --timing: one object, for programs.")] = False

    def check(self, others: Sequence[tuple[str, object]] = ()) -> None:
        """Options that mean nothing without `--timing`. Raises typer.Exit, with a sentence."""
        own = ("--chip", self.chip), ("--board", self.board), ("--json", self.as_json)
        only_with_timing(self.timing, (*others, *own))


@dataclass(frozen=True)
class LiveTimingOptions(Group):
    """Says how the frames of a program that runs are timed."""

    timing: Annotated[
        bool, typer.Option("--timing", help="Say how long the chip takes for each frame of the V3D.")
    ] = False
    chip: Annotated[
        str | None, typer.Option(metavar="FILE", help=f"With --timing: a chip's file; default: {CHIP}.")
    ] = None
    timing_board: Annotated[
        str | None,
        typer.Option("--timing-board", help="With --timing: the board to time for.", metavar="BOARD"),
    ] = None
    timing_slower: Annotated[
        float | None,
        typer.Option(
            help="With --timing: make the chip so many times slower, for the simulator to keep pace.",
            parser=Number(SLOWER),
            metavar="TIMES",
        ),
    ] = None

    def live(self, usual: str = "", *, guest_time: bool = False, waits: bool = False) -> LiveTiming | None:
        """The timing of a run, if it is asked for. usual: the board, unless another one is named.

        waits: jobs end when the chip would be done. Raises typer.Exit, with a sentence.
        """
        others = ("--timing-board", self.timing_board), ("--timing-slower", self.timing_slower)
        only_with_timing(self.timing, (("--chip", self.chip), *others))
        if not self.timing:
            return None
        from vc4lab.cli.live_timing import LiveTiming
        from vc4lab.timing.chip import load_chip

        made = timer_of(lambda name, _: load_chip(name), self.chip, self.timing_board)
        usual = usual if usual in made.boards else ""
        factor = (self.timing_slower or 1.0) if waits else None
        return timer_of(
            lambda name, on: LiveTiming(name, on, guest_time, factor), self.chip, self.timing_board or usual
        )


Timer = TypeVar("Timer")


def timer_of(make: Callable[[str, str], Timer], chip: str | None, board: str | None) -> Timer:
    """Make a timer for a chip and a board. Raises typer.Exit, with a sentence."""
    try:
        return make(chip or CHIP, board or "")
    except OSError as error:
        raise failed(f"{chip}: {why(error)}") from None
    except ValueError as error:
        raise failed(str(error)) from None


def only_with_timing(timing: bool, options: Sequence[tuple[str, object]]) -> None:
    """Options that mean nothing without `--timing`. Raises typer.Exit, with a sentence."""
    for option, value in options:
        if value and not timing:
            raise failed(f"{option} goes with --timing")


def board_text(one: BoardTime, frames: bool = True) -> str:
    """A board's time in words."""
    rate = f", {one.rate:.4g} frames a second" if frames else ""
    return f"{one.board} {one.milliseconds:.4g} ms{rate}"


def frame_lines(timer: FrameTimer, one: FrameTime) -> list[str]:
    """A frame's time on every board, and what bounds it."""
    from vc4lab.timing.profile.result import busiest, shares_of

    critical = busiest(shares_of(one.timing))
    bound = f"; busiest: {critical}" if critical else ""
    return [
        f"{one.name}: {one.clocks} clocks ({timer.chip.name} on {timer.board}), binning "
        f"{one.timing.binning}, rendering {one.timing.rendering}{bound}",
        "  " + "; ".join(board_text(board) for board in one.boards),
        *(f"  {note}" for note in one.timing.notes),
    ]


def total_lines(times: Sequence[FrameTime], pictures: int | None = None) -> list[str]:
    """All jobs of a run together. pictures: how many they made, if that is known."""
    if len(times) < 2:
        return []
    count = pictures or len(times)
    what = f"{len(times)} jobs"
    if pictures:
        what = f"{pictures} picture{'s' * (pictures != 1)} in {what}"
    shown = []
    for board in times[0].boards:
        total = sum(one.board(board.board).milliseconds for one in times)
        rate = 1000 * count / max(total, 1e-9)
        shown.append(f"{board.board} {total:.4g} ms, {rate:.4g} a second")
    return [f"{what}: {'; '.join(shown)} (if the GPU bounds the program)"]
