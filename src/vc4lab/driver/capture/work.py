"""The pieces of work of captured frames, for `vc4lab profile` and `vc4lab sweep`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from vc4lab.capture.files import open_files
from vc4lab.diagnostics import Reporter
from vc4lab.driver.capture.load import open_capture
from vc4lab.driver.capture.player import Player
from vc4lab.options import GpuOptions
from vc4lab.timing.frames.feed import FrameFeed
from vc4lab.timing.sweep.time_frames import time_frames

if TYPE_CHECKING:
    from vc4lab.driver.capture.model import Capture
    from vc4lab.timing.frames.frame import Frame
    from vc4lab.timing.sweep.points import Outcome, Point


def work_of(
    capture: Capture, *, gpu: GpuOptions, reporter: Reporter
) -> Iterator[tuple[str, Frame]]:
    """What each job of each frame took, named by the frame's number. Raises CaptureError."""
    player = Player(capture, gpu=gpu, reporter=reporter)
    with FrameFeed(player.screen.runner.v3d) as feed:
        for shown, _ in player.play():
            frames = feed.take()
            for number, frame in enumerate(frames, 1):
                job = f" job {number}" if len(frames) > 1 else ""
                yield f"frame {shown.number}{job}", frame


def digest_of(path: str) -> str:
    """A digest of all files of a capture. Raises CaptureError."""
    files = open_files(Path(path))
    sha = hashlib.sha256()
    for name in sorted(files):
        sha.update(name.encode() + b"\0" + hashlib.sha256(files.read(name)).digest())
    return sha.hexdigest()


@lru_cache(maxsize=2)
def _frames_of(path: str) -> tuple[tuple[str, Frame], ...]:
    """The frames of a capture, kept for the next point. Raises CaptureError."""
    gpu = GpuOptions(threads=1)
    return tuple(work_of(open_capture(path), gpu=gpu, reporter=Reporter()))


def time_point(point: Point) -> Outcome:
    """Times every frame of the point's capture on its chip."""
    return time_frames(point, _frames_of)
