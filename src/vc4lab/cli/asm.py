"""`vc4lab asm`: QPU assembly text → binary, hex words or a C array."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from vc4lab.cli.exit_codes import ExitCode, failed
from vc4lab.cli.options import FILE
from vc4lab.files import read_source, why, write_file


class Format(StrEnum):
    """What `asm` writes."""

    BIN = "bin"
    HEX = "hex"
    C = "c"


def asm(
    file: Annotated[str, typer.Argument(help="Assembly source, - for standard input.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="File to write; standard output if none.", parser=FILE),
    ] = None,
    format_: Annotated[
        Format | None,
        typer.Option(
            "--format", help="Default: by the output's name (.h/.c: c, .hex: hex, else bin)."
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the C array; default: the output's name.")
    ] = None,
    listing: Annotated[
        bool, typer.Option("--listing", help="Print addresses, words and source instead.")
    ] = False,
    warn: Annotated[
        bool, typer.Option("--lint/--no-lint", help="Check the instruction restrictions.")
    ] = True,
) -> None:
    """Assemble a QPU program (the dialect of hermanhermitage's qpuasm.js).

    Broken instruction restrictions are shown as warnings.
    """
    from vc4lab.cli.messages import note
    from vc4lab.diagnostics.catalogue import severity_of
    from vc4lab.qpu.text.assembler import MAX_SOURCE, AssemblyError, assemble
    from vc4lab.qpu.text.lint import lint

    shown = "<stdin>" if file == "-" else file
    try:
        assembly = assemble(read_source(file, MAX_SOURCE).decode("utf-8-sig"))
    except OSError as error:
        raise failed(f"{shown}: {why(error)}") from None
    except UnicodeDecodeError as error:
        raise failed(f"{shown}: not a text file (byte {error.start} is not UTF-8)") from None
    except AssemblyError as error:
        raise failed(error.shown(shown)) from None
    if warn:
        for finding in lint(assembly.words, assembly.raw):
            line, text = assembly.lines[finding.index]
            message = f"{finding.code}: {finding.message}: {text}"
            severity = severity_of(finding.code)
            note(severity)
            typer.echo(f"{shown}:{line}: {severity.name.lower()} {message}", err=True)
    suffix = output.suffix.lower() if output else ""
    if format_ is None:
        by_suffix = {".h": Format.C, ".c": Format.C, ".hex": Format.HEX}
        format_ = by_suffix.get(suffix, Format.BIN if output else Format.HEX)
    if listing:
        result = assembly.listing().encode()
    elif format_ == Format.C:
        result = assembly.to_c(_identifier(name or (output.stem if output else "qpu"))).encode()
    elif format_ == Format.HEX:
        result = "".join(f"{word:016x}\n" for word in assembly.words).encode()
    else:
        result = assembly.bytes
    if output is None:
        sys.stdout.buffer.write(result)
        sys.stdout.flush()
        return
    try:
        write_file(output, result)
    except OSError as error:
        raise failed(f"{output}: {why(error)}", ExitCode.OUTPUT) from None


def _identifier(text: str) -> str:
    """A C name made of a file name."""
    name = "".join(c if c.isascii() and c.isalnum() else "_" for c in text)
    return f"_{name}" if not name or name[0].isdigit() else name
