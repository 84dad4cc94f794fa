"""`vc4lab why`: what the draws of captured frames come to, and why a frame has no picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli.captures import bad, has_only_jobs, is_capture, opened
from vc4lab.cli.exit_codes import failed
from vc4lab.cli.job_captures import chosen_frames, opened_jobs, recorded_jobs
from vc4lab.cli.options import FILE, limits
from vc4lab.cli.outputs import say
from vc4lab.ranges import PICTURES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vc4lab.debug.why.report import FrameReports
    from vc4lab.diagnostics import Reporter


def why(
    capture: Annotated[
        Path, typer.Argument(help="A capture, an archive or a folder; or recorded jobs.", parser=FILE)
    ],
    frame: Annotated[
        int | None, typer.Option(help="Only this frame, by its number.", **limits(PICTURES))
    ] = None,
) -> None:
    """Say how many primitives and pixels of captured frames each stage lets through.

    A frame without a picture also gets the stage that dropped what was drawn, the record that decides it
    and what to change.
    """
    from vc4lab.capture.errors import CaptureError
    from vc4lab.cli.messages import reporter_of
    from vc4lab.debug.why.report import FrameReports

    reporter = reporter_of()
    reporter.listeners.append(lambda item: say(str(item)))
    reports = FrameReports(typer.echo)
    of_jobs = not is_capture(capture) or has_only_jobs(capture)
    try:
        frames = (_of_jobs if of_jobs else _of_commands)(capture, frame, reporter, reports)
        for number in frames:
            reports.wanted = frame in (None, number)
            if reports.wanted:
                typer.echo(f"frame {number}")
    except CaptureError as error:
        raise bad(error) from None
    typer.echo(f"{reports.empty} of {reports.frames} frames have no picture")


def _of_jobs(path: Path, only: int | None, reporter: Reporter, reports: FrameReports) -> Iterator[int]:
    """The number of each frame of captured or recorded jobs, before it is run."""
    from vc4lab.jobs.player import JobsPlayer

    found = opened_jobs(path) if is_capture(path) else recorded_jobs(path)
    last = chosen_frames(found, path, only)[-1]
    player = JobsPlayer(found, reporter=reporter, on_v3d=reports.listen)
    for one in found.frames:
        yield one.number
        player.run(one)
        if one is last:
            return


def _of_commands(path: Path, only: int | None, reporter: Reporter, reports: FrameReports) -> Iterator[int]:
    """The number of each frame of a captured OpenGL program, before it is drawn."""
    from vc4lab.driver.capture.player import Player

    found = opened(path)
    if only is not None and only not in [one.number for one in found.frames]:
        raise failed(f"{path}: it has no frame {only}")
    player = Player(found, reporter=reporter)
    reports.listen(player.screen.runner.v3d)
    playing = player.play()
    for one in found.frames:
        yield one.number
        next(playing)
        if one.number == only:
            return
