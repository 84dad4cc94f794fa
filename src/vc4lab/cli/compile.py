"""`vc4lab compile`: shaders in GLSL or Mesa's text form become programs for the QPU, step by step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli.asm import FormatOption, NameOption, write_assembly
from vc4lab.cli.compile_programs import Flags, Listed, StageName, need_some, programs_of
from vc4lab.cli.exit_codes import ExitCode, failed
from vc4lab.cli.groups import Without
from vc4lab.cli.options import FILE
from vc4lab.cli.timing_options import TimingOptions, timer_of
from vc4lab.files import read_source, why, write_file

if TYPE_CHECKING:
    from vc4lab.driver.glsl.load import LoadedShader
    from vc4lab.timing.chip import Chip

LARGEST_INPUT = 4 << 20
"""Bytes of a shader's text."""
NOT_TIMED = "the picture had no vertices of it, or its program was another"
WORDS = (".bin", ".hex")
"""Files of words, to compare with: what another version of the compiler has made."""


@dataclass(frozen=True)
class CompileTimingOptions(TimingOptions):
    """Says how the programs are timed, in a picture that they draw."""

    timing: Annotated[
        bool, typer.Option("--timing", help="Clocks of each instruction, in a picture of 256x256 pixels.")
    ] = False


def compile(
    files: Annotated[
        list[str],
        typer.Argument(
            help="A shader in GLSL (.frag, .vert) or TGSI, or both of a program; - for standard input.",
            metavar="FILE…",
        ),
    ],
    *,
    timed: Annotated[CompileTimingOptions, Without("as_json")],
    stage: Annotated[
        StageName | None, typer.Option(help="Which program; default: vertex and fragment, of what is given.")
    ] = None,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Show each step: TGSI, SSA; and the lines of TGSI beside GLSL's."),
    ] = False,
    api: Annotated[
        str | None,
        typer.Option(
            help="es: GLSL ES 1.00, gl: GLSL 1.10 and 1.20; default: as the text shows it.", metavar="es|gl"
        ),
    ] = None,
    blend: Annotated[
        bool, typer.Option("--blend", help="Fragments are blended: source alpha, 1 - source alpha.")
    ] = False,
    depth: Annotated[bool, typer.Option("--depth/--no-depth", help="Fragments are tested for depth.")] = True,
    unroll: Annotated[bool, typer.Option("--unroll/--no-unroll", help="Short loops are unrolled.")] = True,
    threads: Annotated[
        bool,
        typer.Option("--threads/--no-threads", help="Fragment programs that sample may have two threads."),
    ] = True,
    compare: Annotated[
        str | None,
        typer.Option(
            help="With another shader, words of another version (.bin, .hex), or flags: no-threads,blend.",
            metavar="FILE|FLAGS",
        ),
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="With --timing: the clocks of each line of the source.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the words to a file, as `asm` does.", parser=FILE),
    ] = None,
    format_: FormatOption = None,
    name: NameOption = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Write a page with source and instructions here.", metavar="F.html", parser=FILE),
    ] = None,
) -> None:
    """Compile a shader for the QPU and list its program beside its source, and its uniforms.

    GLSL is compiled by the Mesa that is installed, as far as TGSI.
    """
    from vc4lab.cli.compile_listing import comparison, line_table, listing, steps

    timed.check((("--lines", lines),))
    flags = Flags(blend, depth, unroll, threads)
    on = _chip(timed.chip, timed.board) if timed.timing else None
    loaded = _loaded(files, api)
    found = _programs(loaded, stage, flags, on)
    need_some(found, stage, loaded)
    if output is not None and len(found) > 1:
        raise failed(f"{output}: there are {len(found)} programs; say which with --stage")
    text: list[str] = []
    for shader in loaded if explain else ():
        text += steps(shader.program)
    for one in found:
        text += ["", *listing(one, explain)] if text else listing(one, explain)
        text += line_table(one) if lines and one.use is not None else ()
        if timed.timing and one.use is None:
            text.append(f"# the {one.stage} program was not timed: {NOT_TIMED}")
    if compare is not None:
        for one, other in _pairs(found, _others(compare, loaded, stage, flags, on, api)):
            text += ["", *comparison(one, other)]
    typer.echo("\n".join(text))
    if html is not None:
        _write_page(html, found)
    if output is not None:
        write_assembly(found[0].assembly(), output, format_, name, files[0])


def _write_page(path: Path, programs: list[Listed]) -> None:
    """Write the page of programs. Raises typer.Exit."""
    from vc4lab.cli.compile_listing import page_part
    from vc4lab.viewer.shader_page import shader_page

    names = ", ".join(dict.fromkeys(one.name for one in programs))
    try:
        write_file(path, shader_page(names, [page_part(one) for one in programs]).encode())
    except OSError as error:
        raise failed(f"{path}: {why(error)}", ExitCode.OUTPUT) from None


def _chip(chip: str | None, board: str | None) -> tuple[Chip, str]:
    """The chip and the board to time for. Raises typer.Exit."""
    from vc4lab.timing.boards import board_of
    from vc4lab.timing.chip import load_chip

    def made(name: str, where: str) -> tuple[Chip, str]:
        found = load_chip(name)
        return found, board_of(found, where)

    return timer_of(made, chip, board)


def _loaded(files: list[str], api: str | None) -> list[LoadedShader]:
    """The shaders, or the end of the command."""
    from vc4lab.driver.compiler.tgsi.program import TgsiError
    from vc4lab.driver.glsl.load import APIS, GlslError, ShaderFile, load
    from vc4lab.mesa.glsl.link import NoMesa

    if len(files) > 2:
        raise failed(f"{len(files)} files: a program has a vertex and a fragment shader")
    if api is not None and api not in APIS:
        raise failed(f"--api {api}: the choices are {', '.join(APIS)}")
    texts = []
    for file in files:
        try:
            texts.append(ShaderFile(file, read_source(file, LARGEST_INPUT).decode("utf-8", "replace")))
        except OSError as error:
            raise failed(f"{file}: {why(error)}") from None
    try:
        found = load(texts, api=api)
    except TgsiError as error:
        raise failed(f"{files[0]}: {error.code}: {error}") from None
    except GlslError as error:
        raise failed(str(error)) from None
    except NoMesa as error:
        raise failed(f"{files[0]}: {error}") from None
    for one in found:
        for note in one.notes:
            typer.echo(note, err=True)
        for statement in one.untold:
            typer.echo(
                f"{one.file.name}:{statement.line}: note: what this statement makes cannot be told from "
                "what follows",
                err=True,
            )
    return found


def _programs(
    loaded: list[LoadedShader], stage: StageName | None, flags: Flags, timed: tuple[Chip, str] | None
) -> list[Listed]:
    """The programs to list, or the end of the command."""
    from vc4lab.driver.compiler.tgsi.program import TgsiError
    from vc4lab.driver.shader_clocks import NotTimed
    from vc4lab.qpu.machine.code import TooComplex

    found: list[Listed] = []
    for one in loaded:
        try:
            found += programs_of(one, stage, flags, timed)
        except TgsiError as error:
            raise failed(f"{one.file.name}: {error.code}: {error}") from None
        except (TooComplex, NotTimed) as error:
            raise failed(f"{one.file.name}: {error}") from None
    return found


def _others(
    compare: str,
    loaded: list[LoadedShader],
    stage: StageName | None,
    flags: Flags,
    timed: tuple[Chip, str] | None,
    api: str | None,
) -> list[Listed]:
    """Return the programs to compare with, or end the command with a message."""
    from vc4lab.cli.disasm import words_of_file

    if Path(compare).suffix.lower() in WORDS:
        return [Listed(compare, words_of_file(compare, None))]
    if Path(compare).exists():
        return _programs(_loaded([compare], api), stage, flags, timed)
    try:
        changed = flags.changed(compare)
    except ValueError as error:
        raise failed(f"--compare {compare}: no such file, and {error}") from None
    found = _programs(loaded, stage, changed, timed)
    return [replace(one, name=f"{one.name} with {compare}") for one in found]


def _pairs(found: list[Listed], others: list[Listed]) -> list[tuple[Listed, Listed]]:
    """Programs of the same stage; words of which no stage is known stand for the first one's."""
    pairs = [(one, other) for one in found for other in others if other.stage in (one.stage, "?")]
    if not pairs:
        stages = ", ".join(one.stage for one in others) or "nothing"
        raise failed(f"--compare: there is no {found[0].stage} program to compare with, but {stages}")
    return pairs[:1] if others[0].stage == "?" else pairs
