"""The other shader of a program, where only one is given: it writes or reads all varyings.

Mesa leaves out what the other stage does not need, and makes one of varyings that always have the same
value. So that nothing of the given shader goes, a vertex shader that is made gives each varying a value
of its own, and a fragment shader reads all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from vc4lab.driver.glsl.tokens import PRECISIONS, Kind, Token, closing

SCALES, TEXTURE_COORDINATES = 64, 4
CONDITIONALS = ("if", "ifdef", "ifndef", "elif", "else", "endif")
_WRITTEN = {
    "float": "{v}.x", "vec2": "{v}.xy", "vec3": "{v}.xyz", "vec4": "{v}",
    "mat2": "mat2({v}.xy, {v}.zw)", "mat3": "mat3({v}.xyz, {v}.yzw, {v}.zwx)",
    "mat4": "mat4({v}, {v}.yzwx, {v}.zwxy, {v}.wxyz)",
}  # fmt: skip
_READ = {
    "float": "vec4({v})", "vec2": "{v}.xyxy", "vec3": "{v}.xyzx", "vec4": "{v}",
    "mat2": "({v}[0].xyxy + {v}[1].xyxy)", "mat3": "({v}[0] + {v}[1] + {v}[2]).xyzx",
    "mat4": "({v}[0] + {v}[1] + {v}[2] + {v}[3])",
}  # fmt: skip
_BUILT_IN_WRITES = {
    "gl_Color": "gl_FrontColor = vc4lab_place * vc4lab_scale[60];",
    "gl_SecondaryColor": "gl_FrontSecondaryColor = vc4lab_place * vc4lab_scale[61];",
    "gl_FogFragCoord": "gl_FogFragCoord = (vc4lab_place * vc4lab_scale[62]).x;",
    "gl_TexCoord": " ".join(
        f"gl_TexCoord[{n}] = vc4lab_place * vc4lab_scale[{48 + n}];" for n in range(TEXTURE_COORDINATES)
    ),
}
"""Statements that write built-in varyings of desktop OpenGL, by their names in a fragment shader."""
_BUILT_IN_READS = {
    "gl_FrontColor": "gl_FragColor += gl_Color;",
    "gl_FrontSecondaryColor": "gl_FragColor += gl_SecondaryColor;",
    "gl_FogFragCoord": "gl_FragColor += vec4(gl_FogFragCoord);",
    "gl_TexCoord": " ".join(f"gl_FragColor += gl_TexCoord[{n}];" for n in range(TEXTURE_COORDINATES)),
}


class Varying(NamedTuple):
    """A declared varying: type, name, and the text in its brackets if it is an array."""

    type: str
    name: str
    size: str
    start: int
    """The place of the declaration's first token."""


def varyings_of(tokens: Sequence[Token]) -> list[Varying]:
    """The varyings that a text declares, in whatever branch of its preprocessor."""
    found: list[Varying] = []
    depth = 0
    for at, token in enumerate(tokens):
        depth += (token.text == "{") - (token.text == "}")
        if token.kind is Kind.NAME and token.text == "varying" and not depth:
            found += _declared(tokens, at)
    return found


def _declared(tokens: Sequence[Token], start: int) -> Iterator[Varying]:
    at = start + 1
    while at < len(tokens) and tokens[at].text in PRECISIONS:
        at += 1
    if at >= len(tokens):
        return
    kind = tokens[at].text
    at += 1
    while at < len(tokens) and tokens[at].kind is Kind.NAME:
        name, size = tokens[at].text, ""
        at += 1
        if at < len(tokens) and tokens[at].text == "[":
            end = closing(tokens, at)
            size = " ".join(one.text for one in tokens[at + 1 : end])
            at = end + 1
        yield Varying(kind, name, size, start)
        if at >= len(tokens) or tokens[at].text != ",":
            return
        at += 1


def partner_of(tokens: Sequence[Token], *, vertex: bool, desktop: bool) -> str:
    """The text of the other shader. vertex: whether `tokens` are those of a vertex shader."""
    varyings = varyings_of(tokens)
    body = _reads(tokens, varyings) if vertex else _writes(tokens, varyings)
    names = {one.text for one in tokens}
    built_in = _BUILT_IN_READS if vertex else _BUILT_IN_WRITES
    extra = [text for name, text in built_in.items() if desktop and name in names]
    if vertex:
        precision = [] if desktop else ["precision highp float;"]
        begin = [*precision, *_globals(tokens)]
        return "\n".join([*begin, "void main() {", "gl_FragColor = vec4(0.0);", *body, *extra, "}"])
    begin = [*_globals(tokens), "attribute vec4 vc4lab_place;", f"uniform vec4 vc4lab_scale[{SCALES}];"]
    return "\n".join([*begin, "void main() {", "gl_Position = vc4lab_place;", *body, *extra, "}"])


def _globals(tokens: Sequence[Token]) -> list[str]:
    """Directives, constants and varyings, in their order."""
    lines, depth, at = [], 0, 0
    while at < len(tokens):
        token = tokens[at]
        depth += (token.text == "{") - (token.text == "}")
        is_wanted = not depth and token.text in ("const", "varying", "invariant")
        if token.kind is Kind.DIRECTIVE:
            if _word(token) not in ("error", "line", "pragma"):
                lines.append(token.text)
        elif is_wanted and (at == 0 or tokens[at - 1].text in (";", "}") or _is_directive(tokens[at - 1])):
            end = next((n for n in range(at, len(tokens)) if tokens[n].text == ";"), len(tokens))
            lines.append(" ".join(one.text for one in tokens[at : end + 1]))
            at = end
        at += 1
    # A version has to come first.
    return sorted(lines, key=lambda line: not line.startswith("#version"))


def _is_directive(token: Token) -> bool:
    return token.kind is Kind.DIRECTIVE


def _word(token: Token) -> str:
    words = token.text[1:].split()
    return words[0] if words else ""


def _by_condition(tokens: Sequence[Token], varyings: Sequence[Varying], lines: list[str]) -> list[str]:
    """Lines for varyings, within the conditions in which they are declared."""
    here: dict[int, list[str]] = {}
    for one, line in zip(varyings, lines, strict=True):
        here.setdefault(one.start, []).append(line)
    found: list[str] = []
    for at, token in enumerate(tokens):
        if _is_directive(token) and _word(token) in CONDITIONALS:
            found.append(token.text)
        found += here.get(at, ())
    return found


def _writes(tokens: Sequence[Token], varyings: Sequence[Varying]) -> list[str]:
    lines = []
    for number, one in enumerate(varyings):
        value = f"(vc4lab_place * vc4lab_scale[{number % SCALES}])"
        if one.size:
            value = f"(vc4lab_place * vc4lab_scale[{number % SCALES}] * float(i + 1))"
        text = _WRITTEN.get(one.type, f"{one.type}({{v}})").format(v=value)
        if one.size:
            lines.append(f"for (int i = 0; i < ({one.size}); i++) {one.name}[i] = {text};")
        else:
            lines.append(f"{one.name} = {text};")
    return _by_condition(tokens, varyings, lines)


def _reads(tokens: Sequence[Token], varyings: Sequence[Varying]) -> list[str]:
    lines = []
    for one in varyings:
        text = _READ.get(one.type, "vec4({v})").format(v=f"{one.name}[i]" if one.size else one.name)
        loop = f"for (int i = 0; i < ({one.size}); i++) " if one.size else ""
        lines.append(f"{loop}gl_FragColor += {text};")
    return _by_condition(tokens, varyings, lines)
