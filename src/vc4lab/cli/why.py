"""`vc4lab why`: what the draws of captured frames come to, and why a frame has no picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vc4lab.cli.captures import bad
from vc4lab.cli.inside import jobs_of
from vc4lab.cli.job_captures import chosen_frames
from vc4lab.cli.options import FILE, limits
from vc4lab.cli.outputs import say
from vc4lab.ranges import PICTURES


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
    from vc4lab.jobs.model import Noted
    from vc4lab.jobs.player import JobsPlayer

    reporter = reporter_of()
    reporter.listeners.append(lambda item: say(str(item)))
    reports = FrameReports(typer.echo)
    try:
        found = jobs_of(capture)
        frames = chosen_frames(found, capture, frame)
        player = JobsPlayer(found, reporter=reporter, on_v3d=reports.listen)
        for one in found.frames:
            reports.wanted = one in frames
            if reports.wanted:
                typer.echo(f"frame {one.number}")
                for event in one.events:
                    if isinstance(event, Noted):
                        typer.echo(f"  {event.text}")
            player.run(one)
            if one is frames[-1]:
                break
    except CaptureError as error:
        raise bad(error) from None
    for reason in player.hangs:
        typer.echo(f"the V3D hangs: {reason}")
    typer.echo(f"{reports.empty} of {reports.frames} frames have no picture")
