"""Commands that show the state, and change it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vc4lab.debug import texts
from vc4lab.debug.console.command import MOST_SHOWN, Command, Context, count_of, qpu_of, take_form, value_text
from vc4lab.debug.expressions import Expression, ExpressionError, register_key
from vc4lab.debug.formats import FORMATS
from vc4lab.files import why, write_file
from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES
from vc4lab.v3d.vpm.shader_rows import WINDOW_ROWS

LISTED = 10
"""Lines that `list` and `x/i` show."""


def _print(context: Context, text: str) -> None:
    form, _, text = take_form(text)
    if not text:
        raise ExpressionError("print[/FORMAT] EXPRESSION")
    context.write(f"{text} = {value_text(context.session, text, form)}")


def _display(context: Context, text: str) -> None:
    form, _, text = take_form(text)
    if text:
        shown = value_text(context.session, text, form)
        if len(context.displays) >= 100:
            raise ExpressionError("100 expressions are displayed already")
        number = max(context.displays, default=0) + 1
        context.displays[number] = form, text
        context.write(f"{number}: {text} = {shown}")
        return
    for number, (form, text) in context.displays.items():
        context.write(f"{number}: {text} = {value_text(context.session, text, form)}")


def _undisplay(context: Context, text: str) -> None:
    for word in text.split() or [str(number) for number in context.displays]:
        if not word.isdecimal() or context.displays.pop(int(word[:9]), None) is None:
            raise ExpressionError(f"nothing is displayed as {word[:20]!r}")


def _examine(context: Context, text: str) -> None:
    form, count, text = take_form(text, "hex")
    session = context.session
    count = min(count if count is not None else (LISTED if form == "i" else 8), MOST_SHOWN)
    default = session.qpu.next_address if form == "i" else None
    address = Expression(text).value(session.view()) if text else default
    if isinstance(address, bool) or not isinstance(address, int) or not 0 <= address < 1 << 32:
        raise ExpressionError("x[/COUNT FORMAT] ADDRESS: a named memory, a label, a number")
    if form == "i":
        context.lines(texts.code_lines(session, address & -INSTRUCTION_BYTES, count))
    elif form in FORMATS:
        context.lines(texts.memory_lines(session, address, count, form))
    else:
        raise ExpressionError(f"memory has no format {form!r}")


def _list(context: Context, text: str) -> None:
    """Around a place, or what follows."""
    session = context.session
    if text or context.listed is None:
        addresses = session.locate(text) if text else [session.qpu.next_address]
        place = session.source.place(addresses[0])
        if place is None or not session.source.text_of(place.file):
            first = max(addresses[0] - INSTRUCTION_BYTES * (LISTED // 2), session.code_address(0))
            context.lines(texts.code_lines(session, first, LISTED))
            return
        context.listed = place.file, max(place.line - LISTED // 2, 1)
    file, first = context.listed
    lines = texts.source_lines(session, file, first, LISTED)
    context.lines(lines or ["the source ends here"])
    context.listed = file, first + len(lines)


def _disassemble(context: Context, text: str) -> None:
    session = context.session
    if text:
        start, count = session.locate(text)[0], LISTED
    else:
        start = session.code_address(0)
        count = min(len(session.source.code) // INSTRUCTION_BYTES, MOST_SHOWN)
    context.lines(texts.code_lines(session, start, count))


def _qpu(context: Context, text: str) -> None:
    session = context.session
    if text:
        session.selected = qpu_of(session, text)
        context.listed = None
    context.write(texts.place_text(session))


def _set(context: Context, text: str) -> None:
    text = text.removeprefix("var ").removeprefix("variable ")
    target, equals, value = text.partition("=")
    if not equals or not target.strip() or not value.strip():
        raise ExpressionError("set TARGET = VALUE: a register, a lane ra0[3], a flag, mem[ADDRESS]")
    form = Expression(value).form(context.session.view())
    context.session.assign(target, value)
    context.write(f"{target.strip()} = {value_text(context.session, target, form)}")


def _output(context: Context, text: str) -> None:
    session = context.session
    name, _, file = text.partition("=")
    area = session.areas.get(name.strip())
    if area is None or not file.strip():
        raise ExpressionError("output NAME=FILE with the name of a memory")
    try:
        write_file(Path(file.strip()), session.memory.read(area.address, area.size))
    except OSError as error:
        raise ExpressionError(f"{file.strip()}: {why(error)}") from None


def _where(context: Context, text: str) -> None:
    context.write(texts.place_text(context.session))
    context.lines(context.session.view().due())
    waits = context.session.view().waits
    if waits:
        context.write(waits)


def _info(context: Context, text: str) -> None:
    form, _, text = take_form(text)
    what, _, rest = text.partition(" ")
    if not form and rest.startswith("/"):
        form, _, rest = take_form(rest.strip())
    sections = {one.name: one for one in context.session.stage.sections}
    names = [*INFO, *sections]
    found = [name for name in names if name.startswith(what.removesuffix("s"))] if what else []
    if what in names:
        found = [what]
    if len(found) != 1:
        raise ExpressionError(f"info {' | '.join(names)}")
    if found[0] in sections:
        context.lines(texts.section_lines(sections[found[0]], form))
    else:
        INFO[found[0]](context, rest.strip(), form)


Shown = Callable[[Context, str, str], None]


def _registers(context: Context, text: str, form: str) -> None:
    names = text.replace(",", " ").replace("$", "").split()
    for name in names:
        if register_key(name) is None:
            raise ExpressionError(f"there is no register {name[:20]!r}: ra0-31, rb0-31, r0-5")
    context.lines(texts.register_lines(context.session.view(), names or None, form or "hex"))


def _vpm(context: Context, text: str, form: str) -> None:
    rows = []
    for word in text.split():
        if not word.isdecimal() or int(word[:9]) >= WINDOW_ROWS:
            raise ExpressionError(f"the VPM has rows 0 to {WINDOW_ROWS - 1}, not {word[:20]!r}")
        rows.append(int(word))
    context.lines(texts.vpm_lines(context.session, rows, form or "hex"))


def _uniforms(context: Context, text: str, form: str) -> None:
    count = min(count_of(context.session, text, 8), MOST_SHOWN)
    context.lines(texts.uniform_lines(context.session.view(), form or "int", count))


def _memory(context: Context, text: str, form: str) -> None:
    for area in context.session.areas.values():
        context.write(f"{area.name}: {area.size} bytes at 0x{area.address:08x}")


def _labels(context: Context, text: str, form: str) -> None:
    for name, offset in sorted(context.session.source.labels.items(), key=lambda item: item[1]):
        context.write(f"0x{context.session.code_address(offset):08x}  {name}")


def _messages(context: Context, text: str, form: str) -> None:
    for turn, item in context.session.messages:
        context.write(f"after turn {turn}: {item}")
    if not context.session.messages:
        context.write("nothing was reported")


def _position(context: Context, text: str, form: str) -> None:
    session = context.session
    count = len(session.history.turns)
    context.write(f"turn {session.turn} of {count} that were executed")


INFO: dict[str, Shown] = {
    "registers": _registers,
    "flags": lambda context, text, form: context.lines(texts.flag_lines(context.session.view())),
    "uniforms": _uniforms,
    "tmu": lambda context, text, form: context.lines(texts.tmu_lines(context.session.view(), form or "hex")),
    "vpm": _vpm,
    "qpus": lambda context, text, form: context.lines(texts.qpu_lines(context.session)),
    "threads": lambda context, text, form: context.lines(texts.qpu_lines(context.session)),
    "synchronisation": lambda context, text, form: context.lines(texts.sync_lines(context.session)),
    "memory": _memory,
    "labels": _labels,
    "breakpoints": lambda context, text, form: context.lines(texts.breakpoint_lines(context.session)),
    "messages": _messages,
    "position": _position,
}


COMMANDS = (
    Command(
        ("print", "p"),
        "[/FORMAT] EXPRESSION",
        "show a value: /x hex, /d int, /u uint, /f float, /h halves, /b bytes\n"
        "    r0  ra3[5]  rb1.f  z  unif  pc  mem[y + 16]  memf[y]  vpm[3]  sem[0]  any(r0 > ra1)",
        _print,
    ),
    Command(
        ("info", "i"),
        "WHAT [/FORMAT]",
        f"show {', '.join(INFO)}\n"
        "    of fragments also pixels, varyings, texels, tile (the tile buffer), writes\n"
        "    of vertices also vertices, attributes, outputs",
        _info,
    ),
    Command(("x",), "[/COUNT FORMAT] ADDRESS", "show memory; /i instructions", _examine, True),
    Command(("list", "l"), "[PLACE]", "show the source around a place, and on", _list, True, "list"),
    Command(("disassemble",), "[PLACE]", "show source lines, words and instructions", _disassemble),
    Command(("display",), "[/FORMAT] [EXPRESSION]", "show a value at each stop", _display),
    Command(("undisplay",), "[NUMBER …]", "do so no longer", _undisplay),
    Command(("qpu", "thread", "t"), "[N]", "select a QPU", _qpu),
    Command(("where", "bt", "frame"), "", "show the place, and branches that are due", _where),
    Command(("set",), "TARGET = VALUE", "change a register, a lane, a flag or memory from here on", _set),
    Command(("output",), "NAME=FILE", "write a named memory to a file", _output),
)  # fmt: skip
