"""Commands that look into frames share this: any capture, or recorded jobs, opened as one of jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from vc4lab.cli.captures import bad
from vc4lab.cli.exit_codes import ExitCode, failed
from vc4lab.cli.outputs import say

if TYPE_CHECKING:
    from pathlib import Path

    from vc4lab.debug.frame.capture import Capture
    from vc4lab.debug.shaders.listing import KnownProgram
    from vc4lab.driver.capture.player import Player
    from vc4lab.jobs.model import JobsCapture
    from vc4lab.options import GpuOptions


@contextmanager
def looked_into(path: Path, gpu: GpuOptions | None = None) -> Iterator[Capture]:
    """The frames of a path. Turns what is wrong, with it or with a question, into typer.Exit.

    gpu: how its frames are drawn.
    """
    from vc4lab.capture.errors import CaptureError
    from vc4lab.debug.frame.capture import Capture
    from vc4lab.debug.frame.places import NoSuchPlace

    try:
        yield Capture(jobs_of(path), gpu=gpu)
    except CaptureError as error:
        raise bad(error) from None
    except NoSuchPlace as error:
        raise failed(f"{path}: {error}") from None


def jobs_of(path: Path) -> JobsCapture:
    """The jobs of a capture; of recorded jobs, and of commands without them, as they run.

    Raises CaptureError, typer.Exit.
    """
    from vc4lab.cli.messages import reporter_of
    from vc4lab.recordings import kinds

    reporter = reporter_of()
    reporter.listeners.append(lambda item: say(str(item)))
    try:
        return kinds.jobs_of(path, tell=say, reporter=reporter)
    except kinds.NotDrawn:
        raise typer.Exit(ExitCode.BAD_INPUT) from None  # messages have said why


def jobs_and_programs(path: Path) -> tuple[JobsCapture, list[KnownProgram]]:
    """The jobs as `jobs_of`, and what the capture knows of programs. Raises CaptureError, typer.Exit."""
    from vc4lab.recordings import kinds

    if kinds.kind_of(path) is not kinds.Kind.QUEUE:
        return jobs_of(path), []
    jobs, player = kinds.play_queue(path, tell=say)
    return jobs, _known_programs(player)


def _known_programs(player: Player) -> list[KnownProgram]:
    """The programs that a capture of the command queue was drawn with."""
    from vc4lab.debug.shaders.listing import KnownProgram
    from vc4lab.driver.stored_programs import stored_programs

    programs = player.screen.processor.draws.lowering.programs
    found = []
    for stored in stored_programs(programs, player.capture):
        name = player.capture.files.get(stored.text, "shader.tgsi")
        found += [
            KnownProgram(
                one.stage.value, one.words, name, stored.text, one.lines, tuple(map(str, one.uniforms))
            )
            for one in stored.shaders
        ]
    return found


def frames_and_programs(path: Path) -> tuple[Capture, list[KnownProgram]]:
    """A capture's frames and programs. Raises LaunchError, CaptureError."""
    from vc4lab.debug.frame.capture import Capture
    from vc4lab.debug.launch import LaunchError

    try:
        jobs, known = jobs_and_programs(path)
    except typer.Exit:
        raise LaunchError(
            f"{path}: it is no capture, and no folder of recorded jobs that was drawn"
        ) from None
    return Capture(jobs), known
