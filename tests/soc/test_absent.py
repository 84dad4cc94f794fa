"""Buses with nothing on them: drivers find out, nobody waits for ever, it is said once."""

from __future__ import annotations

import pytest

HALT = bytes.fromhex("feffffea")
SPI, I2C1, PCM, USB = 0x204000, 0x804000, 0x203000, 0x980000


@pytest.fixture
def machine(boot):
    return boot(HALT)


@pytest.fixture
def bus(machine):
    return machine.bus


def notes(machine):
    return [item.message for item in machine.reporter.items if item.code == "SOC-057"]


def test_spi_takes_everything_and_gives_zeros(machine, bus):
    bus.write(SPI, 4, 0xB0)
    assert bus.read(SPI, 4) & 7 << 16 == 5 << 16
    for _ in range(20):
        bus.write(SPI + 4, 4, 0x5A)
    assert bus.read(SPI, 4) & 7 << 16 == 3 << 16
    for _ in range(16):
        assert bus.read(SPI + 4, 4) == 0
    assert bus.read(SPI, 4) & 1 << 17 == 0
    bus.write(SPI, 4, 0)
    assert bus.read(SPI, 4) & 1 << 16 == 0
    assert len(notes(machine)) == 1
    assert "SPI0" in notes(machine)[0]


def test_i2c_is_not_acknowledged(machine, bus):
    bus.write(I2C1 + 0xC, 4, 0x50)
    bus.write(I2C1 + 8, 4, 1)
    bus.write(I2C1, 4, 0x8081)
    assert bus.read(I2C1 + 4, 4) & 0x302 == 0x102
    assert bus.read(I2C1, 4) & 0x80 == 0
    bus.write(I2C1 + 4, 4, 0x302)
    assert bus.read(I2C1 + 4, 4) & 0x302 == 0
    assert len(notes(machine)) == 1


def test_pcm_takes_samples(machine, bus):
    assert bus.read(PCM, 4) == 0
    bus.write(PCM, 4, 1 | 8 | 4)
    assert bus.read(PCM, 4) == 1 | 4 | 0x2A2000
    for _ in range(100):
        bus.write(PCM + 4, 4, 1)
    assert len(notes(machine)) == 1


def test_usb_has_an_empty_root_port(machine, bus):
    assert bus.read(USB + 0x40, 4) == 0x4F54280A
    bus.write(USB + 0x10, 4, 1)
    assert bus.read(USB + 0x10, 4) == 1 << 31
    bus.write(USB + 0x10, 4, 0x20 | 16 << 6)
    assert bus.read(USB + 0x10, 4) & 0x30 == 0
    bus.write(USB + 0x440, 4, 0x1000)
    bus.write(USB + 0x440, 4, 0x1100)
    assert bus.read(USB + 0x440, 4) == 0x1000
    assert bus.read(USB + 0x14, 4) & 1
    before = bus.read(USB + 0x408, 4)
    machine.clock.skip(1_000_000)
    assert bus.read(USB + 0x408, 4) - before >= 8
    assert bus.read(USB + 0x500, 4) == 0
    assert len(notes(machine)) == 1
