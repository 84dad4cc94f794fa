"""A driver of the SD controller in Python, for the tests of this folder."""

import struct

from tests.support.guest_time import skip_to_event

from vc4lab.soc.machine import Machine
from vc4lab.soc.media.sd_medium import SECTOR

EMMC, IRQ, DMA = 0x300000, 0xB200, 0x7000
ARG2, BLKSIZECNT, ARG1, CMDTM, RESP, DATA, STATUS = 0, 4, 8, 12, 16, 32, 36
CONTROL0, CONTROL1, INTERRUPT, IRPT_MASK, IRPT_EN, CONTROL2 = 0x28, 0x2C, 0x30, 0x34, 0x38, 0x3C
DONE, DATA_DONE, WRITE_READY, READ_READY, ERROR = 1, 2, 16, 32, 1 << 15
NO_REPLY, NO_DATA, BAD_DATA, AUTO_FAILED = 1 << 16, 1 << 20, 1 << 21, 1 << 24
NONE, LONG, SHORT, BUSY = (n << 16 for n in range(4))
READ, WRITE = 1 << 21 | 1 << 4, 1 << 21
MANY = 1 << 5 | 1 << 1
AUTO_STOP, AUTO_COUNT = 1 << 2, 2 << 2
OUT_OF_RANGE, ILLEGAL = 1 << 31, 1 << 22


class Host:
    """A driver in Python, at the registers."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.address = 0

    def read(self, offset: int) -> int:
        return self.machine.bus.read(EMMC + offset, 4)

    def write(self, offset: int, value: int) -> None:
        self.machine.bus.write(EMMC + offset, 4, value & 0xFFFFFFFF)

    def settle(self) -> None:
        for _ in range(4):
            if self.machine.emmc._event is None:
                return
            skip_to_event(self.machine.clock)
            self.machine.clock.run_due()

    def wait(self, bits: int) -> int:
        """Until one of the bits shows, or an error."""
        for _ in range(20):
            found = self.read(INTERRUPT)
            if found & (bits | ERROR):
                self.write(INTERRUPT, bits)
                return found
            skip_to_event(self.machine.clock)
            self.machine.clock.run_due()
        raise AssertionError(f"INTERRUPT stays 0x{self.read(INTERRUPT):x}")

    def command(self, index: int, argument: int = 0, flags: int = SHORT) -> int:
        self.write(INTERRUPT, 0xFFFFFFFF)
        self.write(ARG1, argument)
        self.write(CMDTM, index << 24 | flags)
        found = self.wait(DONE)
        assert not found & ERROR, f"CMD{index}: 0x{found:x}"
        return self.read(RESP)

    def fails(self, index: int, argument: int = 0, flags: int = SHORT) -> int:
        """INTERRUPT after a command that fails."""
        self.write(INTERRUPT, 0xFFFFFFFF)
        self.write(ARG1, argument)
        self.write(CMDTM, index << 24 | flags)
        found = self.wait(0)
        assert found & ERROR
        return found

    def app(self, index: int, argument: int = 0, flags: int = SHORT) -> int:
        self.command(55, self.address)
        return self.command(index, argument, flags)

    def start(self) -> None:
        self.write(CONTROL1, 1 << 24)
        assert not self.read(CONTROL1) >> 24
        self.write(CONTROL1, 0xE6801)
        assert self.read(CONTROL1) & 2
        self.write(CONTROL1, 0xE6805)
        self.write(IRPT_MASK, 0xFFFFFFFF)

    def identify(self) -> None:
        self.start()
        self.command(0, 0, NONE)
        assert self.command(8, 0x1AA) == 0x1AA
        tries = 0
        while not self.app(41, 0x40FF8000) >> 31:
            tries += 1
            assert tries < 5
        self.command(2, 0, LONG)
        self.address = self.command(3) & 0xFFFF0000
        self.command(7, self.address, BUSY)
        self.size(1)

    def size(self, count: int, size: int = SECTOR) -> None:
        self.write(BLKSIZECNT, count << 16 | size)

    def take(self, words: int = 128) -> bytes:
        assert self.wait(READ_READY) & READ_READY
        return b"".join(struct.pack("<I", self.read(DATA)) for _ in range(words))

    def give(self, data: bytes) -> None:
        assert self.wait(WRITE_READY) & WRITE_READY
        for (word,) in struct.iter_unpack("<I", data):
            self.write(DATA, word)

    def read_block(self, sector: int) -> bytes:
        self.size(1)
        self.command(17, sector, SHORT | READ)
        return self.take()

    def write_block(self, sector: int, data: bytes) -> None:
        self.size(1)
        self.command(24, sector, SHORT | WRITE)
        self.give(data)
        assert self.wait(DATA_DONE) & DATA_DONE

    def state(self) -> int:
        return self.command(13, self.address) >> 9 & 15


def pattern(sector: int) -> bytes:
    return struct.pack("<I", sector * 0x01010101 & 0xFFFFFFFF) * 128


def codes(host: Host) -> set[str]:
    return {item.code for item in host.machine.reporter.items}
