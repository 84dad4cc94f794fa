"""The DMA from the bus: blocks, chains, two dimensions, devices, and what hostile programs do."""

import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.guest_time import skip_to_event

from vc4lab.soc.states.state import load_state, save_state

HALT = bytes.fromhex("feffffea")
DMA, IRQ = 0x7000, 0xB200
ACTIVE, END, INT, PAUSED, ERROR = 1, 2, 4, 16, 256
INTEN, TDMODE, DEST_INC, DEST_DREQ, DEST_IGNORE = 1, 2, 16, 64, 128
SRC_INC, SRC_WIDE, SRC_IGNORE = 256, 512, 2048
BLOCK, SOURCE, DEST = 0x10000, 0x20000, 0x30000
ALIAS = 0xC0000000


@pytest.fixture
def machine(boot):
    return boot(HALT)


def place(machine, info, source, dest, length, stride=0, following=0, at=BLOCK):
    words = info, source, dest, length, stride & 0xFFFFFFFF, following, 0, 0
    machine.memory.write(at, struct.pack("<8I", *words))


def start(machine, channel=0, at=BLOCK | ALIAS):
    base = DMA + 0x100 * channel if channel < 15 else 0xE05000
    machine.bus.write(base + 4, 4, at)
    machine.bus.write(base, 4, ACTIVE)
    return base


def settle(machine, events=50):
    for _ in range(events):
        if not machine.dma.busy:
            return
        skip_to_event(machine.clock)
        machine.clock.run_due()


def codes(machine):
    return {item.code for item in machine.reporter.items}


@pytest.mark.parametrize("channel", [0, 6, 7, 14, 15])
def test_copy_and_end(machine, channel):
    machine.memory.write(SOURCE, bytes(range(100)))
    place(machine, SRC_INC | DEST_INC, SOURCE | ALIAS, DEST | ALIAS, 100)
    base = start(machine, channel)
    assert machine.bus.read(base, 4) == ACTIVE
    settle(machine)
    assert machine.memory.read(DEST, 101) == bytes(range(100)) + b"\0"
    assert machine.bus.read(base, 4) == END
    assert machine.bus.read(base + 4, 4) == 0
    assert machine.bus.read(base + 0x10, 4) == (DEST | ALIAS) + 100
    machine.bus.write(base, 4, END)
    assert machine.bus.read(base, 4) == 0


@pytest.mark.parametrize("following", [1, 31])
def test_low_bits_of_the_next_block_alone_end_the_chain(machine, following):
    """A block at address 0 would be read otherwise: whatever the vectors hold."""
    place(machine, DEST_INC, DEST, SOURCE, 4, at=0)
    machine.memory.write(SOURCE, b"source")
    place(machine, SRC_INC | DEST_INC, SOURCE | ALIAS, DEST | ALIAS, 6, following=following)
    base = start(machine)
    settle(machine)
    assert machine.memory.read(DEST, 6) == b"source"
    assert machine.memory.read(SOURCE, 6) == b"source"
    assert machine.bus.read(base, 4) == END
    assert codes(machine) == set()
    machine.bus.write(base, 4, END)
    start(machine, at=following)
    assert machine.bus.read(base, 4) & ACTIVE == 0, "nor is it a first block"


def test_fill_ignore_and_wide(machine):
    machine.memory.write(SOURCE, bytes(range(16)))
    place(machine, DEST_INC, SOURCE, DEST, 10)
    start(machine)
    settle(machine)
    assert machine.memory.read(DEST, 12) == bytes((0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 0, 0))
    place(machine, DEST_INC | SRC_WIDE, SOURCE, DEST, 32)
    start(machine)
    settle(machine)
    assert machine.memory.read(DEST, 32) == bytes(range(16)) * 2
    place(machine, DEST_INC | SRC_IGNORE, 0, DEST, 8)
    start(machine)
    settle(machine)
    assert machine.memory.read(DEST, 9) == bytes(8) + b"\x08"
    place(machine, SRC_INC | DEST_IGNORE, SOURCE, 0, 8)
    start(machine)
    settle(machine)
    place(machine, SRC_INC, SOURCE, DEST, 16)
    start(machine)
    settle(machine)
    assert machine.memory.read(DEST, 5) == bytes((12, 13, 14, 15, 0))


def test_two_dimensions(machine):
    """A glyph of 2 x 3 bytes into a picture of 10 bytes a line."""
    machine.memory.write(SOURCE, b"abcdef")
    length, stride = 2 << 16 | 2, 8 << 16
    place(machine, TDMODE | SRC_INC | DEST_INC, SOURCE, DEST, length, stride)
    start(machine)
    settle(machine)
    zeros = bytes(8)
    assert machine.memory.read(DEST, 24) == b"ab" + zeros + b"cd" + zeros + b"ef\0\0"
    place(machine, TDMODE | SRC_INC | DEST_INC, SOURCE, DEST + 2, length, -4 << 16)
    start(machine)
    settle(machine)
    assert machine.memory.read(DEST - 2, 6) == b"efcdab"


@pytest.mark.parametrize(
    ("channel", "info", "length", "words"),
    [
        (8, TDMODE, 3 << 16 | 16, "no 2D mode (TI bit 1), and moves one row of 16 bytes"),
        (7, 0, 0x10004, "moves 4 bytes instead of 65540"),
        (7, 0, 0xFFFF, ""),
        (6, TDMODE, 3 << 16 | 16, ""),
        (0, 0, 0x10004, ""),
    ],
)
def test_what_lite_channels_lack_is_said(machine, channel, info, length, words):
    place(machine, SRC_INC | DEST_INC | info, SOURCE | ALIAS, 0x100000 | ALIAS, length)
    start(machine, channel)
    settle(machine)
    said = [item.message for item in machine.reporter.items if item.code == "SOC-117"]
    assert len(said) == bool(words)
    assert not words or words in said[0]


def test_lite_channels_have_no_second_dimension(machine):
    machine.memory.write(SOURCE, b"abcdef")
    place(machine, TDMODE | SRC_INC | DEST_INC, SOURCE, DEST, 2 << 16 | 2, 8 << 16)
    base = start(machine, 7)
    settle(machine)
    assert machine.memory.read(DEST, 14) == b"ab" + bytes(12)
    assert machine.bus.read(base + 0x20, 4) == 1 << 28 | 2 << 25 | 7 << 8


def test_linked_blocks_and_interrupts(machine):
    machine.memory.write(SOURCE, b"abcdefgh")
    place(machine, SRC_INC | DEST_INC, SOURCE, DEST, 4, following=(BLOCK + 32) | ALIAS)
    place(machine, INTEN | SRC_INC | DEST_INC, SOURCE + 4, DEST + 8, 4, at=BLOCK + 32)
    machine.bus.write(IRQ + 0x10, 4, 1 << 19 | 1 << 27)
    base = start(machine, 3)
    assert machine.memory.read(DEST, 12) == bytes(12), "nothing is there before its time"
    settle(machine, 1)
    assert machine.memory.read(DEST, 12) == b"abcd" + bytes(8)
    settle(machine)
    assert machine.memory.read(DEST, 12) == b"abcd" + bytes(4) + b"efgh"
    assert machine.bus.read(base, 4) == END | INT
    assert machine.bus.read(DMA + 0xFE0, 4) == 8
    assert machine.bus.read(IRQ + 4, 4) == 1 << 19
    machine.bus.write(base, 4, INT)
    assert machine.bus.read(IRQ + 4, 4) == 0
    base = start(machine, 12, BLOCK + 32)
    settle(machine)
    assert machine.bus.read(IRQ + 4, 4) == 1 << 27
    machine.bus.write(base, 4, 1 << 31)
    assert machine.bus.read(IRQ + 4, 4) == 0
    assert machine.bus.read(base, 4) == 0


def test_to_the_uart_and_from_the_keyboard(machine):
    machine.memory.write(SOURCE, struct.pack("<5I", *b"hello"))
    place(machine, SRC_INC | DEST_DREQ | 12 << 16, SOURCE, 0x7E201000, 20)
    start(machine)
    settle(machine)
    assert machine.uart.text == "hello"
    place(machine, DEST_INC | 1 << 10 | 14 << 16, 0x7E201000, DEST, 12)
    base = start(machine)
    settle(machine, 3)
    assert machine.bus.read(base, 4) & ACTIVE
    machine.serial.type("abc")
    settle(machine)
    assert machine.memory.read(DEST, 12) == b"a\0\0\0b\0\0\0c\0\0\0"


def test_pause_abort_and_disabled(machine):
    place(machine, DEST_INC | SRC_IGNORE, 0, DEST, 64 << 20, following=BLOCK + 32)
    place(machine, DEST_INC, SOURCE, DEST, 4, at=BLOCK + 32)
    base = start(machine)
    settle(machine, 1)
    left = machine.bus.read(base + 0x14, 4)
    assert 0 < left < 64 << 20
    machine.bus.write(base, 4, 0)
    assert machine.bus.read(base, 4) == PAUSED
    assert not machine.dma.busy
    machine.memory.set_u32(SOURCE, 0x1234)
    machine.bus.write(base, 4, ACTIVE | 1 << 30)
    settle(machine)
    assert machine.memory.u32(DEST) == 0x1234
    machine.bus.write(DMA + 0xFF0, 4, 0)
    base = start(machine)
    assert machine.bus.read(base, 4) & ACTIVE == 0
    assert "SOC-052" in codes(machine)


@pytest.mark.parametrize(
    ("source", "dest", "text"), [(SOURCE, 0x3F201000, "0x7e201000"), (0x3FFFFFF0, DEST, "0x7efffff0")]
)
def test_addresses_of_the_arm(machine, source, dest, text):
    place(machine, SRC_INC | DEST_INC, source, dest, 64)
    base = start(machine)
    assert machine.bus.read(base, 4) == ERROR
    assert text in str(machine.reporter.items[-1])
    assert "SOC-051" in codes(machine)
    machine.bus.write(base + 0x20, 4, 7)
    assert machine.bus.read(base, 4) == 0


def test_a_control_block_begins_with_32_bytes(machine):
    machine.memory.write(SOURCE, b"word")
    place(machine, SRC_INC | DEST_INC, SOURCE | ALIAS, DEST | ALIAS, 4)
    start(machine, at=BLOCK | ALIAS | 20)
    settle(machine)
    assert machine.memory.read(DEST, 4) == b"word"
    assert codes(machine) == {"SOC-050"}


def test_circles_end_nothing_and_are_named(machine):
    place(machine, SRC_INC | DEST_INC, SOURCE, DEST, 4, following=BLOCK)
    start(machine)
    settle(machine, 100)
    assert machine.dma.busy
    assert "SOC-053" in codes(machine)
    before = machine.clock.now
    settle(machine, 100)
    assert machine.clock.now - before > 1_000_000, "tiny blocks for ever cost little of the host"


def test_a_channel_that_starts_itself(machine):
    """A block writes its own channel's CS: reset, then go."""
    machine.memory.write(SOURCE, struct.pack("<3I", 1 << 31, BLOCK, ACTIVE))
    place(machine, SRC_INC, SOURCE, 0x7E007000, 4, following=BLOCK + 32)
    start(machine)
    settle(machine)
    assert machine.bus.read(DMA, 4) == 0
    machine.memory.write(SOURCE, struct.pack("<2I", ACTIVE, BLOCK))
    place(machine, SRC_INC | DEST_INC, SOURCE, 0x7E007100, 8)
    machine.bus.write(DMA + 0x104, 4, BLOCK)
    start(machine)
    settle(machine, 200)


def test_code_that_arrives_by_dma_is_noticed(machine):
    machine.cpu.stale = False
    place(machine, SRC_INC | DEST_INC, SOURCE, DEST, 4)
    start(machine)
    settle(machine, 1)
    assert machine.cpu.stale


def test_bytes_are_there_when_their_time_is_over(boot, machine):
    """Two nanoseconds a byte, piece by piece; on request at once."""
    machine.memory.write(SOURCE, b"x" * 0x60000)
    place(machine, SRC_INC | DEST_INC, SOURCE, 0x100000, 0x60000)
    base, began = start(machine), machine.clock.now
    assert machine.memory.u8(0x100000) == 0
    settle(machine, 1)
    assert machine.clock.now - began == 0x80000
    assert machine.memory.u8(0x13FFFF) == ord("x")
    assert machine.memory.u8(0x140000) == 0
    assert machine.bus.read(base, 4) == ACTIVE
    settle(machine, 1)
    assert machine.memory.u8(0x15FFFF) == ord("x")
    assert machine.bus.read(base, 4) == END
    kind = boot(HALT, forgiving=True)
    kind.memory.write(SOURCE, b"word")
    place(kind, SRC_INC | DEST_INC, SOURCE, DEST, 4)
    start(kind)
    assert kind.memory.read(DEST, 4) == b"word"


def test_a_state_in_the_middle_of_a_transfer(boot, machine, tmp_path):
    machine.memory.write(SOURCE, bytes(range(256)))
    place(machine, SRC_INC | DEST_INC, SOURCE, DEST, 256, following=BLOCK + 32)
    place(machine, SRC_INC | DEST_INC, SOURCE, DEST + 256, 256, at=BLOCK + 32)
    start(machine)
    save_state(machine, tmp_path / "state")
    other = boot(HALT)
    load_state(other, tmp_path / "state")
    settle(other)
    assert other.memory.read(DEST, 512) == bytes(range(256)) * 2
    assert other.bus.read(DMA, 4) == END


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    info=st.integers(0, 0xFFFFFFFF),
    source=st.integers(0, 0xFFFFFFFF) | st.integers(0x7E000000, 0x7EFFFFFF) | st.just(SOURCE),
    dest=st.integers(0x7E007000, 0x7E007FFF) | st.integers(0, 0xFFFFFFFF) | st.just(DEST),
    length=st.integers(0, 0xFFFFFFFF) | st.integers(0, 4096),
    stride=st.integers(0, 0xFFFFFFFF),
    following=st.sampled_from([0, BLOCK, BLOCK + 32, 0xFFFFFFFF, 7]),
    channel=st.integers(0, 15),
)
def test_any_block_is_survived(machine, info, source, dest, length, stride, following, channel):
    place(machine, info, source, dest, length, stride, following)
    base = start(machine, channel)
    settle(machine, 4)
    for offset in range(0, 0x24, 4):
        assert 0 <= machine.bus.read(base + offset, 4) < 1 << 32
    machine.bus.write(base, 4, 1 << 31)
