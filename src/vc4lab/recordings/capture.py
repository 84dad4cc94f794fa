"""A recording of any kind as an object to look into: `vc4lab.Capture`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vc4lab.capture.errors import CaptureError
from vc4lab.debug.compare.compare import Comparison, compare
from vc4lab.debug.frame import capture
from vc4lab.recordings.kinds import NotDrawn, jobs_of

if TYPE_CHECKING:
    from vc4lab.jobs.model import JobsCapture
    from vc4lab.options import GpuOptions


class Capture(capture.Capture):
    """Frames that were captured, or recorded.

    Parameters
    ----------
    source
        An archive, a folder or recorded jobs; or jobs that are open.
    gpu
        How its frames are drawn; None: as usual, with one thread.

    Raises CaptureError, also later where a frame is looked into.
    """

    def __init__(self, source: str | Path | JobsCapture, *, gpu: GpuOptions | None = None) -> None:
        if isinstance(source, str | Path):
            try:
                source = jobs_of(Path(source))
            except NotDrawn as error:
                raise CaptureError("CAP-001", str(error), str(source)) from None
        super().__init__(source, gpu=gpu)

    def compare(self, other: capture.Capture) -> Comparison:
        """Compare all frames with those of another capture. Raises CaptureError."""
        return compare(self, other)
