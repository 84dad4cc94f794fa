"""A point of a sweep timed: what the processes do, whatever the run was recorded with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from vc4lab.timing.boards import speeds_of
from vc4lab.timing.frame_times import clocks_of
from vc4lab.timing.sweep.points import Outcome, Point, outcome

if TYPE_CHECKING:
    from vc4lab.timing.frames.frame import Frame

Recorded = Sequence[tuple[str, "Frame"]]
"""The frames of a run with their names."""


def time_frames(point: Point, recorded: Callable[[str], Recorded]) -> Outcome:
    """Times every frame of the point's run on its chip; what goes wrong is in the outcome.

    recorded: the frames of a run, by its path.
    """
    speed = speeds_of(point.chip).of_board[point.board]
    try:
        frames = recorded(point.run)
        clocks = clocks_of(point.chip, speed, [frame for _, frame in frames])
    except (ValueError, OSError) as error:
        return outcome(point, {}, str(error))
    found = {name: taken for (name, _), taken in zip(frames, clocks, strict=True)}
    return outcome(point, found, "" if found else "no frame was drawn")
