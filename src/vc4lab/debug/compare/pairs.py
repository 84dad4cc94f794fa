"""Frames, jobs and draws that belong together, with what differs between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vc4lab.debug.frame.places import NoSuchPlace

if TYPE_CHECKING:
    from vc4lab.debug.compare.differences import Difference
    from vc4lab.debug.compare.pictures import Pixels
    from vc4lab.debug.frame.capture import CapturedFrame
    from vc4lab.debug.frame.index import FrameDraw, FrameJob


@dataclass
class DrawPair:
    """Two draws that belong together; None: it is in the other frame only."""

    a: FrameDraw | None
    b: FrameDraw | None
    differences: list[Difference] = field(default_factory=list)

    @property
    def is_equal(self) -> bool:
        """Whether both mean the same."""
        return self.a is not None and self.b is not None and not self.differences


@dataclass
class JobPair:
    """Two jobs that belong together.

    Attributes
    ----------
    a, b
        None: it is in the other frame only.
    draws
        Theirs.
    differences
        Besides the draws: lists, what surfaces hold.
    pixels
        In which their pictures differ; None: in none, or there are no pictures.
    """

    a: FrameJob | None
    b: FrameJob | None
    draws: list[DrawPair] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    pixels: Pixels | None = None

    @property
    def is_equal(self) -> bool:
        """Whether both mean the same and draw the same."""
        both = self.a is not None and self.b is not None
        return both and not self.differences and self.pixels is None and all(d.is_equal for d in self.draws)


@dataclass
class FramePair:
    """Two frames that belong together; None: it is in the other capture only.

    Attributes
    ----------
    jobs
        Theirs.
    differences
        Of user programs, and of the memory that they have left.
    """

    a: CapturedFrame | None
    b: CapturedFrame | None
    jobs: list[JobPair] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)

    @property
    def is_equal(self) -> bool:
        """Whether both mean the same and draw the same."""
        both = self.a is not None and self.b is not None
        return both and not self.differences and all(one.is_equal for one in self.jobs)

    @property
    def shown(self) -> JobPair | None:
        """The job that drew the picture of the first frame; None: none did, or it is not in both."""
        try:
            job = self.a.job if self.a is not None else None
        except NoSuchPlace:
            return None
        return next((one for one in self.jobs if one.a is not None and one.a is job and one.b), None)
