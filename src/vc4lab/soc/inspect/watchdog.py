"""The watchdog: notices that a program makes no progress, and reports what waits for what."""

from __future__ import annotations

from vc4lab.registers import Poll
from vc4lab.soc.clock import NANOSECONDS
from vc4lab.soc.devices.interrupts import BASIC, MINI_UART, SMI, UART0, V3D
from vc4lab.soc.devices.local_block import GPU_BIT
from vc4lab.soc.devices.v3d_bridge import V3DBridge
from vc4lab.soc.hardware import Hardware

V3D_INTCTL = 0x030
WAITING_LIMIT = 10 * NANOSECONDS
"""Guest time a program may wait (polling or asleep) without anything happening."""
WORKING_LIMIT = 30 * NANOSECONDS
"""Guest time a program may compute without any visible effect."""
LINE_NAMES = {
    0: "timer 0", 1: "timer 1", 2: "timer 2", 3: "timer 3", 9: "USB", 10: "V3D", 29: "mini UART",
    SMI: "vsync (SMI)", 49: "GPIO", 50: "GPIO", 51: "GPIO", 52: "GPIO", 57: "UART", 62: "EMMC",
}  # fmt: skip
LOCAL_NAMES = {
    0: "physical timer", 1: "physical timer", 2: "hypervisor timer", 3: "virtual timer",
    4: "core mailbox 0", 5: "core mailbox 1", 6: "core mailbox 2", 7: "core mailbox 3",
    11: "local timer",
}  # fmt: skip
"""Bits of a core's IRQ_SOURCE."""
BASIC_NAMES = ("ARM timer", "ARM mailbox", "doorbell 0", "doorbell 1")
OTHER_PERIPHERALS = 0x20000000
"""The peripherals' address of a Pi Zero or 1."""
DEVICE_PAGES = (0xB800, 0x200000, 0x201000, 0x215000, 0x3000)
"""Mailbox, GPIO, both UARTs, timer."""


def registers_of_another_board(machine: Hardware) -> tuple[str, int] | None:
    """A sentence and an address if the program wrote to a Pi 1's registers, which are RAM here."""
    if machine.board.peripherals <= OTHER_PERIPHERALS or machine.board.ram <= OTHER_PERIPHERALS:
        return None
    for offset in DEVICE_PAGES:
        page = OTHER_PERIPHERALS + offset
        if not machine.memory.is_untouched(page, 0x100):
            text = (
                f"the program has written to 0x{page:08x}, which is RAM here: the peripherals are "
                f"at 0x{machine.board.peripherals:08x}, not at 0x{OTHER_PERIPHERALS:08x}"
            )
            return text, page
    return None


def line_name(line: int) -> str:
    """Name what a line belongs to; those of the ARM have numbers from `BASIC` on."""
    if line >= BASIC:
        return dict(enumerate(BASIC_NAMES)).get(line - BASIC, f"ARM line {line - BASIC}")
    return LINE_NAMES.get(line, "a device")


NOTHING_PENDING = "no longer pending"


def pending_lines(hardware: Hardware, core: int) -> str:
    """Names of the lines that ask a core for an interrupt now."""
    local, interrupts = hardware.local, hardware.interrupts
    asking = 1 << GPU_BIT
    if local is not None:
        asking = local.sources(core, fast=False) | local.sources(core, fast=True)
    names = [name for bit, name in LOCAL_NAMES.items() if asking >> bit & 1]
    if asking >> GPU_BIT & 1:
        lines = interrupts.lines & interrupts.enabled
        basic = interrupts.basic_lines & interrupts.basic_enabled
        names += [LINE_NAMES.get(n, f"line {n}") for n in range(64) if lines >> n & 1]
        names += [name for bit, name in enumerate(BASIC_NAMES) if basic >> bit & 1]
    return ", ".join(names) or NOTHING_PENDING


class Watchdog:
    """Looks at the machine at every vsync."""

    def __init__(self, machine: Hardware) -> None:
        self._machine = machine
        self._seen: tuple[int, ...] = ()
        self._since = 0
        self._frames = -1
        self._frames_since = 0

    def restart(self) -> None:
        """Begin a new run."""
        self._since = self._frames_since = self._machine.clock.now

    def check(self, frames_wanted: bool) -> str | None:
        """A sentence if the program hangs, else None."""
        machine = self._machine
        now = machine.clock.now
        frames = machine.frames.count
        if frames != self._frames:
            self._frames, self._frames_since = frames, now
        seen = machine.signs()
        if seen != self._seen:
            self._seen, self._since = seen, now
        if machine.v3d_bridge.is_busy:
            self._since = self._frames_since = now
        quiet = now - self._since
        if quiet > WAITING_LIMIT and (waits := self.waiting()) is not None:
            if machine.serial.may_receive and self._awaits_input():
                self._since = now
                return None
            return f"nothing has happened for {_seconds(quiet)}: {waits}"
        if quiet > WORKING_LIMIT:
            return f"nothing has happened for {_seconds(quiet)}: {self.describe()}"
        if frames_wanted and now - self._frames_since > WORKING_LIMIT:
            return f"no frame was shown for {_seconds(now - self._frames_since)}: {self.describe()}"
        return None

    def _awaits_input(self) -> bool:
        """Whether the program waits for typed bytes, polling or asleep."""
        machine = self._machine
        polled = machine.processors.polled
        if polled is not None:
            return polled.kind is Poll.INPUT
        listens = machine.interrupts.listens
        return (machine.uart.awaits_input and listens(UART0)) or (
            machine.mini_uart.awaits_input and listens(MINI_UART)
        )

    def describe(self) -> str:
        """Say what waits for what, or where the program runs."""
        return self.waiting() or f"the CPU runs near {self._near()}"

    def _near(self) -> str:
        return self._machine.places(self._machine.counter.block)

    def waiting(self) -> str | None:
        """Say what waits for what; None if the CPU has work."""
        machine = self._machine
        parts: list[str] = []
        v3d = machine.v3d_bridge.waiting
        if v3d:
            parts.append(f"the V3D: {v3d}")
        polled = machine.processors.polled
        if polled is not None:
            offset = polled.offset
            value = machine.bus.peek(offset)
            parts.append(f"the CPU near {self._near()} keeps reading {polled.name} (0x{value:08x})")
            why = machine.v3d_bridge.explain(offset - V3DBridge.OFFSET, value)
            if why is not None:
                parts.append(why)
        elif asleep := machine.processors.asleep:
            parts.append(f"the CPU at {machine.places(machine.cpu.pc)} sleeps ({asleep})")
            if machine.interrupts.enabled >> V3D & 1 and machine.v3d_bridge.powered:
                status = machine.bus.peek(V3DBridge.OFFSET + V3D_INTCTL)
                parts.append(machine.v3d_bridge.explain(V3D_INTCTL, status) or "")
        if not parts:
            return None
        return "; ".join(filter(None, parts)) + self._interrupt_hint()

    def _interrupt_hint(self) -> str:
        machine = self._machine
        interrupts = machine.interrupts
        if interrupts.enabled >> SMI & 1 and not machine.fake_vsync:
            return (
                "; the vsync interrupt (SMI, line 48) is enabled, but without fake_vsync_isr=1 "
                "in config.txt it never comes"
            )
        names = [LINE_NAMES.get(line, f"line {line}") for line in range(64) if interrupts.enabled >> line & 1]
        if machine.processors.asleep and names:
            return f"; interrupts enabled: {', '.join(names)}"
        return ""


def _seconds(ns: int) -> str:
    return f"{ns / NANOSECONDS:.0f} s of guest time"
