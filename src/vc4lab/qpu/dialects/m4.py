"""The part of the macro processor m4 that QPU sources use: define, include, eval, ifelse, ifdef.

Quotes are ` and ', comments go from # to the end of the line. Source: POSIX, m4.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Final

from vc4lab.qpu.text.expressions import ExpressionError, evaluate
from vc4lab.qpu.text.syntax import MAX_SOURCE, AssemblyError, SourceError

MAX_EXPANSIONS: Final = 200_000
_TOKEN: Final = re.compile(r"(?P<name>[A-Za-z_]\w*)|(?P<comment>#[^\n]*)|(?P<other>.)", re.DOTALL)
_COMPARED: Final = re.compile(r"(.*?[^<>=!])(>=|<=|==|!=|<(?!<)|>(?!>))([^<>=!]*)")
_COMPARISONS: Final[dict[str, Callable[[int, int], bool]]] = {
    ">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne, "<": operator.lt,
    ">": operator.gt,
}  # fmt: skip
_PARAMETER: Final = re.compile(r"\$([0-9#*@])")


class M4:
    """Expands a text. include: gives the text of a file."""

    def __init__(self, include: Callable[[str], str]) -> None:
        self.include = include
        self.macros: dict[str, str] = {}
        self.count = 0
        self.size = 0
        self.line = 1
        self.quotes = "`'"
        """The characters that open and close a quote; "": there are none."""

    def expand(self, text: str) -> list[tuple[str, int]]:
        """The lines of the expanded text, each with the line of the source it is from."""
        out: list[tuple[str, int]] = []
        row: list[str] = []
        texts, places = [text], [0]
        self.line = first = 1
        while texts:
            source, at = texts[-1], places[-1]
            if at >= len(source):
                texts.pop()
                places.pop()
                continue
            outermost = len(texts) == 1
            piece, after = self._next(source, at)
            if outermost:
                self.line += source.count("\n", at, after)
            places[-1] = after
            if piece is None:  # a name
                name = source[at:after]
                found = self._call(name, source, after)
                if found is None:
                    piece = name
                else:
                    result, end = found
                    if outermost:
                        self.line += source.count("\n", after, end)
                    places[-1] = end
                    self._bound(result)
                    texts.append(result)
                    places.append(0)
                    continue
            self.size += len(piece)
            if self.size > MAX_SOURCE:
                raise self.fail(f"the macros unfold to more than {MAX_SOURCE} characters")
            *lines, rest = piece.split("\n")
            for part in lines:
                out.append(("".join([*row, part]), first))
                row, first = [], self.line
            row.append(rest)
        if row and "".join(row):
            out.append(("".join(row), first))
        return out

    def fail(self, text: str) -> AssemblyError:
        return AssemblyError([SourceError(self.line, 1, text)])

    def _bound(self, result: str) -> None:
        self.count += 1
        if self.count > MAX_EXPANSIONS or len(result) > MAX_SOURCE:
            raise self.fail(f"more than {MAX_EXPANSIONS} macro expansions")

    def _next(self, source: str, at: int) -> tuple[str | None, int]:
        """The text up to `after`, None for a name."""
        if source[at] in self.quotes[:1]:
            end = self._quote_end(source, at)
            return source[at + 1 : end], end + 1
        match = _TOKEN.match(source, at)
        assert match is not None
        if match["name"]:
            return None, match.end()
        return match[0], match.end()

    def _quote_end(self, source: str, at: int) -> int:
        depth = 0
        for index in range(at, len(source)):
            if source[index] == self.quotes[0]:
                depth += 1
            elif source[index] == self.quotes[1]:
                depth -= 1
                if not depth:
                    return index
        raise self.fail(f"a quote ({self.quotes[0]}) is never closed")

    def _arguments(self, source: str, at: int) -> tuple[list[str], int]:
        """Arguments in parentheses, expanded, and where the text goes on."""
        arguments: list[str] = []
        current: list[str] = []
        depth, index = 0, at + 1
        fresh = True
        while index < len(source):
            character = source[index]
            if fresh and character.isspace():
                index += 1
                continue
            fresh = False
            if character in self.quotes[:1]:
                end = self._quote_end(source, index)
                current.append(source[index : end + 1])
                index = end + 1
                continue
            if character == "(":
                depth += 1
            elif character == ")":
                if not depth:
                    arguments.append("".join(current))
                    return [self._inner(text) for text in arguments], index + 1
                depth -= 1
            elif character == "," and not depth:
                arguments.append("".join(current))
                current, fresh = [], True
                index += 1
                continue
            current.append(character)
            index += 1
        raise self.fail("the parenthesis of a macro is never closed")

    def _inner(self, text: str) -> str:
        """An argument, expanded as the text of a source is; quotes lose one level."""
        out: list[str] = []
        stack = [(text, 0)]
        while stack:
            source, at = stack.pop()
            while at < len(source):
                piece, after = self._next(source, at)
                if piece is None:
                    name = source[at:after]
                    found = self._call(name, source, after)
                    if found is not None:
                        result, after = found
                        self._bound(result)
                        stack.append((source, after))
                        stack.append((result, 0))
                        break
                    piece = name
                out.append(piece)
                at = after
            if sum(map(len, out[-64:])) > MAX_SOURCE or len(out) > MAX_SOURCE:
                raise self.fail(f"the macros unfold to more than {MAX_SOURCE} characters")
        return "".join(out)

    def _call(self, name: str, source: str, after: int) -> tuple[str, int] | None:
        """Return the text for a name, and where the source goes on; None if it is no macro."""
        if name == "dnl":
            end = source.find("\n", after)
            return "", len(source) if end < 0 else end + 1
        opened = after < len(source) and source[after] == "("
        if name in _BUILTINS and opened:
            try:
                arguments, after = self._arguments(source, after)
            except RecursionError:
                raise self.fail("macros are nested too deeply") from None
            return _BUILTINS[name](self, arguments), after
        body = self.macros.get(name)
        if body is None:
            return None
        arguments = []
        if opened:
            try:
                arguments, after = self._arguments(source, after)
            except RecursionError:
                raise self.fail("macros are nested too deeply") from None
        given = [name, *arguments]

        def value(match: re.Match[str]) -> str:
            what = match[1]
            if what == "#":
                return str(len(arguments))
            if what in "*@":
                return ",".join(arguments)
            return given[int(what)] if int(what) < len(given) else ""

        return _PARAMETER.sub(value, body), after

    # Builtins ---------------------------------------------------------------------------------

    def define(self, arguments: list[str]) -> str:
        name, *body = arguments
        self.macros[name] = body[0] if body else ""
        return ""

    def undefine(self, arguments: list[str]) -> str:
        self.macros.pop(arguments[0], None)
        return ""

    def including(self, arguments: list[str]) -> str:
        return self.include(arguments[0])

    def eval(self, arguments: list[str]) -> str:
        text = arguments[0].replace("\n", " ")
        compared = _COMPARED.fullmatch(text)
        if compared is not None:
            left, right = (int(self.eval([compared[n]])) for n in (1, 3))
            return str(int(_COMPARISONS[compared[2]](left, right)))
        try:
            value = evaluate(text, {})
        except ExpressionError as error:
            raise self.fail(f"eval({text.strip()[:60]}): {error}") from None
        if not isinstance(value, int | float):
            raise self.fail(f"eval({text.strip()[:60]}) is no number")
        number = int(value) & 0xFFFFFFFF
        return str(number - (1 << 32) if number >> 31 else number)

    def ifelse(self, arguments: list[str]) -> str:
        while len(arguments) >= 3:
            if arguments[0] == arguments[1]:
                return arguments[2]
            arguments = arguments[3:]
        return arguments[0] if arguments else ""

    def ifdef(self, arguments: list[str]) -> str:
        ways = (*arguments[1:], "", "")
        return ways[0 if arguments[0] in self.macros else 1]

    def changequote(self, arguments: list[str]) -> str:
        quotes = [one.strip() for one in arguments] if any(arguments) or len(arguments) > 1 else ["`", "'"]
        joined = "".join(quotes)
        if len(quotes) != 2 or len(joined) not in (0, 2) or len(set(joined)) != len(joined):
            raise self.fail("changequote takes two characters, or nothing in their place")
        self.quotes = joined
        return ""

    def exit(self, arguments: list[str]) -> str:
        raise self.fail(f"m4exit({arguments[0]})")


_BUILTINS: Final[dict[str, Callable[[M4, list[str]], str]]] = {
    "define": M4.define,
    "undefine": M4.undefine,
    "include": M4.including,
    "eval": M4.eval,
    "ifelse": M4.ifelse,
    "ifdef": M4.ifdef,
    "changequote": M4.changequote,
    "errprint": lambda _m4, _arguments: "",
    "m4exit": M4.exit,
    "incr": lambda m4, arguments: m4.eval([f"{arguments[0]} + 1"]),
    "decr": lambda m4, arguments: m4.eval([f"{arguments[0]} - 1"]),
}
