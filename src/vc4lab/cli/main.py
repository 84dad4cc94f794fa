"""`vc4lab`: one command per file of this folder; a command's imports happen when it runs."""

from __future__ import annotations

import errno
import io
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

import typer
import typer.core
import typer.main

from vc4lab import interruption
from vc4lab.cli.exit_codes import ExitCode, interrupted_code, table
from vc4lab.cli.groups import spread
from vc4lab.cli.memory_limit import lacks_memory, memory_sentence
from vc4lab.cli.messages import never_0_after_errors

if TYPE_CHECKING:
    import click  # newer typers have one of their own

COMMANDS = (
    "boot",
    "boards",
    "demo",
    "asm",
    "disasm",
    "lint",
    "opt",
    "compile",
    "run",
    "debug",
    "replay",
    "profile",
    "sweep",
    "drm",
    "gl",
    "show",
    "pixel",
    "why",
    "vertex",
    "diff",
    "check",
    "view",
    "unpack",
    "pack",
    "linux",
    "cache",
    "explain",
    "unknowns",
)
"""Name of the command, of its module in `vc4lab.cli` and of the function there."""

typer.core.HAS_RICH = False
"""Else typer escapes the brackets of defaults for Rich, which does not print this help."""


class _Commands(typer.core.TyperGroup):
    """Imports a command when it is asked for: starting one costs nothing of the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            self.commands[cmd_name] = _command(cmd_name)
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> object:
        with never_0_after_errors():
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS:
            for name in COMMANDS:  # one of them may have been meant
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)


def _command(name: str) -> click.Command:
    module = import_module(f"vc4lab.cli.{name}")
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    special = getattr(module, "COMMAND", None)
    alone.command(name, cls=special, epilog=table())(spread(getattr(module, name)))
    return typer.main.get_command(alone)


app = typer.Typer(
    name="vc4lab",
    cls=_Commands,
    help="The Raspberry Pi's GPU, VideoCore IV V3D, as software.",
    epilog=table(),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _options(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        from vc4lab import __version__

        typer.echo(f"vc4lab {__version__}")
        raise typer.Exit


FULL = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""Error numbers of a standard output that takes no more; files of options are looked after where they
are written."""


def _output_lost(why: str | None = None) -> NoReturn:
    """Leave: what is printed is not taken, and what is still in the buffer must not try again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    if why:
        print(f"vc4lab: CLI-001: standard output: {why}", file=sys.stderr)
    sys.exit(ExitCode.OUTPUT)


def _open_streams() -> None:
    """Put something where standard input, output or error was closed before the start.

    Reading and writing there fails, as it should, with an error about the stream; and no file that
    is opened later takes its number and gets what is printed.
    """
    for number, (name, flags) in enumerate(
        (("stdin", os.O_WRONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY))
    ):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, flags)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            stream = open(number, "r" if name == "stdin" else "w", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def _print_anything() -> None:
    """Names of files need not be text, and a terminal need not have all characters."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _why(error: OSError) -> str:
    return "it is closed" if error.errno == errno.EBADF else str(error.strerror)


def run() -> None:
    """The program's entry point: whatever goes wrong ends in a sentence and an exit code."""
    _open_streams()
    _print_anything()
    try:
        import_module("vc4lab.optimisations")
    except ValueError as error:
        print(f"vc4lab: {error}", file=sys.stderr)
        sys.exit(ExitCode.BAD_INPUT)
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(interrupted_code())
    except SystemExit as end:
        if end.code == ExitCode.INTERRUPTED and interruption.came():  # typer knows Ctrl-C only
            sys.exit(interrupted_code())
        if isinstance(end.__context__, BrokenPipeError):  # click gives it a code of its own
            _output_lost()
        try:
            sys.stdout.flush()
        except OSError as error:
            _output_lost(_why(error))
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FULL:
            _output_lost(_why(error))
        if interruption.came():  # Python has made another error of it, as its parser does
            sys.exit(interrupted_code())
        if os.environ.get("VC4LAB_TRACEBACK"):
            raise
        if lacks_memory(error):
            print(f"vc4lab: {memory_sentence()}", file=sys.stderr)
            sys.exit(ExitCode.BAD_INPUT)
        text = " ".join(str(error).split())[:300]
        print(
            f"vc4lab: CLI-003: internal error, {type(error).__name__}: {text}\n"
            "Set VC4LAB_TRACEBACK=1 to see where it happened.",
            file=sys.stderr,
        )
        sys.exit(ExitCode.INTERNAL)
