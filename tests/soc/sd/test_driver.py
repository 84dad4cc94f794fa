"""The SD card and its controller as drivers use them: registers, blocks, interrupts, DMA."""

import struct

import pytest
from tests.soc.sd.host import (
    ARG1,
    ARG2,
    AUTO_COUNT,
    AUTO_STOP,
    BLKSIZECNT,
    BUSY,
    CMDTM,
    DATA,
    DATA_DONE,
    DMA,
    EMMC,
    INTERRUPT,
    IRPT_EN,
    IRQ,
    LONG,
    MANY,
    NONE,
    READ,
    READ_READY,
    RESP,
    SHORT,
    STATUS,
    WRITE,
    Host,
    codes,
    pattern,
)
from tests.support.guest_time import skip_to_event

from vc4lab.soc.media.sd_medium import SECTOR


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
    block = struct.pack("<8I", inc | dreq | device | flags, source, dest | alias, 3 * SECTOR, *[0] * 4)
    machine.memory.write(0x10000, block)
    machine.bus.write(DMA + 4, 4, 0x10000 | alias)
    machine.bus.write(DMA, 4, 1)
    host.size(3)
    host.command(18, 40, SHORT | READ | MANY | AUTO_STOP)
    for _ in range(100):
        if machine.bus.read(DMA, 4) & 2:
            break
        skip_to_event(machine.clock)
        machine.clock.run_due()
    assert machine.memory.read(dest, 3 * SECTOR) == pattern(40) + pattern(41) + pattern(42)
    assert host.wait(DATA_DONE) & DATA_DONE
    inc, dreq = 1 << 8, 1 << 6
    block = struct.pack("<8I", inc | dreq | device | flags, dest | alias, source, 2 * SECTOR, *[0] * 4)
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
