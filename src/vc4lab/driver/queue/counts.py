"""How far a run has come."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class FrameCounts:
    """Frames and draws.

    Attributes
    ----------
    frame
        The frame that is being drawn, from 1 on. A frame ends when a window's pixels are read.
    draw_of_frame
        The last draw of it, from 1 on.
    draws, left_out, jobs
        Of the whole run: draws, those that could not be drawn, jobs of the V3D.
    """

    frame: int = 1
    draw_of_frame: int = 0
    draws: int = 0
    left_out: int = 0
    jobs: int = 0

    def end_frame(self) -> None:
        """The frame is shown."""
        self.frame += 1
        self.draw_of_frame = 0

    def begin(self, frame: int) -> None:
        """This frame comes next."""
        self.frame = frame
        self.draw_of_frame = 0
