"""System calls and faults of programs: native code takes them as Python does."""

import shutil
from pathlib import Path

import pytest

from vc4lab.soc.cores.arm64 import Arm64
from vc4lab.soc.cores.engine.engine_calls import EngineCalls
from vc4lab.soc.cores.exceptions.native_entry import NativeEntry
from vc4lab.soc.machine import Machine, Stop

IMAGE = Path(__file__).parents[2] / "kernels64" / "programs.img"
LOG, ENTRY = 0x200000, 48
IL = 1 << 25
SVC, BRK, DATA, PREFETCH = (kind << 26 | IL for kind in (0x15, 0x3C, 0x24, 0x20))
TRANSLATION, PERMISSION, WRITE = 0x05, 0x0E, 1 << 6
"""Faults at level 1 and 2."""


@pytest.fixture
def asked(monkeypatch):
    """The exceptions that Python was asked to take, by the engine's number."""
    numbers = []
    take = Arm64._take_notice

    def notice(cpu, number):
        numbers.append(number)
        take(cpu, number)

    monkeypatch.setattr(Arm64, "_take_notice", notice)
    return numbers


@pytest.fixture
def machine(tmp_path, asked):
    shutil.copy(IMAGE, tmp_path / "kernel8.img")
    return Machine(tmp_path, board="pi3")


def _log(machine):
    end = machine.cores[0].register(20)
    words = [machine.memory.u64(place) for place in range(LOG, end, 8)]
    return [tuple(words[at : at + 6]) for at in range(0, len(words), 6)]


def _everything(machine):
    cpu = machine.cores[0]
    seen = cpu.exceptions_taken, machine.counter.count, machine.clock.now
    return cpu.state(), _log(machine), seen


def test_what_the_system_sees(machine, asked):
    assert machine.run(seconds=1).reason is Stop.HALTED
    log = _log(machine)
    causes = [entry[0] for entry in log]
    assert causes[:8] == [
        SVC | 7,
        DATA | WRITE | PERMISSION,
        DATA | TRANSLATION,
        DATA | TRANSLATION,
        PREFETCH | TRANSLATION,
        SVC | 0xABCD,
        BRK | 5,
        SVC | 1,
    ]
    assert causes[8:] == [SVC | 1] * 99 + [SVC | 99]
    program = log[0][2] - 4
    assert [entry[1] for entry in log[1:5]] == [program, 0x40000678, 0x4000067C, 0x40000690]
    assert log[4][2] == 0x40000690
    assert {entry[3] & 0xF000001F for entry in log[:6]} == {0xA0000000}
    assert {entry[4] for entry in log} == {0x210000}
    assert [entry[5] for entry in log[3:5]] == [0x1230, 0x1270]
    assert asked == [4, 7], "the second of two faults in a row, and brk"
    assert machine.cores[0].exceptions_taken == len(log) == 108


@pytest.mark.parametrize("how", ["never", "no faults", "listener", "stop"])
def test_python_does_the_same(machine, tmp_path, asked, monkeypatch, how):
    machine.run(seconds=1)
    expected = _everything(machine)
    asked.clear()
    if how == "never":
        monkeypatch.setattr(NativeEntry, "allow", lambda _self, _allowed: None)
    elif how == "no faults":
        monkeypatch.setattr(EngineCalls, "context", property(lambda _self: 0))
    other = Machine(tmp_path, board="pi3")
    taken = []
    if how == "listener":
        other.cores[0].exception_taken.subscribe(taken.append)
    elif how == "stop":
        other.cores[0].on_stop = lambda: False
    other.run(seconds=1)
    if how == "no faults":
        assert asked == [4, 4, 4, 3, 7]
        assert other.cores[0].exceptions_taken == 108
        return
    assert _everything(other) == expected
    assert len(asked) == 108
    assert len(taken) == (108 if how == "listener" else 0)


def test_slices_end_as_before(machine, tmp_path, monkeypatch):
    """A saved state at any moment is the same."""
    monkeypatch.setattr(NativeEntry, "allow", lambda _self, _allowed: None)
    other = Machine(tmp_path, board="pi3")
    found = []
    for each in (other, machine):
        seen = []
        for _ in range(30):
            each.run(seconds=1e-6)
            seen.append(_everything(each))
        found.append(seen)
        monkeypatch.undo()
    assert found[0] == found[1]
