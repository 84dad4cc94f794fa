"""`vc4lab debug`: a QPU program stepped, in lines, on the whole screen, or from an editor."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vc4lab.cli.exit_codes import failed
from vc4lab.cli.groups import Group
from vc4lab.cli.inside import frames_and_programs
from vc4lab.cli.options import FILE, UnknownOption, limits, unknowns_of
from vc4lab.cli.pixel import PixelPlace
from vc4lab.cli.programs import ProgramOptions
from vc4lab.files import why
from vc4lab.ranges import PICTURES, PORT, VERTEX_INDEX

if TYPE_CHECKING:
    from vc4lab.debug.console import Console
    from vc4lab.debug.launch import Launch, Launchable
    from vc4lab.debug.screen.app import Screen
    from vc4lab.debug.session import Session

DEBUGGED: Any = typer.Argument(
    help="Assembly text, or .bin: binary words, .hex: one word per line; with --symbol a C or assembly "
    "source, or an ELF file. Or a capture, or recorded jobs.",
    parser=FILE,
)


@dataclass(frozen=True)
class ShaderOptions(Group):
    """Says which run of which shader of a captured frame."""

    pixel: Annotated[
        tuple | None,  # type: ignore[type-arg]
        typer.Option(
            help="Of a capture: the fragment program that made this pixel of the picture.",
            parser=PixelPlace(),
            metavar="X,Y",
        ),
    ] = None
    vertex: Annotated[
        int | None,
        typer.Option(
            help="Of a capture: the vertex program of --draw for this vertex, as indices name it.",
            **limits(VERTEX_INDEX),
        ),
    ] = None
    coordinate: Annotated[
        bool, typer.Option("--coordinate", help="With --vertex: the coordinate program.")
    ] = False
    draw: Annotated[
        int | None, typer.Option(help="Of a capture: this draw of the frame.", **limits(PICTURES))
    ] = None
    frame: Annotated[
        int | None, typer.Option(help="Of a capture: the frame; else the last one.", **limits(PICTURES))
    ] = None
    at: Annotated[
        str | None,
        typer.Option(
            help="Of a capture: a position in place of --frame and --draw; with a primitive, --pixel may "
            "be left out.",
            metavar="#f3/d14/p7",
        ),
    ] = None

    @property
    def are_given(self) -> bool:
        """Whether any of them is."""
        return any(one is not None for one in (self.pixel, self.vertex, self.draw, self.frame, self.at))


def debug(
    program: Annotated[Path | None, DEBUGGED] = None,
    *,
    options: ProgramOptions,
    shader: ShaderOptions,
    unknown: UnknownOption = None,
    commands: Annotated[
        list[Path] | None,
        typer.Option("-x", "--commands", help="Carry out the commands of this file first.", parser=FILE),
    ] = None,
    execute: Annotated[
        list[str] | None,
        typer.Option("--ex", "--eval", help="Carry out this command first; may be repeated."),
    ] = None,
    batch: Annotated[bool, typer.Option("--batch", help="End after these commands.")] = False,
    screen: Annotated[
        bool, typer.Option("--screen", help="Use the whole screen of the terminal (extra: vc4lab[debug]).")
    ] = False,
    dap: Annotated[
        str | None,
        typer.Option(
            "--dap",
            help="Serve an editor (Debug Adapter Protocol) on this loopback port, or on stdio; the "
            "editor may name the program.",
            metavar="PORT|stdio",
        ),
    ] = None,
) -> None:
    """Step a QPU program, as `vc4lab run` starts it, or a shader of a captured frame, on its 16 pixels or
    vertices: forward and backward, with breakpoints.

    Commands are read from the terminal or a pipe; `help` lists them.
    """
    launch: Launchable = _launch(program, options, unknown)
    if program is not None and (shader.are_given or _has_frames(program)):
        launch = _shader(program, shader)
    elif shader.are_given:
        raise failed("debug: --pixel, --vertex, --draw, --frame and --at are of a capture: name it")
    if dap is not None:
        _serve(dap, launch)
        return
    if not launch.is_named:
        raise failed("debug: name a program; only an editor (--dap) can do so later")
    from vc4lab.debug.console import Console

    session = _session(launch)
    app = _screen(session) if screen else None
    console = Console(session, typer.echo) if app is None else app.commands
    if app is None:
        console.greet()
    for path in commands or ():
        try:
            console.run_file(path)
        except OSError as error:
            raise failed(f"{path}: {why(error)}") from None
    for line in execute or ():
        if not console.done:
            console.execute(line)
    if console.done or batch:
        code = console.code
    elif app is not None:
        code = app.run() or 0
    else:
        code = _read_commands(console)
    if code:
        raise typer.Exit(code)


def _read_commands(console: Console) -> int:
    """From the terminal or a pipe; the exit code."""
    if sys.stdin is not None and sys.stdin.isatty():
        console.run_terminal()
    elif sys.stdin is not None:
        console.run_stream(sys.stdin)
    return console.code


def _screen(session: Session) -> Screen:
    """The full screen, or the end of the command where it cannot be had."""
    try:
        from vc4lab.debug.screen.app import Screen
    except ModuleNotFoundError:
        raise failed("--screen needs Textual: pip install 'vc4lab[debug]'") from None
    streams = (sys.stdin, sys.stdout, sys.stderr)  # Textual draws on the last one
    if not all(stream and stream.isatty() for stream in streams):
        raise failed("--screen needs a terminal; without it, commands come from a pipe")
    return Screen(session)


def _launch(program: Path | None, options: ProgramOptions, unknown: list[str] | None) -> Launch:
    """Return the launch that the options describe."""
    from vc4lab.debug.launch import Launch

    return Launch(
        program or Path(),
        options.qpus,
        options.uniforms or (),
        options.memory or (),
        options.entry,
        options.symbol,
        options.budget,
        options.check,
        options.dialect,
        options.include or (),
        unknowns_of(unknown),
        frames=frames_and_programs,
    )


def _has_frames(path: Path) -> bool:
    """Whether it is a capture or recorded jobs rather than a program."""
    from vc4lab.capture.files import SUFFIX

    return path.suffix == SUFFIX or os.path.isdir(path)


def _shader(capture: Path, options: ShaderOptions) -> Launchable:
    """Return the run of a shader that the options name."""
    from vc4lab.debug.shaders.find import Question
    from vc4lab.debug.shaders.launch import ShaderLaunch

    if options.pixel is not None and options.vertex is not None:
        raise failed("debug: --pixel or --vertex, not both")
    question = Question(
        options.frame, options.at or "", options.pixel, options.vertex, options.draw or 0, options.coordinate
    )
    return ShaderLaunch(capture, question, frames_and_programs)


def _session(launch: Launchable) -> Session:
    """The program where it begins, or the end of the command."""
    from vc4lab.debug.launch import LaunchError

    try:
        session, notes = launch.session()
    except LaunchError as error:
        raise failed(str(error)) from None
    for note in notes:
        typer.echo(note, err=True)
    return session


def _serve(where: str, launch: Launchable) -> None:
    """An editor, on a port or on standard input and output."""
    from vc4lab.debug.dap import Server
    from vc4lab.debug.dap.server import serve_port

    if where == "stdio":
        if sys.stdin is None:
            raise failed("--dap stdio: standard input is closed")
        # a stream of its own: a thread still waits for it when the process ends
        reader = open(sys.stdin.fileno(), "rb", closefd=False)  # noqa: SIM115
        Server(reader, sys.stdout.buffer, launch).serve()
        return
    try:
        serve_port(PORT.check(int(where)), launch, lambda text: typer.echo(text, err=True))
    except ValueError:
        raise failed(f"--dap {where[:40]!r} is neither stdio nor a port {PORT}") from None
    except OSError as error:
        raise failed(f"--dap {where}: CLI-004: {error.strerror or error}") from None
