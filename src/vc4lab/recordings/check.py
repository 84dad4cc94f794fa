"""Recordings drawn and compared with what they hold, one point for each: for many processes.

A point draws all frames of a recording. What is equal is only counted; of what has changed there are
the pictures.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vc4lab.capture.errors import CaptureError
from vc4lab.diagnostics.unknown import Unknowns
from vc4lab.files import why
from vc4lab.images.pixels import png_bytes
from vc4lab.options import GpuOptions
from vc4lab.recordings.accept import accept
from vc4lab.recordings.drawn import DrawnFrame, drawn_frames
from vc4lab.recordings.kinds import NotDrawn

if TYPE_CHECKING:
    from PIL.Image import Image

SAME, CHANGED, NEW = "same", "changed", "new"
"""A frame is what the recording holds; is not; the recording holds nothing of it."""
MOST_PICTURES = 16
"""Frames of a recording whose pictures are kept."""


@dataclass(frozen=True)
class CheckPoint:
    """A recording, and how it is drawn.

    Attributes
    ----------
    path
        Of the recording, as the workers see it.
    engine, unknowns
        As `GpuOptions` has them.
    accepts
        Whether what is drawn now is written into the recording.
    run
        Names the run of the check: a recording may be another in the next one.
    """

    path: str
    engine: str = "jit"
    unknowns: tuple[tuple[str, str], ...] = ()
    accepts: bool = False
    run: str = ""

    @property
    def key(self) -> str:
        """The name of the work on it."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class FrameCheck:
    """Says what came of a frame.

    Attributes
    ----------
    name, status
        For people; one of the constants above.
    surfaces, differing
        Surfaces that were compared, and those that hold other bytes.
    pixels, total
        Pixels that differ, of so many; None: not compared, as there is no picture or sizes differ.
    before, after, difference
        PNG files of a frame that has changed, as far as there are pictures.
    """

    name: str
    status: str
    surfaces: int = 0
    differing: int = 0
    pixels: int | None = None
    total: int = 0
    before: bytes | None = field(default=None, repr=False)
    after: bytes | None = field(default=None, repr=False)
    difference: bytes | None = field(default=None, repr=False)

    def text(self) -> str:
        """The change in words."""
        parts = []
        if self.pixels is not None:
            parts.append(
                f"{self.pixels} of {self.total} pixels differ" if self.pixels else "the same picture"
            )
        elif self.before is not None and self.after is not None:
            parts.append("the picture has another size")
        elif self.before is not None:
            parts.append("there is no picture any more")
        if self.differing:
            parts.append(f"{self.differing} of {self.surfaces} surfaces hold other bytes")
        return ", ".join(parts) or "nothing to compare with"

    def as_dict(self) -> dict[str, Any]:
        """The frame as JSON has it, without pictures."""
        return {
            "name": self.name,
            "status": self.status,
            "text": self.text(),
            "surfaces": self.surfaces,
            "differing": self.differing,
            "pixels": self.pixels,
            "total": self.total,
        }


@dataclass(frozen=True)
class Checked:
    """The result of a point: its frames, or why there are none. accepted: changes were written."""

    path: str
    frames: tuple[FrameCheck, ...] = ()
    error: str = ""
    seconds: float = 0.0
    accepted: bool = False

    def of(self, status: str) -> list[FrameCheck]:
        """The frames with a status."""
        return [one for one in self.frames if one.status == status]

    @property
    def is_changed(self) -> bool:
        """Whether a frame is not what the recording holds, and was not accepted."""
        return bool(self.of(CHANGED)) and not self.accepted

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON has it: frames that are the same only in number."""
        others = [one for one in self.frames if one.status != SAME]
        return {
            "path": self.path,
            "error": self.error,
            "seconds": round(self.seconds, 3),
            "accepted": self.accepted,
            "same": len(self.of(SAME)),
            "frames": [one.as_dict() for one in others],
        }


def broken(point: CheckPoint, reason: str) -> Checked:
    """Make the result of a point that could not be drawn."""
    return Checked(point.path, error=reason)


def check_point(point: CheckPoint) -> Checked:
    """Draw a recording and compare; what goes wrong is in the result. The processes call it."""
    begun = time.monotonic()
    path = Path(point.path)
    gpu = GpuOptions(point.engine, 1, Unknowns(dict(point.unknowns)))
    found: list[FrameCheck] = []
    others: list[DrawnFrame] = []
    accepted = False
    try:
        for drawn in drawn_frames(path, gpu):
            one = _compared(drawn, with_pictures=len(others) < MOST_PICTURES)
            found.append(one)
            if one.status != SAME and (point.accepts or len(others) < MOST_PICTURES):
                others.append(drawn)
        if point.accepts and others:
            accept(path, others)
            accepted = True
    except (CaptureError, NotDrawn) as error:
        return replace(broken(point, str(error)), seconds=time.monotonic() - begun)
    except OSError as error:
        return replace(broken(point, why(error)), seconds=time.monotonic() - begun)
    return Checked(point.path, tuple(found), "", time.monotonic() - begun, accepted)


def _compared(drawn: DrawnFrame, *, with_pictures: bool) -> FrameCheck:
    """A frame beside what is held of it: bytes decide where there are check sums, else pictures."""
    before = _opened(drawn.kept)
    pixels, total, mask = None, 0, None
    if before is not None and drawn.image is not None and before.size == drawn.image.size:
        mask = _different(before, drawn.image)
        pixels, total = int(mask.sum()), mask.size
    if drawn.surfaces:
        status = CHANGED if drawn.sums else SAME
    elif drawn.kept is None:
        status = NEW
    else:
        status = SAME if pixels == 0 else CHANGED
    found = FrameCheck(drawn.name, status, drawn.surfaces, len(drawn.sums), pixels, total)
    if status != CHANGED or not with_pictures:
        return found
    difference = None
    if before is not None and mask is not None and pixels:
        from vc4lab.jobs.pictures import difference_picture

        difference = png_bytes(difference_picture(before, mask))
    kept = drawn.kept if before is not None else None
    return replace(found, before=kept, after=png_bytes(drawn.image), difference=difference)


def _opened(png: bytes | None) -> Image | None:
    """A picture that is held; None: there is none, or it is no PNG file."""
    from PIL import Image as Pictures

    if png is None:
        return None
    try:
        with Pictures.open(BytesIO(png), formats=("PNG",)) as found:
            return found.convert("RGB")
    except (OSError, ValueError, SyntaxError, Pictures.DecompressionBombError):
        return None


def _different(one: Image, two: Image) -> Any:
    import numpy as np

    return (np.asarray(one) != np.asarray(two.convert("RGB"))).any(axis=2)


def points_of(paths: Sequence[Path], engine: str, unknowns: Unknowns, *, accepts: bool) -> list[CheckPoint]:
    """A point for each recording."""
    changed = tuple(sorted(unknowns.changed().items()))
    run = os.urandom(8).hex()
    names = dict.fromkeys(str(path.resolve()) for path in paths)
    return [CheckPoint(name, engine, changed, accepts, run) for name in names]
