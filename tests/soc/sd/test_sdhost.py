"""SDHOST as Linux's driver uses it: identification, polled blocks, DMA, writes, errors."""

import struct

import pytest
from tests.soc.sd.conftest import SECTORS
from tests.soc.sd.host import pattern
from tests.support.guest_time import skip_to_event

from vc4lab.soc.machine import Machine
from vc4lab.soc.states.state import load_state, save_state

SDHOST, DMA, GPIO = 0x202000, 0x7000, 0x200000
SDCMD, SDARG, SDCDIV, SDRSP, SDHSTS, SDVDD = 0x00, 0x04, 0x0C, 0x10, 0x20, 0x30
SDEDM, SDHCFG, SDHBCT, SDDATA, SDHBLC = 0x34, 0x38, 0x3C, 0x40, 0x50
NEW, FAILED, BUSY, NONE, LONG = 0x8000, 0x4000, 0x800, 0x400, 0x200
WRITE, READ = 0x80, 0x40
BUSY_DONE, BLOCK_DONE, DATA_TIMEOUT, COMMAND_TIMEOUT = 0x400, 0x200, 0x80, 0x40
LINE = 56
OUT_OF_RANGE = 1 << 31
FROM_DREQ, TO_DREQ, PERMAP = 1 << 10 | 1 << 4, 1 << 6 | 1 << 8, 13 << 16
ALT0, ALT3 = 4, 7


class Driver:
    """Drives the registers."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.address = 0

    def read(self, offset: int) -> int:
        return self.machine.bus.read(SDHOST + offset, 4)

    def write(self, offset: int, value: int) -> None:
        self.machine.bus.write(SDHOST + offset, 4, value & 0xFFFFFFFF)

    def event(self) -> None:
        skip_to_event(self.machine.clock)
        self.machine.clock.run_due()

    def wait(self, bits: int) -> int:
        for _ in range(300):
            found = self.read(SDHSTS)
            if found & bits:
                self.write(SDHSTS, found)
                return found
            self.event()
        raise AssertionError(f"SDHSTS stays 0x{self.read(SDHSTS):x}")

    def send(self, index: int, argument: int, flags: int) -> int:
        self.write(SDARG, argument)
        self.write(SDCMD, index | flags | NEW)
        assert self.read(SDCMD) & NEW
        while self.read(SDCMD) & NEW:
            self.event()
        return self.read(SDCMD)

    def command(self, index: int, argument: int = 0, flags: int = 0) -> int:
        assert not self.send(index, argument, flags) & FAILED, f"CMD{index}"
        return self.read(SDRSP)

    def identify(self) -> None:
        self.write(SDVDD, 1)
        self.write(SDHCFG, BUSY_DONE | 0xE)
        self.command(0, 0, NONE)
        assert self.command(8, 0x1AA) == 0x1AA
        for _ in range(5):
            self.command(55)
            if self.command(41, 0x40FF8000) >> 31:
                break
        self.command(2, 0, LONG)
        self.address = self.command(3) & 0xFFFF0000
        self.command(7, self.address)

    def transfer(self, index: int, sector: int, blocks: int, flag: int) -> int:
        self.write(SDHBCT, 512)
        self.write(SDHBLC, blocks)
        return self.command(index, sector, flag)

    def words(self, count: int) -> bytes:
        """As a polling driver: never more words than the FIFO has."""
        found = b""
        while len(found) < 4 * count:
            level = self.read(SDEDM) >> 4 & 0x1F
            assert level <= 16
            if not level:
                self.event()
            for _ in range(min(level, count - len(found) // 4)):
                found += struct.pack("<I", self.read(SDDATA))
        return found

    def dma(self, info: int, source: int, dest: int, size: int) -> None:
        memory = self.machine.memory
        memory.write(0x100, struct.pack("<8I", info | PERMAP, source, dest, size, 0, 0, 0, 0))
        self.machine.bus.write(DMA + 4, 4, 0x100)
        self.machine.bus.write(DMA, 4, 1)

    def dma_ends(self) -> None:
        for _ in range(3000):
            if not self.machine.bus.read(DMA, 4) & 1:
                return
            self.event()
        raise AssertionError("the DMA still waits")

    @property
    def line(self) -> bool:
        return bool(self.machine.hardware.interrupts.lines >> LINE & 1)

    @property
    def codes(self) -> set[str]:
        return {item.code for item in self.machine.reporter.items}


@pytest.fixture
def driver(make):
    driver = Driver(make(board="pi3"))
    driver.identify()
    return driver


def test_registers_of_the_card_come_whole(driver):
    driver.command(7, 0, NONE)
    driver.command(9, driver.address, LONG)
    register = sum(driver.read(SDRSP + 4 * n) << 32 * n for n in range(4))
    assert register >> 126 == 1
    assert (register >> 48 & 0x3FFFFF) + 1 == 3
    assert register & 1  # after the checksum
    assert not driver.codes


def test_a_polled_block(driver):
    driver.write(SDHCFG, 0x410 | 0xE)
    driver.transfer(17, 7, 1, READ)
    assert not driver.line
    while not driver.line:
        driver.event()
    assert driver.read(SDEDM) & 15 == 4
    assert driver.words(128) == pattern(7)
    assert not driver.line
    assert driver.read(SDEDM) & 15 == 1
    assert not driver.read(SDHBLC)
    assert not driver.codes


def test_blocks_by_the_dma_but_for_their_last_words(driver):
    driver.command(23, 300)
    driver.write(SDHBCT, 512)
    driver.write(SDHBLC, 300)
    size = 300 * 512 - 12
    driver.write(SDARG, 10)
    driver.write(SDCMD, 18 | READ | NEW)
    began = driver.machine.clock.now
    driver.dma(FROM_DREQ, 0x7E202040, 0xC0010000, size)
    driver.dma_ends()
    wanted = b"".join(pattern(n) for n in range(10, 310))
    assert driver.machine.memory.read(0x10000, size) == wanted[:-12]
    assert driver.read(SDEDM) >> 4 & 0x1F == 3
    assert driver.words(3) == wanted[-12:]
    assert driver.read(SDEDM) & 15 == 1
    # 1064 clocks a block at 400 MHz / 509
    seconds = (driver.machine.clock.now - began) / 1e9
    assert seconds == pytest.approx(300 * 1064 * 509 / 400e6, rel=0.01)
    assert not driver.codes


def test_the_clock_decides_how_long_a_block_takes(driver):
    taken = []
    for divider in (6, 14):
        driver.write(SDCDIV, divider)
        began = driver.machine.clock.now
        driver.transfer(17, 7, 1, READ)
        driver.words(1)
        taken.append(driver.machine.clock.now - began)
        driver.words(127)
    assert taken[1] - taken[0] == pytest.approx(1064 * 8 / 0.4, rel=0.1)


def test_writes_by_the_dma_and_polled(driver):
    memory = driver.machine.memory
    written = bytes(range(256)) * 2 * 200
    memory.write(0x10000, written)
    driver.write(SDHCFG, 0x500 | 0xE)
    driver.transfer(25, 100, 200, WRITE)
    driver.dma(TO_DREQ, 0xC0010000, 0x7E202040, len(written))
    driver.dma_ends()
    assert driver.wait(BLOCK_DONE)
    driver.send(12, 0, BUSY)
    assert driver.wait(BUSY_DONE) & BUSY_DONE
    assert driver.read(SDEDM) & 15 == 1
    driver.transfer(24, 99, 1, WRITE)
    assert not driver.read(SDEDM) >> 4 & 0x1F
    for word in struct.unpack("<128I", pattern(5)):
        driver.write(SDDATA, word)
    driver.wait(BLOCK_DONE)
    card = driver.machine.card_slot()
    assert card.read_run(98, 203) == pattern(98) + pattern(5) + written + pattern(300)
    assert not driver.codes


def test_a_command_without_an_answer_fails(driver):
    assert driver.send(5, 0, 0) & FAILED
    assert driver.wait(COMMAND_TIMEOUT)
    driver.write(SDVDD, 0)
    assert driver.send(13, driver.address, 0) & FAILED


def test_the_end_of_the_card(driver):
    sectors = driver.machine.card_slot().sectors
    assert sectors >= SECTORS
    driver.transfer(18, sectors - 1, 3, READ)
    driver.words(128)
    driver.wait(DATA_TIMEOUT)
    driver.send(12, 0, BUSY)
    assert driver.transfer(17, sectors, 1, READ) & OUT_OF_RANGE
    assert driver.codes == {"SOC-062"}


def test_misuse_is_named(driver):
    assert driver.read(SDDATA) == 0
    driver.write(SDDATA, 1)
    driver.write(SDHBCT, 0)
    driver.command(17, 1, READ)
    assert driver.codes == {"SOC-063"}
    texts = " ".join(item.message for item in driver.machine.reporter.items)
    assert "SDHOST" in texts
    assert "SDHBCT" in texts


def test_pins_lead_to_one_controller(make):
    machine = make(board="pi3")
    driver = Driver(machine)
    value = sum(ALT3 << 3 * pin for pin in (8, 9))
    machine.bus.write(GPIO + 0x10, 4, value)
    driver.write(SDVDD, 1)
    driver.command(0, 0, NONE)
    assert driver.send(8, 0x1AA, 0) & FAILED
    value = sum(ALT0 << 3 * pin for pin in (8, 9))
    machine.bus.write(GPIO + 0x10, 4, value)
    assert not driver.send(8, 0x1AA, 0) & FAILED


def test_watched_registers_give_the_same_bytes_at_the_same_time(make):
    found = []
    for watched in (False, True):
        driver = Driver(make(board="pi3"))
        seen: list[int] = []
        if watched:
            driver.machine.bus.watch(lambda access, seen=seen: seen.append(access.offset))
        driver.identify()
        driver.transfer(18, 10, 200, READ)
        driver.dma(FROM_DREQ, 0x7E202040, 0xC0010000, 200 * 512)
        driver.dma_ends()
        found.append((driver.machine.clock.now, driver.machine.memory.read(0x10000, 200 * 512)))
        assert seen.count(SDHOST + SDDATA) == (200 * 128 if watched else 0)
    assert found[0] == found[1]


def test_a_transfer_in_a_saved_state(make, tmp_path):
    first = Driver(make(board="pi3"))
    first.identify()
    first.transfer(18, 10, 4, READ)
    first.words(130)
    save_state(first.machine, tmp_path / "state")
    second = Driver(make(board="pi3"))
    load_state(second.machine, tmp_path / "state")
    rest = [driver.words(4 * 128 - 130) for driver in (first, second)]
    assert rest[0] == rest[1] == b"".join(pattern(n) for n in range(10, 14))[520:]
