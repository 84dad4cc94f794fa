"""`vc4lab replay`: what recorded jobs take on the chip, and what its performance counters count."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import typer

from vc4lab.cli.exit_codes import failed
from vc4lab.cli.timing_options import frame_lines, timer_of, total_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vc4lab.timing.frame_times import FrameTimer
    from vc4lab.timing.frames.frame import Frame


class JobTimes:
    """Times jobs while they are drawn, and prints what they take when all of them are."""

    def __init__(self, timer: FrameTimer, as_json: bool) -> None:
        self.as_json = as_json
        self._timer = timer
        self._counted: dict[str, Mapping[int, int]] = {}
        self._names: dict[str, str] = {}
        self.stream = timer.stream()

    def take(self, name: str, frames: Sequence[Frame]) -> None:
        """A job was drawn."""
        from vc4lab.timing.frames.frame import named

        for one, frame in named(name, frames):
            self._names[one] = name
            self.stream.put(one, frame)

    def count(self, name: str, values: Mapping[int, int]) -> None:
        """Note what the core counted in a job; the model knows the other counters later."""
        self._counted[name] = values

    def _counters(self) -> dict[str, dict[int, int]]:
        """Return the counters of each job that was counted: the core's, and those that the model knows."""
        found = {name: Counter(values) for name, values in self._counted.items()}
        for one in self.stream.times:
            job = self._names[one.name]
            if job in found:
                found[job].update(one.timing.counters)
        return {name: dict(values) for name, values in found.items()}

    def show(self, summary: dict[str, object], pictures: int | None = None) -> None:
        """Print all of them. pictures: how many these jobs made, if that is known.

        Raises typer.Exit for a chip that cannot move.
        """
        times, error = self.stream.times, self.stream.error
        if self.as_json:
            found = {
                **summary,
                "chip": self._timer.chip.name,
                "board": self._timer.board,
                "frames": [one.to_json() for one in times],
            }
            if self._counted:
                found["counters"] = self._counters()
            typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
        else:
            for name, values in self._counters().items():
                print_counters(name, values)
            for one in times:
                typer.echo("\n".join(frame_lines(self._timer, one)))
            for line in total_lines(times, pictures):
                typer.echo(line)
        if isinstance(error, ValueError):
            raise failed(f"not timed: {error}")
        if error is not None:
            raise error


def job_times(chip: str | None, board: str | None, as_json: bool) -> JobTimes:
    """For a chip and a board. Raises typer.Exit, with a sentence."""
    return JobTimes(timer_of(_frame_timer, chip, board), as_json)


def _frame_timer(chip: str, board: str) -> FrameTimer:
    from vc4lab.timing.frame_times import FrameTimer

    return FrameTimer(chip, board)


def print_counters(name: str, values: Mapping[int, int]) -> None:
    """Print a job's performance counters."""
    from vc4lab.v3d.counters import table

    typer.echo("\n".join([f"{name}: performance counters", *table(values)]))
