"""`--capture`, `--capture-on` and `--capture-size`: the same for every command that has a V3D work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli.exit_codes import ExitCode, failed
from vc4lab.cli.groups import Group
from vc4lab.cli.options import FILE, FrameRange, limits
from vc4lab.cli.outputs import say
from vc4lab.ranges import CAPTURE_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable

    from vc4lab.jobs.recorder import JobsRecorder

DEFAULT_SIZE = 256


@dataclass(frozen=True)
class CaptureOptions(Group):
    """Says which frames of a run there are, and which are kept."""

    frames: Annotated[
        tuple | None,  # type: ignore[type-arg]
        typer.Option(
            help="N: end after so many pictures. A:B, with --capture: keep the frames from A to B, and end.",
            parser=FrameRange(),
            metavar="N|A:B",
        ),
    ] = None
    capture: Annotated[
        Path | None,
        typer.Option(
            help="Keep frames with all that they need, for vc4lab replay, show, unpack, profile and sweep.",
            metavar="F.vc4cap",
            parser=FILE,
        ),
    ] = None
    capture_on: Annotated[
        str | None,
        typer.Option(
            help="With --capture: keep only the frames around the first message with this code.",
            metavar="CODE",
        ),
    ] = None
    capture_size: Annotated[
        int,
        typer.Option(
            help="MiB of memory that a capture holds at most.", metavar="MIB", **limits(CAPTURE_SIZE)
        ),
    ] = DEFAULT_SIZE

    def count(self) -> int | None:
        """After how many frames a run ends; None: that is not said. Raises typer.Exit."""
        if self.frames is None:
            return None
        first, last = self.frames
        if first and self.capture is None:
            raise failed(f"--frames {first}:{last} says what --capture keeps; there is no --capture")
        if not first and not last:
            raise failed("--frames 0: there is no picture to wait for")
        return int(last)

    def wish(self) -> CaptureWish | None:
        """Return what is to be captured; None: nothing. Raises typer.Exit."""
        self.count()
        if self.capture is None:
            if self.capture_on is not None:
                raise failed(f"--capture-on {self.capture_on}: there is no --capture to write to")
            return None
        on = self.capture_on
        if on is not None:
            from vc4lab.diagnostics.catalogue import catalogue

            on = on.upper()
            if on not in catalogue():
                raise failed(f"--capture-on {self.capture_on}: no message has this code; see vc4lab explain")
        first, last = self.frames or (1, LAST)
        return CaptureWish(self.capture, (max(first, 1), last), on, self.capture_size)


LAST = 1 << 30
"""Number of the last frame that is kept if none is named."""


@dataclass(frozen=True)
class CaptureWish:
    """Says what is to be captured, as the command line asks."""

    path: Path
    frames: tuple[int, int] = (1, LAST)
    on: str | None = None
    mib: int = DEFAULT_SIZE

    def recorder(self, front: str, program: str) -> JobsFile:
        """Return the recorder that keeps the frames and writes them."""
        return JobsFile(self, front, program)


class JobsFile:
    """A recorder, and the file that it writes to as soon as it is done."""

    def __init__(self, wish: CaptureWish, front: str, program: str) -> None:
        from vc4lab.jobs.model import JobsCapture
        from vc4lab.jobs.recorder import JobsRecorder

        self.wish = wish
        first, last = wish.frames
        self.recorder: JobsRecorder = JobsRecorder(
            JobsCapture(front, program), first=first, last=last, on=wish.on, limit=wish.mib << 20,
            tell=lambda text: self.tell(f"{wish.path}: CAP-009: {text}"),
        )  # fmt: skip
        self.recorder.on_done = self._save
        self.tell: Callable[[str], object] = say
        self._problem: ExitCode | None = None
        self._is_saved = False

    def close(self) -> None:
        """The run is over."""
        self.recorder.close()

    def _save(self) -> None:
        from vc4lab.capture.errors import CaptureError
        from vc4lab.files import why
        from vc4lab.jobs.store import save_jobs

        path, capture = self.wish.path, self.recorder.capture
        if not capture.frames:
            self._problem = ExitCode.GUEST_HANG
            missing = "there was no frame to keep"
            if self.wish.on is not None:
                missing = f"no message {self.wish.on} came"
            self.tell(f"--capture {path}: {missing}")
            return
        self._problem = ExitCode.OUTPUT
        try:
            save_jobs(capture, path)
        except OSError as error:
            self.tell(f"vc4lab: CLI-001: {path}: {why(error)}")
            return
        except CaptureError as error:
            self.tell(f"vc4lab: {path}: {error}")
            return
        self._problem = ExitCode.OUTPUT if self.recorder.is_full else None
        numbers = [one.number for one in capture.frames]
        which = f"frame {numbers[0]}" if len(numbers) == 1 else f"frames {numbers[0]}-{numbers[-1]}"
        self.tell(f"{path}: {which}")

    def code(self, code: int) -> int:
        """The exit code of a run with it."""
        return code or self._problem or ExitCode.OK
