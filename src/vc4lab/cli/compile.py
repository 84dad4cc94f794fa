"""`vc4lab compile`: a shader in Mesa's text form becomes a program for the QPU, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli.exit_codes import failed
from vc4lab.files import Unusable, read_source, why, write_file

if TYPE_CHECKING:
    from vc4lab.driver.compiler.interface import CompiledShader
    from vc4lab.driver.compiler.tgsi.program import Program

LARGEST_INPUT = 4 << 20
"""Bytes of a shader's text."""


class StageName(Enum):
    """The programs of a draw."""

    FRAGMENT = "fragment"
    VERTEX = "vertex"
    COORDINATE = "coordinate"


def compile(
    file: Annotated[str, typer.Argument(help="TGSI text, - for standard input.")],
    stage: Annotated[
        StageName | None, typer.Option(help="Which program; by itself what the text's first line says.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show each step: the text, SSA, where words come from.")
    ] = False,
    blend: Annotated[
        bool, typer.Option("--blend", help="Fragments are blended: source alpha, 1 - source alpha.")
    ] = False,
    depth: Annotated[bool, typer.Option("--depth/--no-depth", help="Fragments are tested for depth.")] = True,
    output: Annotated[str, typer.Option("--output", "-o", help="Write the words to a binary file.")] = "",
) -> None:
    """Compile a shader for the QPU and list its program and its uniforms."""
    from vc4lab.driver.compiler.tgsi.parser import parse
    from vc4lab.driver.compiler.tgsi.program import TgsiError
    from vc4lab.qpu.machine.code import TooComplex

    try:
        text = read_source(file, LARGEST_INPUT).decode("utf-8", "replace")
    except OSError as error:
        raise failed(f"{file}: {why(error)}") from None
    try:
        program = parse(text)
        shader = _compiled(program, _stage(program, stage, file), blend, depth)
        lines = [*(_steps(program) if explain else ()), *_listing(shader, explain)]
    except TgsiError as error:
        raise failed(f"{file}: {error.code}: {error}") from None
    except TooComplex as error:
        raise failed(f"{file}: {error}") from None
    typer.echo("\n".join(lines))
    if output:
        try:
            write_file(Path(output), shader.code)
        except (Unusable, OSError) as error:
            raise failed(f"{output}: {why(error)}") from None


def _stage(program: Program, stage: StageName | None, file: str) -> StageName:
    """The stage that is asked for, or that of the text."""
    is_fragment = program.stage == "FRAG"
    if stage is None:
        return StageName.FRAGMENT if is_fragment else StageName.VERTEX
    if (stage is StageName.FRAGMENT) != is_fragment:
        raise failed(f"{file}: the text is a {program.stage} shader, no {stage.value} program")
    return stage


def _compiled(program: Program, stage: StageName, blend: bool, depth: bool) -> CompiledShader:
    """The program with state as a simple draw has it: attributes of floats, an RGBA8888 buffer."""
    from vc4lab.driver.compiler.compile import compile_fragment, compile_vertex
    from vc4lab.driver.compiler.interface import ColorTarget, FragmentKey, Varying, VertexKey
    from vc4lab.driver.compiler.tgsi.program import File
    from vc4lab.mesa.protocol.codes import BlendFactor, BlendFunc
    from vc4lab.mesa.protocol.formats import Format
    from vc4lab.mesa.protocol.objects import BlendTarget

    if stage is StageName.FRAGMENT:
        source, rest = BlendFactor.SRC_ALPHA, BlendFactor.INV_SRC_ALPHA
        rule = BlendTarget(
            blend_enable=True, colormask=15,
            rgb_func=BlendFunc.ADD, rgb_src_factor=source, rgb_dst_factor=rest,
            alpha_func=BlendFunc.ADD, alpha_src_factor=source, alpha_dst_factor=rest,
        )  # fmt: skip
        color = ColorTarget(blend=rule if blend else None)
        return compile_fragment(program, FragmentKey(color=color, writes_z=depth))
    declared = program.declarations
    elements = max((one.last + 1 for one in declared if one.file is File.IN), default=0)
    varyings = tuple(
        Varying(one.semantic.name, one.semantic.index + number - one.first, component)
        for one in declared
        if one.file is File.OUT and one.semantic is not None
        if one.semantic.name not in ("POSITION", "PSIZE")
        for number in range(one.first, one.last + 1)
        for component in range(4)
        if "xyzw"[component] in one.mask
    )
    formats = (int(Format.R32G32B32A32_FLOAT),) * elements
    both = compile_vertex(program, VertexKey(formats=formats, varyings=varyings))
    return both.vertex if stage is StageName.VERTEX else both.coordinate


def _steps(program: Program) -> Iterator[str]:
    """The text, the SSA form, and what it is without control flow."""
    from vc4lab.driver.compiler.ssa.flatten import flatten
    from vc4lab.driver.compiler.ssa.from_tgsi import to_ssa
    from vc4lab.driver.compiler.ssa.inspection import print_ssa
    from vc4lab.driver.compiler.ssa.optimise import optimise
    from vc4lab.driver.compiler.tgsi.program import print_tgsi

    function = optimise(to_ssa(program))
    yield "# text"
    yield print_tgsi(program).rstrip()
    yield "\n# SSA: one word per value"
    yield print_ssa(function).rstrip()
    yield "\n# without conditions and arrays"
    yield print_ssa(optimise(flatten(function))).rstrip()
    yield ""


def _listing(shader: CompiledShader, explain: bool) -> Iterator[str]:
    """The words with their meaning, then the uniform stream."""
    from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES
    from vc4lab.qpu.text.disassembler import disassemble

    yield f"# {shader.stage.value} program: {len(shader.words)} instructions"
    for number, word in enumerate(shader.words):
        text = f"{number:4}  {word:016x}  {disassemble(word, INSTRUCTION_BYTES * number)}"
        lines = shader.lines[number] if number < len(shader.lines) else ()
        if explain and lines:
            text = f"{text:<72} # line {', '.join(map(str, lines))}"
        yield text
    if shader.varyings:
        yield "\n# varyings: " + ", ".join(
            f"{one.name}[{one.index}].{'xyzw'[one.component]}" for one in shader.varyings
        )
    yield f"\n# {len(shader.uniforms)} uniforms"
    for number, uniform in enumerate(shader.uniforms):
        yield f"{number:4}  {uniform}"
