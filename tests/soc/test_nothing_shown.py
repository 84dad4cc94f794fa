"""A screen that is still black when a program ends: what is said about it, and when nothing is."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from vc4lab.diagnostics import Reporter
from vc4lab.soc.devices.serial.serial import SerialPort
from vc4lab.soc.machine import Machine

SCRIPT, MESSAGE = 0x100000, 0x180000
STORE, DEVICE = 1, 11
"""Steps of the script kernel; those of a DEVICE name an offset of the peripherals."""
MAILBOX, CHANNEL_8 = 0xB8A0, 8
KERNEL = Path(__file__).parent / "kernels" / "script.img"
Step = tuple[int, int, int]
SIZES = struct.pack("<5I", 0x48003, 8, 8, 64, 32) + struct.pack("<5I", 0x48004, 8, 8, 64, 64)
DEPTH_8, DEPTH_32 = (struct.pack("<4I", 0x48005, 4, 4, depth) for depth in (8, 32))
ALLOCATE = struct.pack("<5I", 0x40001, 8, 4, 4096, 0)
BLANK = struct.pack("<4I", 0x40002, 4, 4, 1)
PALETTE = struct.pack("<6I", 0x4800B, 12, 12, 1, 1, 0x0000FF)
ASK = (DEVICE, MAILBOX, MESSAGE | CHANNEL_8)
Run = Callable[..., list[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """`run(tags, steps)`: the messages of a program that sends tags and does steps."""

    def make(tags: bytes, *steps: Step, **options: object) -> list[str]:
        (tmp_path / "kernel7.img").write_bytes(KERNEL.read_bytes())
        reporter = Reporter()
        machine = Machine(tmp_path, reporter=reporter, serial=SerialPort(), **options)  # type: ignore[arg-type]
        machine.mailbox.at_once = True
        base = machine.board.peripherals
        words = [
            (what - 10, base + at, value) if what > 10 else (what, at, value) for what, at, value in steps
        ]
        machine.memory.write(SCRIPT, b"".join(struct.pack("<3I", *step) for step in words))
        machine.memory.write(MESSAGE, struct.pack("<2I", 12 + len(tags), 0) + tags + bytes(4))
        machine.run()
        return [str(item) for item in reporter.items if item.code.startswith("SOC-14")]

    return make


@pytest.fixture
def place(tmp_path: Path, run: Run) -> int:
    """Where the framebuffer is."""
    (text,) = run(SIZES + DEPTH_32 + ALLOCATE, ASK)
    return int(text.split("pixels at 0x")[1][:8], 16)


def test_nothing_is_written_to_the_framebuffer(run: Run, place: int) -> None:
    (text,) = run(SIZES + DEPTH_32 + ALLOCATE, ASK)
    assert text.startswith("SOC-140")
    assert "64 x 32 pixels" in text
    assert not run(SIZES + DEPTH_32 + ALLOCATE, ASK, (STORE, place + 512, 0xFF))


def test_the_framebuffer_is_written_before_it_is_there(run: Run, place: int) -> None:
    (text,) = run(SIZES + DEPTH_32 + ALLOCATE, (STORE, place, 0xFF), ASK)
    assert text.startswith("SOC-143")
    assert f"0x{place:08x}" in text


def test_the_page_that_is_not_shown_is_written(run: Run, place: int) -> None:
    (text,) = run(SIZES + DEPTH_32 + ALLOCATE, ASK, (STORE, place + 32 * 256, 0xFF))
    assert text.startswith("SOC-141")
    assert "rows 0 to 31, which are black, are" in text


def test_sizes_without_memory(run: Run) -> None:
    (text,) = run(SIZES + DEPTH_32, ASK)
    assert text.startswith("SOC-140")
    assert "has not asked for its memory" in text


def test_a_palette_that_was_never_set(run: Run, place: int) -> None:
    tags = SIZES + DEPTH_8
    (text,) = run(tags + ALLOCATE, ASK, (STORE, place, 0x01010101))
    assert text.startswith("SOC-144")
    assert "no palette" in text
    assert not run(tags + PALETTE + ALLOCATE, ASK, (STORE, place, 0x01010101))


def test_a_display_that_is_switched_off(run: Run, place: int) -> None:
    (text,) = run(SIZES + DEPTH_32 + ALLOCATE + BLANK, ASK, (STORE, place, 0xFF))
    assert text.startswith("SOC-144")
    assert "0x00040002" in text


def test_a_program_without_a_display_is_left_alone(run: Run) -> None:
    assert not run(struct.pack("<4I", 0x10002, 4, 0, 0), ASK)


def test_a_forgiving_machine_says_nothing(run: Run) -> None:
    assert not run(SIZES + DEPTH_32 + ALLOCATE, ASK, forgiving=True)


def test_a_run_that_is_stopped_early_says_nothing(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "naan" / "sdcard"
    reporter = Reporter()
    Machine(example, reporter=reporter, serial=SerialPort()).run(seconds=0.001)
    assert not reporter.items
