"""CNTPCT and CNTVCT of an AArch64 core, answered by native code."""

from __future__ import annotations

import struct

import pytest

from vc4lab.soc.generic_timer import NANOSECONDS, TICKS, GenericTimer
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


def test_another_pace_is_asked_for(boot64, monkeypatch):
    machine = boot64(*READS)
    timer = machine.cores[0].links.timer
    timer.on_new_pace()
    monkeypatch.setattr(GenericTimer, "count", property(lambda _timer: 1 << 40))
    machine.run(seconds=0.001)
    assert [machine.cores[0].register(n) for n in (1, 2, 30)] == [1 << 40] * 3
