"""Texts that show what a shader has computed up to a statement: probes.

TGSI does not say which line of GLSL an instruction comes from. A probe is the shader with one more
output: what a statement has assigned, instead of the colour or the position, if a uniform is not 0. What
the shader itself computes stays as it is, so that both stand in one program; `lines.py` compares
them. No statement moves to another line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from vc4lab.driver.glsl.tokens import Kind, Token, closing

MOST, MOST_TEXT = 300, 4 << 20
"""Probes of a shader, and characters of all their texts; statements after so many have no lines."""
ASSIGNS = frozenset(("=", "+=", "-=", "*=", "/="))
STEPS = frozenset(("++", "--"))
LEADING = frozenset(("const", "lowp", "mediump", "highp"))
MARK = 123.0
"""Fourth component of a probe of integers and truth values: what it has is their conversion to a float."""
_TYPES = {
    "float": "vec4(v, 0.0, 0.0, 0.0)", "vec2": "vec4(v, 0.0, 0.0)", "vec3": "vec4(v, 0.0)", "vec4": "v",
    "int": f"vec4(float(v), 0.0, 0.0, {MARK})", "ivec2": f"vec4(v, 0.0, {MARK})",
    "ivec3": f"vec4(v, {MARK})", "ivec4": "vec4(v)",
    "bool": f"vec4(float(v), 0.0, 0.0, {MARK})", "bvec2": f"vec4(v, 0.0, {MARK})",
    "bvec3": f"vec4(v, {MARK})", "bvec4": "vec4(v)",
    "mat2": "vec4(v[0], v[1])", "mat3": "vec4(v[0] + v[1] + v[2], 0.0)",
    "mat4": "(v[0] + v[1] + v[2] + v[3])",
}  # fmt: skip


class Statement(NamedTuple):
    """A statement's expression to be shown, and its place.

    Attributes
    ----------
    line
        The line of the text, from 1.
    value
        The expression that is shown.
    target
        The variable that it assigns; "" for conditions and results of functions.
    start, end
        Places in the text between which the statement is.
    before
        Whether the value is shown before it.
    """

    line: int
    value: str
    target: str
    start: int
    end: int
    before: bool = False
    braced: bool = False
    """Whether it needs braces, as it is alone after a condition."""


class Probe(NamedTuple):
    """A text that shows one statement."""

    statement: Statement
    text: str


def output_of(tokens: Sequence[Token], *, vertex: bool) -> str:
    """The built-in variable that a shader writes; "" if it has none that can be shown by."""
    if vertex:
        return "gl_Position"
    names = {one.text for one in tokens}
    if "gl_FragColor" in names:
        return "gl_FragColor"
    return "gl_FragData[0]" if "gl_FragData" in names else ""


def probes_of(text: str, tokens: Sequence[Token], *, vertex: bool, desktop: bool) -> list[Probe]:
    """The probes of a shader, in the order in which it executes their statements.

    Those of a function come before the statement that calls it last, as a probe shows that call.
    """
    output = output_of(tokens, vertex=vertex)
    functions = _functions(tokens)
    main = next((one for one in functions if tokens[one.name].text == "main"), None)
    if not output or main is None:
        return []
    found: list[Statement] = []
    calls = _last_calls(tokens, functions)
    ordered = sorted((calls[one], number) for number, one in enumerate(functions) if one != main)
    rest = _Statements(text, tokens).of(main.body + 1, closing(tokens, main.body))
    for place, number in ordered:
        while rest and rest[0].end < place:
            found.append(rest.pop(0))
        function = functions[number]
        found += _Statements(text, tokens).of(function.body + 1, closing(tokens, function.body))
    found += rest
    high = "" if desktop else "highp "
    head = f"uniform {high}float vc4lab_never; {high}vec4 vc4lab_seen = vec4(0.0); " + " ".join(
        f"{high}vec4 vc4lab_show({_precise(kind, high)}{kind} v) {{ return {value}; }}"
        for kind, value in _TYPES.items()
    )
    name = tokens[main.name]
    tail = f"\nvoid main() {{ vc4lab_main(); {output} = vc4lab_never != 0.0 ? vc4lab_seen : {output}; }}\n"
    first = tokens[functions[0].start].start
    return [
        Probe(one, _edited(text, [*_edits(one), (first, head), (name.start, "vc4lab_"), (len(text), tail)]))
        for one in found[: min(MOST, MOST_TEXT // len(text))]
    ]


def _precise(kind: str, high: str) -> str:
    return "" if kind.startswith("b") else high


def _edits(one: Statement) -> list[tuple[int, str]]:
    show = f" vc4lab_seen = vc4lab_show({one.value}); "
    if one.before:
        return [(one.start, f" {{ {show}" if one.braced else show), (one.end, " } " if one.braced else "")]
    return [(one.start, " { " if one.braced else ""), (one.end, show + ("}" if one.braced else ""))]


def _edited(text: str, edits: list[tuple[int, str]]) -> str:
    """The text with insertions at its places."""
    parts, last = [], 0
    for place, inserted in sorted(edits, key=lambda one: one[0]):
        parts += [text[last:place], inserted]
        last = place
    return "".join([*parts, text[last:]])


class _Function(NamedTuple):
    """Places of tokens: the first of its type, its name, the bracket of its body."""

    start: int
    name: int
    body: int


def _functions(tokens: Sequence[Token]) -> list[_Function]:
    found = []
    at, begin = 0, 0
    while at < len(tokens):
        text = tokens[at].text
        if text == ";" or tokens[at].kind is Kind.DIRECTIVE:
            begin = at + 1
        elif text == "(" and at > begin and tokens[at - 1].kind is Kind.NAME:
            end = closing(tokens, at)
            if end + 1 < len(tokens) and tokens[end + 1].text == "{" and at - 1 > begin:
                found.append(_Function(begin, at - 1, end + 1))
                at = closing(tokens, end + 1)
                begin = at + 1
            else:
                at = end
        elif text == "{":
            at = closing(tokens, at)
        at += 1
    return found


def _last_calls(tokens: Sequence[Token], functions: Sequence[_Function]) -> dict[_Function, int]:
    """Return each function's last call as a place in the text of `main`, indirect calls included."""
    names = {tokens[one.name].text: one for one in functions}
    last: dict[_Function, int] = {}
    for one in reversed(functions):
        is_main = tokens[one.name].text == "main"
        for token in tokens[one.body : closing(tokens, one.body)]:
            called = names.get(token.text)
            if called is not None:
                place = token.start if is_main else last.get(one, 0)
                last[called] = max(last.get(called, 0), place)
    return {one: last.get(one, 0) for one in functions}


class _Statements:
    """The statements of function bodies."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self._text = text
        self._tokens = tokens
        self._found: list[Statement] = []

    def of(self, start: int, end: int) -> list[Statement]:
        """Those between two places."""
        at, braced = start, False
        while at < end:
            at, braced = self._one(at, end, braced=braced)
        return self._found

    def _one(self, at: int, end: int, *, braced: bool) -> tuple[int, bool]:
        """One statement, or how it begins: the place after it, and whether the next is alone there."""
        token = self._tokens[at]
        if token.kind is Kind.DIRECTIVE or token.text in ("{", "}", ";", "else", "do"):
            return at + 1, token.text in ("else", "do")
        if token.text in ("if", "while", "for") and at + 1 < end and self._tokens[at + 1].text == "(":
            return self._headed(at, end, braced=braced)
        last = at
        while last < end and self._tokens[last].text != ";":
            if self._tokens[last].text in ("{", "}"):
                return last + 1, False
            last += 1
        if last < end:
            self._simple(at, last, braced=braced)
        return last + 1, False

    def _headed(self, at: int, end: int, *, braced: bool) -> tuple[int, bool]:
        """A condition or the head of a loop."""
        tokens, token = self._tokens, self._tokens[at]
        close = closing(tokens, at + 1)
        inside = range(at + 2, close)
        changes = any(tokens[n].text in ASSIGNS | STEPS for n in inside)
        if close + 1 >= end:
            return end, False
        if token.text == "if" and inside and not changes and not braced:
            place = token.start
            self._add(token.line, self._between(at + 2, close - 1), "", place, place, before=True)
        if tokens[close + 1].text == "{":
            place = tokens[close + 1].end
            if token.text == "while" and inside and not changes:
                self._add(token.line, self._between(at + 2, close - 1), "", place, place)
            elif token.text == "for":
                name = next((n - 1 for n in inside if tokens[n].text == "="), 0)
                if name and tokens[name].kind is Kind.NAME:
                    self._add(token.line, tokens[name].text, "", place, place)
            return close + 2, False
        return close + 1, True

    def _simple(self, at: int, last: int, *, braced: bool) -> None:
        """A declaration, an assignment, a result: up to its semicolon."""
        tokens = self._tokens
        start, end = tokens[at].start, tokens[last].end
        if tokens[at].text == "return":
            if last > at + 1:
                value = self._between(at + 1, last - 1)
                self._add(tokens[at].line, value, "", start, end, before=True, braced=True)
            return
        for target in self._targets(at, last):
            first = next((n for n in range(at, last) if tokens[n].text in ASSIGNS | STEPS), at)
            self._add(tokens[first].line, target, target, start, end, braced=braced)

    def _targets(self, at: int, last: int) -> list[str]:
        """Return the variables that a statement assigns."""
        tokens = self._tokens
        if tokens[at].text in STEPS:
            return [self._between(at + 1, last - 1)]
        if tokens[last - 1].text in STEPS:
            return [self._between(at, last - 2)]
        found, begin, depth = [], at, 0
        declares = tokens[at].text in LEADING or (
            at + 1 < last and tokens[at].kind is tokens[at + 1].kind is Kind.NAME
        )
        for n in range(at, last):
            text = tokens[n].text
            depth += (text in "([") - (text in ")]")
            if text in ASSIGNS and not depth:
                if declares:
                    found.append(tokens[n - 1].text)
                elif n > begin:
                    found.append(self._between(begin, n - 1))
                    break
        return found

    def _between(self, first: int, last: int) -> str:
        """The text from one token to another, on one line."""
        return " ".join(one.text for one in self._tokens[first : last + 1] if one.kind is not Kind.DIRECTIVE)

    def _add(
        self, line: int, value: str, target: str, start: int, end: int,
        *, before: bool = False, braced: bool = False,
    ) -> None:  # fmt: skip
        self._found.append(Statement(line, value, target, start, end, before, braced))
