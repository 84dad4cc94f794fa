"""What is written when the disk is full or Ctrl-C is pressed: the whole file or the old one."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app

ROOT = Path(__file__).parents[2]
TRIANGLE = ROOT / "examples" / "triangle" / "sdcard"
AUDIO = ROOT / "examples" / "audio" / "sdcard"
JOB = ROOT / "tests" / "data" / "vc4-jobs" / "tri_arm64"
ECHO = ROOT / "tests" / "soc" / "kernels" / "mini_uart.img"
SMALL = 300
"""Bytes that a file may have in these tests: a disk that is nearly full."""
CODE = f"""
import resource, signal, sys
from vc4lab.cli.main import run
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.dont_write_bytecode = True  # Python keeps what it could write of a module, and does not look
resource.setrlimit(resource.RLIMIT_FSIZE, ({SMALL}, {SMALL}))
run()
"""


def on_a_full_disk(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", CODE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize(
    ("option", "name", "more"),
    [
        ("--screenshot", "shot.png", ("--frames", 1)),
        ("--record", "film.gif", ("--frames", 1)),
        ("--save-state", "state", ("--frames", 1)),
        ("--audio", "tune.wav", ("--seconds", 0.2)),
    ],
)
def test_boot_keeps_the_old_file(tmp_path, option, name, more):
    path = tmp_path / name
    path.write_bytes(b"old")
    card = AUDIO if option == "--audio" else TRIANGLE
    done = on_a_full_disk("boot", card, *more, "--headless", option, path)
    assert done.returncode == ExitCode.OUTPUT, done.stderr
    assert f"CLI-001: {path}: " in done.stderr
    assert "File too large" in done.stderr
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [name]


def test_other_commands_keep_the_old_file(tmp_path):
    source, path = tmp_path / "p.qasm", tmp_path / "out.png"
    source.write_text("nop; nop; thrend\n" + "nop\n" * 99)
    for arguments in (
        ("asm", source, "-o", path),
        ("run", source, "-m", "x=4096", "-o", f"x={path}"),
        ("replay", JOB, "-o", path),
        ("replay", JOB, "--tiles", path),
    ):
        path.write_bytes(b"old")
        done = on_a_full_disk(*arguments)
        assert done.returncode == ExitCode.OUTPUT, done.stderr
        assert f"{path}: File too large" in done.stderr
        assert path.read_bytes() == b"old"
        assert sorted(os.listdir(tmp_path)) == ["out.png", "p.qasm"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_screenshot_that_fails_does_not_cost_the_recording(tmp_path):
    film = tmp_path / "film.png"
    arguments = ["boot", str(TRIANGLE), "--frames", "1", "--headless", "--record", str(film)]
    link = tmp_path / "shot.png"
    link.symlink_to("/dev/full")
    result = CliRunner().invoke(app, [*arguments, "--screenshot", str(link)])
    assert result.exit_code == ExitCode.OUTPUT
    assert f"CLI-001: {link}: No space left" in result.output
    assert film.exists()


def test_a_picture_that_its_format_cannot_hold(tmp_path):
    path = tmp_path / "shot.xbm"
    result = CliRunner().invoke(
        app, ["boot", str(TRIANGLE), "--frames", "1", "--headless", "--screenshot", str(path)]
    )
    assert result.exit_code == ExitCode.OUTPUT
    assert f"{path}: a picture of 640x480 cannot be written in this format" in result.output


class Interrupted:
    """`vc4lab boot` of a program that waits for a key, for ever."""

    def __init__(self, state: Path, *arguments: object) -> None:
        # A shell starts its background jobs with SIGINT ignored; a terminal does not.
        code = (
            "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
            "from vc4lab.cli.start import run; run()"
        )
        options = ["--serial", "pty", "--save-state", state, *map(str, arguments)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, "boot", ECHO, *options],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        self.limit = threading.Timer(60, self.process.kill)
        self.limit.start()
        assert self.process.stderr is not None
        assert "serial line" in self.process.stderr.readline()

    def wait_for(self, text: str) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if text in line:
                return
        raise AssertionError(text)

    def end(self) -> tuple[int, str]:
        try:
            _out, text = self.process.communicate(timeout=60)
        finally:
            self.limit.cancel()
            self.process.kill()
        return self.process.returncode, text


def test_ctrl_c_saves_the_state(tmp_path):
    state = tmp_path / "state"
    run = Interrupted(state, "--gdb", 0, "--no-gdb-wait")
    run.wait_for("target remote")  # the machine runs from here on
    run.process.send_signal(signal.SIGINT)
    code, text = run.end()
    assert code == ExitCode.INTERRUPTED, text
    assert f"state: {state}" in text
    arguments = ["boot", str(ECHO), "--load-state", str(state), "--seconds", "0.1"]
    assert CliRunner().invoke(app, arguments).exit_code == ExitCode.OK


def test_ctrl_c_twice_says_that_nothing_is_saved(tmp_path):
    state = tmp_path / "state"
    run = Interrupted(state, "--gdb", 0)
    run.wait_for("waiting for a debugger")  # a machine that stands
    run.process.send_signal(signal.SIGINT)
    run.wait_for("the state is saved at the next moment")
    run.process.send_signal(signal.SIGINT)
    code, text = run.end()
    assert code == ExitCode.INTERRUPTED, text
    assert "nothing more is saved" in text
    assert os.listdir(tmp_path) == []


def test_a_sweep_says_it_once(tmp_path):
    """The line that did not fit is not tried again when the file is closed."""
    results = tmp_path / "r.jsonl"
    done = on_a_full_disk("sweep", JOB, "--set", "slices.count=1,2", "--results", results, "--processes", 1)
    assert done.returncode == ExitCode.OUTPUT, done.stderr
    said = [line for line in done.stderr.splitlines() if "JIT-003" not in line]
    assert said == [f"{results}: File too large"]
    assert results.stat().st_size == SMALL
