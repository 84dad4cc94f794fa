"""The firmware needs time: until then there is no answer, no effect and no reply."""

import struct

import pytest

from vc4lab.soc.board_unknowns import DEFAULT_UNKNOWNS
from vc4lab.soc.states.state import load_state, save_state

HALT = bytes.fromhex("feffffea")
AT, MAILBOX = 0x100000, 0xB880
EMPTY = 1 << 30
POWER = struct.pack("<7I", 28, 0, 0x30012, 4, 4, 1, 0)
DISPLAY = struct.pack("<17I", 68, 0, 0x48003, 8, 8, 640, 480, 0x48005, 4, 4, 32, 0x40001, 8, 4, 16, 0, 0)
WAITS = (  # sends the message at 0x100000, waits for its reply, reads the timer before and after
    *(0xE59F0028, 0xE3A01601, 0xE3811008, 0xE59F3020, 0xE5935004),
    *(0xE5801020, 0xE5902018, 0xE3120101, 0x1AFFFFFC, 0xE5902000),
    *(0xE5936004, 0xEAFFFFFE, 0x3F00B880, 0x3F003000),
)


def send(machine, message: bytes, channel: int = 8) -> None:
    machine.memory.write(AT, message)
    machine.bus.write(MAILBOX + 0x20, 4, AT | channel)


def pass_time(machine, nanoseconds: int) -> None:
    machine.clock.skip(nanoseconds)
    machine.clock.run_due()


def test_nothing_is_there_before_the_firmware_had_time(boot):
    machine = boot(HALT)
    send(machine, POWER)
    pass_time(machine, 99_000)
    assert machine.memory.read(AT, len(POWER)) == POWER
    assert machine.bus.read(MAILBOX + 0x18, 4) == EMPTY
    assert not machine.v3d_bridge.powered
    pass_time(machine, 1_000)
    assert machine.memory.u32(AT + 4) == 0x80000000
    assert machine.v3d_bridge.powered
    assert machine.bus.read(MAILBOX + 0x18, 4) == 1
    assert machine.bus.read(MAILBOX, 4) == AT | 8


def test_messages_are_dealt_with_one_by_one(boot):
    machine = boot(HALT)
    for number in range(3):
        machine.memory.write(AT + 64 * number, POWER)
        machine.bus.write(MAILBOX + 0x20, 4, AT + 64 * number | 8)
    for done in range(4):
        answered = [machine.memory.u32(AT + 64 * number + 4) != 0 for number in range(3)]
        assert answered == [number < done for number in range(3)]
        pass_time(machine, 100_000)


TIMES = {"10us": 10_000, "100us": 100_000, "1ms": 10**6}


@pytest.mark.parametrize(("row", "time"), TIMES.items())
def test_how_long_is_a_choice(boot, row, time):
    machine = boot(HALT, unknowns=DEFAULT_UNKNOWNS.with_(mailbox_answer_time=row))
    send(machine, POWER)
    pass_time(machine, time - 1000)
    assert machine.memory.u32(AT + 4) == 0
    pass_time(machine, 1000)
    assert machine.memory.u32(AT + 4) == 0x80000000


def test_forgiving_answers_at_once(boot):
    machine = boot(HALT, forgiving=True)
    send(machine, POWER)
    assert machine.memory.u32(AT + 4) == 0x80000000
    assert machine.v3d_bridge.powered


def test_a_program_that_waits_goes_on_when_the_reply_is_there(boot):
    """Time skips to the moment of the reply, and not beyond it."""
    machine = boot(struct.pack(f"<{len(WAITS)}I", *WAITS))
    machine.memory.write(AT, DISPLAY)
    machine.run(seconds=0.01)
    assert machine.cpu.register(2) == AT | 8
    assert 100 <= machine.cpu.register(6) - machine.cpu.register(5) <= 101
    assert not machine.reporter.counts["SOC-112"]


def test_a_framebuffer_that_is_not_waited_for_is_named(boot):
    """A program that computes goes on with what it wrote itself."""
    # sends the message, then counts for ever
    words = (0xE59F0010, 0xE3A01601, 0xE3811008, 0xE5801020, 0xE2822001, 0xEAFFFFFD, 0x3F00B880)
    for message, expected in ((DISPLAY, 1), (POWER, 0)):
        machine = boot(struct.pack("<7I", *words))
        machine.memory.write(AT, message)
        machine.run(seconds=0.001)
        assert machine.reporter.counts["SOC-112"] == expected


def test_a_saved_state_has_the_message(boot, tmp_path):
    first = boot(HALT)
    first.run(seconds=0.001)
    send(first, POWER)
    pass_time(first, 40_000)
    save_state(first, tmp_path / "state")
    second = boot(HALT)
    load_state(second, tmp_path / "state")
    pass_time(second, 59_000)
    assert second.memory.u32(AT + 4) == 0
    pass_time(second, 1_000)
    assert second.memory.u32(AT + 4) == 0x80000000
