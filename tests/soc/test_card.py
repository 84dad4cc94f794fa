"""The SD card and its controller: as drivers use them, and as no driver should."""

from __future__ import annotations

import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vc4lab.soc.machine import Machine, Stop
from vc4lab.soc.sd_medium import SECTOR, ImageFile, Overlay
from vc4lab.soc.serial import SerialPort
from vc4lab.soc.state import StateError, load_state, save_state

HALT = bytes.fromhex("feffffea")
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
            self.machine.clock.skip_to_event()
            self.machine.clock.run_due()

    def wait(self, bits: int) -> int:
        """Until one of the bits shows, or an error."""
        for _ in range(20):
            found = self.read(INTERRUPT)
            if found & (bits | ERROR):
                self.write(INTERRUPT, bits)
                return found
            self.machine.clock.skip_to_event()
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


SECTORS = 3000


@pytest.fixture
def image(tmp_path):
    path = tmp_path / "card.img"
    path.write_bytes(b"".join(pattern(n) for n in range(SECTORS)))
    return path


@pytest.fixture
def make(tmp_path, image):
    def machine(**options) -> Machine:
        kernel = tmp_path / "kernel.bin"
        kernel.write_bytes(HALT)
        options.setdefault("card", image)
        return Machine(kernel, serial=SerialPort(), **options)

    return machine


@pytest.fixture
def host(make):
    host = Host(make())
    host.identify()
    return host


def codes(host: Host) -> set[str]:
    return {item.code for item in host.machine.reporter.items}


# -- a driver's way ------------------------------------------------------------------------------


def test_identification(make):
    host = Host(make())
    assert host.read(0xFC) >> 16 == 0x9902
    assert host.read(STATUS) == 0x1FFF0000
    host.start()
    host.command(0, 0, NONE)
    host.write(ARG1, 0x1AA)
    host.write(CMDTM, 8 << 24 | SHORT)
    assert host.read(STATUS) & 1
    assert not host.read(INTERRUPT)
    host.settle()
    assert not host.read(STATUS) & 1
    assert host.app(41, 0) == 0x00FF8000
    host.identify()
    host.command(7, 0, NONE)
    assert host.state() == 3
    host.command(9, host.address, LONG)
    words = [host.read(RESP + 4 * n) for n in range(4)]
    register = sum(word << 32 * n for n, word in enumerate(words)) << 8
    assert register >> 126 == 1
    assert (register >> 48 & 0x3FFFFF) + 1 == 3
    host.command(10, host.address, LONG)
    assert host.read(RESP + 12) == 0x765643
    assert not codes(host)


def test_registers_of_the_card(host):
    host.size(1, 8)
    host.app(51, 0, SHORT | READ)
    assert host.take(2)[:4] == bytes.fromhex("02358002")
    host.app(6, 2)
    host.size(1, 64)
    host.app(13, 0, SHORT | READ)
    assert host.take(16)[0] == 0x80
    host.command(6, 0x00FFFFF1, SHORT | READ)
    status = host.take(16)
    assert status[13] & 2
    assert status[16] & 15 == 1
    host.command(6, 0x80FFFFF5, SHORT | READ)
    assert host.take(16)[16] & 15 == 15
    assert host.state() == 4
    assert not codes(host)


def test_single_blocks(host, image):
    assert host.read_block(7) == pattern(7)
    host.write_block(7, pattern(1234))
    assert host.read_block(7) == pattern(1234)
    assert host.read_block(8) == pattern(8)
    assert host.state() == 4
    assert image.read_bytes()[7 * SECTOR : 8 * SECTOR] == pattern(7)
    assert not codes(host)


@pytest.mark.parametrize("how", ["CMD23", "CMD12", "auto CMD12", "auto CMD23", "endless"])
def test_several_blocks(host, how):
    flags = MANY | {"auto CMD12": AUTO_STOP, "auto CMD23": AUTO_COUNT}.get(how, 0)
    if how == "endless":
        flags &= ~2

    def before():
        host.size(5)
        host.write(ARG2, 5)
        if how == "CMD23":
            host.command(23, 5)

    def after():
        if how in ("CMD12", "endless"):
            host.command(12, 0, BUSY | 3 << 22)
        assert not host.read(STATUS) & 2
        assert host.state() == 4

    before()
    host.command(25, 100, SHORT | WRITE | flags)
    for n in range(5):
        host.give(pattern(500 + n))
    if how != "endless":
        assert host.wait(DATA_DONE) & DATA_DONE
        assert host.read(BLKSIZECNT) == SECTOR
    else:
        host.settle()
    after()
    host.size(1, 4)
    host.app(22, 0, SHORT | READ)
    assert host.take(1) == bytes((0, 0, 0, 5))
    before()
    host.command(18, 100, SHORT | READ | flags)
    assert [host.take() for _ in range(5)] == [pattern(500 + n) for n in range(5)]
    after()
    assert not codes(host)


def test_erasing(host):
    host.write_block(12, pattern(1))
    host.command(32, 10)
    host.command(33, 20)
    host.command(38, 0, BUSY)
    assert host.read_block(9) == pattern(9)
    assert host.read_block(12) == host.read_block(20) == bytes(SECTOR)
    assert host.read_block(21) == pattern(21)
    host.write_block(15, pattern(3))
    assert host.read_block(15) == pattern(3)
    host.command(32, 0)
    host.command(33, 1 << 30)
    assert host.command(38, 0, BUSY) >> 27 & 1
    assert host.command(38, 0, BUSY) >> 28 & 1


def test_interrupts(host):
    interrupts = host.machine.interrupts
    host.machine.bus.write(IRQ + 0x14, 4, 1 << 30)
    host.write(IRPT_EN, READ_READY)
    host.command(17, 3, SHORT | READ)
    assert not interrupts.pending_irq
    host.settle()
    assert interrupts.pending_irq
    assert host.machine.bus.read(IRQ, 4) == 1 << 20
    host.write(INTERRUPT, READ_READY)
    assert not interrupts.pending_irq
    host.write(0x50, READ_READY)
    assert interrupts.pending_irq


@pytest.mark.parametrize("wide", [False, True])
def test_dma(host, wide):
    machine, alias = host.machine, 0xC0000000
    flags = (1 << 9 | 1 << 5) if wide else 0
    source, dest = EMMC + DATA | 0x7E000000, 0x20000
    inc, dreq, device = 1 << 4, 1 << 10, 11 << 16
    block = struct.pack(
        "<8I", inc | dreq | device | flags, source, dest | alias, 3 * SECTOR, *[0] * 4
    )
    machine.memory.write(0x10000, block)
    machine.bus.write(DMA + 4, 4, 0x10000 | alias)
    machine.bus.write(DMA, 4, 1)
    host.size(3)
    host.command(18, 40, SHORT | READ | MANY | AUTO_STOP)
    for _ in range(100):
        if machine.bus.read(DMA, 4) & 2:
            break
        machine.clock.skip_to_event()
        machine.clock.run_due()
    assert machine.memory.read(dest, 3 * SECTOR) == pattern(40) + pattern(41) + pattern(42)
    assert host.wait(DATA_DONE) & DATA_DONE
    inc, dreq = 1 << 8, 1 << 6
    block = struct.pack(
        "<8I", inc | dreq | device | flags, dest | alias, source, 2 * SECTOR, *[0] * 4
    )
    machine.memory.write(0x10000, block)
    machine.bus.write(DMA, 4, 2)
    machine.bus.write(DMA + 4, 4, 0x10000 | alias)
    machine.bus.write(DMA, 4, 1)
    host.size(2)
    host.command(25, 50, SHORT | WRITE | MANY | AUTO_STOP)
    assert host.wait(DATA_DONE) & DATA_DONE
    assert host.read_block(51) == pattern(41)
    assert not codes(host)


def test_time_passes(host):
    before = host.machine.clock.now
    host.size(100)
    host.command(18, 0, SHORT | READ | MANY | AUTO_STOP)
    for _ in range(100):
        host.take()
    spent = host.machine.clock.now - before
    assert 100 * 20_000 < spent < 100 * 60_000


# -- mistakes ------------------------------------------------------------------------------------


def test_no_card(make):
    host = Host(make(card=None))
    host.start()
    host.command(0, 0, NONE)
    assert host.fails(8, 0x1AA) & NO_REPLY
    assert codes(host) == {"SOC-060"}
    assert host.machine.card_slot() is None


def test_illegal_commands(host):
    assert host.fails(2, 0, LONG) & NO_REPLY
    assert host.command(13, host.address) & ILLEGAL
    assert not host.command(13, host.address) & ILLEGAL
    assert host.fails(13, 0x99990000) & NO_REPLY
    assert host.fails(60) & NO_REPLY
    assert host.fails(12, 0, BUSY) & NO_REPLY
    assert host.fails(10, 0, SHORT) & NO_REPLY
    assert "SOC-061" in codes(host)


def test_a_transfer_without_an_end(host):
    host.size(2)
    host.command(18, 5, SHORT | READ | MANY)
    host.take()
    host.take()
    assert host.fails(17, 9, SHORT | READ) & NO_REPLY
    (item,) = [i for i in host.machine.reporter.items if i.code == "SOC-061"]
    assert "CMD12" in item.message
    host.command(12, 0, BUSY)
    assert host.read_block(9) == pattern(9)


def test_high_capacity_wants_its_bit(make):
    host = Host(make())
    host.start()
    host.command(0, 0, NONE)
    for _ in range(4):
        assert not host.app(41, 0x40FF8000) >> 31, "without CMD8"
    host.command(8, 0x1AA)
    assert not host.app(41, 0x00FF8000) >> 31
    assert codes(host) == {"SOC-061"}
    assert host.fails(8, 0x2AA) & NO_REPLY


@pytest.mark.parametrize("sector", [3072, 0xFFFFFFFF])
def test_beyond_the_end(host, sector):
    assert host.read_block(3071) == bytes(SECTOR)
    for index, flags in ((17, READ), (18, READ | MANY), (24, WRITE), (25, WRITE | MANY)):
        assert host.command(index, sector, SHORT | flags) & OUT_OF_RANGE
        if flags & 16:
            assert host.wait(0) & NO_DATA
        else:
            host.give(pattern(0))
            assert host.wait(0) & BAD_DATA
        assert host.state() == 4
    assert codes(host) == {"SOC-062"}


def test_running_over_the_end(host):
    host.size(3)
    host.command(18, 3071, SHORT | READ | MANY)
    host.take()
    assert host.wait(0) & NO_DATA
    assert host.command(12, 0, BUSY) & OUT_OF_RANGE
    host.size(2)
    host.command(25, 3071, SHORT | WRITE | MANY | AUTO_STOP)
    host.give(pattern(1))
    host.give(pattern(2))
    assert host.wait(0) & BAD_DATA


@pytest.mark.parametrize(("count", "size"), [(1, 0), (0, 512), (1, 256), (1, 1023)])
def test_absurd_sizes(host, count, size):
    host.size(count, size)
    host.command(18, 0, SHORT | READ | MANY)
    assert host.wait(DATA_DONE) & (BAD_DATA | DATA_DONE)
    assert codes(host) == {"SOC-063"}
    host.command(12, 0, BUSY)
    host.command(24, 0, SHORT | WRITE)
    if size not in (0, 512):
        host.give(bytes(-(-size // 4) * 4))
        assert host.wait(0) & BAD_DATA


def test_the_controller_set_up_wrongly(make):
    host = Host(make())
    host.write(CMDTM, 0)
    host.settle()
    assert host.read(STATUS) & 1
    assert "clock" in host.machine.reporter.items[-1].message
    host.write(CONTROL1, 1 << 25 | 5)
    assert not host.read(STATUS) & 1
    host.write(CMDTM, 0)
    host.settle()
    assert not host.read(INTERRUPT)
    assert "IRPT_MASK" in host.machine.reporter.items[-1].message
    host.identify()
    host.command(17, 1, SHORT | READ)
    assert host.read(DATA) == 0
    host.write(DATA, 1)
    host.write(CMDTM, 17 << 24 | SHORT | READ)
    assert host.take() == pattern(1)
    host.write(CMDTM, 13 << 24 | SHORT)
    host.write(CMDTM, 13 << 24 | SHORT)
    host.command(13, host.address, SHORT)
    assert {i.message.split("gets ")[1][:9] for i in host.machine.reporter.items} >= {
        "a read of", "a write t", "a command",
    }  # fmt: skip


def test_auto_stop_that_fails(host):
    host.command(23, 1)
    host.size(1)
    host.command(18, 1, SHORT | READ | MANY | AUTO_STOP)
    host.take()
    assert host.wait(DATA_DONE) & AUTO_FAILED


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_any_order_of_accesses(make, data):
    host = Host(make())
    if data.draw(st.booleans()):
        host.identify()
    words = st.one_of(
        st.integers(0, 0xFFFFFFFF),
        st.builds(
            lambda index, flags: index << 24 | flags,
            st.sampled_from([0, 6, 12, 17, 18, 23, 24, 25, 32, 33, 38, 51, 55]),
            st.integers(0, 1 << 22),
        ),
        st.integers(0, 4).map(lambda n: n << 16 | SECTOR),
    )
    for _ in range(data.draw(st.integers(1, 25))):
        offset = data.draw(st.sampled_from([0, 4, 8, 12, 12, 12, 32, 0x2C, 0x30, 0x34, 0x38, 0x50]))
        host.write(offset, data.draw(words))
        host.read(data.draw(st.sampled_from([32, 36, 48])))
        if data.draw(st.booleans()):
            host.settle()


# -- what the card is made of --------------------------------------------------------------------


def test_overlay_ranges(image):
    card = Overlay(ImageFile(image))
    for first, end in ((10, 12), (20, 22), (12, 15), (30, 40), (14, 21)):
        card.erase(first, end)
    assert card.erased == [(10, 22), (30, 40)]
    assert card.read(22) == pattern(22)
    assert card.read(21) == bytes(SECTOR)
    card.write(35, pattern(1))
    assert card.read(35) == pattern(1)


def test_saving_into_the_image(host, image):
    before = image.read_bytes()
    host.write_block(5, pattern(99))
    host.write_block(3050, pattern(98))
    host.command(32, 2990)
    host.command(33, 3020)
    host.command(38, 0, BUSY)
    assert image.read_bytes() == before
    assert host.machine.card_slot.save() == 12
    after = image.read_bytes()
    assert after[: 5 * SECTOR] == before[: 5 * SECTOR]
    assert after[5 * SECTOR : 6 * SECTOR] == pattern(99)
    assert after[6 * SECTOR : 2990 * SECTOR] == before[6 * SECTOR : 2990 * SECTOR]
    assert after[2990 * SECTOR : 3050 * SECTOR] == bytes(60 * SECTOR)
    assert after[3050 * SECTOR :] == pattern(98)


def test_the_image_goes_away(host, image):
    image.write_bytes(b"short")
    assert host.read_block(9) == bytes(SECTOR)
    image.unlink()
    host.command(17, 3, SHORT | READ)
    assert host.wait(0) & NO_DATA
    assert host.state() == 5
    assert codes(host) == {"SOC-065"}


def test_a_full_overlay(host, monkeypatch):
    monkeypatch.setattr("vc4lab.soc.sd_medium.MOST_KEPT", 2)
    monkeypatch.setattr("vc4lab.soc.sd_medium.MOST_RANGES", 1)
    host.write_block(1, pattern(1))
    host.write_block(2, pattern(1))
    host.write_block(2, pattern(2))
    host.command(24, 3, SHORT | WRITE)
    host.give(pattern(3))
    assert host.wait(0) & BAD_DATA
    assert host.command(12, 0, BUSY) >> 19 & 1
    host.command(32, 8)
    host.command(33, 8)
    assert not host.command(38, 0, BUSY) >> 19 & 1
    host.command(32, 18)
    host.command(33, 18)
    assert host.command(38, 0, BUSY) >> 19 & 1
    assert codes(host) == {"SOC-066"}


# -- with a program ------------------------------------------------------------------------------


def test_a_program_reads_and_writes(boot):
    machine = boot("card", "enable_uart=1\n")
    assert machine.run().reason is Stop.HALTED
    assert machine.uart.text[1] == "X"
    assert machine.uart.text[3:] == "V!OK\n", machine.reporter.summary()
    assert list(machine.card_slot().written) == [9]
    assert not machine.reporter.items


@pytest.mark.parametrize("seconds", [3e-5, 2e-4, 1e-3])
def test_a_state_in_the_middle(boot, tmp_path, seconds):
    first = boot("card", "enable_uart=1\n")
    first.run(seconds=seconds)
    save_state(first, tmp_path / "state")
    expected = first.run(), first.uart.text, first.clock.now, first.counter.count
    second = boot("card", "enable_uart=1\n")
    load_state(second, tmp_path / "state")
    result = second.run()
    assert result.reason is expected[0].reason
    assert (second.uart.text, second.clock.now, second.counter.count) == expected[1:]
    assert second.card_slot().written == first.card_slot().written
    assert not second.reporter.items


def test_a_state_keeps_what_was_written(host, make, tmp_path):
    host.write_block(5, pattern(99))
    host.command(32, 100)
    host.command(33, 110)
    host.command(38, 0, BUSY)
    save_state(host.machine, tmp_path / "state")
    again = Host(make())
    load_state(again.machine, tmp_path / "state")
    again.address = host.address
    assert again.read_block(5) == pattern(99)
    assert again.read_block(110) == bytes(SECTOR)
    assert again.read_block(111) == pattern(111)
    with pytest.raises(StateError, match="there is none"):
        load_state(make(card=None), tmp_path / "state")
