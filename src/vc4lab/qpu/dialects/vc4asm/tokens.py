"""Lines of vc4asm's dialect as tokens, each with its column."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from vc4lab.qpu.text.syntax import Mistake

WORD, NUMBER, OPERATOR, PUNCTUATION, TEXT, END = "word", "number", "operator", "mark", "text", ""

_TOKEN: Final = re.compile(
    r"""\s*(?:
    (?P<number>\d[0-9A-Za-z_]*(?:\.[0-9A-Za-z_]*)?)
    |(?P<text>"[^"]*")
    |(?P<operator>![=^]?[=^]?|[-%+/~]|&&?|\*\*?|\^\^?|\|\|?|[<>][<=>]*|==?=?)
    |(?P<mark>[][(),.;:])
    |(?P<word>[^\s.,;:+*/%()\[\]&|^~!=<>\#-]+)
    )""",
    re.VERBOSE,
)
_EXPONENT: Final = re.compile(r"\d[0-9_]*(?:\.[0-9_]*)?[eE]$")
_DIGITS: Final = re.compile(r"[-+]\d+")


class Token(NamedTuple):
    """A piece of a line; ``column`` counts from 0. The last token of a line has the kind END."""

    kind: str
    text: str
    column: int


@lru_cache(maxsize=8192)
def tokens_of(line: str) -> tuple[Token, ...]:
    """The tokens of a line without its comment; the last one is END."""
    found: list[Token] = []
    position, end = 0, len(line.rstrip())
    while position < end:
        while line[position].isspace():
            position += 1
        if line[position] == "#" or line.startswith("//", position):
            end = position
            break
        match = _TOKEN.match(line, position)
        if match is None or match.end() == position:
            raise Mistake(f"unexpected {line[position]!r}", position)
        kind = match.lastgroup or ""
        text, column, position = match[kind], match.start(kind), match.end()
        if kind == NUMBER and _EXPONENT.fullmatch(text):
            digits = _DIGITS.match(line, position)
            if digits is not None:
                text, position = text + digits[0], digits.end()
        found.append(Token(kind, text, column))
    found.append(Token(END, "", len(line[:end].rstrip())))
    return tuple(found)


class Cursor:
    """Marks the place that reading a line has come to."""

    def __init__(self, line: str, start: int = 0) -> None:
        self.line = line
        self.tokens = tokens_of(line)
        self.index = start

    @property
    def token(self) -> Token:
        """The next token, not taken yet."""
        return self.tokens[self.index]

    @property
    def column(self) -> int:
        return self.tokens[self.index].column

    @property
    def at_end(self) -> bool:
        return self.tokens[self.index].kind == END

    def take(self) -> Token:
        """The next token; END stays."""
        token = self.tokens[self.index]
        if token.kind != END:
            self.index += 1
        return token

    def accept(self, text: str) -> bool:
        """Whether the next token is this mark or operator; if so, it is taken."""
        token = self.tokens[self.index]
        if token.text == text and token.kind != END:
            self.index += 1
            return True
        return False

    def expect(self, text: str, purpose: str) -> Token:
        """Take a mark that has to come now."""
        token = self.token
        if token.text != text or token.kind == END:
            raise Mistake(f"expected {text!r} {purpose}, found {shown(token)}", token.column)
        return self.take()

    def name(self, purpose: str) -> Token:
        """Take a name."""
        token = self.token
        if token.kind != WORD:
            raise Mistake(f"expected {purpose}, found {shown(token)}", token.column)
        return self.take()

    def finish(self) -> None:
        """The line has to end here."""
        if not self.at_end:
            raise Mistake(f"unexpected {shown(self.token)}: the line should end here", self.column)


def shown(token: Token) -> str:
    """A token as messages name it."""
    return repr(token.text) if token.kind != END else "the end of the line"
