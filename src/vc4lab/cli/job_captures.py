"""Replays and lists captured jobs for commands: the layer of captures that all fronts share."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from vc4lab.cli.captures import CaptureWatch, bad, same_image, save_picture_to
from vc4lab.cli.exit_codes import ExitCode, failed, not_drawn
from vc4lab.cli.outputs import say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from PIL.Image import Image

    from vc4lab.diagnostics import Reporter
    from vc4lab.jobs.model import JobsCapture, JobsFrame
    from vc4lab.jobs.player import FrameResult
    from vc4lab.jobs.recorder import JobsRecorder
    from vc4lab.options import GpuOptions
    from vc4lab.v3d.core import V3D
    from vc4lab.v3d.events import FrameDrawn


def opened_jobs(path: Path) -> JobsCapture:
    """The jobs of a capture. Raises typer.Exit, with a message."""
    from vc4lab.capture.errors import CaptureError
    from vc4lab.jobs.load import open_jobs

    try:
        return open_jobs(path)
    except CaptureError as error:
        raise bad(error) from None


def replay_jobs(
    path: Path,
    gpu: GpuOptions,
    output: Path | None,
    every: Path | None,
    reporter: Reporter,
    watch: CaptureWatch,
    *,
    only: int | None,
    tiles: list[tuple[str, FrameDrawn]] | None,
    recorder: JobsRecorder | None = None,
) -> Image | None:
    """Run the frames of a capture; the last picture. Raises typer.Exit, StrictStop."""
    from vc4lab.capture.errors import CaptureError
    from vc4lab.debug.why.watch import EmptyFrames
    from vc4lab.jobs.pictures import ordered
    from vc4lab.jobs.player import DRIVERS, JobsPlayer
    from vc4lab.jobs.work import JobsWatch

    capture, times = opened_jobs(path), watch.times
    wanted = chosen_frames(capture, path, only)
    jobs = JobsWatch(work=times is not None, counters=watch.counters) if watch.wants_jobs else None
    at = ""

    def new_v3d(v3d: V3D) -> None:
        if capture.front not in DRIVERS and not gpu.forgiving:
            EmptyFrames(v3d, reporter)
        if jobs is not None:
            jobs.listen(v3d)
        if recorder is not None:
            recorder.attach(v3d)
        if tiles is not None:
            v3d.listeners.frame_drawn.subscribe(lambda event: tiles.append((at, event)))

    image, count, done, same, total = None, 0, 0, 0, 0
    player = JobsPlayer(capture, reporter=reporter, gpu=gpu, on_v3d=new_v3d)
    try:
        with times.stream if times is not None else nullcontext(), jobs or nullcontext():
            for frame in capture.frames:
                at = f"frame {frame.number}"
                result = player.run(frame)
                if recorder is not None:
                    recorder.frame(frame.number, partial(same_image, result.image))
                work = jobs.take(frame.number) if jobs is not None else []
                if frame not in wanted:
                    continue
                picture = ordered(result.image, frame)
                image = picture or image
                count += picture is not None
                done += result.frames
                total, same = total + result.stored, same + result.stored - len(result.differing)
                if times is None or not times.as_json:
                    typer.echo(frame_text(frame, result, picture))
                watch.take(work)
                if picture is not None and every is not None:
                    save_picture_to(picture, every / f"frame{frame.number:04d}.png")
                if frame is wanted[-1]:
                    break
    except CaptureError as error:
        raise bad(error) from None
    if times is not None:
        times.show({"jobs": done, "pictures": count, "stored": total, "same": same}, count)
    elif total:
        typer.echo(bytes_text(same, total))
    for reason in player.hangs:
        typer.echo(f"the V3D hangs: {reason}")
    _save_last(image, output)
    if player.hangs:
        raise typer.Exit(ExitCode.GUEST_HANG)
    if player.undrawn:
        typer.echo(not_drawn(player.undrawn))
        raise typer.Exit(ExitCode.NOT_DRAWN)
    return image


def chosen_frames(capture: JobsCapture, path: Path, only: int | None) -> list[JobsFrame]:
    """All frames, or the one with a number. Raises typer.Exit."""
    if not capture.frames:
        raise failed(f"{path}: it has no frames")
    if only is None:
        return capture.frames
    found = [one for one in capture.frames if one.number == only]
    if not found:
        numbers = ", ".join(str(one.number) for one in capture.frames[:20])
        raise failed(f"{path}: it has no frame {only}, but {numbers}")
    return found


def bytes_text(same: int, total: int) -> str:
    """How many of the stored surfaces hold the bytes that they held."""
    if same == total:
        return f"the same bytes as captured: {total} surface{'s' * (total != 1)}"
    return f"{total - same} of {total} surfaces hold other bytes than they did when they were captured"


def frame_text(frame: JobsFrame, result: FrameResult, image: Image | None) -> str:
    """Return a line about a frame: how its surfaces differ from those that were captured."""
    size = f"{image.width}x{image.height}" if image is not None else "no picture"
    text = f"frame {frame.number}: {size}, {result.frames} job{'s' * (result.frames != 1)}"
    if result.differing:
        first = result.differing[0]
        return f"{text}, {len(result.differing)} surfaces differ, the first at 0x{first.address:08x}"
    if not result.stored:
        return text
    return f"{text}, the bytes as they were captured"


def _save_last(image: Image | None, output: Path | None) -> None:
    if output is None:
        return
    if image is None:
        raise failed(f"{output}: no picture was drawn", ExitCode.OUTPUT)
    save_picture_to(image, output)


def list_lines(capture: JobsCapture, reporter: Reporter, frames: list[JobsFrame]) -> Iterator[str]:
    """The control lists of each job, as they are when the V3D comes to them. Raises CaptureError."""
    from vc4lab.jobs.listing import INDENT, listen
    from vc4lab.jobs.player import JobsPlayer

    found: list[str] = []

    def heard(v3d: V3D) -> None:
        listen(v3d, lambda line: found.append(INDENT + line))

    player = JobsPlayer(capture, reporter=reporter, on_v3d=heard)
    for frame in capture.frames:
        player.run(frame)
        if frame in frames:
            yield f"frame {frame.number}"
            yield from found
        found.clear()


def print_jobs(path: Path, only: int | None, *, lists: bool) -> None:
    """`vc4lab show`: the frames of captured jobs as text. Raises typer.Exit, StrictStop."""
    from vc4lab.capture.errors import CaptureError
    from vc4lab.cli.messages import reporter_of
    from vc4lab.jobs.events_text import event_text

    capture = opened_jobs(path)
    frames = chosen_frames(capture, path, only)
    reporter = reporter_of()
    reporter.listeners.append(lambda item: say(str(item)))
    try:
        if lists:
            for line in list_lines(capture, reporter, frames):
                typer.echo(line)
            return
        pages = capture.pages
        typer.echo(f"{capture.front} {capture.program}: {len(pages) if pages is not None else 0} pages")
        for frame in frames:
            typer.echo(f"frame {frame.number}" + (", from here on anew" if frame.start is not None else ""))
            for event in frame.events:
                typer.echo(f"  {event_text(event)}")
    except CaptureError as error:
        raise bad(error) from None
