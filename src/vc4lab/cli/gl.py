"""`vc4lab gl`: unmodified OpenGL programs with the distribution's Mesa on a VideoCore IV."""

from __future__ import annotations

import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli.capturing import CaptureOptions
from vc4lab.cli.drm_signals import EarlySignals, RunSignals
from vc4lab.cli.exit_codes import ExitCode, ended_early, failed
from vc4lab.cli.gl_instruments import print_counters, time_jobs, wait_with
from vc4lab.cli.gpu_options import GpuGroup
from vc4lab.cli.groups import Without
from vc4lab.cli.options import CountersOption, FrameRange
from vc4lab.cli.outputs import Outputs, PictureOptions, say
from vc4lab.cli.timing_options import LiveTimingOptions
from vc4lab.ranges import PICTURES

if TYPE_CHECKING:
    from PIL.Image import Image

    from vc4lab.driver.capture.model import Capture
    from vc4lab.mesa.server.server import Server

TRACES = ("gallium",)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""They wait until the program is started and can be ended."""


@dataclass(frozen=True)
class GlCaptureOptions(CaptureOptions):
    """Says which frames are kept; a program goes on after the last one."""

    frames: Annotated[
        tuple | None,  # type: ignore[type-arg]
        typer.Option(
            help="N: end the program after so many pictures. A:B, with --capture: keep the frames "
            "from A to B; the program goes on.",
            parser=FrameRange(),
            metavar="N|A:B",
        ),
    ] = None


def gl(
    program: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- PROGRAM [ARGUMENTS]", help="The program and its arguments."),
    ] = None,
    *,
    gpu: GpuGroup,
    shown: Annotated[PictureOptions, Without("both_orders", "window")],
    captured: Annotated[GlCaptureOptions, Without("capture_on")],
    timed: LiveTimingOptions,
    trace: Annotated[
        str | None,
        typer.Option(
            help="gallium: print every message and command of Mesa on standard error.", metavar="NAME"
        ),
    ] = None,
    inline: Annotated[
        bool,
        typer.Option(
            "--inline", help="Data through the socket, not in shared memory: version 0 of the protocol."
        ),
    ] = False,
    shared_tmp: Annotated[
        bool,
        typer.Option(
            "--shared-tmp",
            help="Listen at /tmp/.virgl_test itself, where the program cannot get a /tmp of its "
            "own; one run per machine.",
        ),
    ] = False,
    counters: CountersOption = False,
) -> None:
    """Run an OpenGL program with the Mesa that is installed, drawn by a VideoCore IV."""
    if not program or not program[0]:
        raise failed("no program given; for example: vc4lab gl --trace gallium -- glmark2-es2")
    if trace is not None and trace not in TRACES:
        raise failed(f"--trace {trace}: the choices are {', '.join(TRACES)}")
    outputs = Outputs(shown)
    count, kept = _frames(captured.frames, captured.capture)
    problem = outputs.problem([captured.capture])
    if problem is not None:
        raise failed(f"vc4lab: {problem[0]}", problem[1])
    live = timed.live(waits=True)
    from vc4lab.debug.why.watch import report_pixelless_run
    from vc4lab.diagnostics import StrictStop
    from vc4lab.driver.gl import Gl
    from vc4lab.mesa.server.program import SOCKET, TMP, NotPossible

    reporter = gpu.reporter()
    pictures = GlPictures(outputs)
    archive = CaptureFile(captured.capture) if captured.capture is not None else None
    try:
        made = Gl(
            reporter=reporter,
            gpu=gpu.options(),
            protocol=0 if inline else 2,
            shared_tmp=shared_tmp,
            frames=count,
            capture=kept,
            on_capture=archive.save if archive is not None else None,
            capture_bytes=captured.capture_size << 20,
            on_frame=pictures.add if shown.record is not None else None,
            keeps_image=pictures.are_wanted,
        )
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise failed(f"vc4lab gl: {TMP / SOCKET}: {reason}") from None
    with made, EarlySignals() as early:
        _trace(made.server, trace)
        if counters:
            print_counters(made, live)
        if live is not None:
            time_jobs(made, live)
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            started = made.start(program)
            signals = RunSignals(started)
            signals.__enter__()
        except NotPossible as why:
            raise failed(f"vc4lab gl: GL-013: {why}; see vc4lab explain GL-013") from None
        except OSError as error:
            raise failed(str(error)) from None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        if live is not None:
            wait_with(live, started)
        try:
            early.repeat()
            result = made.serve()
        except StrictStop as stop:
            typer.echo(f"stopped (strict): {stop.diagnostic.code}", err=True)
            raise typer.Exit(ExitCode.STRICT_STOP) from None
        finally:
            signals.__exit__()
            if live is not None:
                live.end()
    for line in live.lines(result.frames) if live is not None else ():
        say(line)
    if not result.connections:
        reporter.report("GL-011", f"{program[0]} did not connect to the server", block="GL")
    if not signals.came:
        report_pixelless_run(made.screen.runner.v3d, reporter)
    if result.left_out:
        say(f"{result.left_out} of {result.draws} draws were left out")
    code = result.code or (ExitCode.NOT_DRAWN if result.left_out else ExitCode.OK)
    if count is not None and not result.frames_came:
        say(ended_early(result.frames, count))
        code = code or ExitCode.GUEST_HANG
    if archive is not None:
        code = archive.code(code)
    raise typer.Exit(pictures.save(code, result.image))


def _frames(
    frames: tuple[int, int] | None, capture: Path | None
) -> tuple[int | None, tuple[int, int] | None]:
    """After how many frames the program ends, and which are kept. Raises typer.Exit."""
    if frames is None:
        return None, None if capture is None else (1, PICTURES.most)
    first, last = frames
    if not first:
        return last, None if capture is None else (1, last)
    if capture is None:
        raise failed(f"--frames {first}:{last} says what --capture keeps; there is no --capture")
    return None, (first, last)


class CaptureFile:
    """Writes the file of `--capture`, as soon as the last frame was shown."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._problem: ExitCode | None = ExitCode.GUEST_HANG

    def save(self, capture: Capture) -> None:
        """Write the frames."""
        from vc4lab.capture.errors import CaptureError
        from vc4lab.driver.capture.store import save_capture
        from vc4lab.files import why

        if not capture.frames:
            say(f"--capture {self.path}: the program ended before the first frame to keep")
            return
        self._problem = ExitCode.OUTPUT
        try:
            save_capture(capture, self.path)
        except OSError as error:
            say(f"vc4lab: {self.path}: {why(error)}")
            return
        except CaptureError as error:
            say(f"vc4lab: {self.path}: {error}")
            return
        self._problem = None
        numbers = [one.number for one in capture.frames]
        which = f"frame {numbers[0]}" if len(numbers) == 1 else f"frames {numbers[0]}-{numbers[-1]}"
        say(f"{self.path}: {which}")

    def code(self, code: int) -> int:
        """The exit code of a run with it."""
        return code or self._problem or ExitCode.OK


class GlPictures:
    """The pictures of a run, as the command line asks for them."""

    def __init__(self, outputs: Outputs) -> None:
        self._outputs = outputs
        self._begin = time.monotonic_ns()

    @property
    def are_wanted(self) -> bool:
        """Whether the last picture is used."""
        options = self._outputs.options
        return options.screenshot is not None or (not options.headless and sys.stdout.isatty())

    def add(self, number: int, image: Image) -> None:
        """A frame for the recording."""
        options, recorder = self._outputs.options, self._outputs.recorder
        if recorder is not None and not (number - 1) % options.every:
            recorder.add(image, time.monotonic_ns() - self._begin)

    def save(self, code: int, image: Image | None) -> int:
        """Write the files and show the preview; gives the final exit code."""
        return self._outputs.save(code, image)


def _trace(server: Server, name: str | None) -> None:
    if name is not None:
        from vc4lab.mesa.events import GalliumTrace

        GalliumTrace(server.listeners, lambda line: print(line, file=sys.stderr))
