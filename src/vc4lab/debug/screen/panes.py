"""Draws the panes as styled text: source beside words, the QPUs, one view of the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from rich.text import Text

from vc4lab.debug import texts
from vc4lab.debug.formats import brief, lane_rows
from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES

if TYPE_CHECKING:
    from vc4lab.debug.session import Session
    from vc4lab.debug.stage import Section

MOST_WORDS = 256
"""Words that are shown of each named memory, at most."""
HERE, STOP, QUIET, CHANGED = "reverse bold", "red", "dim", "bold yellow"


def code_text(session: Session, height: int, shift: int = 0) -> Text:
    """The source around the selected QPU's place, each line beside its address and word.

    shift: lines further down. Without a source: the instructions.
    """
    place = session.place()
    stops = {
        address
        for item in session.breakpoints.items.values()
        if item.enabled
        for address in getattr(item, "addresses", ())
    }
    if place is None or not session.source.text_of(place.file):
        return _instructions(session, height, shift, stops)
    rows: list[tuple[int | None, int, str]] = []  # address, line, text
    here = 0
    for number, text in enumerate(session.source.text_of(place.file), 1):
        places = session.source.words_of(place.file, number)
        if number == place.line:
            here = len(rows)
        rows.append((places[0] if places else None, number, text.expandtabs(8)))
        rows += [(address, 0, "") for address in places[1:]]
    current = session.qpu.next_address
    found = Text(no_wrap=True)
    first = max(min(here - height // 2 + shift, len(rows) - height), 0)
    for address, number, text in rows[first : first + height]:
        line = Text(no_wrap=True)
        line.append("● " if address in stops else "  ", STOP)
        line.append(f"{number:4} " if number else "     ", QUIET)
        line.append(
            f"{address:08x} {_word(session, address):016x}  " if address is not None else " " * 27, QUIET
        )
        if not number and address is not None:
            text = f"        ; {texts.instruction_text(_word(session, address), address)}"
        line.append(text)
        if address == current:
            line.stylize(HERE)
        found.append_text(line).append("\n")
    return found


def _word(session: Session, address: int) -> int:
    return session.memory.u64(address)


def _instructions(session: Session, height: int, shift: int, stops: set[int]) -> Text:
    current = session.qpu.next_address
    first = max(current - INSTRUCTION_BYTES * (height // 2 - shift), session.code_address(0))
    found = Text(no_wrap=True)
    for address in range(first, first + INSTRUCTION_BYTES * height, INSTRUCTION_BYTES):
        word = _word(session, address)
        line = Text("● " if address in stops else "  ", STOP, no_wrap=True)
        line.append(f"{address:08x} {word:016x}  ", QUIET)
        line.append(texts.instruction_text(word, address))
        if address == current:
            line.stylize(HERE)
        found.append_text(line).append("\n")
    return found


def qpus_text(session: Session) -> Text:
    """A line for each QPU, the selected one marked."""
    head, *rows = texts.qpu_lines(session)
    found = Text(head + "\n", QUIET, no_wrap=True)
    for row in rows:
        found.append(row + "\n", "bold" if row.startswith("*") else "")
    return found


class Look(NamedTuple):
    """How the state is shown: the view of words, registers as they were, columns."""

    form: str
    before: Mapping[str, bytes]
    columns: int


def registers_text(session: Session, files: str, look: Look) -> Text:
    """Registers of some files ("r", "a", "b"), what has changed marked."""
    form = look.form
    view = session.view()
    found = Text(no_wrap=True)
    for name, words in view.written():
        if _file_of(name) not in files:
            continue
        style = CHANGED if look.before.get(name) != bytes(words) else ""
        if len({int(word) for word in words}) == 1:
            rows = [brief(words, form)]
        else:
            rows = lane_rows(words, form, look.columns)
        for number, row in enumerate(rows):
            found.append(f"{'' if number else name:5}", "bold")
            found.append(row + "\n", style)
    for late in view.pending():
        if _file_of(late.register) in files:
            found.append(f"{late.register:5}", "bold")
            found.append(f"in {late.instructions}: {brief(late.words, form)}\n", QUIET)
    return found if found.plain else Text("nothing was written yet", QUIET)


def _file_of(name: str) -> str:
    return name[1] if name[1] in "ab" else "r"


def snapshot(session: Session) -> dict[str, bytes]:
    """The registers now, to see later what has changed."""
    return {name: bytes(words) for name, words in session.view().written()}


def _accumulators(session: Session, look: Look) -> Text:
    found = registers_text(session, "r", look)
    view, form = session.view(), look.form
    more = [*texts.flag_lines(view), "", *view.due(), "", "next uniforms"]
    more += texts.uniform_lines(view, form if form != "hex" else "int", 6)
    more += ["", *texts.tmu_lines(view, form, look.columns)]
    return found.append("\n" + "\n".join(more))


def _vpm(session: Session, look: Look) -> Text:
    return Text("\n".join(texts.vpm_lines(session, [], look.form, look.columns)))


def _memory(session: Session, look: Look) -> Text:
    lines: list[str] = []
    for area in session.areas.values():
        lines.append(f"{area.name}: {area.size} bytes")
        count = min(area.size // 4, MOST_WORDS)
        lines += texts.memory_lines(session, area.address, count, look.form, look.columns)
    return Text("\n".join(lines or ["there is no named memory"]))


def _shared(session: Session, look: Look) -> Text:
    return Text("\n".join(texts.sync_lines(session)))


Maker = Callable[["Session", Look], Text]
_OF_ALL: tuple[tuple[str, Maker], ...] = (
    ("r0-5, flags, queues", _accumulators),
    ("register file A", lambda session, look: registers_text(session, "a", look)),
    ("register file B", lambda session, look: registers_text(session, "b", look)),
)
_OF_PROGRAMS: tuple[tuple[str, Maker], ...] = (
    ("VPM", _vpm),
    ("memory", _memory),
    ("synchronisation", _shared),
)


def _section(section: Section) -> Maker:
    def make(session: Session, look: Look) -> Text:
        form = "" if look.form == "hex" else look.form
        return Text("\n".join(texts.section_lines(section, form, look.columns)))

    return make


def views_of(session: Session) -> tuple[tuple[str, Maker], ...]:
    """Name of each view of the state, and what makes it."""
    sections = session.stage.sections
    return _OF_ALL + (tuple((one.title, _section(one)) for one in sections) if sections else _OF_PROGRAMS)
