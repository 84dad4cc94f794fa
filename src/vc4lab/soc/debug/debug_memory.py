"""Memory as a debugger sees it: the core's virtual addresses, RAM in place, device registers."""

from __future__ import annotations

from vc4lab.soc.address.bus import Bus
from vc4lab.soc.cores.address_space import WINDOW
from vc4lab.soc.cores.cpu import Cpu
from vc4lab.soc.machine import Machine

PAGE = 4096
ADDRESS_LIMIT = 1 << 64


class DebugMemory:
    """Reads and writes for one core. What cannot be read ends the answer; nothing raises."""

    def __init__(self, machine: Machine, cpu: Cpu) -> None:
        self._machine = machine
        self._cpu = cpu

    def read(self, address: int, size: int) -> bytes:
        """Up to `size` bytes from a virtual address on."""
        out = bytearray()
        while len(out) < size:
            here = address + len(out)
            length = min(size - len(out), PAGE - here % PAGE)
            place = self._physical(here)
            data = None if place is None else self._read_page(place, length)
            if data is None:
                break
            out += data
        return bytes(out)

    def write(self, address: int, data: bytes) -> bool:
        """Store `data`; False if a part of it has no place (the part before it is stored)."""
        done = 0
        while done < len(data):
            here = address + done
            part = data[done : done + PAGE - here % PAGE]
            place = self._physical(here)
            if place is None or not self._write_page(place, part):
                return False
            done += len(part)
        self._cpu.engine.ctl_flush_tb()
        return True

    def is_device(self, address: int) -> bool:
        """Whether a virtual address is that of a device register."""
        place = self._physical(address)
        return place is not None and place >= self._machine.board.peripherals

    def _physical(self, address: int) -> int | None:
        """The physical address of a virtual one, None if there is none."""
        if not 0 <= address < ADDRESS_LIMIT:
            return None
        return self._cpu.translate(address)

    def _bus_at(self, place: int) -> tuple[Bus, int] | None:
        """The bus and the offset of a device register that exists."""
        for bus in self._machine.hardware.buses:
            offset = place - bus.base
            if 0 <= offset < WINDOW and bus.blocks and bus.find(offset & ~3) is not None:
                return bus, offset
        return None

    def _read_page(self, place: int, size: int) -> bytes | None:
        if place < self._machine.board.peripherals:
            return self._machine.memory.read(place, size)
        found = self._bus_at(place)
        if found is None:
            return None
        bus, offset = found
        start = offset & ~3
        words = [bus.peek(at) for at in range(start, offset + size, 4)]
        data = b"".join((word & 0xFFFFFFFF).to_bytes(4, "little") for word in words)
        return data[offset - start :][:size]

    def _write_page(self, place: int, data: bytes) -> bool:
        if place < self._machine.board.peripherals:
            self._machine.memory.write(place, data)
            self._machine.processors.code_changed()
            return True
        found = self._bus_at(place)
        if found is None or place % 4 or len(data) % 4:
            return False
        bus, offset = found
        for at in range(0, len(data), 4):
            bus.write(offset + at, 4, int.from_bytes(data[at : at + 4], "little"))
        return True
