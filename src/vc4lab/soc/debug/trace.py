"""Traces: what a program does with the devices, one readable line each.

    0.000012346 s  0x00008014  mmio     read   uart0.FR = 0x00000090 (TXFE=1, RXFE=1)

Guest time, the instruction's address, the category, what happened. A trace wraps the handlers of a
machine when it is asked for; a machine without one has nothing of it. Guest time is the same with
and without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from vc4lab.soc.address.address_space import WINDOW
from vc4lab.soc.address.block import ReadHandler, WriteHandler
from vc4lab.soc.clock import NANOSECONDS
from vc4lab.soc.debug.trace_text import describe_fields, describe_message
from vc4lab.soc.videocore.mailbox import CHANNELS, Channel
from vc4lab.soc.watchdog import BASIC_NAMES, LINE_NAMES

if TYPE_CHECKING:
    from vc4lab.soc.address.block import Block
    from vc4lab.soc.address.bus import Bus
    from vc4lab.soc.cores.cpu import Cpu
    from vc4lab.soc.cores.exceptions import ArmException
    from vc4lab.soc.cores.hyp_core import HypCore
    from vc4lab.soc.machine import Machine

CATEGORIES = ("mmio", "irq", "mailbox", "v3d")


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
        raise UnknownCategory(f"There is {what}; take some of {', '.join(CATEGORIES)}, or all.")
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

    def __init__(
        self, machine: Machine, categories: frozenset[str], write: Callable[[str], None]
    ) -> None:
        self._machine = machine
        self._write = write
        self._last = ""
        self._repeats = 0
        if "mmio" in categories:
            self._wrap_bus(machine.bus)
            self._wrap_bus(machine.local_bus)
        if categories & {"mmio", "v3d"}:
            machine.bus.ask_always()
            self._wrap_v3d()
            self._exact_addresses()
        if "mailbox" in categories:
            channels = machine.mailbox.channels
            for number, channel in list(channels.items()):
                channels[number] = self._around_channel(number, channel)
        if "irq" in categories:
            self._wrap_interrupts()

    def close(self) -> None:
        """Say how often the last line was repeated. The machine keeps its wrapping."""
        self._flush()
        self._write = lambda _line: None

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
            self._write(f"             the same {self._repeats} more times")
        self._repeats = 0
        self._last = ""

    # -- registers ---------------------------------------------------------------------------------

    def _exact_addresses(self) -> None:
        """With a memory hook on the window the engine keeps its PC exact for the handlers."""
        from unicorn import UC_HOOK_MEM_READ, UC_HOOK_MEM_WRITE

        base = self._machine.board.peripherals
        for cpu in self._machine.cores:
            cpu.engine.hook_add(
                UC_HOOK_MEM_READ | UC_HOOK_MEM_WRITE, _nothing, begin=base, end=base + WINDOW - 1
            )
            cpu.engine.ctl_flush_tb()

    def _wrap_bus(self, bus: Bus) -> None:
        def around_read(at: int, handler: ReadHandler) -> ReadHandler:
            def read() -> int:
                value = handler()
                self._line("mmio", f"read   {self._register(bus, at, value)}")
                return value

            return read

        def around_write(at: int, handler: WriteHandler) -> WriteHandler:
            def write(value: int) -> None:
                self._line("mmio", f"write  {self._register(bus, at, value)}")
                handler(value)

            return write

        bus.wrap(around_read, around_write)
        for _start, block in bus.blocks:
            if block is not self._machine.v3d_bridge:
                self._wrap_rest(block, "mmio", _undeclared(block))

    def _register(self, bus: Bus, at: int, value: int) -> str:
        for start, block in bus.blocks:
            found = block.register_at(at - start)
            if found is not None:
                name, register = found
                return f"{block.NAME}.{name} = 0x{value:08x}{describe_fields(register, value)}"
        return f"0x{bus.base + at:08x} = 0x{value:08x}"

    def _wrap_v3d(self) -> None:
        from vc4lab.v3d.registers import BY_OFFSET

        def text(at: int, value: int) -> str:
            register = BY_OFFSET.get(at)
            return register.describe(value) if register else f"v3d+0x{at:03x} = 0x{value:08x}"

        self._wrap_rest(self._machine.v3d_bridge, "v3d", text)
        self._machine.frames.listeners.insert(
            0, lambda count: self._line("v3d", f"frame {count} is on the display")
        )

    def _wrap_rest(self, block: Block, category: str, text: Callable[[int, int], str]) -> None:
        """Trace a block's registers that have no handlers of their own."""
        read_other, write_other = block.read_other, block.write_other

        def read(at: int) -> int:
            value = read_other(at)
            self._line(category, f"read   {text(at, value)}")
            return value

        def write(at: int, value: int) -> None:
            self._line(category, f"write  {text(at, value)}")
            write_other(at, value)

        vars(block).update(read_other=read, write_other=write)

    # -- messages and interrupts -------------------------------------------------------------------

    def _around_channel(self, number: int, channel: Channel) -> Channel:
        memory = self._machine.memory

        def call(data: int) -> int | None:
            before = describe_message(memory, data, answered=False) if number == 8 else []
            reply = channel(data)
            name = CHANNELS[number] if number < len(CHANNELS) else "?"
            end = "no reply" if reply is None else f"reply 0x{reply:08x}"
            self._line("mailbox", f"channel {number} ({name}), data 0x{data:08x}, {end}")
            after = describe_message(memory, data, answered=True) if number == 8 else []
            for request, response in zip(before, after, strict=False):
                self._line("mailbox", f"  {request} -> {response}")
            return reply

        return call

    def _wrap_interrupts(self) -> None:
        machine = self._machine
        interrupts = machine.interrupts
        set_line, set_basic = interrupts.set_line, interrupts.set_basic

        def line(number: int, level: bool) -> None:
            if bool(interrupts.lines >> number & 1) != bool(level):
                name = LINE_NAMES.get(number, "")
                what = f"line {number} ({name})" if name else f"line {number}"
                enabled = "" if interrupts.enabled >> number & 1 else ", not enabled"
                self._line("irq", f"{what} {'up' if level else 'down'}{enabled}")
            set_line(number, level)

        def basic(number: int, level: bool) -> None:
            if bool(interrupts.basic_lines >> number & 1) != bool(level):
                name = BASIC_NAMES[number] if number < len(BASIC_NAMES) else "?"
                self._line("irq", f"ARM line {number} ({name}) {'up' if level else 'down'}")
            set_basic(number, level)

        vars(interrupts).update(set_line=line, set_basic=basic)
        for core, cpu in enumerate(machine.cores):
            self._wrap_exceptions(core, cpu)

    def _wrap_exceptions(self, core: int, cpu: Cpu) -> None:
        take = cpu._take

        def traced(exception: ArmException, address: int) -> None:
            title = exception.value.title + cpu.goes_where(exception)
            self._line("irq", f"core {core} takes an exception: {title}", address)
            take(exception, address)

        vars(cpu).update(_take=traced)
        hyp_core = getattr(cpu, "hyp_core", None)
        if hyp_core is not None:
            self._wrap_leaving(core, cpu, hyp_core)

    def _wrap_leaving(self, core: int, cpu: Cpu, hyp_core: HypCore) -> None:
        leave = hyp_core.leave

        def traced() -> int:
            pc = cpu.engine_pc
            where = leave()
            mode = hyp_core.mode_name
            self._line("irq", f"core {core} goes on in {mode} mode at {self._place(where)}", pc)
            return where

        vars(hyp_core).update(leave=traced)


def _undeclared(block: Block) -> Callable[[int, int], str]:
    return lambda at, value: f"{block.describe(at)} = 0x{value:08x}"


def _nothing(*_details: Any) -> None:
    """A hook that is there to be there."""
