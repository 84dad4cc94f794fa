"""The state of a session as text: stops, registers, memory, source beside words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vc4lab.debug.formats import WIDTH, brief, lane_rows, per_row, word_text
from vc4lab.debug.state import QpuView
from vc4lab.debug.stops import Cause, Stop
from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES
from vc4lab.qpu.text.disassembler import disassemble
from vc4lab.v3d.vpm.shader_rows import WINDOW_ROWS

if TYPE_CHECKING:
    from vc4lab.debug.session import Session
    from vc4lab.debug.stage import Section

_CAUSES = {
    Cause.START: "at the beginning",
    Cause.BKPT: "bkpt",
    Cause.DEADLOCK: "deadlock",
    Cause.FAULT: "fault",
    Cause.ENDED: "ended",
    Cause.PAUSED: "paused",
    Cause.LIMIT: "stopped after",
}


def stop_text(session: Session, stop: Stop) -> str:
    """Why the session stands, in a line; "" for a plain step."""
    found = stop.breakpoint
    if found is not None:
        text = f"breakpoint {found.number}"
        if stop.cause is Cause.BREAKPOINT:
            text += f", {found.text}"
        return f"{text}: {stop.text}" if stop.text else text
    if stop.cause is Cause.STEP:
        return ""
    if stop.cause is Cause.ENDED:
        return stop.text or f"the program of QPU {stop.qpu} has ended"
    text = _CAUSES[stop.cause]
    if stop.cause is Cause.LIMIT:
        return f"{text} {stop.text}"
    return f"{text}: {stop.text}" if stop.text else text


def instruction_text(word: int, address: int) -> str:
    """An instruction as assembly, in one line."""
    return " ".join(disassemble(word, address).split())


def place_text(session: Session, number: int | None = None) -> str:
    """A QPU's place: label, file and line; and the line, or the instruction."""
    qpu = session.qpus[session.selected if number is None else number]
    address = qpu.next_address
    label = session.source.label_before(address)
    place = session.source.place(address)
    where = f"QPU {qpu.number} at 0x{address:08x}" + (f" <{label}>" if label else "")
    word = qpu.next_word
    if place is not None:
        return f"{where}, {Path(place.file).name}:{place.line}\n{place.line:<6}{place.text.strip()}"
    return f"{where}\n      {instruction_text(word, address) if word is not None else '?'}"


def qpu_lines(session: Session) -> list[str]:
    """A line for each QPU: state, instructions executed, where it is."""
    rows = []
    for number, qpu in session.qpus.items():
        view = session.view(number)
        mark = "*" if number == session.selected else " "
        address = qpu.next_address
        place = session.source.place(address)
        where = f"line {place.line}" if place else session.source.label_before(address)
        text = view.waits or (instruction_text(qpu.next_word, address) if qpu.next_word is not None else "")
        if qpu.machine.finished == "end":
            where = text = ""
        row = f"{mark} {number:2}  {view.state:8} {qpu.machine.count:>9}  0x{address:08x}  {where:10}  {text}"
        rows.append(row.rstrip())
    return ["  QPU  state    instructions  next", *rows]


def register_lines(view: QpuView, names: Iterable[str] | None, form: str) -> list[str]:
    """Registers with their lanes; names: which, None for those that were written."""
    known = dict(view.written())
    chosen = list(known) if names is None else list(names)
    lines = []
    for name in chosen:
        words = known.get(name, [0] * 16)
        rows = [f"{name:5}" + brief(words, form)]
        if len({int(word) for word in words}) > 1:
            rows = lane_rows(words, form)
            rows = [f"{name:5}{rows[0]}", *(f"     {row}" for row in rows[1:])]
        lines += rows
    if not lines:
        lines.append("no register was written yet")
    for late in view.pending():
        if names is None or late.register in chosen:
            when = "1 instruction" if late.instructions == 1 else f"{late.instructions} instructions"
            lines.append(f"{late.register:5}gets after {when}: {brief(late.words, form)}")
    return lines


def flag_lines(view: QpuView) -> list[str]:
    """The flags of each lane, lane 0 first."""
    rows = ["flag  lane 0 to 15"]
    return rows + [f"{name}     " + "".join("1" if on else "." for on in view.flag(name)) for name in "znc"]


def uniform_lines(view: QpuView, form: str, count: int = 8) -> list[str]:
    """The next words of the stream, each in a view and in hex, with what it is for if that is known."""
    lines = []
    for address, word in view.uniforms(count):
        shown = f"  {word_text(word, form)}" if form != "hex" else ""
        meaning = view.stage.meaning(address)
        lines.append(f"0x{address:08x}: {word:08x}{shown}" + (f"  {meaning}" if meaning else ""))
    return lines


def section_lines(section: Section, form: str = "", columns: int = WIDTH) -> list[str]:
    """A part of the state that only this kind of program has; form: "" as it suits each row."""
    lines = []
    for row in section.rows():
        note = f"  ({row.note})" if row.note and row.words else row.note
        view = form or row.form
        if len(set(row.words)) <= 1:
            lines.append(f"{row.name:12} {brief(row.words, view)}{note}".rstrip())
            continue
        lines.append(f"{row.name}{note}")
        lines += [f"    {one}" for one in lane_rows(row.words, view, columns - 4)]
    return lines or [f"{section.title}: none yet"]


def tmu_lines(view: QpuView, form: str, columns: int = WIDTH) -> list[str]:
    """Requests and results of both TMUs."""
    lines = []
    for number in (0, 1):
        tmu = view.tmu(number)
        lines.append(f"TMU{number}: {len(tmu.results)} results wait, room for {tmu.room} requests")
        for words in tmu.results:
            lines += [f"  {row}" for row in lane_rows(words, form, columns)]
        if tmu.parameters:
            parameters = " ".join(f"{word:08x}" for word in tmu.parameters)
            lines.append(f"  request being made: parameters {parameters}")
        lines += [f"  {name}: {brief(words, form)}" for name, words in tmu.coordinates.items()]
    return lines


def vpm_lines(session: Session, rows: Sequence[int], form: str, columns: int = WIDTH) -> list[str]:
    """Rows of the VPM, without those that are all 0 if none are named."""
    table = session.stage.vpm_rows()
    chosen = rows or [row for row in range(WINDOW_ROWS) if table[row].any()]
    lines = []
    for row in chosen:
        lines += [f"row {row:2} {text}" for text in lane_rows(table[row].tolist(), form, columns)]
    lines = lines or ["the VPM is all 0"]
    setups = ", ".join(f"{name} 0x{word:x}" for name, word in session.view().setups().items() if word)
    return [*lines, f"setups of QPU {session.selected}: {setups or 'none'}"]


def sync_lines(session: Session) -> list[str]:
    """Mutex, semaphores, host interrupts, and who waits for what."""
    shared = session.stage.shared
    if shared is None:
        return ["shaders have no mutex and no semaphores"]
    holder = int(shared.mutex) - 1
    lines = ["mutex: " + ("free" if holder < 0 else f"held by QPU {holder}")]
    values = [int(value) for value in shared.semaphores]
    shown = ", ".join(f"{number}: {value}" for number, value in enumerate(values) if value)
    lines.append(f"semaphores: {shown or 'all 0'}")
    interrupts = [str(number) for number in session.qpus if shared.interrupts[number]]
    if interrupts:
        lines.append(f"host interrupts of QPU {', '.join(interrupts)}")
    for number in session.qpus:
        waits = session.view(number).waits
        if waits:
            lines.append(f"QPU {number} {waits}")
    return lines


def memory_lines(session: Session, address: int, count: int, form: str, columns: int = WIDTH) -> list[str]:
    """Words of guest memory, in rows that fit."""
    words = [session.memory.u32(address + 4 * n) for n in range(count)]
    shown = [word_text(word, form) for word in words]
    width = max(map(len, shown), default=0)
    in_row = min(per_row(width, columns - 12), 8)
    return [
        f"0x{address + 4 * first:08x}: "
        + " ".join(text.rjust(width) for text in shown[first : first + in_row])
        for first in range(0, count, in_row)
    ]


def code_lines(session: Session, address: int, count: int) -> list[str]:
    """Instructions with their words, source lines and labels, the next one of the selected QPU marked."""
    current = session.qpu.next_address
    labels: dict[int, list[str]] = {}
    for name, offset in session.source.labels.items():
        labels.setdefault(session.code_address(offset), []).append(name)
    lines = []
    for at in range(address, address + INSTRUCTION_BYTES * count, INSTRUCTION_BYTES):
        index = session.qpu.program.index_of(at)
        if index is not None:
            word = session.qpu.program.words[index]
        else:
            word = session.memory.u64(at)
        lines += [f"{name}:" for name in labels.get(at, ())]
        mark = "=>" if at == current else "  "
        place = session.source.place(at)
        text = f"{mark} 0x{at:08x}  {word:016x}  {instruction_text(word, at)}"
        lines.append(f"{text:<86}  {place.line}" if place else text)
    return lines


def source_lines(session: Session, file: str, first: int, count: int) -> list[str]:
    """Lines of a source, the selected QPU's marked, those with breakpoints, too."""
    text = session.source.text_of(file)
    current = session.place()
    stops = {
        (place.file, place.line)
        for item in session.breakpoints.items.values()
        for address in getattr(item, "addresses", ())
        if (place := session.source.place(address)) is not None
    }
    lines = []
    for number in range(max(first, 1), min(first + count, len(text) + 1)):
        mark = "=>" if current is not None and current[:2] == (file, number) else "  "
        stop = "b" if (file, number) in stops else " "
        lines.append(f"{stop}{mark} {number:<5} {text[number - 1].expandtabs(8)}".rstrip())
    return lines


def breakpoint_lines(session: Session) -> list[str]:
    """A line for each breakpoint."""
    lines = []
    for item in session.breakpoints.items.values():
        kind = type(item).__name__.removesuffix("Breakpoint").lower()
        parts = [f"{item.number:<3} {kind:8} {'' if item.enabled else 'off '}{item.text}"]
        if item.qpu is not None:
            parts.append(f"qpu {item.qpu}")
        if item.condition is not None:
            parts.append(f"if {item.condition.text}")
        parts.append(f"{item.hits} hits" if item.hits != 1 else "1 hit")
        lines.append("  ".join(parts))
    return lines or ["there are no breakpoints"]
