"""`vc4lab debug`: a QPU program stepped, in lines, on the whole screen, or from an editor."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli.exit_codes import failed
from vc4lab.cli.options import FILE, UnknownOption, unknowns_of
from vc4lab.cli.programs import PROGRAM, ProgramOptions
from vc4lab.files import why
from vc4lab.ranges import PORT

if TYPE_CHECKING:
    from vc4lab.debug.console import Console
    from vc4lab.debug.launch import Launch
    from vc4lab.debug.screen.app import Screen
    from vc4lab.debug.session import Session


def debug(
    program: Annotated[Path | None, PROGRAM] = None,
    *,
    options: ProgramOptions,
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
    """Step a QPU program: all QPUs, forward and backward, with breakpoints; as `vc4lab run` starts it.

    Commands are read from the terminal or a pipe; `help` lists them.
    """
    launch = _launch(program, options, unknown)
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
    )


def _session(launch: Launch) -> Session:
    """The program where it begins, or the end of the command."""
    from vc4lab.debug.launch import LaunchError

    try:
        session, notes = launch.session()
    except LaunchError as error:
        raise failed(str(error)) from None
    for note in notes:
        typer.echo(note, err=True)
    return session


def _serve(where: str, launch: Launch) -> None:
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
