"""`--capture`, `--capture-on` and `--capture-size`: the same for every command that has a V3D work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli.exit_codes import ExitCode, failed
from vc4lab.cli.options import FILE, FrameRange, limits
from vc4lab.cli.outputs import say
from vc4lab.ranges import CAPTURE_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable

    from vc4lab.jobs.recorder import JobsRecorder

FrameRangeOption = Annotated[
    tuple | None,  # type: ignore[type-arg]
    typer.Option(
        help="N: end after so many pictures. A:B, with --capture: keep the frames from A to B, and end.",
        parser=FrameRange(),
        metavar="N|A:B",
    ),
]
CaptureOption = Annotated[
    Path | None,
    typer.Option(
        help="Keep frames with all that they need, for vc4lab replay, show, unpack, profile and sweep.",
        metavar="F.vc4cap",
        parser=FILE,
    ),
]
CaptureOnOption = Annotated[
    str | None,
    typer.Option(
        help="With --capture: keep only the frames around the first message with this code.", metavar="CODE"
    ),
]
CaptureSizeOption = Annotated[
    int,
    typer.Option(help="MiB of memory that a capture holds at most.", metavar="MIB", **limits(CAPTURE_SIZE)),
]
DEFAULT_SIZE = 256


def count_and_range(
    frames: tuple[int, int] | None, capture: Path | None
) -> tuple[int | None, tuple[int, int]]:
    """After how many frames a run ends, and which are kept. Raises typer.Exit."""
    if frames is None:
        return None, (1, LAST)
    first, last = frames
    if first and capture is None:
        raise failed(f"--frames {first}:{last} says what --capture keeps; there is no --capture")
    if not first and not last:
        raise failed("--frames 0: there is no picture to wait for")
    return last, (max(first, 1), last)


LAST = 1 << 30
"""Number of the last frame that is kept if none is named."""


@dataclass(frozen=True)
class CaptureWish:
    """Says what is to be captured, as the command line asks."""

    path: Path
    frames: tuple[int, int] = (1, LAST)
    on: str | None = None
    mib: int = DEFAULT_SIZE

    @classmethod
    def of(
        cls, path: Path | None, frames: tuple[int, int], on: str | None = None, mib: int = DEFAULT_SIZE
    ) -> CaptureWish | None:
        """The wish of options. Raises typer.Exit."""
        if path is None:
            if on is not None:
                raise failed(f"--capture-on {on}: there is no --capture to write to")
            return None
        if on is not None:
            from vc4lab.diagnostics.catalogue import catalogue

            if on.upper() not in catalogue():
                raise failed(f"--capture-on {on}: no message has this code; see vc4lab explain")
            on = on.upper()
        return cls(path, frames, on, mib)

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
