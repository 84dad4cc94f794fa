"""What `run` and `debug` share: a QPU program, its memory and uniforms, as arguments say them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli.asm import read_assembly
from vc4lab.cli.exit_codes import failed
from vc4lab.cli.options import FILE, limits
from vc4lab.files import read_file, why
from vc4lab.ranges import BUDGET, QPU_COUNT

if TYPE_CHECKING:
    from vc4lab.debug.source import Source
    from vc4lab.diagnostics import Diagnostic
    from vc4lab.v3d.user_programs.experiment import Experiment

BINARY, HEX = ".bin", ".hex"
LARGEST_PROGRAM = 4 << 20
"""Bytes of a program's file, whatever its form."""
LARGEST_CARRIER = 16 << 20
"""Bytes of a file that has programs in it: an ELF file, a source in C."""

ProgramArgument = Annotated[
    Path,
    typer.Argument(
        help="Assembly text, or .bin: binary words, .hex: one word per line; with --symbol a C or "
        "assembly source, or an ELF file.",
        parser=FILE,
    ),
]
QpusOption = Annotated[int, typer.Option(help="QPUs to start it on.", **limits(QPU_COUNT))]
UniformsOption = Annotated[
    list[str] | None,
    typer.Option(
        "-u",
        "--uniforms",
        help="Words for one QPU, such as 'c + 256*qpu, 16, 1.5'; repeat it for the next QPU; "
        "the last list is for all that follow.",
    ),
]
MemoryOption = Annotated[
    list[str] | None,
    typer.Option("-m", "--memory", help="NAME=BYTES or NAME=@FILE; the name is its address."),
]
EntryOption = Annotated[str | None, typer.Option(help="Label to start at; default: the top.")]
SymbolOption = Annotated[
    str | None,
    typer.Option(
        help="The program is an ELF symbol, a C array, or the .word lines after a label.", metavar="NAME"
    ),
]
BudgetOption = Annotated[
    int | None, typer.Option(help="Instructions after which a program counts as endless.", **limits(BUDGET))
]
CheckOption = Annotated[
    bool,
    typer.Option(
        "--check/--no-check",
        help="Check the program before and during the run: restrictions, uniforms, memory, waits.",
    ),
]


def read_program(
    path: Path,
    entry: str | None,
    symbol: str | None = None,
    dialect: str | None = None,
    include: list[Path] | None = None,
) -> Source:
    """The program of a file, or the end of the command with what is wrong with it."""
    from vc4lab.debug.source import Source

    words = _words(path, symbol)
    if words is not None:
        if entry is not None:
            raise failed(f"{path}: words have no labels, so --entry {entry!r} is not possible")
        return Source(path, words)
    assembly = read_assembly(str(path), dialect, include, LARGEST_PROGRAM)
    if entry is not None and entry not in assembly.labels:
        known = ", ".join(assembly.labels) or "none"
        raise failed(f"{path}: there is no label {entry!r} (known: {known})")
    return Source.of(path, assembly, assembly.labels[entry] if entry is not None else 0)


def _words(path: Path, symbol: str | None) -> bytes | None:
    """The words of a file that is no source of QPU assembly; None if it is one."""
    from vc4lab.qpu.text.containers import ELF_MAGIC, NotFound, elf_code, text_code

    suffix = path.suffix.lower()
    try:
        if symbol is None and suffix in (BINARY, HEX):
            data = read_file(path, LARGEST_PROGRAM)
            return data if suffix == BINARY else _from_hex(path, data)
        with path.open("rb") as file:
            is_elf = file.read(len(ELF_MAGIC)) == ELF_MAGIC
        if symbol is None and not is_elf:
            return None
        data = read_file(path, LARGEST_CARRIER)
        if is_elf:
            return elf_code(data, symbol)[0]
        return text_code(data.decode("utf-8", "replace"), symbol or "")
    except OSError as error:
        raise failed(f"{path}: {why(error)}") from None
    except NotFound as error:
        raise failed(f"{path}: {error}") from None


def _from_hex(path: Path, data: bytes) -> bytes:
    try:
        words = [int(word, 16) for word in data.decode("utf-8-sig").split()]
        return b"".join(word.to_bytes(8, "little") for word in words)
    except UnicodeDecodeError as error:
        raise failed(f"{path}: not a text file (byte {error.start} is not UTF-8)") from None
    except (ValueError, OverflowError):
        raise failed(f"{path}: expected one hexadecimal 64-bit word per line") from None


def add_memories(experiment: Experiment, texts: Iterable[str] | None) -> None:
    """The named memories, or the end of the command. Raises ValueError."""
    for text in texts or ():
        try:
            experiment.add_area(text)
        except OSError as error:
            raise failed(f"{error.filename}: {why(error)}") from None


def show(source: Source, item: Diagnostic) -> None:
    """Print a message, with the line of the source it is about."""
    typer.echo(str(item), err=True)
    line = source.line(item.address) if item.address is not None else None
    if line is not None:
        typer.echo(f"    {source.path}:{line[0]}: {line[1]}", err=True)
