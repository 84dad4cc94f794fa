"""Interrupts that native rounds deliver: what a program finds is what Python's rounds give it."""

import struct
from pathlib import Path
from typing import Any

import pytest

from vc4lab.soc.cores.cores import IDLE_LOOP
from vc4lab.soc.cores.exceptions.exceptions import ArmException
from vc4lab.soc.machine import Machine
from vc4lab.soc.states.state import save_state

FOLDER = Path(__file__).parents[1]
KERNELS, KERNELS64 = FOLDER / "kernels", FOLDER / "kernels64"
NEXT_TICK, NOP = 0xEE0EBF13, 0xE320F000
"""mcr p15, 0, r11, c14, c3, 0: the last one is that of the handler of four_ticks."""
WFE, WFE64, NOP64 = 0xE320F002, 0xD503205F, 0xD503201F


def four_cores(
    tmp_path: Path, name: str, native: bool, board: str = "pi2", handler: int = 0, sleeps: bool = True
) -> Machine:
    """`handler`: what stands in place of the instruction that sets the next tick.

    `board` "wide": a Pi 3 in AArch64 state. Not `sleeps`: nop in place of wfe.
    """
    if board == "wide":
        image = bytearray((KERNELS64 / f"{name}.img").read_bytes())
        if not sleeps:
            image = image.replace(struct.pack("<I", WFE64), struct.pack("<I", NOP64))
        (tmp_path / "kernel8.img").write_bytes(image)
        started = Machine(tmp_path, "pi3")
        started.turns._native._serves &= native
        return started
    image = bytearray((KERNELS / f"{name}.img").read_bytes())
    if handler:
        at = image.rindex(struct.pack("<I", NEXT_TICK))
        struct.pack_into("<I", image, at, handler)
    if not sleeps:
        image = image.replace(struct.pack("<I", WFE), struct.pack("<I", NOP))
    (tmp_path / "kernel7.img").write_bytes(image)
    started = Machine(tmp_path, board)
    started.turns._native._serves &= native
    return started


def end(started: Machine, tmp_path: Path) -> tuple[Any, ...]:
    """Registers, memory, time, and what is known of exceptions and waits."""
    save_state(started, tmp_path / "state")
    opened = [(cpu.open_exceptions.members, cpu.open_exceptions._first) for cpu in started.cores]
    storms = [vars(core.interrupt_storm) for core in started.processors.all]
    spsr = [cpu.interrupted_thumb for cpu in started.cores]
    return (tmp_path / "state").read_bytes(), opened, storms, spsr, started.clock.changes


@pytest.mark.parametrize(
    ("name", "board"),
    [
        ("four_ticks", "pi2"),
        ("four_ticks", "pi3"),
        ("four_ticks", "wide"),
        ("four_locks", "wide"),
        ("four_timers", "pi2"),
        ("four_loops", "pi3"),
    ],
)
def test_interrupts_come_as_in_rounds_of_python(tmp_path, name, board):
    """Also one that is due in the middle of a round, to a core whose turn comes after that."""
    found = []
    for native in (True, False):
        started = four_cores(tmp_path, name, native, board)
        for _part in range(3):
            started.run(seconds=0.0117)
        assert (started.turns.native_slices > 0) is native
        found.append((*end(started, tmp_path), started.turns.slices))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("name", "board", "sleeps"),
    [("four_loops", "pi2", True), ("four_locks", "pi2", False), ("four_locks", "wide", False)],
)
def test_a_loop_that_waits_is_no_turn_of_python(tmp_path, name, board, sleeps):
    """Memory is watched, or only registers: whether a loop changes anything is proved in the rounds, too."""
    found = []
    for native in (True, False):
        started = four_cores(tmp_path, name, native, board, sleeps=sleeps)
        for part in (0.003, 0.0117, 0.02):
            started.run(seconds=part)
        loops = [
            (core.idle.again, core.idle.places, core.asleep, core.nap, core.steady.turn)
            for core in started.processors.all
        ]
        found.append((*end(started, tmp_path), started.turns.slices, loops))
        if native:
            assert started.turns.native_slices > 0.9 * started.turns.slices
            assert any(core.asleep == IDLE_LOOP for core in started.processors.all)
    assert found[0] == found[1]


@pytest.mark.parametrize("board", ["pi2", "wide"])
def test_a_tick_is_no_turn_of_python(tmp_path, board):
    """In AArch64 state from each level and stack pointer."""
    started = four_cores(tmp_path, "four_ticks", native=True, board=board)
    started.run(seconds=0.01)
    taken, slices = [cpu.exceptions_taken for cpu in started.cores], started.turns.slices
    before = started.turns.native_slices
    started.run(seconds=0.03)
    ticks = sum(cpu.exceptions_taken for cpu in started.cores) - sum(taken)
    assert ticks > 800, "up to 30 ms / 97 us (99 in AArch64 state) on core 0, and so on"
    python = started.turns.slices - slices - (started.turns.native_slices - before)
    assert python < ticks / 10


def test_a_listener_hears_of_each(tmp_path):
    """Traces: the same run, with each interrupt reported at the place where it comes."""
    plain = four_cores(tmp_path, "four_ticks", native=True)
    plain.run(seconds=0.01)
    heard = four_cores(tmp_path, "four_ticks", native=True)
    seen: list[list[int]] = []
    for cpu in heard.cores:
        places: list[int] = []
        seen.append(places)
        cpu.exception_taken.subscribe(
            lambda taken, places=places: (
                places.append(taken.address) if taken.exception is ArmException.IRQ else None
            )
        )
    heard.run(seconds=0.01)
    assert [len(places) for places in seen] == [cpu.exceptions_taken for cpu in heard.cores]
    assert end(heard, tmp_path) == end(plain, tmp_path)


def test_an_interrupt_that_is_never_cleared(tmp_path):
    """It is taken again and again, and counted as a storm."""
    ends = []
    for native in (True, False):
        started = four_cores(tmp_path, "four_ticks", native, handler=NOP)
        started.run(seconds=0.00025)
        ends.append(end(started, tmp_path))
        assert max(core.interrupt_storm._row for core in started.processors.all) > 100
    assert ends[0] == ends[1]
