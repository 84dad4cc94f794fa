"""CNTPCT and CNTVCT of an AArch64 core, answered by native code."""

import struct

import pytest

from vc4lab.soc.cores.arm32 import Arm32
from vc4lab.soc.cores.cpu import Cpu
from vc4lab.soc.cores.generic_timer import NANOSECONDS, TICKS, GenericTimer
from vc4lab.soc.machine import Machine

READS = (0xD53BE021, 0xD53BE042, 0xD53BE03E, 0xD53BE003, 0x14000000)
"""mrs x1, cntpct_el0; mrs x2, cntvct_el0; mrs x30, cntpct_el0; mrs x3, cntfrq_el0; b ."""
WAIT = (0xD53BE021, 0xD53BE042, 0xCB010042, 0xD352FC42, 0xB4FFFFA2, 0x14000000)
"""mrs x1, cntpct_el0; 1: mrs x2, cntvct_el0; sub x2, x2, x1; lsr x2, x2, #18; cbz x2, 1b; b ."""


@pytest.fixture
def boot64(tmp_path):
    def make(*words: int) -> Machine:
        (tmp_path / "kernel8.img").write_bytes(struct.pack(f"<{len(words)}I", *words))
        return Machine(tmp_path, board="pi3")

    return make


def test_both_counts_are_guest_time(boot64):
    machine = boot64(*READS)
    machine.clock.skip(5_000_000)
    machine.run(seconds=0.001)
    x = machine.cores[0].register
    start = 5_000_000 * TICKS // NANOSECONDS
    assert start <= x(1) <= x(2) <= x(30) < start + 20
    assert x(3) == 19_200_000


def test_who_waits_by_the_count_does_not_need_python(boot64, monkeypatch):
    machine = boot64(*WAIT)
    monkeypatch.setattr(GenericTimer, "count", property(lambda _timer: pytest.fail("asked")))
    machine.run(seconds=1)
    waited = (1 << 18) * NANOSECONDS / TICKS
    assert waited <= machine.clock.now < waited + 30_000
    assert machine.counter.count < 10_000
    again = boot64(*WAIT)
    again.run(seconds=1)
    assert (again.clock.now, again.counter.count) == (machine.clock.now, machine.counter.count)


def test_another_pace_is_known_to_native_code(boot64):
    machine = boot64(*READS)
    machine.local_bus.poke(0x08, 0x06AAAAAB)
    machine.clock.skip(3_000_000_000_000)
    machine.run(seconds=0.001)
    timer = machine.cores[0].links.timer
    assert 3_000_000_000 <= machine.cores[0].register(1) <= timer.count < 3_000_000_000 + 1100


def test_a_counter_quicker_than_the_crystal(boot64):
    machine = boot64(*READS)
    machine.local_bus.poke(0x00, 3 << 8)
    machine.clock.skip(3_000_000_000_000)
    machine.run(seconds=0.001)
    timer = machine.cores[0].links.timer
    start = 3_000 * machine.board.arm_clock
    assert start <= machine.cores[0].register(1) <= timer.count < start + 0.002 * start / 3_000


def test_the_firmware_lets_the_counter_follow_the_crystal(boot64):
    """Its stub for AArch64 sets the prescaler, which that for AArch32 leaves alone."""
    machine = boot64(*READS)
    assert machine.local.PRESCALER == 1 << 31
    timer = machine.cpu.links.timer
    machine.clock.skip(1_000_000)
    assert timer.count == 19_200


READS32 = (0xEC510F0E, 0xEC532F1E, 0x0C554F0E, 0xEC576F0E, 0xEE1E8F10, 0xEAFFFFFE)
"""mrrc p15, 0, r0, r1, c14; p15, 1, r2, r3; eq: r4, r5; r6, r7; mrc p15, 0, r8, c14, c0, 0; b ."""
WAIT32 = (0xEC510F0E, 0xE3A04A0A, 0xEC532F1E, 0xE0422000, 0xE1520004, 0x3AFFFFFB, 0xEAFFFFFE)
"""mrrc r0, r1; mov r4, #40960; 1: mrrc r2, r3; sub r2, r2, r0; cmp r2, r4; blo 1b; b ."""


@pytest.fixture
def boot32(tmp_path):
    def make(*words: int, **options) -> Machine:
        (tmp_path / "kernel7.img").write_bytes(struct.pack(f"<{len(words)}I", *words))
        return Machine(tmp_path, board="pi2", **options)

    return make


def test_aarch32_reads_the_same_count(boot32):
    machine = boot32(*READS32)
    machine.clock.skip(5_000_000_000_000)
    machine.run(seconds=0.001)
    x = machine.cores[0].register
    counts = [x(n) | x(n + 1) << 32 for n in (0, 2, 6)]
    assert 5_000_000_000 <= counts[0] <= counts[1] <= counts[2] < 5_000_000_000 + 20
    assert x(4) == x(5) == 0, "its condition is not met"
    assert x(8) == 19_200_000


def test_aarch32_waits_without_python(boot32, monkeypatch):
    asked = []
    original = GenericTimer.count.fget
    counted = property(lambda timer: asked.append(1) or original(timer))
    machine = boot32(*WAIT32)
    monkeypatch.setattr(GenericTimer, "count", counted)
    machine.run(seconds=1)
    assert not asked
    assert 40_960_000 <= machine.clock.now < 40_960_000 + 30_000
    assert machine.counter.count < 30_000
    again = boot32(*WAIT32)
    again.run(seconds=1)
    assert (again.clock.now, again.counter.count) == (machine.clock.now, machine.counter.count)


def test_aarch32_native_and_python_reads_take_the_same_time(boot32, monkeypatch):
    quick = boot32(*WAIT32)
    quick.run(seconds=1)
    monkeypatch.setattr(Arm32, "_hook_place", Cpu._hook_place)
    slow = boot32(*WAIT32)
    slow.run(seconds=1)
    assert (slow.clock.now, slow.counter.count) == (quick.clock.now, quick.counter.count)
    assert slow.cores[0].state() == quick.cores[0].state()


def test_an_mrrc_that_the_program_changes_is_done_as_it_is_then(boot32):
    """mrrc r0, r1; after the store to it: mrrc r2, r3. The engine's own count is the host's."""
    machine = boot32(
        0xEC510F0E,  # 1: mrrc p15, 0, r0, r1, c14
        0xE3540001,  # cmp r4, #1
        0x0A000006,  # beq 2f
        0xE3A04001,  # mov r4, #1
        0xE59F5018,  # ldr r5, new
        0xE24F601C,  # sub r6, pc, #28: 1b
        0xE5865000,  # str r5, [r6]
        0xE3A07000,  # mov r7, #0
        0xEE077F15,  # mcr p15, 0, r7, c7, c5, 0
        0xEAFFFFF5,  # b 1b
        0xEAFFFFFE,  # 2: b .
        0,
        0xEC532F0E,  # new: mrrc p15, 0, r2, r3, c14
    )
    machine.clock.skip(7_000_000_000_000)
    machine.run(seconds=0.001)
    x = machine.cores[0].register
    first, second = x(0) | x(1) << 32, x(2) | x(3) << 32
    assert 7_000_000_000 <= first <= second < 7_000_000_000 + 30
