"""GLSL text → words with their places, as far as listings need it; Mesa is what understands it.

Comments disappear, lines of the preprocessor are one token each. What is no GLSL gives tokens, too:
whether a text is right is for Mesa to say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from pathlib import PurePath
from typing import NamedTuple

_TOKEN = re.compile(
    r"(?P<skip>\s+|//[^\n]*|/\*.*?(?:\*/|\Z)|\\\n)"
    r"|(?P<directive>\#(?:\\\n|/\*.*?(?:\*/|\Z)|[^\n])*)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<number>\.?\d(?:[\w.]|(?<=[eE])[+-])*)"
    r"|(?P<op>\+\+|--|[-+*/%<>=!&|^]=|<<=?|>>=?|&&|\|\||\^\^|.)",
    re.DOTALL,
)
DESKTOP_NAMES = frozenset((
    *("ftransform", "gl_Vertex", "gl_Normal", "gl_Color", "gl_SecondaryColor", "gl_TexCoord"),
    *("gl_ModelViewMatrix", "gl_ModelViewProjectionMatrix", "gl_ProjectionMatrix", "gl_NormalMatrix"),
    *("gl_FrontColor", "gl_BackColor", "gl_ClipVertex", "gl_FogFragCoord", "gl_LightSource", "gl_Fog"),
    *(f"gl_MultiTexCoord{number}" for number in range(8)),
))  # fmt: skip
"""Built-in variables that OpenGL ES does not have."""
VERTEX_SUFFIXES, FRAGMENT_SUFFIXES = (".vert", ".vs", ".vsh"), (".frag", ".fs", ".fsh")
FRAGMENT_NAMES = frozenset(("gl_FragColor", "gl_FragData", "gl_FragCoord", "gl_FrontFacing", "discard"))
PRECISIONS = ("lowp", "mediump", "highp")


class Kind(Enum):
    """Names the kind of a token."""

    DIRECTIVE = "directive"
    NAME = "name"
    NUMBER = "number"
    OP = "op"


class Token(NamedTuple):
    """A word: its text, where it begins and ends, and its line from 1."""

    kind: Kind
    text: str
    start: int
    end: int
    line: int


def tokens_of(text: str) -> list[Token]:
    """All tokens of a text."""
    found = []
    line, seen = 1, 0
    for match in _TOKEN.finditer(text):
        group = match.lastgroup
        if group == "skip" or group is None:
            continue
        line += text.count("\n", seen, match.start())
        seen = match.start()
        found.append(Token(Kind(group), match[0], match.start(), match.end(), line))
    return found


def is_tgsi(text: str) -> bool:
    """Whether a text begins as TGSI does."""
    return text.lstrip().split(maxsplit=1)[:1] in (["FRAG"], ["VERT"])


def is_vertex(file: str, tokens: Sequence[Token]) -> bool:
    """Whether a text is a vertex shader: by its file's name, else by what it uses."""
    suffix = PurePath(file).suffix.lower()
    if suffix in VERTEX_SUFFIXES or suffix in FRAGMENT_SUFFIXES:
        return suffix in VERTEX_SUFFIXES
    names = {one.text for one in tokens if one.kind is Kind.NAME}
    return not names & FRAGMENT_NAMES and bool(names & {"gl_Position", "attribute"})


def is_desktop(tokens: Sequence[Token]) -> bool:
    """Whether a text is for desktop OpenGL: by its version, else by what it uses."""
    for one in tokens:
        if one.kind is Kind.DIRECTIVE:
            words = one.text[1:].split()
            if words[:1] == ["version"]:
                return words[1:2] != ["100"] and "es" not in words
    return any(one.kind is Kind.NAME and one.text in DESKTOP_NAMES for one in tokens)


def closing(tokens: Sequence[Token], start: int) -> int:
    """The place of the bracket that closes the one at `start`; the end if there is none."""
    pairs = {"(": ")", "[": "]", "{": "}"}
    opening, end = tokens[start].text, pairs[tokens[start].text]
    depth = 0
    for at in range(start, len(tokens)):
        depth += tokens[at].text == opening
        depth -= tokens[at].text == end
        if not depth:
            return at
    return len(tokens)
