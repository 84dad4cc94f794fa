"""The machine from Python: results, memory, notebooks, the pytest fixture."""

from __future__ import annotations

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
    run = subprocess.run(
        [*command, tmp_path / "test_it.py"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1, run.stdout + run.stderr
    assert "vc4lab: serial line" in run.stdout
    assert "hello from the ARM" in run.stdout
