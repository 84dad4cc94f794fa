"""`vc4lab lint`: restrictions that QPU programs break, and what the Linux driver refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli.asm import LARGEST_SOURCE, SourceOptions, read_assembly
from vc4lab.cli.exit_codes import ExitCode, failed
from vc4lab.cli.recorded_programs import is_recorded, recorded_programs
from vc4lab.files import read_source, why, write_file

if TYPE_CHECKING:
    from vc4lab.diagnostics.sarif import Placed
    from vc4lab.qpu.text.assembly import Assembly

WORDS = (".bin", ".hex", ".o", ".elf")
MAX_ROUNDS = 8
"""A `nop` for one rule can be in the way of another."""


class Profile(StrEnum):
    """Whose rules count."""

    CHIP = "chip"
    LINUX = "linux"


class Output(StrEnum):
    """How findings are printed."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"


def lint(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Assembly sources; .bin, .hex and ELF files; captures and folders of recorded jobs. - for "
            "standard input."
        ),
    ],
    profile: Annotated[
        Profile,
        typer.Option(
            help="chip: the hardware's restrictions; linux: also the rules by which the kernel's "
            "vc4 driver refuses shaders."
        ),
    ] = Profile.CHIP,
    *,
    reading: SourceOptions,
    symbol: Annotated[
        str | None,
        typer.Option(help="ELF symbol, C array or label before .word lines to check.", metavar="NAME"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as a JSON list.")] = False,
    as_sarif: Annotated[bool, typer.Option("--sarif", help="Print the findings as SARIF 2.1.0.")] = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Insert nop into sources where two instructions are too close.")
    ] = False,
) -> None:
    """Check QPU programs along every way through them.

    `vc4lab explain CODE` says what a code means. The exit code is 7 if there are errors.
    """
    from vc4lab import __version__
    from vc4lab.cli.messages import note
    from vc4lab.diagnostics.sarif import sarif

    if as_json and as_sarif:
        raise failed("--json and --sarif exclude each other")
    found: list[Placed] = []
    for file in files:
        if is_recorded(file):
            found += _recorded(file, profile)
            continue
        assembly = assembly_of(file, reading, symbol)
        if fix and symbol is None and not _is_words(file):
            assembly = _fix(file, assembly, reading)
        found += _findings(file, assembly, profile)
    for finding in found:
        note(finding.severity)
        if not as_json and not as_sarif:
            typer.echo(finding.shown())
    if as_json:
        typer.echo(json.dumps([item.to_json() for item in found], indent=2, ensure_ascii=False))
    elif as_sarif:
        typer.echo(json.dumps(sarif(found, __version__), indent=2, ensure_ascii=False))


def _is_words(file: str) -> bool:
    return Path(file).suffix.lower() in WORDS


def assembly_of(file: str, reading: SourceOptions, symbol: str | None) -> Assembly:
    """The program of a source or of a file of words, or the end of the command."""
    from vc4lab.cli.disasm import words_of_file
    from vc4lab.qpu.text.assembly import Assembly
    from vc4lab.qpu.text.disassembler import disassemble

    if symbol is None and not _is_words(file):
        return read_assembly(file, reading)
    words = words_of_file(file, symbol)
    return Assembly(words, {}, lines=tuple((0, disassemble(word)) for word in words))


def _recorded(file: str, profile: Profile) -> Iterator[Placed]:
    """The findings in the programs of recorded work; what they are about stands in place of a line."""
    from vc4lab.qpu.text.assembly import Assembly
    from vc4lab.qpu.text.disassembler import disassemble

    for number, one in enumerate(recorded_programs(file), 1):
        lines = tuple((0, disassemble(word)) for word in one.words)
        yield from _findings(
            f"{file}: program {number} ({one.kind})", Assembly(one.words, {}, lines=lines), profile
        )


def _findings(file: str, assembly: Assembly, profile: Profile) -> Iterator[Placed]:
    from vc4lab.diagnostics.catalogue import severity_of
    from vc4lab.diagnostics.sarif import Placed
    from vc4lab.drm.kernel.shader_rules import Violation, check_shader
    from vc4lab.qpu.lint.lint import Finding
    from vc4lab.qpu.lint.lint import lint as findings_of

    found = findings_of(assembly.words, assembly.raw)
    if profile == Profile.LINUX:
        try:
            check_shader(assembly.words)
        except Violation as violation:
            found.append(Finding(violation.code, violation.index, str(violation)))
    for finding in found:
        index = min(finding.index, len(assembly.lines) - 1)
        line, text = assembly.lines[index] if assembly.lines else (0, "")
        place = (assembly.file(index) if assembly.lines else "") or file
        severity = severity_of(finding.code)
        yield Placed(finding.code, severity, finding.message, place, line, finding.index, text)


def _fix(file: str, assembly: Assembly, reading: SourceOptions) -> Assembly:
    """Insert what cures, as long as there is something; the program then."""
    from vc4lab.qpu.lint.fixes import fixed, fixes

    count = 0
    for _ in range(MAX_ROUNDS):
        found = fixes(assembly)
        if not found or file == "-":
            break
        try:
            text = read_source(file, LARGEST_SOURCE).decode("utf-8-sig")
            write_file(file, fixed(text, found).encode())
        except OSError as error:
            raise failed(f"{file}: {why(error)}", ExitCode.OUTPUT) from None
        count += sum(fix.nops for fix in found.values())
        assembly = read_assembly(file, reading)
    if count:
        typer.echo(f"{file}: {count} nop inserted", err=True)
    return assembly
