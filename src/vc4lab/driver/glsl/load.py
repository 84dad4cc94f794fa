"""Shader files → what they are in TGSI, with the lines that their instructions come from.

    shaders = load([ShaderFile("a.frag", text)])
    shaders[0].program, shaders[0].lines

GLSL goes through Mesa (`mesa/glsl`), with a partner of its own where only one shader is given; TGSI is
taken as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from vc4lab.driver.compiler.tgsi.parser import parse
from vc4lab.driver.compiler.tgsi.program import Program
from vc4lab.driver.glsl.lines import Lines
from vc4lab.driver.glsl.partner import partner_of
from vc4lab.driver.glsl.probes import Probe, Statement, output_of, probes_of
from vc4lab.driver.glsl.tokens import Token, is_desktop, is_tgsi, is_vertex, tokens_of
from vc4lab.mesa.glsl.link import Linked, Sources, with_mesa

_PLACE = re.compile(r"^\d+:(\d+)\((\d+)\): (.*)$")
APIS = ("es", "gl")


class ShaderFile(NamedTuple):
    """A shader's file and text."""

    name: str
    text: str


class GlslError(ValueError):
    """Mesa does not take the shaders; the text has a line for each mistake, with file and place."""


@dataclass(frozen=True)
class LoadedShader:
    """A shader as the compiler takes it.

    Attributes
    ----------
    file
        The file that it is from.
    program, tgsi
        The shader, and its text.
    lines
        The lines of values, of shaders in GLSL.
    untold
        Statements whose instructions cannot be told from those of the next.
    notes
        Mesa's further messages, with file and place.
    """

    file: ShaderFile
    program: Program
    tgsi: str
    lines: Lines | None = None
    untold: tuple[Statement, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def source(self) -> list[str]:
        """The lines of its text."""
        return self.file.text.splitlines()


class _Glsl(NamedTuple):
    """A shader in GLSL on its way."""

    file: ShaderFile
    tokens: list[Token]
    is_vertex: bool


def load(
    files: Sequence[ShaderFile], *, api: str | None = None, finds_lines: bool = True
) -> list[LoadedShader]:
    """One shader, or the two of a program. Raises GlslError, TgsiError, NoMesa.

    api: "es" or "gl"; None: as the text shows it. finds_lines: whether lines of GLSL are looked for.
    """
    if any(is_tgsi(one.text) for one in files):
        made = [LoadedShader(one, parse(one.text), one.text) for one in files]
        if len({one.program.stage for one in made}) < len(made):
            raise GlslError(f"{files[1].name}: a program has one shader of each kind")
        return made
    shaders = []
    for file in files:
        tokens = tokens_of(file.text)
        shaders.append(_Glsl(file, tokens, is_vertex(file.name, tokens)))
    if len({one.is_vertex for one in shaders}) < len(shaders):
        kind = "vertex" if shaders[0].is_vertex else "fragment"
        raise GlslError(f"{files[1].name}: both are {kind} shaders; a program has one of each kind")
    desktop = api == "gl" or (api is None and any(is_desktop(one.tokens) for one in shaders))
    return _through_mesa(shaders, desktop, finds_lines)


def _through_mesa(shaders: list[_Glsl], desktop: bool, finds_lines: bool) -> list[LoadedShader]:
    probes = [
        probes_of(one.file.text, one.tokens, vertex=one.is_vertex, desktop=desktop) if finds_lines else []
        for one in shaders
    ]
    programs = [_sources(shaders, desktop, None, "")]
    for one, mine in zip(shaders, probes, strict=True):
        programs += [_sources(shaders, desktop, one, probe.text) for probe in mine]
    first, *rest = with_mesa("gl" if desktop else "es", programs)
    messages = _messages(first, shaders)
    if not first.is_linked:
        raise GlslError(
            "\n".join(messages) or f"{shaders[0].file.name}: Mesa does not link it, and does not say why"
        )
    found = []
    for one, mine in zip(shaders, probes, strict=True):
        shown, rest = rest[: len(mine)], rest[len(mine) :]
        found.append(_loaded(one, first, mine, shown, tuple(messages) if one is shaders[0] else ()))
    return found


def _sources(shaders: list[_Glsl], desktop: bool, changed: _Glsl | None, text: str) -> Sources:
    """A program with one shader's text changed."""
    texts = {one.is_vertex: text if one is changed else one.file.text for one in shaders}
    for one in shaders:
        if (not one.is_vertex) not in texts:
            texts[not one.is_vertex] = partner_of(one.tokens, vertex=one.is_vertex, desktop=desktop)
    return Sources(texts[True], texts[False])


def _loaded(
    one: _Glsl, linked: Linked, probes: list[Probe], shown: list[Linked], notes: tuple[str, ...]
) -> LoadedShader:
    text = linked.vertex if one.is_vertex else linked.fragment
    program = parse(text)
    lines = Lines(program)
    output = output_of(one.tokens, vertex=one.is_vertex)
    untold = []
    for probe, result in zip(probes, shown, strict=True):
        made = result.vertex if one.is_vertex else result.fragment
        if not result.is_linked or not lines.add(probe.statement, made, output):
            untold.append(probe.statement)
    return LoadedShader(one.file, program, text, lines, tuple(untold), notes)


def _messages(linked: Linked, shaders: list[_Glsl]) -> list[str]:
    """Mesa's info logs, with the names of files."""
    names = {("vertex" if one.is_vertex else "fragment"): one.file.name for one in shaders}
    found: list[str] = []
    for stage, log in linked.logs.items():
        name = names.get(stage, shaders[0].file.name if stage == "link" else "")
        for line in log.splitlines() if name else ():
            place = _PLACE.match(line)
            found.append(f"{name}:{place[1]}:{place[2]}: {place[3]}" if place else f"{name}: {line}")
    for stage, log in linked.logs.items():
        if stage in ("vertex", "fragment") and stage not in names and not (linked.is_linked or found):
            line = next(iter(log.splitlines()), "")
            found.append(
                f"{shaders[0].file.name}: the {stage} shader that is made for it is not taken ({line}): give "
                "yours, too"
            )
    return found
