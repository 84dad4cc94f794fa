"""`vc4lab asm`: QPU assembly text → binary, hex, arrays of C and Python, `.word` lines, ELF."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli.exit_codes import ExitCode, failed
from vc4lab.cli.groups import Group
from vc4lab.cli.options import FILE
from vc4lab.files import read_source, why, write_file

if TYPE_CHECKING:
    from vc4lab.qpu.text.assembly import Assembly


LARGEST_SOURCE = 4 << 20
"""Bytes of a source."""


class Format(StrEnum):
    """Names the forms in which `asm` writes a program."""

    BIN = "bin"
    HEX = "hex"
    C = "c"
    PYTHON = "python"
    GAS = "gas"
    ELF = "elf"

    @classmethod
    def of(cls, suffix: str) -> Format:
        """The one that a file's name asks for; words in binary if none."""
        return _BY_SUFFIX.get(suffix, cls.BIN)


_BY_SUFFIX = {
    ".h": Format.C, ".c": Format.C, ".hex": Format.HEX, ".py": Format.PYTHON,
    ".s": Format.GAS, ".o": Format.ELF, ".elf": Format.ELF,
}  # fmt: skip

FormatOption = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="Default: by the output's name (.h/.c: c, .py: python, .s: gas, .o: elf, .hex: hex, else bin).",
    ),
]
NameOption = Annotated[
    str | None, typer.Option("--name", help="Name of the array or symbol; default: the output's name.")
]


@dataclass(frozen=True)
class SourceOptions(Group):
    """Says how a source is read."""

    dialect: Annotated[
        str | None,
        typer.Option(
            "--dialect",
            help="qpuasm, vc4asm, qpu-asm or qasm2; default: as the source shows it.",
            metavar="NAME",
        ),
    ] = None
    include: Annotated[
        list[Path] | None,
        typer.Option("-I", "--include", help="Folder with files to .include; may be repeated.", parser=FILE),
    ] = None


def asm(
    file: Annotated[str, typer.Argument(help="Assembly source, - for standard input.")],
    *,
    reading: SourceOptions,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="File to write; standard output if none.", parser=FILE),
    ] = None,
    format_: FormatOption = None,
    name: NameOption = None,
    listing: Annotated[
        bool, typer.Option("--listing", help="Print addresses, words and source instead.")
    ] = False,
    warn: Annotated[
        bool, typer.Option("--lint/--no-lint", help="Check the instruction restrictions.")
    ] = True,
) -> None:
    """Assemble a QPU program, in the dialect of qpuasm.js or of vc4asm.

    Broken instruction restrictions are shown as warnings.
    """
    shown = "<stdin>" if file == "-" else file
    assembly = read_assembly(file, reading)
    if warn:
        _lint(assembly, shown)
    write_assembly(assembly, output, format_, name, shown, listing=listing)


def write_assembly(
    assembly: Assembly,
    output: Path | None,
    format_: Format | None,
    name: str | None,
    shown: str,
    *,
    listing: bool = False,
) -> None:
    """Write a program in a format, that of the output's name if none is given; or its listing."""
    suffix = output.suffix.lower() if output else ""
    if format_ is None:
        format_ = Format.of(suffix) if output else Format.HEX
    result = formatted(assembly, format_, name or (output.stem if output else "qpu"), shown)
    if listing:
        result = assembly.listing().encode()
    if output is None:
        sys.stdout.buffer.write(result)
        sys.stdout.flush()
        return
    try:
        write_file(output, result)
    except OSError as error:
        raise failed(f"{output}: {why(error)}", ExitCode.OUTPUT) from None


def read_assembly(file: str, reading: SourceOptions, limit: int = LARGEST_SOURCE) -> Assembly:
    """The program of a source file, or the end of the command with its mistakes."""
    from vc4lab.qpu.dialects.choose import assemble_source
    from vc4lab.qpu.text.syntax import AssemblyError

    shown = "<stdin>" if file == "-" else file
    path = "" if file == "-" else file
    text = source_text(file, limit)
    try:
        assembly = assemble_source(text, dialect=reading.dialect, path=path, folders=reading.include or ())
    except OSError as error:
        raise failed(f"{shown}: {why(error)}") from None
    except AssemblyError as error:
        raise failed(error.shown(shown)) from None
    for note in assembly.notes:
        typer.echo(f"{note.file or shown}:{note.line}: note: {note.message}", err=True)
    return assembly


def source_text(file: str, limit: int = LARGEST_SOURCE) -> str:
    """A source file's text, or the end of the command."""
    shown = "<stdin>" if file == "-" else file
    try:
        return read_source(file, limit).decode("utf-8-sig")
    except OSError as error:
        raise failed(f"{shown}: {why(error)}") from None
    except UnicodeDecodeError as error:
        raise failed(f"{shown}: not a text file (byte {error.start} is not UTF-8)") from None


def formatted(assembly: Assembly, kind: Format, name: str, source: str) -> bytes:
    """A program as the bytes of a file. name: of its symbol; source: where it is from."""
    from vc4lab.qpu.text.elf import elf_object
    from vc4lab.qpu.text.outputs import c_source, gnu_source, hex_words, identifier, python_source

    name = identifier(name)
    if kind == Format.BIN:
        return assembly.bytes
    if kind == Format.ELF:
        return elf_object(assembly, name, source)
    if kind == Format.HEX:
        return hex_words(assembly).encode()
    writers = {Format.C: c_source, Format.PYTHON: python_source, Format.GAS: gnu_source}
    return writers[kind](assembly, name).encode()


def _lint(assembly: Assembly, shown: str) -> None:
    from vc4lab.cli.messages import note
    from vc4lab.diagnostics.catalogue import severity_of
    from vc4lab.qpu.lint.lint import lint

    for finding in lint(assembly.words, assembly.raw):
        line, text = assembly.lines[finding.index]
        message = f"{finding.code}: {finding.message}: {text}"
        severity = severity_of(finding.code)
        note(severity)
        place = assembly.file(finding.index) or shown
        typer.echo(f"{place}:{line}: {severity.name.lower()} {message}", err=True)
