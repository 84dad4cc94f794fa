"""Commands that take captures of `vc4lab gl` share this."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from vc4lab.cli.exit_codes import ExitCode, failed
from vc4lab.cli.job_times import print_counters
from vc4lab.cli.outputs import say
from vc4lab.files import why

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PIL.Image import Image

    from vc4lab.capture.errors import CaptureError
    from vc4lab.cli.job_times import JobTimes
    from vc4lab.diagnostics import Reporter
    from vc4lab.driver.capture.model import Capture, CapturedFrame
    from vc4lab.driver.capture.player import Player
    from vc4lab.jobs.recorder import JobsRecorder
    from vc4lab.jobs.work import JobsWatch, JobWork
    from vc4lab.options import GpuOptions


def is_capture(path: Path) -> bool:
    """Whether it is a capture rather than a folder of jobs."""
    from vc4lab.recordings import kinds

    return kinds.is_capture(path)


def has_only_jobs(path: Path) -> bool:
    """Whether a capture is one of jobs (`job_captures.py`), and not of the command queue."""
    from vc4lab.capture.errors import CaptureError
    from vc4lab.recordings.kinds import Kind, kind_of

    try:
        return kind_of(path) is Kind.JOBS
    except CaptureError as error:
        raise bad(error) from None


def opened(path: Path) -> Capture:
    """A capture. Raises typer.Exit, with a message."""
    from vc4lab.capture.errors import CaptureError
    from vc4lab.driver.capture.load import open_capture

    try:
        return open_capture(path)
    except CaptureError as error:
        raise bad(error) from None


def bad(error: CaptureError) -> typer.Exit:
    """Say what is wrong with a capture; to be raised."""
    return failed(f"{error}\nSee vc4lab explain {error.code}.")


@dataclass(frozen=True)
class CaptureWatch:
    """Says what is wanted of each job of a capture, besides its picture."""

    times: JobTimes | None
    counters: bool

    @property
    def wants_jobs(self) -> bool:
        """Whether anything is wanted of each job."""
        return self.times is not None or self.counters

    def jobs_of(self, player: Player) -> JobsWatch | None:
        """Collects the jobs that it draws; None: nothing is wanted of them."""
        if not self.wants_jobs:
            return None
        from vc4lab.driver.capture.work import watched

        return watched(player, work=self.times is not None, counters=self.counters)

    def take(self, jobs: Sequence[JobWork]) -> None:
        """Jobs were drawn."""
        for one in jobs:
            if self.times is None:
                print_counters(one.name, one.counted)
                continue
            self.times.take(one.name, one.frames)
            if self.counters:
                self.times.count(one.name, one.counted)


def replay_capture(
    path: Path,
    gpu: GpuOptions,
    output: Path | None,
    every: Path | None,
    reporter: Reporter,
    watch: CaptureWatch,
    *,
    recompile: bool,
    recorder: JobsRecorder | None = None,
) -> None:
    """Draw the frames of a capture. Raises typer.Exit, StrictStop."""
    from vc4lab.capture.errors import CaptureError
    from vc4lab.driver.capture.player import Player

    times, image, pictures = watch.times, None, 0
    capture = opened(path)
    try:
        player = Player(capture, reporter=reporter, gpu=gpu, recompile=recompile)
        jobs = watch.jobs_of(player)
        if recorder is not None:
            recorder.attach(player.screen.runner.v3d)
        with times.stream if times is not None else nullcontext(), jobs or nullcontext():
            for frame, picture in player.play():
                image = picture.image() if picture is not None else None
                pictures += image is not None
                if recorder is not None:
                    recorder.frame(frame.number, partial(same_image, image))
                if times is None or not times.as_json:
                    typer.echo(frame_line(frame, image))
                if jobs is not None:
                    watch.take(jobs.take(frame.number))
                if image is not None and every is not None:
                    save_picture_to(image, every / f"frame{frame.number:04d}.png")
    except CaptureError as error:
        raise bad(error) from None
    counts = player.screen.processor.counts
    if times is not None:
        summary: dict[str, object] = {"jobs": counts.jobs, "pictures": pictures}
        times.show(summary, pictures)
    if output is not None:
        if image is None:
            raise failed(f"{output}: no picture was drawn", ExitCode.OUTPUT)
        save_picture_to(image, output)
    for one in capture.programs:
        if one.edited and not one.is_used:
            say(f"{one.edited} was edited, but no draw uses it: its shader or state is another")
    if counts.left_out:
        say(f"{counts.left_out} of {counts.draws} draws were left out")
        raise typer.Exit(ExitCode.NOT_DRAWN)


def save_picture_to(image: Image, target: Path) -> None:
    """Save a picture, in a folder that is made. Raises typer.Exit."""
    from vc4lab.viewer.pictures import save_picture

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        save_picture(image, target)
    except OSError as error:
        raise failed(f"{target}: {why(error)}", ExitCode.OUTPUT) from None


def same_image(image: Image | None) -> Image | None:
    """The picture, for what takes a function that gives one."""
    return image


def frame_line(frame: CapturedFrame, image: Image | None) -> str:
    """Return a line about a frame: how its picture differs from the one that was captured."""
    draws = len(frame.draws)
    size = f"{image.width}x{image.height}" if image is not None else "no picture"
    text = f"frame {frame.number}: {size}, {draws} draw{'s' * (draws != 1)}"
    if image is None or frame.picture is None:
        return text
    from vc4lab.jobs.pictures import difference

    different = difference(image, frame.picture)
    if different is None:
        return f"{text}; the captured picture has another size"
    if not different:
        return f"{text}, the picture as it was captured"
    return f"{text}, {different} pixels differ from the picture as it was captured"
