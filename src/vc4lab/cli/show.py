"""`vc4lab show`: the frames of a capture as text, with the pictures of its textures."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from vc4lab.cli.captures import bad, has_only_jobs, is_capture, opened
from vc4lab.cli.exit_codes import ExitCode, failed
from vc4lab.cli.job_captures import print_jobs
from vc4lab.cli.options import FILE, limits
from vc4lab.cli.outputs import say
from vc4lab.files import why, write_file
from vc4lab.ranges import COUNT, PICTURES


def show(
    capture: Annotated[
        Path, typer.Argument(help="A capture, an archive or a folder; or recorded jobs.", parser=FILE)
    ],
    frame: Annotated[
        int | None, typer.Option(help="Only this frame, by its number.", **limits(PICTURES))
    ] = None,
    draw: Annotated[
        int | None, typer.Option(help="Only this draw of each frame, from 1 on.", **limits(PICTURES, 0))
    ] = None,
    rows: Annotated[int, typer.Option(help="Rows of tables that are shown.", **limits(COUNT, 1))] = 8,
    lists: Annotated[bool, typer.Option("--lists", help="Print the control lists of each job, too.")] = False,
    at: Annotated[
        str | None,
        typer.Option(help="A position in place of --frame and --draw, as --json has it.", metavar="#f3/d14"),
    ] = None,
    draws: Annotated[
        bool, typer.Option("--draws", help="Print the draws of each frame as the V3D gets them, numbered.")
    ] = False,
    picture: Annotated[
        Path | None,
        typer.Option(
            help="With --draw: save the picture after that draw, without those after it; 0: before any.",
            metavar="F.png",
            parser=FILE,
        ),
    ] = None,
    overlay: Annotated[
        str | None,
        typer.Option(
            help="With --picture: how the frame was drawn, up to --draw, in place of its picture.",
            metavar="overdraw|depth|primitives|wireframe|levels|misses|clocks",
        ),
    ] = None,
    pictures: Annotated[
        Path | None, typer.Option(help="Save the textures as PNG files in this directory.", parser=FILE)
    ] = None,
) -> None:
    """Print captured frames: commands, state, vertices, constants, shaders, QPU programs."""
    from vc4lab.capture.errors import CaptureError
    from vc4lab.cli.messages import reporter_of
    from vc4lab.driver.capture.show import Choice, Show

    if at is not None:
        frame, draw = _position(at)
    if picture is not None:
        if draw is None and overlay is None:
            raise failed("--picture is the picture after a draw: --draw says which")
        _save_picture_after(capture, frame, draw, picture, overlay)
        return
    if draw == 0:
        raise failed("--draw 0 is the picture before any draw, for --picture; draws begin with 1")
    if overlay is not None:
        raise failed("--overlay is a picture: --picture says where it is saved")
    is_queue = is_capture(capture) and not has_only_jobs(capture)
    if draws or (draw is not None and not is_queue):
        _print_draws(capture, frame, draw)
        return
    if not is_capture(capture):
        _list_run(capture, frame)
        return
    if has_only_jobs(capture):
        if not _print_list_text(capture):
            print_jobs(capture, frame, lists=lists)
        return
    found = opened(capture)
    numbers = [one.number for one in found.frames]
    if frame is not None and frame not in numbers:
        raise failed(f"{capture}: it has no frame {frame}, but {', '.join(map(str, numbers[:20]))}")
    _check_draw(capture, draw, frame, [len(f.draws) for f in found.frames if frame in (None, f.number)])
    reporter = reporter_of()
    reporter.listeners.append(lambda item: say(str(item)))
    try:
        made = Show(found, Choice(frame, draw, rows), reporter, _list_lines if lists else None)
        for line in made.lines():
            typer.echo(line)
    except CaptureError as error:
        raise bad(error) from None
    if pictures is not None:
        _save(found, pictures)


def _position(link: str) -> tuple[int, int | None]:
    """Frame and draw of a link. Raises typer.Exit."""
    from vc4lab.debug.frame.places import NoSuchPlace, Position

    try:
        found = Position.parse(link)
    except NoSuchPlace as error:
        raise failed(f"--at: {error}") from None
    return found.frame, found.draw or None


def _save_picture_after(
    path: Path, number: int | None, draw: int | None, target: Path, overlay: str | None
) -> None:
    """The picture after a draw, or an overlay. Raises typer.Exit."""
    from vc4lab.cli.captures import save_picture_to
    from vc4lab.cli.inside import looked_into

    with looked_into(path) as found:
        chosen = found.frame(number)
        if overlay is not None:
            image: Any = chosen.overlay(overlay, draw)
        else:
            image = chosen.picture_after(draw or 0)
    if image is None:
        raise failed(f"{target}: colours of 64 bits are no picture", ExitCode.OUTPUT)
    save_picture_to(image, target)


def _check_draw(path: Path, draw: int | None, frame: int | None, counts: list[int]) -> None:
    """Refuse a draw that none of the frames has, which have so many. Raises typer.Exit."""
    most = max(counts, default=0)
    if draw is not None and draw > most:
        where = "a frame" if frame is None else f"frame {frame}"
        raise failed(f"{path}: there is no draw {draw}: {where} has {most} at most")


def _print_draws(path: Path, number: int | None, draw: int | None) -> None:
    """The draws of frames, or one of each. Raises typer.Exit."""
    from vc4lab.cli.inside import looked_into
    from vc4lab.records.control import format

    with looked_into(path) as found:
        frames = found.frames if number is None else [found.frame(number)]
        _check_draw(path, draw, number, [len(frame.draws) for frame in frames])
        for frame in frames:
            typer.echo(f"frame {frame.number}: {len(frame.jobs)} jobs, {len(frame.draws)} draws")
            for one in frame.draws:
                if draw in (None, one.number):
                    typer.echo(f"  {one.text()}")
                if draw == one.number:
                    for record in frame.state(draw):
                        typer.echo(f"    {format(record)}")


def _print_list_text(path: Path) -> bool:
    """Whether a path is what VC4_DEBUG=cl prints; then it is printed. Raises typer.Exit."""
    from vc4lab.capture.errors import CaptureError
    from vc4lab.jobs.dumps.list_text import list_lines
    from vc4lab.jobs.dumps.opened import read_list_text

    try:
        data = read_list_text(path)
        for line in list_lines(data, path.name) if data is not None else ():
            typer.echo(line)
    except CaptureError as error:
        raise bad(error) from None
    return data is not None


def _list_run(path: Path, number: int | None) -> None:
    """The listing of recorded jobs. Raises typer.Exit."""
    from vc4lab.cli.messages import reporter_of
    from vc4lab.cli.replay import print_lists

    reporter = reporter_of()
    reporter.listeners.append(lambda item: say(str(item)))
    print_lists(path, reporter, number)


def _list_lines(memory: Any, job: Any) -> Iterable[str]:
    from vc4lab.jobs.listing import JobListing

    return JobListing(memory).lines(job)


def _save(capture: Any, folder: Path) -> None:
    from vc4lab.driver.capture.folder import picture_views

    for name, data, _ in picture_views(capture):
        target = folder / Path(name).name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_file(target, data)
        except OSError as error:
            raise failed(f"CLI-001: {target}: {why(error)}", ExitCode.OUTPUT) from None
        typer.echo(str(target))
