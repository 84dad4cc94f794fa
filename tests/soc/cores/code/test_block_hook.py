"""The engine remembers all code that the block hook has seen: it is kept within limits."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from vc4lab.soc.cores import cpu
from vc4lab.soc.machine import Machine

EXAMPLES = Path(__file__).parents[4] / "examples"
FEW = 4
PAGES, PAGE = 12, 4096
TO_THE_NEXT_PAGE, HERE = 0x14000400, 0x14000000


def gears(_folder: Path) -> Machine:
    machine = Machine(EXAMPLES / "gears" / "sdcard", board="zero")
    machine.run(frames=3)
    return machine


def pages_64(folder: Path) -> Machine:
    code = struct.pack("<I", TO_THE_NEXT_PAGE).ljust(PAGE, b"\0") * PAGES
    (folder / "kernel8.img").write_bytes(code + struct.pack("<I", HERE))
    machine = Machine(folder, board="pi3")
    machine.run(seconds=0.001)
    return machine


@pytest.mark.parametrize("run", [gears, pages_64])
def test_a_hook_that_is_made_anew_changes_nothing(
    run: Callable[[Path], Machine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = run(tmp_path)
    core = plain.cores[0]
    assert core.calls.places_of(core._block_hook) > FEW
    monkeypatch.setattr(cpu, "MAX_PLACES", FEW)
    removed = []
    remove = cpu.EngineCalls.remove_hook

    def noted(calls: cpu.EngineCalls, hook: int) -> None:
        removed.append(hook)
        remove(calls, hook)

    monkeypatch.setattr(cpu.EngineCalls, "remove_hook", noted)
    bounded = run(tmp_path)
    assert len(removed) >= 2
    assert [bounded.screen.png()] == [plain.screen.png()]
    assert (bounded.counter.count, bounded.seconds) == (plain.counter.count, plain.seconds)
    assert bounded.cores[0].state() == core.state()


def test_an_engine_of_another_version_is_not_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = pages_64(tmp_path).cores[0]
    monkeypatch.setattr(core.calls, "_version", (3, 0))
    assert core.calls.places_of(core._block_hook) == 0
