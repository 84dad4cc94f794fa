"""Draws a recording frame by frame, each with what the recording holds of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from vc4lab.diagnostics import Reporter, Severity
from vc4lab.files import read_file
from vc4lab.recordings.kinds import Kind, NotDrawn, kind_of

if TYPE_CHECKING:
    from PIL.Image import Image

    from vc4lab.options import GpuOptions

PICTURE = "picture.png"
"""The file in the folder of a recorded job that `--accept` writes."""
PICTURE_BYTES = 64 << 20


@dataclass
class DrawnFrame:
    """A frame as it was drawn.

    Attributes
    ----------
    name
        For people.
    number
        Which one it is, from 0 on, in the table of a capture.
    image
        What was drawn; None: no picture.
    kept
        The picture that the recording holds, a PNG file; None: none.
    surfaces
        How many surfaces have a check sum.
    sums
        By the line of the file with the events: check sums that are others now.
    folder
        Of a recorded job.
    """

    name: str
    number: int
    image: Image | None
    kept: bytes | None
    surfaces: int = 0
    sums: Mapping[int, str] = field(default_factory=dict)
    folder: Path | None = None


def drawn_frames(path: Path, gpu: GpuOptions) -> Iterator[DrawnFrame]:
    """Draw a recording. Raises CaptureError, NotDrawn, OSError."""
    kind = kind_of(path)
    yield from {Kind.JOBS: _jobs, Kind.QUEUE: _queue, Kind.RUN: _run}[kind](path, gpu)


def _jobs(path: Path, gpu: GpuOptions) -> Iterator[DrawnFrame]:
    from vc4lab.jobs.load import open_jobs
    from vc4lab.jobs.pictures import ordered
    from vc4lab.jobs.player import JobsPlayer

    player = JobsPlayer(open_jobs(path), gpu=gpu)
    for number, (frame, result) in enumerate(player.play()):
        kept = frame.picture if isinstance(frame.picture, bytes) else None
        sums = {frame.lines[place]: total for place, total in result.sums.items()}
        image = ordered(result.image, frame)
        yield DrawnFrame(f"frame {frame.number}", number, image, kept, result.stored, sums)


def _queue(path: Path, gpu: GpuOptions) -> Iterator[DrawnFrame]:
    from vc4lab.driver.capture.load import open_capture
    from vc4lab.driver.capture.player import Player

    player = Player(open_capture(path), gpu=gpu)
    for number, (frame, picture) in enumerate(player.play()):
        image = picture.image() if picture is not None else None
        yield DrawnFrame(f"frame {frame.number}", number, image, frame.picture)


def _run(path: Path, gpu: GpuOptions) -> Iterator[DrawnFrame]:
    from vc4lab.drm.recorded.replay import replay

    images: dict[str, Image] = {}
    reporter = Reporter()
    result = replay(path, gpu=gpu, reporter=reporter, on_image=images.__setitem__)
    if result.drawn < result.jobs or not result.jobs:
        errors = (str(item) for item in reporter.items if item.severity >= Severity.ERROR)
        reason = next(errors, "there are none")
        raise NotDrawn(f"{result.drawn} of {result.jobs} jobs can be drawn: {reason}")
    for number, (name, image) in enumerate(images.items()):
        folder = path / name if (path / name).is_dir() else path
        try:
            kept = read_file(folder / PICTURE, PICTURE_BYTES, plain=True)
        except FileNotFoundError:
            kept = None
        yield DrawnFrame(name, number, image, kept, folder=folder)
