"""The SD card and its controller as no driver should use them."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.soc.sd.host import (
    AUTO_FAILED,
    AUTO_STOP,
    BAD_DATA,
    BUSY,
    CMDTM,
    CONTROL1,
    DATA,
    DATA_DONE,
    ILLEGAL,
    INTERRUPT,
    LONG,
    MANY,
    NO_DATA,
    NO_REPLY,
    NONE,
    OUT_OF_RANGE,
    READ,
    SHORT,
    STATUS,
    WRITE,
    Host,
    codes,
    pattern,
)

from vc4lab.soc.media.sd_medium import SECTOR


def test_no_card(make):
    host = Host(make(card=None))
    host.start()
    host.command(0, 0, NONE)
    assert host.fails(8, 0x1AA) & NO_REPLY
    assert codes(host) == {"SOC-060"}
    assert host.machine.card_slot() is None
    for _look in range(3):  # as an operating system does that waits for a card
        host.command(0, 0, NONE)
        assert host.fails(8, 0x1AA) & NO_REPLY
    assert host.machine.reporter.counts["SOC-060"] == 1


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


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
