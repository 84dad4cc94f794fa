"""Exceptions without end: noticed, named, and soon over; cores that work go on."""

from pathlib import Path

import pytest

from vc4lab.soc.cores.exceptions.outcome import LONGEST_FAULTS, ExceptionCounts, FaultStorm, InterruptStorm
from vc4lab.soc.machine import Stop

KERNELS = Path(__file__).parents[2] / "kernels"
UDF, NOP, STR = (bytes.fromhex(word) for word in ("f100f0e7", "00f020e3", "001088e5"))
TO_FIRST = bytes.fromhex("010000ea")


def kernel(name: str, old: bytes, new: bytes) -> bytes:
    image = (KERNELS / f"{name}.img").read_bytes()
    assert old in image
    at = image.index(old)
    return image[:at] + new + image[at + len(new) :]


def codes(machine) -> list[str]:
    return [item.code for item in machine.reporter.items]


def test_a_handler_that_mends_nothing(boot):
    """All four cores of a Pi 2: each is left alone, and when none works the run is over."""
    machine = boot("storm")
    result = machine.run(seconds=10)
    assert result.reason is Stop.CRASH
    assert codes(machine) == ["SOC-048"] * 4
    assert "undefined instruction at" in result.message
    assert "does not remove the cause" in result.message
    assert {cpu.exceptions_taken for cpu in machine.cores} == {LONGEST_FAULTS}
    assert result.seconds < 0.1


def test_a_vector_that_faults(boot):
    image = (KERNELS / "storm.img").read_bytes()
    vectors = len(image) - 32
    machine = boot(image[: vectors + 4] + UDF + image[vectors + 8 :])
    result = machine.run(seconds=10)
    assert result.reason is Stop.CRASH
    assert "its own vector" in result.message
    assert max(cpu.exceptions_taken for cpu in machine.cores) == 2


def test_other_cores_go_on(boot):
    """The storms of three cores are reported; core 0 has its whole time."""
    machine = boot(kernel("storm", TO_FIRST, NOP))
    assert machine.run(seconds=0.2).reason is Stop.SECONDS
    assert codes(machine) == ["SOC-048"] * 3
    first, *others = machine.cores
    assert first.register(6) > 20_000_000
    assert {cpu.exceptions_taken for cpu in others} == {LONGEST_FAULTS}


def test_an_interrupt_that_nobody_clears(boot):
    machine = boot("storm_irq")
    result = machine.run(seconds=10)
    assert result.reason is Stop.HANG
    assert codes(machine) == ["SOC-049"]
    assert "(timer 1)" in result.message


def test_a_cleared_interrupt_is_no_storm(boot):
    machine = boot(kernel("storm_irq", NOP, STR))
    assert machine.run(seconds=0.05).reason is Stop.SECONDS
    assert machine.cores[0].register(4) == 1
    assert not codes(machine)


def test_what_counts_as_a_row():
    storm = FaultStorm(ExceptionCounts())
    turns = range(1, LONGEST_FAULTS)
    assert not any(storm.grows(10 * turn, at_vector=False) for turn in turns)
    assert storm.grows(10 * LONGEST_FAULTS, at_vector=False)
    assert not storm.grows(20 * LONGEST_FAULTS, at_vector=False)
    assert storm.grows(20 * LONGEST_FAULTS + 10, at_vector=True)


@pytest.mark.parametrize(
    ("pc", "distance", "sign", "expected"),
    [(0, 20, 0, True), (4, 20, 0, False), (0, 1000, 0, False), (0, 20, 1, False)],
)
def test_what_ends_a_row_of_interrupts(monkeypatch, pc, distance, sign, expected):
    monkeypatch.setattr("vc4lab.soc.cores.exceptions.outcome.LONGEST_INTERRUPTS", 10)
    storm = InterruptStorm()
    found = [storm.grows(pc * turn, distance * turn, (sign * turn,)) for turn in range(20)]
    assert any(found) is expected
