"""The VPU's bus addresses: RAM under four aliases, peripherals at 0x7Ennnnnn."""

from __future__ import annotations

from vc4lab.memory import GuestMemory
from vc4lab.memory.guest import BUS_PERIPHERALS
from vc4lab.soc.address.bus import Bus
from vc4lab.soc.cores.address_space import WINDOW
from vc4lab.soc.devices.dma_transfer import ADDRESS_MASK


class Fault(Exception):  # noqa: N818 - becomes a sentence for the user
    """An exception of the VPU, or an address where nothing is; the text says which."""


class VpuMemory:
    """Loads and stores of 1, 2 or 4 bytes. Raises Fault where nothing is.

    Parameters
    ----------
    misaligned
        Whether accesses need not be aligned.
    """

    def __init__(self, memory: GuestMemory, bus: Bus, misaligned: bool) -> None:
        self._memory = memory
        self._bus = bus
        self._misaligned = misaligned

    def _place(self, address: int, size: int, what: str) -> int | None:
        """The RAM of an access, None for a device."""
        if address % size and not self._misaligned:
            raise Fault(f"a misaligned {what} of {size} bytes at 0x{address:08x}")
        if address >> 24 == BUS_PERIPHERALS:
            return None
        return self._ram(address, size, f"a {what} of {size} bytes")

    def _ram(self, address: int, size: int, what: str) -> int:
        """The place in RAM of a bus address."""
        start = address & ADDRESS_MASK
        offset = start - self._bus.base
        if 0 <= offset < WINDOW:
            raise Fault(
                f"{what} at 0x{address:08x}, a peripheral's ARM address; for the "
                f"VPU it is at 0x{BUS_PERIPHERALS << 24 | offset:08x}"
            )
        if not self._memory.contains(start, size):
            raise Fault(f"{what} at the empty address 0x{address:08x}")
        return start

    def load(self, address: int, size: int) -> int:
        """The unsigned value at a bus address."""
        place = self._place(address, size, "load")
        if place is None:
            word = self._bus.peek(address & (WINDOW - 4)) & 0xFFFFFFFF
            return word >> 8 * (address & 3) & (1 << 8 * size) - 1
        if size == 4:
            return self._memory.u32(place)
        return self._memory.u16(place) if size == 2 else self._memory.u8(place)

    def store(self, address: int, size: int, value: int) -> None:
        """Store the low `size` bytes; a part of a device's word zeroes the rest, as the ARM's."""
        place = self._place(address, size, "store")
        value &= (1 << 8 * size) - 1
        if place is None:
            word = value << 8 * (address & 3) & 0xFFFFFFFF
            self._bus.poke(address & (WINDOW - 4), word)
        elif size == 4:
            self._memory.set_u32(place, value)
        elif size == 2:
            self._memory.set_u16(place, value)
        else:
            self._memory.set_u8(place, value)

    def fetch(self, address: int) -> int:
        """A halfword of code: only RAM has any."""
        if address & 1:
            raise Fault(f"code at the odd address 0x{address:08x}")
        if address >> 24 == BUS_PERIPHERALS:
            raise Fault(f"code at 0x{address:08x}, where there is no RAM")
        return self._memory.u16(self._ram(address, 2, "code"))
