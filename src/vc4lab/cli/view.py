"""`vc4lab view`: looks into a capture in a browser, or saves a frame of it as a page."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab import interruption
from vc4lab.cli.exit_codes import ExitCode, failed
from vc4lab.cli.options import FILE, limits
from vc4lab.cli.outputs import say
from vc4lab.files import why, write_text
from vc4lab.ranges import PICTURES, PORT

if TYPE_CHECKING:
    from vc4lab.debug.frame.places import Position
    from vc4lab.viewer.inside.questions import Desk
    from vc4lab.viewer.inside.server import Server
    from vc4lab.viewer.inside.session import Opened, Session


def view(
    capture: Annotated[
        Path, typer.Argument(help="A capture, an archive or a folder; or recorded jobs.", parser=FILE)
    ],
    frame: Annotated[
        int | None, typer.Option(help="The frame to begin with; else the last one.", **limits(PICTURES))
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(help="The position to begin with, as the page's address has it.", metavar="#f3/d14"),
    ] = None,
    port: Annotated[
        int, typer.Option(help="The port on 127.0.0.1; 0: any that is free.", **limits(PORT))
    ] = 0,
    browser: Annotated[bool, typer.Option("--open", help="Open the page in the browser, too.")] = False,
    html: Annotated[
        Path | None,
        typer.Option(
            help="Save a frame as one page that needs no server, and end.", metavar="F.html", parser=FILE
        ),
    ] = None,
) -> None:
    """Look into a capture in a browser: draws, pixels, state, lists, programs, textures, time.

    The page is served to this machine only, at the address that is printed; Ctrl-C ends it.
    """
    _look_at(capture)
    place, pixel = _position(at)
    if html is not None:
        _save(_session(capture), capture, html, frame, place, pixel)
        return
    from vc4lab.viewer.inside.first import first_picture
    from vc4lab.viewer.inside.server import LOOPBACK, Server

    number = place.frame if place is not None else frame
    try:
        server = Server(lambda: _desk(capture), port, lambda: first_picture(capture, number))
    except OSError as error:
        raise failed(f"port {port} of {LOOPBACK}: {why(error)}") from None
    _serve(server, _link(frame, at), browser=browser)


def _desk(capture: Path) -> Desk:
    """The part of the server that answers."""
    from vc4lab.viewer.inside.questions import Desk

    return Desk(_session(capture))


def _session(capture: Path) -> Session:
    """A session about a capture, which is opened when something is asked."""
    from vc4lab.viewer.inside.session import Session

    return Session(capture.name, lambda: _opened(capture))


def _look_at(capture: Path) -> None:
    """Refuse what is no capture before a page is served. Raises typer.Exit."""
    from vc4lab.capture.errors import CaptureError
    from vc4lab.cli.captures import bad
    from vc4lab.recordings.kinds import kind_of

    if not os.path.exists(capture):  # unlike Path's, it answers for names that no file can have
        raise failed(f"{capture}: there is no such file or folder")
    try:
        kind_of(capture)
    except CaptureError as error:
        raise bad(error) from None


def _position(link: str | None) -> tuple[Position | None, tuple[int, int] | None]:
    """The position and the pixel of a link such as `#f3/d14/p200,150`. Raises typer.Exit."""
    if link is None:
        return None, None
    from vc4lab.debug.frame.places import NoSuchPlace, Position

    parts = [one for one in link.split("/") if one]
    points = [one[1:].split(",") for one in parts if one.startswith("p") and "," in one]
    try:
        found = Position.parse("/".join(one for one in parts if "," not in one))
        pixel = (int(points[0][0]), int(points[0][1])) if points else None
    except NoSuchPlace as error:
        raise failed(f"--at: {error}") from None
    except ValueError:
        raise failed(f"--at: {link[:40]!r} is no position, such as #f3/d14/p200,150") from None
    return found, pixel


def _link(frame: int | None, at: str | None) -> str:
    """The part of the address after #."""
    if at is not None:
        return at if at.startswith("#") else f"#{at}"
    return "" if frame is None else f"#f{frame}"


def _opened(path: Path) -> Opened:
    """The capture with what it knows of its programs. Raises CaptureError."""
    from vc4lab.capture.errors import CaptureError
    from vc4lab.cli.inside import jobs_and_programs
    from vc4lab.debug.frame.capture import Capture
    from vc4lab.viewer.inside.session import Opened

    try:
        jobs, programs = jobs_and_programs(path)
    except typer.Exit:
        raise CaptureError("CAP-004", "it cannot be opened: the terminal has the reason", path.name) from None
    return Opened(Capture(jobs), {one.words: one for one in programs})


def _serve(server: Server, link: str, *, browser: bool) -> None:
    """Serve until a signal comes. Raises typer.Exit."""
    try:
        with server:
            typer.echo(f"{server.url}{link}")
            say("the page is served until Ctrl-C")
            server.warm_up()
            if browser:
                import webbrowser

                webbrowser.open(f"{server.url}{link}")
            server.serve_forever(poll_interval=0.1)
    except KeyboardInterrupt:
        number = interruption.came() or signal.SIGINT
        interruption.dealt_with()
    say("ended: the page is no longer served")
    if number != signal.SIGINT:
        raise typer.Exit(128 + number)


def _save(
    session: Session,
    path: Path,
    html: Path,
    frame: int | None,
    place: Position | None,
    pixel: tuple[int, int] | None,
) -> None:
    """Save a frame as a page. Raises typer.Exit."""
    from vc4lab.capture.errors import CaptureError
    from vc4lab.cli.captures import bad
    from vc4lab.debug.frame.places import NoSuchPlace
    from vc4lab.viewer.inside.one_page import one_page

    try:
        number = place.frame if place is not None else frame
        chosen = session.capture().frame(number).number
        text = one_page(session, chosen, draw=place.draw or None if place is not None else None, pixel=pixel)
    except CaptureError as error:
        raise bad(error) from None
    except NoSuchPlace as error:
        raise failed(f"{path}: {error}") from None
    try:
        html.parent.mkdir(parents=True, exist_ok=True)
        write_text(html, text)
    except OSError as error:
        raise failed(f"CLI-001: {html}: {why(error)}", ExitCode.OUTPUT) from None
    typer.echo(f"{html}: frame {chosen}, {len(text) / (1 << 20):.1f} MiB")
