"""Buses with nothing on them: drivers find out, none waits for ever, it is said once."""

import struct

import pytest
from tests.support.guest_time import skip_to_event

HALT = bytes.fromhex("feffffea")
SPI, I2C0, I2C1, I2C2, PCM, USB = 0x204000, 0x205000, 0x804000, 0x805000, 0x203000, 0x980000
AUX, SPI1, SPI2, CM, IRQ = 0x215000, 0x215080, 0x2150C0, 0x101000, 0xB200


@pytest.fixture
def machine(boot):
    return boot(HALT)


@pytest.fixture
def bus(machine):
    return machine.bus


def notes(machine):
    return [item.message for item in machine.reporter.items if item.code == "SOC-057"]


def pending(bus, line):
    """Whether an enabled line shows as pending."""
    bus.write(IRQ + 0x10 + 4 * (line // 32), 4, 1 << line % 32)
    return bus.read(IRQ + 4 + 4 * (line // 32), 4) >> line % 32 & 1


# -- SPI0 ------------------------------------------------------------------------------------------


def test_spi_takes_everything_and_gives_zeros(machine, bus):
    assert bus.read(SPI, 4) & 7 << 16 == 1 << 18
    bus.write(SPI, 4, 0xB0)
    assert bus.read(SPI, 4) & 31 << 16 == 5 << 16
    for _ in range(80):
        bus.write(SPI + 4, 4, 0x5A)
    assert bus.read(SPI, 4) & 31 << 16 == 0x1B << 16
    for _ in range(64):
        assert bus.read(SPI + 4, 4) == 0
    assert bus.read(SPI, 4) & 31 << 16 == 5 << 16
    bus.write(SPI, 4, 0)
    assert bus.read(SPI, 4) & 1 << 16 == 0
    assert len(notes(machine)) == 1
    assert "SPI0" in notes(machine)[0]


def test_a_polled_transfer_of_spi_ends(bus):
    """As drivers do it: fill while there is room, take while there is data, wait for done."""
    bus.write(SPI, 4, 0xB0)
    to_send, received = 1000, 0
    for _ in range(10_000):
        status = bus.read(SPI, 4)
        if to_send and status & 1 << 18:
            bus.write(SPI + 4, 4, 0xFF)
            to_send -= 1
        if status & 1 << 17:
            received += bus.read(SPI + 4, 4) == 0
        if not to_send and status & 1 << 16 and not status & 1 << 17:
            break
    assert (to_send, received) == (0, 1000)


def test_spi_interrupts(bus):
    assert not pending(bus, 54)
    bus.write(SPI, 4, 0x280)
    assert pending(bus, 54), "active and done"
    bus.write(SPI, 4, 0x480)
    assert not pending(bus, 54)
    for _ in range(48):
        bus.write(SPI + 4, 4, 0)
    assert pending(bus, 54), "the FIFO must be read"
    bus.read(SPI + 4, 4)
    assert not pending(bus, 54)


# -- SPI1, SPI2 ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("base", "bit"), [(SPI1, 2), (SPI2, 4)])
def test_spi_of_the_aux_block(machine, bus, base, bit):
    bus.write(base, 4, 0x800)
    assert bus.read(base, 4) == bus.read(base + 8, 4) == 0, "not enabled in AUX_ENABLES"
    bus.write(AUX + 4, 4, bit)
    assert bus.read(AUX + 4, 4) == bit
    bus.write(base, 4, 0x200)
    bus.write(base, 4, 0x800 | 8)
    assert bus.read(base, 4) == 0x808
    assert bus.read(base + 8, 4) & 0x7C0 == 0x280, "both empty, not busy"
    bus.write(base + 0x20, 4, 0xAA)
    bus.write(base + 0x30, 4, 0x55)
    assert bus.read(base + 8, 4) == 2 << 16 | 0x200
    assert [bus.read(base + 0x20, 4), bus.read(base + 0x20, 4)] == [0, 0]
    assert bus.read(base + 8, 4) & 0x80
    for _ in range(9):
        bus.write(base + 0x20, 4, 1)
    assert bus.read(base + 8, 4) & 0x100
    bus.write(base, 4, 0)
    assert bus.read(base + 8, 4) & 0x80
    assert len(notes(machine)) == 1
    assert f"SPI{bit // 2}" in notes(machine)[0]


@pytest.mark.parametrize(("base", "bit"), [(SPI1, 2), (SPI2, 4)])
@pytest.mark.parametrize("cause", [0x40, 0x80])
def test_interrupts_of_the_aux_block_tell_them_apart(bus, base, bit, cause):
    bus.write(AUX + 4, 4, bit | 1)
    bus.write(base, 4, 0x800)
    assert bus.read(AUX, 4) == 0
    bus.write(base + 4, 4, cause)
    assert bus.read(AUX, 4) == bit
    assert pending(bus, 29)
    bus.write(AUX + 4, 4, 1)
    assert bus.read(AUX, 4) == 0
    assert not pending(bus, 29)


# -- I2C -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [I2C0, I2C1, I2C2])
def test_i2c_is_not_acknowledged(machine, bus, base):
    assert bus.read(base + 4, 4) == 0x50
    bus.write(base, 4, 0x8030)
    bus.write(base + 4, 4, 0x302)
    bus.write(base + 0xC, 4, 0x51)
    bus.write(base + 8, 4, 1)
    bus.write(base, 4, 0x8081)
    assert bus.read(base + 4, 4) & 0x303 == 0x102
    assert bus.read(base, 4) & 0x80 == 0
    bus.write(base + 4, 4, 0x302)
    assert bus.read(base + 4, 4) & 0x302 == 0
    assert len(notes(machine)) == 1


def test_i2c_that_is_off_does_nothing(machine, bus):
    bus.write(I2C1, 4, 0x80)
    assert bus.read(I2C1 + 4, 4) == 0x50
    assert not notes(machine)


def test_the_controllers_share_an_interrupt(bus):
    bus.write(I2C1, 4, 0x8180)
    bus.write(I2C2, 4, 0x8180)
    assert pending(bus, 53)
    bus.write(I2C1 + 4, 4, 2)
    assert pending(bus, 53)
    bus.write(I2C2 + 4, 4, 2)
    assert not pending(bus, 53)


# -- PCM -------------------------------------------------------------------------------------------


def start_clock(bus, divider=192):
    """The PCM clock: 19.2 MHz / divider."""
    bus.write(CM + 0x9C, 4, 0x5A000000 | divider << 12)
    bus.write(CM + 0x98, 4, 0x5A000011)


def test_pcm_takes_samples_at_its_clock(machine, bus):
    assert bus.read(PCM, 4) == 0
    start_clock(bus)
    bus.write(PCM + 8, 4, 9 << 10)
    bus.write(PCM, 4, 1 | 8 | 4)
    assert bus.read(PCM, 4) & ~(1 << 15) == 1 | 4 | 1 << 13 | 1 << 17 | 1 << 19 | 1 << 21
    for _ in range(64):
        bus.write(PCM + 4, 4, 1)
    assert bus.read(PCM, 4) & (1 << 17 | 1 << 19 | 1 << 21) == 0
    machine.clock.skip(100_000 * 32)
    status = bus.read(PCM, 4)
    assert status & (1 << 19 | 1 << 21) == 1 << 19
    machine.clock.skip(100_000 * 40)
    assert bus.read(PCM, 4) & (1 << 15 | 1 << 21) == 1 << 15 | 1 << 21
    bus.write(PCM, 4, 5 | 1 << 15)
    assert bus.read(PCM, 4) & 1 << 15 == 0
    assert len(notes(machine)) == 1


def test_pcm_hears_silence(machine, bus):
    start_clock(bus)
    bus.write(PCM + 8, 4, 9 << 10)
    bus.write(PCM, 4, 1 | 2)
    machine.clock.skip(100_000 * 200)
    status = bus.read(PCM, 4)
    assert status & (1 << 14 | 1 << 20 | 1 << 22) == 1 << 14 | 1 << 20 | 1 << 22
    words = 0
    while bus.read(PCM, 4) & 1 << 20:
        assert bus.read(PCM + 4, 4) == 0
        words += 1
    assert words == 64


def test_a_counted_wait_for_pcm_is_executed(machine, bus):
    """The transmit FIFO is full; a loop counts its looks at CS (TXD, room) until a word is taken."""
    start_clock(bus)
    bus.write(PCM + 8, 4, 9 << 10)
    bus.write(PCM, 4, 1 | 8 | 4)
    while bus.read(PCM, 4) & 1 << 19:
        bus.write(PCM + 4, 4, 1)
    code = (0xE59F0010, 0xE5902000, 0xE2833001, 0xE3120702, 0x0AFFFFFB, 0xEAFFFFFE, 0x3F000000 | PCM)
    machine.memory.write(0x8000, struct.pack("<7I", *code))
    left = machine.pcm._counted + machine.pcm.period - machine.clock.now
    machine.cpu.set_register(3, 0)
    machine.run(seconds=left / 1e9 + 5e-6)
    look = 50 + 4 * machine.board.ns_per_instruction
    assert machine.cpu.register(3) == pytest.approx(left / look, rel=0.03)


def test_pcm_sync_can_be_seen(bus):
    bus.write(PCM, 4, 1 | 1 << 24)
    assert bus.read(PCM, 4) & 1 << 24
    bus.write(PCM, 4, 1)
    assert not bus.read(PCM, 4) & 1 << 24


def test_pcm_interrupt_comes_when_there_is_room(machine, bus):
    start_clock(bus)
    bus.write(PCM + 8, 4, 9 << 10)
    bus.write(PCM, 4, 1 | 4)
    for _ in range(64):
        bus.write(PCM + 4, 4, 0)
    bus.write(PCM + 0x18, 4, 1)
    assert not pending(bus, 55)
    for _ in range(3):
        skip_to_event(machine.clock)
        machine.clock.run_due()
        machine.clock.skip(100_000 * 32)
        machine.clock.run_due()
    assert pending(bus, 55)
    assert bus.read(PCM + 0x1C, 4) & 1
    bus.write(PCM + 0x18, 4, 0)
    assert not pending(bus, 55)


def test_pcm_without_a_clock_stands_still(machine, bus):
    bus.write(PCM, 4, 1 | 4)
    for _ in range(64):
        bus.write(PCM + 4, 4, 0)
    machine.clock.skip(1_000_000_000)
    assert not bus.read(PCM, 4) & 1 << 19


# -- USB -------------------------------------------------------------------------------------------


def test_usb_has_an_empty_root_port(machine, bus):
    assert bus.read(USB + 0x40, 4) == 0x4F54280A
    assert bus.read(USB + 0x48, 4) == 0x228DDD50
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
    assert bus.read(USB + 0x700, 4) == 0
    assert len(notes(machine)) == 1


def test_a_reset_of_usb_resets_its_registers(bus):
    bus.write(USB + 0x18, 4, 0xF)
    bus.write(USB + 0xC, 4, 0x20001700)
    bus.write(USB + 0x10, 4, 1)
    assert bus.read(USB + 0x18, 4) == 0
    assert bus.read(USB + 0xC, 4) == 0x20001700
    assert bus.read(USB + 0x44 + 12, 4) == 0x1FF00020


def test_channels_of_usb_halt(bus):
    """Drivers halt all channels first; a transfer that is started all the same gets no answer."""
    for channel in range(8):
        at = USB + 0x500 + 32 * channel
        bus.write(at, 4, 3 << 30)
        assert bus.read(at, 4) & 3 << 30 == 0
        assert bus.read(at + 8, 4) == 2
        bus.write(at + 8, 4, 2)
        assert bus.read(at + 8, 4) == 0
    bus.write(USB + 0x50C, 4, 2)
    bus.write(USB + 0x418, 4, 1)
    bus.write(USB + 0x18, 4, 1 << 25)
    bus.write(USB + 8, 4, 1)
    assert not pending(bus, 9)
    bus.write(USB + 0x500, 4, 1 << 31 | 8)
    assert bus.read(USB + 0x508, 4) == 0x82
    assert bus.read(USB + 0x414, 4) == 1
    assert bus.read(USB + 0x14, 4) & 1 << 25
    assert pending(bus, 9)
    bus.write(USB + 0x508, 4, 0x82)
    assert not pending(bus, 9)
