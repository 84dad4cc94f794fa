"""`vc4lab gl`: unmodified OpenGL programs with the distribution's Mesa on a VideoCore IV."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli import options as common
from vc4lab.cli.drm_signals import RunSignals
from vc4lab.cli.exit_codes import ExitCode, failed
from vc4lab.cli.outputs import say

if TYPE_CHECKING:
    from vc4lab.mesa.server.program import Program
    from vc4lab.mesa.server.server import Server

TRACES = ("gallium",)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""They wait until the program is started and can be ended."""


def gl(
    program: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- PROGRAM [ARGUMENTS]", help="The program and its arguments."),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option(
            help="gallium: print every message and command of Mesa on standard error.",
            metavar="NAME",
        ),
    ] = None,
    strict: common.StrictOption = False,
    inline: Annotated[
        bool,
        typer.Option(
            "--inline",
            help="Data through the socket, not in shared memory: version 0 of the protocol.",
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
) -> None:
    """Run an OpenGL program with the Mesa that is installed (drawing is not built yet)."""
    if not program or not program[0]:
        raise failed("no program given; for example: vc4lab gl --trace gallium -- glmark2-es2")
    if trace is not None and trace not in TRACES:
        raise failed(f"--trace {trace}: the choices are {', '.join(TRACES)}")
    from vc4lab.diagnostics import Reporter, StrictStop
    from vc4lab.mesa.server.program import (
        SOCKET,
        TMP,
        NotPossible,
        PrivateTmp,
        Program,
        raise_limit,
    )
    from vc4lab.mesa.server.server import Server
    from vc4lab.mesa.store.software import SoftwareScreen

    reporter = Reporter(strict)
    reporter.listeners.append(lambda item: say(str(item)))
    screen = SoftwareScreen(reporter)
    with contextlib.ExitStack() as stack:
        tmp = None if shared_tmp else stack.enter_context(PrivateTmp())
        path = TMP / SOCKET if tmp is None else tmp.socket
        try:
            server = stack.enter_context(
                Server(path, screen, reporter, protocol=0 if inline else 2)
            )
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise failed(f"vc4lab gl: {path}: {reason}") from None
        _trace(server, trace)
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            folder = None if tmp is None else tmp.path
            running = stack.enter_context(Program(program, folder, os.environ))
            stack.enter_context(RunSignals(running))
        except NotPossible as why:
            raise failed(f"vc4lab gl: GL-013: {why}; see vc4lab explain GL-013") from None
        except OSError as error:
            raise failed(str(error)) from None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        raise_limit()
        try:
            code = _run(server, running)
        except StrictStop as stop:
            typer.echo(f"stopped (strict): {stop.diagnostic.code}", err=True)
            raise typer.Exit(ExitCode.STRICT_STOP) from None
        if not server.connections:
            reporter.report("GL-011", f"{program[0]} did not connect to the server", block="GL")
    if screen.draws:
        say(f"{screen.draws} draws were left out")
    raise typer.Exit(code or (ExitCode.NOT_DRAWN if screen.draws else ExitCode.OK))


def _trace(server: Server, name: str | None) -> None:
    if name is not None:
        from vc4lab.mesa.trace import GalliumTrace

        GalliumTrace(server.listeners, lambda line: print(line, file=sys.stderr))


def _run(server: Server, program: Program) -> int:
    """Serve the program until it ends; its exit code."""
    server.watch(program.descriptor, server.end)
    server.run()
    return program.wait()
