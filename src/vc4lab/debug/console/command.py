"""Defines a command and what all commands share: the session, the output, reading of arguments."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vc4lab.debug.expressions import Expression, ExpressionError
from vc4lab.debug.formats import LETTERS
from vc4lab.debug.stops import Cause
from vc4lab.debug.texts import place_text, stop_text

if TYPE_CHECKING:
    from vc4lab.debug.session import Session

MOST = 1 << 32
"""The largest count that a command takes."""
MOST_SHOWN = 4096
"""Words or lines that one command shows."""
_OPTION = re.compile(r"(?:^|\s)(?:qpu|thread)\s+(\d{1,4})(?=\s|$)")
_CONDITION = re.compile(r"(?:^|\s)if\s+(.*)$")


@dataclass(eq=False)
class Command:
    """names: the first is its own; usage: of its arguments. repeats: an empty line repeats it, or
    does `again`.
    """

    names: tuple[str, ...]
    usage: str
    help: str
    run: Callable[[Context, str], None]
    repeats: bool = False
    again: str = ""


class Context:
    """The session and where output goes; displays: expressions that are shown at each stop."""

    def __init__(self, session: Session, write: Callable[[str], object]) -> None:
        self.session = session
        self.write = write
        self.displays: dict[int, tuple[str, str]] = {}
        self.listed: tuple[str, int] | None = None
        """File and line after those that `list` has shown."""

    def lines(self, lines: list[str]) -> None:
        """Output."""
        for line in lines:
            self.write(line)

    def show_stop(self) -> None:
        """Why the session stands, where, and what is displayed."""
        session = self.session
        text = stop_text(session, session.stop)
        if text:
            self.write(text)
        if session.stop.cause is not Cause.ENDED or session.qpu.alive:
            self.write(place_text(session))
        self.listed = None
        for number, (form, expression) in self.displays.items():
            try:
                self.write(f"{number}: {expression} = {value_text(session, expression, form)}")
            except ExpressionError as error:
                self.write(f"{number}: {error}")


def value_text(session: Session, text: str, form: str) -> str:
    """An expression's value in a view, or as it suits it."""
    from vc4lab.debug.formats import brief

    expression = Expression(text)
    view = session.view()
    value = expression.value(view)
    if not form:
        form = expression.form(view)
        if isinstance(value, bool | int):
            return str(int(value)) if not isinstance(value, bool) else str(value).lower()
    return brief(expression.words(view), form)


def take_form(text: str, default: str = "") -> tuple[str, int | None, str]:
    """(view, count, rest) of arguments that may begin with `/f` or `/8x`."""
    if not text.startswith("/"):
        return default, None, text
    head, _, rest = text[1:].partition(" ")
    found = re.fullmatch(r"(\d{0,9})([a-z]*)", head)
    if found is None or (found[2] and found[2] not in (*LETTERS, "i", "s")):
        letters = ", ".join(f"{letter} {name}" for letter, name in LETTERS.items())
        raise ExpressionError(f"there is no format /{head[:20]} ({letters})")
    form = LETTERS.get(found[2], found[2]) or default
    return form, int(found[1]) if found[1] else None, rest.strip()


def count_of(session: Session, text: str, default: int = 1) -> int:
    """How often; raises ExpressionError."""
    if not text.strip():
        return default
    value: Any = Expression(text).value(session.view())
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
        raise ExpressionError(f"{text[:40]!r} is no number of times (1 to {MOST})")
    return value


def take_options(session: Session, text: str) -> tuple[str, dict[str, Any]]:
    """The rest of the arguments, and `qpu N` and `if CONDITION` of a breakpoint."""
    options: dict[str, Any] = {}
    condition = _CONDITION.search(text)
    if condition is not None:
        options["condition"] = Expression(condition[1])
        options["condition"].value(session.view())
        text = text[: condition.start()]
    number = _OPTION.search(text)
    if number is not None:
        options["qpu"] = qpu_of(session, number[1])
        text = text[: number.start()] + text[number.end() :]
    return text.strip(), options


def qpu_of(session: Session, text: str) -> int:
    """A QPU's number; raises ExpressionError."""
    if not text.strip().isdecimal() or int(text[:9]) not in session.qpus:
        known = ", ".join(map(str, session.qpus))
        raise ExpressionError(f"there is no QPU {text[:20]!r} (there are {known})")
    return int(text)
