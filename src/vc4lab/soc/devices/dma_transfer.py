"""How the DMA moves bytes between RAM and device registers (hardware reference 8.10).

Bus addresses: 0x7Ennnnnn are peripherals, everything else is RAM under one of its four aliases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from vc4lab.memory import BUS_PERIPHERALS, GuestMemory
from vc4lab.soc.address.bus import Bus
from vc4lab.soc.cores.address_space import WINDOW

DEST_INC, DEST_WIDE, DEST_DREQ, DEST_IGNORE = 1 << 4, 1 << 5, 1 << 6, 1 << 7
SRC_INC, SRC_WIDE, SRC_DREQ, SRC_IGNORE = 1 << 8, 1 << 9, 1 << 10, 1 << 11
ADDRESS_MASK = 0x3FFFFFFF


class BadAddress(Exception):  # noqa: N818 - becomes a sentence for the user
    """The DMA finds nothing at an address; the text says why."""

    def __init__(self, address: int, text: str) -> None:
        super().__init__(text)
        self.address = address


@dataclass(frozen=True)
class Fifo:
    """A device's register of which many words are moved at once.

    `take(count)` gives bytes that a program would read there, `give(bytes)` are those written.
    """

    take: Callable[[int], bytes]
    give: Callable[[bytes], None]


@dataclass(frozen=True)
class Mover:
    """Moves runs of bytes as a control block's transfer information says.

    `fifos` go by their offset in the window of peripherals.
    """

    memory: GuestMemory
    bus: Bus
    fifos: dict[int, Fifo] = field(default_factory=dict)

    def is_device(self, address: int) -> bool:
        """Whether a bus address names a peripheral."""
        return address >> 24 == BUS_PERIPHERALS

    def is_slow(self, address: int) -> bool:
        """Whether a bus address names a device's register that gives and takes single words."""
        return self.is_device(address) and address & WINDOW - 4 not in self.fifos

    def physical(self, address: int, size: int) -> int:
        """The RAM of `size` bytes at a bus address. Raises BadAddress."""
        start = address & ADDRESS_MASK
        window = self.bus.base
        if window <= start < window + WINDOW:
            raise BadAddress(
                address,
                f"0x{address:08x} is a peripheral's ARM address; for the DMA it is "
                f"at 0x{BUS_PERIPHERALS << 24 | start - window:08x}",
            )
        if not self.memory.contains(start, size):
            raise BadAddress(address, f"{size} bytes at 0x{address:08x} are not in RAM")
        return start

    def control_block(self, address: int) -> list[int]:
        """The eight words of a control block. Raises BadAddress."""
        start = self.physical(address, 32)
        return [self.memory.u32(start + 4 * index) for index in range(8)]

    def begin(self, info: int, source: int, dest: int, size: int) -> None:
        """The DMA begins to move `size` bytes within RAM. Raises BadAddress."""
        if not info & DEST_IGNORE:
            self.physical(dest, size if info & DEST_INC else _unit(info & DEST_WIDE))
        if not info & SRC_IGNORE:
            self.physical(source, size if info & SRC_INC else _unit(info & SRC_WIDE))

    def move(self, info: int, source: int, dest: int, size: int) -> bool:
        """Move `size` bytes; whether RAM was written. Raises BadAddress."""
        ignored = bool(info & DEST_IGNORE)
        device = self.is_device(dest)
        if not ignored and not device:
            self.physical(dest, size if info & DEST_INC else _unit(info & DEST_WIDE))
        data = self._fetch(info, source, dest, size)
        if ignored:
            return False
        if device:
            self._send(dest, data, bool(info & DEST_INC))
            return False
        start = dest & ADDRESS_MASK
        self.memory.write(start, data if info & DEST_INC else data[-_unit(info & DEST_WIDE) :])
        return True

    def _fetch(self, info: int, source: int, dest: int, size: int) -> bytes:
        if info & SRC_IGNORE:
            return bytes(size)
        if self.is_device(source):
            offset = source & (WINDOW - 4)
            fifo = self._fifo(offset, info & SRC_INC)
            if fifo is not None:
                return fifo.take(size)
            step = 4 if info & SRC_INC else 0
            words = range(-(-size // 4))
            found = b"".join(self.bus.peek((offset + step * i) % WINDOW).to_bytes(4, "little") for i in words)
            return found[:size]
        if not info & SRC_INC:
            unit = _unit(info & SRC_WIDE)
            return _repeat(self.memory.read(self.physical(source, unit), unit), size)
        start = self.physical(source, size)
        distance = (dest & ADDRESS_MASK) - start
        overlaps = 0 < distance < size and not self.is_device(dest)
        if overlaps and info & DEST_INC:
            return _repeat(self.memory.read(start, distance), size)
        return self.memory.read(start, size)

    def _send(self, dest: int, data: bytes, increments: bool) -> None:
        offset = dest & (WINDOW - 4)
        fifo = self._fifo(offset, increments)
        if fifo is not None:
            fifo.give(data)
            return
        for at in range(0, len(data), 4):
            word = int.from_bytes(data[at : at + 4], "little")
            self.bus.poke((offset + (at if increments else 0)) % WINDOW, word)

    def _fifo(self, offset: int, increments: int) -> Fifo | None:
        """The FIFO that moves many words at once, unless each access is to be seen."""
        return None if increments or self.bus.is_watched else self.fifos.get(offset)


def _unit(wide: int) -> int:
    """Bytes of one access."""
    return 16 if wide else 4


def _repeat(pattern: bytes, size: int) -> bytes:
    return (pattern * (-(-size // len(pattern))))[:size]
