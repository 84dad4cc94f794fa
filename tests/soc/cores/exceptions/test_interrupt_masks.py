"""Masked interrupts come the moment the mask is lifted; a core in wfi is left alone until then."""

import shutil
from pathlib import Path

import pytest

from vc4lab.soc.machine import Machine, Stop

KERNELS = Path(__file__).parents[2] / "kernels"
KERNELS_64 = Path(__file__).parents[2] / "kernels64"


@pytest.mark.parametrize(
    ("folder", "kernel", "board", "seen", "rounds"),
    [(KERNELS, "kernel7.img", "pi2", 5, 6), (KERNELS_64, "kernel8.img", "pi3", 20, 21)],
)
def test_waiting_interrupts_come_with_the_unmasking_instruction(
    tmp_path, folder, kernel, board, seen, rounds
):
    shutil.copy(folder / "masked.img", tmp_path / kernel)
    machine = Machine(tmp_path, board=board)
    result = machine.run(seconds=1)
    assert result.reason is Stop.HALTED, result.message
    assert machine.cpu.register(rounds) == 5
    assert machine.cpu.register(seen) == 10


def test_a_core_in_wfi_is_not_run_for_events_of_others(boot):
    """Time goes on from event to event; the core itself stands still."""
    machine = boot("irq")
    counts = set()

    def tick():
        counts.add(machine.counter.count)
        if len(counts) < 3 and machine.seconds < 0.001:
            machine.clock.after(10_000, tick)

    machine.clock.after(500_000, tick)
    machine.run(seconds=0.0009)
    assert len(counts) == 1


def test_frequency_of_the_core_timer(boot):
    code = bytes.fromhex("104f1eee feffffea".replace(" ", ""))  # mrc p15, 0, r4, c14, c0, 0; b .
    machine = boot(code)
    machine.run()
    assert machine.cpu.register(4) == 19_200_000


@pytest.mark.parametrize(
    ("folder", "kernel", "board"), [(KERNELS, "kernel7.img", "pi2"), (KERNELS_64, "kernel8.img", "pi3")]
)
def test_wfi_behind_a_mask_with_an_interrupt_waiting_does_not_stop_time(tmp_path, folder, kernel, board):
    """Where a panic ends: wfi does not wait, and nothing will ever take the interrupt."""
    shutil.copy(folder / "panic.img", tmp_path / kernel)
    machine = Machine(tmp_path, board=board)
    result = machine.run(seconds=2)
    assert result.reason in (Stop.SECONDS, Stop.HANG)
    assert machine.counter.count < 100_000, "time skips"
    result = machine.run()
    assert result.reason is Stop.HANG
    assert "wfi, which ends at once because of a pending, masked interrupt" in result.message
    assert "timer 1" in result.message
