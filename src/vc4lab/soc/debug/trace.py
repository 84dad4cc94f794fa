"""Traces: what a program does with the devices, one readable line each.

    0.000012346 s  0x00008014  mmio     read   uart0.FR = 0x00000090 (TXFE=1, RXFE=1)

Guest time, the instruction's address, the category, what happened. A trace listens to a machine;
guest time is the same with and without.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from unicorn import UC_HOOK_MEM_READ, UC_HOOK_MEM_WRITE

from vc4lab.listeners import Subscription
from vc4lab.memory import GuestMemory
from vc4lab.soc.address.bus import Bus, RegisterAccess
from vc4lab.soc.clock import NANOSECONDS
from vc4lab.soc.cores.address_space import WINDOW
from vc4lab.soc.cores.cpu import Cpu
from vc4lab.soc.cores.exceptions.exceptions import ExceptionTaken
from vc4lab.soc.cores.hyp_core import HypCore, HypLeft
from vc4lab.soc.devices.interrupts import BASIC, LineChange
from vc4lab.soc.inspect.watchdog import BASIC_NAMES, LINE_NAMES
from vc4lab.soc.machine import Machine
from vc4lab.soc.videocore.mailbox import CHANNELS, MailboxMessage
from vc4lab.soc.videocore.properties import HEADER, tag_table

CATEGORIES = ("mmio", "irq", "mailbox", "v3d")
MAX_TAGS, LONGEST_VALUE, MAX_BYTES = 64, 256, 16
"""Limits of a printed property message: tags, bytes of a value, and how many of them are printed."""


class UnknownCategory(ValueError):  # noqa: N818 - said to the user as it is
    """The text names a category that does not exist."""


def parse_categories(text: str) -> frozenset[str]:
    """ "mmio,irq" as a set; "all" is all of them. Raises UnknownCategory."""
    names = {part.strip().lower() for part in text.split(",") if part.strip()}
    if "all" in names:
        return frozenset(CATEGORIES)
    unknown = sorted(names.difference(CATEGORIES))
    if unknown or not names:
        what = f"no trace of {unknown[0]!r}" if unknown else "nothing to trace"
        raise UnknownCategory(f"There is {what}; the choices are {', '.join(CATEGORIES)} and all.")
    return frozenset(names)


class Tracer:
    """Traces a machine from now on.

    Parameters
    ----------
    categories
        Of `CATEGORIES`. "mmio" is every device register, "v3d" only those of the V3D.
    write
        Called with each line (without its end).
    """

    def __init__(self, machine: Machine, categories: frozenset[str], write: Callable[[str], None]) -> None:
        self._machine = machine
        self._categories = categories
        self._write = write
        self._last = ""
        self._repeats = 0
        self._listening: list[Subscription[Any]] = []
        if categories & {"mmio", "v3d"}:
            self._listen_to_registers()
        if "mailbox" in categories:
            self._requests: list[str] = []
            self._listening.append(machine.mailbox.message.subscribe(self._on_message))
        if "irq" in categories:
            self._listen_to_interrupts()

    def close(self) -> None:
        """Say how often the last line was repeated, and listen no longer."""
        self._flush()
        self._write = lambda _line: None
        for one in self._listening:
            one.close()

    # -- lines -------------------------------------------------------------------------------------

    def _line(self, category: str, text: str, pc: int | None = None) -> None:
        """A line; equal ones in a row (a program that polls) are counted instead."""
        machine = self._machine
        if pc is None:
            pc = machine.cpu.engine_pc
        key = f"{self._place(pc)}  {category:<8} {text}"
        if key == self._last:
            self._repeats += 1
            return
        self._flush()
        self._last = key
        self._write(f"{machine.clock.now / NANOSECONDS:.9f} s  {key}")

    def _place(self, pc: int) -> str:
        return self._machine.places(pc)

    def _flush(self) -> None:
        if self._repeats:
            self._write(f"             repeated {self._repeats} more times")
        self._repeats = 0
        self._last = ""

    # -- registers ---------------------------------------------------------------------------------

    def _exact_addresses(self) -> None:
        """With a memory hook on the window the engine keeps its PC exact for the handlers."""
        base = self._machine.board.peripherals
        for cpu in self._machine.cores:
            cpu.engine.hook_add(
                UC_HOOK_MEM_READ | UC_HOOK_MEM_WRITE, _nothing, begin=base, end=base + WINDOW - 1
            )
            cpu.engine.ctl_flush_tb()

    def _listen_to_registers(self) -> None:
        machine = self._machine
        for bus in machine.hardware.buses[: 1 + ("mmio" in self._categories)]:
            self._listening.append(bus.watch(partial(self._on_access, bus)))
        self._exact_addresses()
        machine.frames.listeners.insert(
            0, lambda count: self._line("v3d", f"frame {count} is on the display")
        )

    def _on_access(self, bus: Bus, access: RegisterAccess) -> None:
        place = bus.place(access.offset)
        if place is None or not self._categories & {"mmio", place[0].TRACED}:
            return
        block, at = place
        name, declared = block.describe(at), block.register_at(at)
        if block.TRACED == block.NAME:
            name = name.removeprefix(f"{block.NAME}.")
        value = access.value
        text = declared[1].describe(value, name) if declared else f"{name} = 0x{value:08x}"
        self._line(block.TRACED, f"{'write ' if access.is_write else 'read  '} {text}")

    # -- messages and interrupts -------------------------------------------------------------------

    def _on_message(self, message: MailboxMessage) -> None:
        number, data, reply, is_answered = message
        memory = self._machine.memory
        words = describe_message(memory, data, answered=is_answered) if number == 8 else []
        if not is_answered:
            self._requests = words
            return
        name = CHANNELS[number] if number < len(CHANNELS) else "?"
        end = "no reply" if reply is None else f"reply 0x{reply:08x}"
        self._line("mailbox", f"channel {number} ({name}), data 0x{data:08x}, {end}")
        for request, response in zip(self._requests, words, strict=False):
            self._line("mailbox", f"  {request} -> {response}")

    def _listen_to_interrupts(self) -> None:
        machine, listening = self._machine, self._listening
        listening.append(machine.interrupts.line_change.subscribe(self._on_line))
        for core, cpu in enumerate(machine.cores):
            listening.append(cpu.exception_taken.subscribe(partial(self._on_exception, core, cpu)))
            hyp_core = getattr(cpu, "hyp_core", None)
            if hyp_core is not None:
                listening.append(hyp_core.left.subscribe(partial(self._on_leaving, core, hyp_core)))

    def _on_line(self, change: LineChange) -> None:
        number, where = change.line, "up" if change.level else "down"
        if number >= BASIC:
            number -= BASIC
            name = BASIC_NAMES[number] if number < len(BASIC_NAMES) else "?"
            self._line("irq", f"ARM line {number} ({name}) {where}")
            return
        name = LINE_NAMES.get(number, "")
        what = f"line {number} ({name})" if name else f"line {number}"
        enabled = "" if self._machine.interrupts.enabled >> number & 1 else ", not enabled"
        self._line("irq", f"{what} {where}{enabled}")

    def _on_exception(self, core: int, cpu: Cpu, taken: ExceptionTaken) -> None:
        title = taken.exception.value.title + cpu.goes_where(taken.exception)
        self._line("irq", f"core {core} takes an exception: {title}", taken.address)

    def _on_leaving(self, core: int, hyp_core: HypCore, left: HypLeft) -> None:
        where, mode = self._place(left.target), hyp_core.mode_name
        self._line("irq", f"core {core} continues in {mode} mode at {where}", left.pc)


def _nothing(*_details: Any) -> None:
    """A hook that is there to be there."""


def describe_message(memory: GuestMemory, address: int, *, answered: bool) -> list[str]:
    """One text a tag of the property message at `address`: the request's or response's values."""
    table = tag_table()
    texts: list[str] = []
    if not memory.contains(address, HEADER):
        return texts
    end = address + min(memory.u32(address), 1 << 20)
    at = address + HEADER
    while at + 12 <= end and memory.contains(at, 12) and len(texts) < MAX_TAGS:
        number, room = memory.u32(at), memory.u32(at + 4)
        if number == 0 or room > end - at - 12:
            break
        value = memory.read(at + 12, min(room, LONGEST_VALUE))
        known = table.get(number)
        if not answered:
            name = known.name if known else "an unknown tag"
            texts.append(f"{number:08x} {name}{_values(known.request if known else '', value)}")
        elif memory.u32(at + 8) >> 31:
            texts.append(_values(known.response if known else "", value).strip() or "done")
        else:
            texts.append("not answered")
        at += 12 + (room + 3 & ~3)
    return texts


def _values(kinds: str, value: bytes) -> str:
    """ " (width=640, height=480)" by a tag's declaration."""
    parts = []
    at = 0
    for one in kinds.split(","):
        words = one.split()
        if not words:
            continue
        size = {"u64": 8, "bytes": len(value)}.get(words[0], 4)
        part = value[at : at + size]
        if words[0] == "bytes":
            shown = part[:MAX_BYTES].hex() + ("…" if len(part) > MAX_BYTES else "")
        else:
            number = int.from_bytes(part, "little")
            shown = str(number) if number < 100_000 else f"0x{number:x}"
        parts.append(f"{words[-1]}={shown}")
        at += size
    return f" ({', '.join(parts)})" if parts else ""
