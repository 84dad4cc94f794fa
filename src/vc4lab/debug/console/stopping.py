"""Commands about breakpoints."""

from __future__ import annotations

import re
from collections.abc import Callable

from vc4lab.debug.console.command import MOST, Command, Context, take_options
from vc4lab.debug.expressions import Expression, ExpressionError
from vc4lab.debug.stops import Breakpoint
from vc4lab.diagnostics.catalogue import catalogue

LARGEST_AREA = 1 << 30


def _added(context: Context, item: Breakpoint, what: str) -> None:
    context.write(f"breakpoint {item.number}: {what}")


def _break(temporary: bool) -> Callable[[Context, str], None]:
    def run(context: Context, text: str) -> None:
        session = context.session
        text, options = take_options(session, text)
        addresses = session.locate(text) if text else [session.qpu.next_address]
        item = session.breakpoints.add_address(addresses, text, temporary=temporary, **options)
        places = []
        for address in addresses:
            place = session.source.place(address)
            places.append(f"0x{address:08x}" + (f", line {place.line}" if place else ""))
        _added(context, item, "; ".join(places))

    return run


def _watch(context: Context, text: str) -> None:
    """An expression; or, for a named memory, writes of its bytes."""
    session = context.session
    text, options = take_options(session, text)
    if text.partition(":")[0].strip() in session.areas:
        _access(False, True)(context, text)
        return
    item = session.breakpoints.add_watch(Expression(text), **options)
    _added(context, item, f"{item.text} changes")


def _when(context: Context, text: str) -> None:
    text, options = take_options(context.session, text)
    item = context.session.breakpoints.add_watch(Expression(text), becomes=True, **options)
    _added(context, item, f"{item.text} comes to hold")


def _access(reads: bool, writes: bool) -> Callable[[Context, str], None]:
    def run(context: Context, text: str) -> None:
        session = context.session
        text, options = take_options(session, text)
        where, _, size_text = text.partition(":")
        area = session.areas.get(where.strip())
        address = area.address if area is not None else Expression(where).value(session.view())
        size = area.size if area is not None else 4
        if size_text:
            size = Expression(size_text).value(session.view())
        whole = all(isinstance(one, int) and not isinstance(one, bool) for one in (address, size))
        if not whole or not 0 < size <= LARGEST_AREA or not 0 <= address < 1 << 32:
            raise ExpressionError("NAME, or ADDRESS, with :BYTES if it is not the whole memory or a word")
        item = session.breakpoints.add_access(address, size, reads=reads, writes=writes, text=text, **options)
        verb = {(True, False): "read", (False, True): "written"}.get((reads, writes), "read or written")
        _added(context, item, f"{size} bytes at 0x{address:08x} are {verb}")

    return run


def _catch(context: Context, text: str) -> None:
    text, options = take_options(context.session, text)
    code = text.upper()
    if code in ("", "MESSAGE", "MESSAGES", "ANY"):
        code = ""
    elif code not in catalogue():
        raise ExpressionError(f"there is no message {text[:20]!r}; faults and deadlocks always stop")
    item = context.session.breakpoints.add_message(code, **options)
    _added(context, item, f"{item.text} is reported")


def _chosen(context: Context, text: str) -> list[Breakpoint]:
    """Those named by number; without any, all."""
    points = context.session.breakpoints
    if not text:
        return list(points.items.values())
    return [points[_number(word)] for word in text.replace(",", " ").split()]


def _number(word: str) -> int:
    if not word.isascii() or not word.isdecimal() or len(word) > 9:
        raise ExpressionError(f"{word[:20]!r} is no number of a breakpoint")
    return int(word)


def _delete(context: Context, text: str) -> None:
    for item in _chosen(context, text):
        context.session.breakpoints.delete(item.number)


def _enable(on: bool) -> Callable[[Context, str], None]:
    def run(context: Context, text: str) -> None:
        for item in _chosen(context, text):
            item.enabled = on

    return run


def _condition(context: Context, text: str) -> None:
    number, _, condition = text.partition(" ")
    item = context.session.breakpoints[_number(number)]
    if not condition.strip():
        item.condition = None
        return
    expression = Expression(re.sub(r"^\s*if\s", "", condition))
    expression.value(context.session.view())
    item.condition = expression


def _ignore(context: Context, text: str) -> None:
    number, _, count = text.partition(" ")
    item = context.session.breakpoints[_number(number)]
    if not count.strip().isdecimal() or len(count) > 10 or int(count) > MOST:
        raise ExpressionError("ignore NUMBER COUNT")
    item.skip = int(count)


COMMANDS = (
    Command(
        ("break", "b"),
        "[PLACE] [qpu N] [if CONDITION]",
        "stop before an instruction: a line, FILE:LINE, a label, label+8 or *ADDRESS\n"
        "    A condition over lanes holds if it does in any lane; all(r0 > 5) asks for all.",
        _break(False),
    ),
    Command(("tbreak", "tb"), "[PLACE] …", "the same, once", _break(True)),
    Command(
        ("watch",),
        "EXPRESSION | NAME[:BYTES]",
        "stop when a value changes (r0, ra3[5], z, vpm[3], mem[y + 4]), or a named memory is written",
        _watch,
    ),
    Command(
        ("when",), "CONDITION [qpu N]", "stop when a condition comes to hold, as in when r0[3] == 5", _when
    ),
    Command(("wwatch",), "NAME|ADDRESS[:BYTES]", "stop when memory is written", _access(False, True)),
    Command(("rwatch",), "NAME|ADDRESS[:BYTES]", "stop when memory is read", _access(True, False)),
    Command(("awatch",), "NAME|ADDRESS[:BYTES]", "stop when memory is read or written", _access(True, True)),
    Command(("catch",), "[CODE]", "stop when a message is reported, such as QPU-061", _catch),
    Command(("delete", "d"), "[NUMBER …]", "delete breakpoints", _delete),
    Command(("disable",), "[NUMBER …]", "let breakpoints stop no more", _enable(False)),
    Command(("enable",), "[NUMBER …]", "let breakpoints stop again", _enable(True)),
    Command(("condition",), "NUMBER [CONDITION]", "give a breakpoint another condition, or none", _condition),
    Command(("ignore",), "NUMBER COUNT", "let a breakpoint pass so many times", _ignore),
)
