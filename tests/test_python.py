"""The machine from Python: results, memory, notebooks, the pytest fixture."""

import subprocess
import sys
from pathlib import Path

import pytest

import vc4lab
from vc4lab.memory import GuestMemory
from vc4lab.soc.result import RunResult, Stop

KERNELS = Path(__file__).parent / "soc" / "kernels"
PNG = b"\x89PNG\r\n\x1a\n"


def test_one_line(pi):
    result = pi(KERNELS / "framebuffer.img").run(frames=1)
    assert result.screen.image.size == (64, 48)
    assert result.reason is Stop.FRAMES
    assert result._repr_png_()[:8] == result.machine._repr_png_()[:8] == PNG
    assert result.screen._repr_png_()[:8] == PNG


def test_serial_memory_v3d(pi):
    result = pi("soc/kernels/hello.img").run()
    assert result.uart.text == "hello from the ARM\n"
    assert result.memory[0x8000:0x8004] == bytes.fromhex("02d9a0e3")
    assert result.v3d is None
    assert result._repr_png_() is None


def test_typed(pi):
    machine = pi(KERNELS / "mini_uart.img", typed="x")
    assert machine.run().uart.text == "?x"


def test_the_package_has_the_machine():
    assert vc4lab.Machine(KERNELS / "hello.img").run().uart.text
    with pytest.raises(AttributeError):
        _ = vc4lab.Zachine
    code = "import sys, vc4lab; sys.exit('unicorn' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_result_without_machine():
    result = RunResult(Stop.HALTED, 0, 0.0, "")
    assert result._repr_png_() is None
    with pytest.raises(ValueError, match="no machine"):
        _ = result.screen


def test_memory_as_bytes():
    memory = GuestMemory(1 << 20)
    memory[0x100] = 7
    memory[0x101:0x104] = b"abc"
    assert memory[0x100:0x104] == b"\x07abc"
    assert memory[0x101] == ord("a")
    assert memory[5:3] == b""
    for place, value in ((slice(0, 4), b"abc"), (slice(0, 4, 2), b"ab"), (slice(-4, 0), b"")):
        with pytest.raises(ValueError, match=r"range|negative"):
            memory[place] = value


def test_the_fixture_shows_the_serial_line_of_a_failure(tmp_path):
    kernel = (KERNELS / "hello.img").read_bytes()
    (tmp_path / "kernel7.img").write_bytes(kernel)
    (tmp_path / "test_it.py").write_text(
        "def test_it(pi):\n    assert pi('kernel7.img').run().uart.text == 'bye'\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", tmp_path]
    run = subprocess.run([*command, tmp_path / "test_it.py"], capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "vc4lab: serial line" in run.stdout
    assert "hello from the ARM" in run.stdout


def test_objects_in_words(pi):
    """What a notebook or the interactive Python shows: short, and useful."""
    machine = pi(KERNELS / "hello.img")
    assert repr(machine) == "<Machine pi2 with hello.img: 0 frames, 0.000 s of guest time>"
    assert repr(machine.screen) == "<Screen: black, the program has no framebuffer>"
    result = machine.run()
    assert repr(result).startswith("<RunResult HALTED: 0 frames, 0.000 s of guest time, the prog")
    assert repr(machine.uart) == ("<Uart <SerialPort: 19 bytes sent, last 'hello from the ARM\\n'>>")
    assert repr(machine.gpio) == "<Gpio 'gpio' at 0x200000 of the peripherals>"
    drawn = pi(KERNELS / "framebuffer.img")
    drawn.run(frames=1)
    assert repr(drawn.screen) == "<Screen 64x48, 32 bits per pixel>"
    assert repr(drawn.frames) == "<FrameCounter: 1, counted by vsync>"
    assert repr(drawn.memory) == "<GuestMemory of 1024 MiB>"
    things = machine, result, machine.reporter, machine.cpu, machine.plan, machine.serial
    for thing in (*things, machine.frames):
        assert " object at 0x" not in repr(thing)
        assert len(repr(thing)) < 500
    assert len(repr(machine.plan)) < 500


def test_recorded_jobs_in_words():
    from vc4lab.drm.recorded.replay import replay

    jobs = Path(__file__).parent / "data" / "vc4-jobs"
    result = replay(jobs / "tri_arm64")
    assert repr(result) == "<Replay: 1 of 1 jobs drawn, 64x64 rgba>"
    assert result._repr_png_()[:8] == PNG
    nothing = replay(jobs / "nowhere")
    assert repr(nothing) == "<Replay: 0 of 0 jobs drawn, no picture>"
    assert nothing._repr_png_() is None


def test_the_examples_are_found():
    assert (vc4lab.examples() / "triangle" / "sdcard" / "kernel7.img").is_file()
