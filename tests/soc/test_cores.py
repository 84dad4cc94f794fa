"""Several cores: release by mailbox, shared memory, interrupts of their own, determinism."""

from __future__ import annotations

import pytest

from vc4lab.soc.machine import Stop


def test_four_cores_add_to_one_word(boot):
    machine = boot("multicore")
    result = machine.run()
    assert result.reason is Stop.HALTED
    assert machine.cores[0].register(10) == 4000
    assert [machine.cores[n].register(9) for n in (1, 2, 3)] == [1, 2, 3]


def test_two_runs_are_the_same(boot):
    first, second = boot("multicore"), boot("multicore")
    first.run()
    second.run()
    assert first.counter.count == second.counter.count
    assert first.clock.now == second.clock.now


def test_timer_of_a_core_and_mailbox_interrupt(boot):
    machine = boot("core_irq")
    assert machine.run().reason is Stop.HALTED
    one, two = machine.cores[:2]
    assert one.register(10) == 0xCAFE
    assert one.register(11) == 0
    assert two.register(10) == 5
    assert two.register(11) == 2
    assert one.register(6) == pytest.approx(5 * 19200, abs=400)


def test_parked_cores_stay_parked(boot):
    machine = boot("hello")
    machine.run()
    assert [cpu.pc for cpu in machine.cores[1:]] == [0, 0, 0]
    assert all(cpu.exceptions_taken == 0 for cpu in machine.cores)
