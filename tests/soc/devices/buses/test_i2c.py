"""I2C: a monitor at the HDMI connector, read as drivers do; nothing at all other addresses."""

import pytest

from vc4lab.soc.videocore.edid import edid_block

HALT = bytes.fromhex("feffffea")
I2C2 = 0x805000
CONTROL, STATUS, DLEN, ADDRESS, FIFO = (I2C2 + at for at in (0, 4, 8, 12, 16))
ON, RX_IRQ, TX_IRQ, DONE_IRQ, START, CLEAR, READ = 0x8000, 0x400, 0x200, 0x100, 0x80, 0x30, 1
ERROR, DATA, MUST_READ, MUST_WRITE, DONE, ACTIVE = 0x100, 0x20, 8, 4, 2, 1
LINE = 1 << 53


@pytest.fixture
def bus(boot):
    machine = boot(HALT)
    machine.bus.machine = machine
    return Bus(machine)


class Bus:
    def __init__(self, machine):
        self.machine = machine

    def __getitem__(self, at):
        return self.machine.bus.read(at, 4)

    def __setitem__(self, at, value):
        self.machine.bus.write(at, 4, value)

    @property
    def interrupts(self):
        return bool(self.machine.interrupts.lines & LINE)


def read_edid(bus, count):
    """The offset, a repeated start, and so many bytes, each step after its interrupt."""
    bus[CONTROL] = CLEAR
    bus[ADDRESS], bus[DLEN] = 0x50, 1
    bus[CONTROL] = ON | START | TX_IRQ
    assert bus.interrupts
    assert bus[STATUS] & (MUST_WRITE | ACTIVE | ERROR) == MUST_WRITE | ACTIVE
    bus[FIFO] = 0
    assert not bus.interrupts
    bus[DLEN] = count
    bus[CONTROL] = ON | START | RX_IRQ | DONE_IRQ | READ
    found = bytearray()
    while not bus[STATUS] & DONE:
        assert bus.interrupts
        assert bus[STATUS] & (MUST_READ | ACTIVE) == MUST_READ | ACTIVE
        while bus[STATUS] & MUST_READ:
            found.append(bus[FIFO])
    assert bus.interrupts
    while bus[STATUS] & DATA:
        found.append(bus[FIFO])
    bus[STATUS] = 0x302
    assert not bus.interrupts
    assert bus[STATUS] & (DONE | ACTIVE) == 0
    return bytes(found)


def test_the_monitor_is_read(bus):
    expected = edid_block(*bus.machine.config.display_mode())
    assert read_edid(bus, 256) == expected
    assert read_edid(bus, 5) == expected[:5]
    assert read_edid(bus, 300)[:256] == expected


def test_the_offset_counts(bus):
    expected = edid_block(*bus.machine.config.display_mode())
    bus[ADDRESS], bus[DLEN], bus[FIFO] = 0x50, 1, 54
    bus[CONTROL] = ON | START
    assert bus[STATUS] & DONE
    bus[DLEN] = 4
    bus[CONTROL] = ON | START | READ
    assert bytes(bus[FIFO] for _byte in range(4)) == expected[54:58]
    assert bus[FIFO] == 0


def test_an_address_without_a_device_ends_at_once(bus):
    """Its interrupt comes even if only the one for data is enabled, as Linux has it."""
    bus[ADDRESS], bus[DLEN] = 0x37, 1
    bus[CONTROL] = ON | START | TX_IRQ
    assert bus[STATUS] & (ERROR | DONE | ACTIVE) == ERROR | DONE
    assert bus.interrupts
    bus[CONTROL] = CLEAR
    bus[STATUS] = 0x302
    assert not bus.interrupts


def test_clearing_the_fifo_during_a_transfer(bus):
    bus[ADDRESS], bus[DLEN] = 0x50, 100
    bus[CONTROL] = ON | START | READ
    assert bus[STATUS] & DATA
    bus[CONTROL] = ON | CLEAR | READ
    assert not bus[STATUS] & DATA
    bus[CONTROL] = ON | START | READ
    assert bus[STATUS] & MUST_READ
