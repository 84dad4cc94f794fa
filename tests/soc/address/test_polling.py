"""Programs that poll a register beside a timer: time-outs and pauses end when they would."""

import struct

import pytest
from tests.soc.conftest import KERNELS, CountingV3D

from vc4lab.soc.machine import Machine
from vc4lab.soc.slices.run_end import Stop

P, ZERO = 0x3F000000, 0x20000000
LOCAL = 0x40000000
OWN = 0
CLO, CHI, FREE_RUNNING = 0x3004, 0x3008, 0xB420
MICROSECONDS = 249 << 16 | 1 << 9
"""The ARM timer's companion counts 250 MHz / 250."""
SILENT = {
    "DMA": 0x7000,
    "DMA lines": 0x7FE0,
    "interrupts": 0xB204,
    "system timer": 0x3000,
    "ARM timer": 0xB410,
    "mailbox": 0xB898,
    "SMI": 0x600000,
    "EMMC": 0x300030,
    "EMMC status": 0x300024,
    "SDHOST": 0x202020,
    "UART": 0x201018,
    "mini UART": 0x215054,
    "GPIO": 0x200034,
    "I2C": 0x804004,
    "PWM": 0x20C004,
    "PCM": 0x203000,
    "V3D": 0xC00134,
}
"""Registers that do not change by themselves, of every kind that is polled."""


def kernel(register: int, timer: int, ticks: int, pauses: int = 0, base: int = P) -> bytes:
    image = bytearray((KERNELS / "poll_time.img").read_bytes())
    struct.pack_into("<5I", image, 4, register, timer, ticks, pauses, base + 0x3000)
    return bytes(image)


def took(machine: Machine) -> int:
    """Microseconds that the guest has measured."""
    assert machine.run(seconds=30).reason is Stop.HALTED
    return machine.cpu.register(10)


@pytest.fixture
def start(tmp_path):
    """`start(image, board)` → a machine with a bare image."""

    def make(image: bytes, board: str = "pi2") -> Machine:
        (tmp_path / "poll.img").write_bytes(image)
        return Machine(tmp_path / "poll.img", board, v3d_factory=CountingV3D)

    return make


def timed(start, register: int, timer: int, ticks: int, pauses: int = 0, board: str = "pi2") -> int:
    base = ZERO if board == "zero" else P
    where = timer + base if 0 < timer < 1 << 24 else timer
    place = register + base if register < 1 << 24 else register
    machine = start(kernel(place, where, ticks, pauses, base), board)
    machine.v3d_bridge.switch("domain", True)
    machine.bus.poke(0xB408, MICROSECONDS)
    spent = took(machine)
    assert machine.cpu.register(11) == 0, "the register has not changed"
    return spent


@pytest.mark.parametrize("register", SILENT)
def test_a_time_out_beside_a_register_that_never_changes(start, register):
    for microseconds in (20, 1000, 40_000):
        spent = timed(start, SILENT[register], CLO, microseconds)
        assert microseconds <= spent <= min(1.125 * microseconds, microseconds + 12)


@pytest.mark.parametrize("register", SILENT)
def test_pauses_between_two_looks_at_a_register(start, register):
    for microseconds, times in ((1, 500), (20, 100), (5000, 8)):
        spent = timed(start, SILENT[register], CLO, microseconds, times)
        assert 0.99 * times * microseconds - 1 <= spent
        assert spent <= times * (1.1 * microseconds + 0.1)


TIMERS = {"low word": CLO, "ARM timer": FREE_RUNNING, "core timer": LOCAL + 0x1C, "own": OWN}


ABSENT = {("zero", "core timer"), ("zero", "own"), ("pi3", "ARM timer")}
"""Timers that a board does not have, or has at another rate."""
MEASURED = [(b, t) for b in ("zero", "pi2", "pi3") for t in TIMERS if (b, t) not in ABSENT]


@pytest.mark.parametrize(("board", "timer"), MEASURED)
def test_every_timer_measures_both(start, timer, board):
    for register in (0x7000, 0xB898) if board == "zero" else (0x7000, 0xB898, LOCAL + 0xCC):
        assert 1000 <= timed(start, register, TIMERS[timer], 1000, board=board) <= 1020
        assert 999 <= timed(start, register, TIMERS[timer], 50, 20, board=board) <= 1100


def test_a_time_out_with_the_high_word_is_right_at_the_next_vsync_only(start):
    """A timer that stands still does not end the wait; nothing is skipped beyond its step."""
    machine = start(kernel(P + 0x7000, P + CHI, 1))
    machine.run(seconds=0.01)
    assert machine.clock.now < 10_100_000


CHANGES = {
    "system timer": ((0x3010, 300),),
    "DMA": ((0x7004, 0xC0010000), (0x7000, 1)),
    "EMMC": ((0x30002C, 5), (0x300034, 0xFFFFFFFF), (0x30000C, 0)),
}
"""Writes after which the register changes by an event."""
REGISTERS = {"system timer": 0x3000, "DMA": 0x7000, "EMMC": 0x300030}
DUE = {"system timer": 300, "DMA": 2 * 4.096, "EMMC": 5}


@pytest.mark.parametrize("pause", [1, 20, 150])
@pytest.mark.parametrize("device", CHANGES)
def test_what_has_changed_during_a_pause_is_seen_after_it(start, device, pause):
    machine = start(kernel(P + REGISTERS[device], P + CLO, pause, 10_000))
    block = struct.pack("<6I", 1 << 4 | 1 << 8, 0xC0020000, 0xC0030000, 4096, 0, 0)
    machine.memory.write(0x10000, block)
    for offset, value in CHANGES[device]:
        machine.bus.poke(offset, value)
    spent = took(machine)
    assert machine.cpu.register(11) == 1, "the register has changed"
    assert DUE[device] - 2 <= spent <= DUE[device] + 1.125 * pause + 12


COUNTED = struct.pack(
    "<10I",
    0xE59F0020,  # ldr r0, register
    0xE59F1020,  # ldr r1, count
    0xE59F3020,  # ldr r3, mask
    0xE5902000,  # 1: ldr r2, [r0]
    0xE1120003,  # tst r2, r3
    0x1A000002,  # bne 2f
    0xE2511001,  # subs r1, r1, #1
    0x1AFFFFFA,  # bne 1b
    0xE1A00000,  # nop
    0xEAFFFFFE,  # 2: b 2b
)
TURN = 5 * 2 + 50
"""Nanoseconds of a turn: five instructions and a device access."""


def counted(register: int, count: int, mask: int) -> bytes:
    return COUNTED + struct.pack("<III", register, count, mask)


LIKE_TIMERS = {"PWM", "PCM"}
"""They follow the time without events, and are waited for in steps."""


@pytest.mark.parametrize("register", sorted(SILENT.keys() - LIKE_TIMERS))
def test_a_time_out_by_counting_looks_takes_what_its_loop_takes(start, register):
    machine = start(counted(P + SILENT[register], 20_000, 0))
    machine.v3d_bridge.switch("domain", True)
    assert machine.run(seconds=1).reason is Stop.HALTED
    assert machine.cpu.register(1) == 0
    assert machine.clock.now == pytest.approx(20_000 * TURN, rel=0.02)


@pytest.mark.parametrize("microseconds", [40, 300, 20_000])
def test_what_is_left_of_a_count_says_how_long_a_register_took(start, microseconds):
    """Across a vsync, too."""
    machine = start(counted(P + 0x3000, 1_000_000, 2))
    machine.bus.poke(0x3010, microseconds)
    assert machine.run(seconds=1).reason is Stop.HALTED
    turns = 1_000_000 - machine.cpu.register(1)
    assert turns == pytest.approx(1000 * microseconds / TURN, rel=0.02, abs=4)


def test_a_loop_that_does_not_count_need_not_be_executed(start):
    image = bytearray(counted(P + 0x3000, 1, 2))
    image[24:28] = struct.pack("<I", 0xE1B01001)  # movs r1, r1
    machine = start(bytes(image))
    machine.bus.poke(0x3010, 10_000)
    assert machine.run(seconds=1).reason is Stop.HALTED
    assert machine.counter.count < 500
    assert machine.clock.now == pytest.approx(10_000_000, rel=0.01)
