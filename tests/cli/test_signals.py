"""Signals and Ctrl-A X end a run; pictures, recordings and the card's image are saved."""

from __future__ import annotations

import contextlib
import os
import pty
import random
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PIL import Image

from vc4lab.cli.serial_ends import LeaveKeys

ROOT = Path(__file__).parent.parent.parent
GEARS = ROOT / "examples" / "gears" / "sdcard"
KERNELS = ROOT / "tests" / "soc" / "kernels"
HANDLED = (
    "signal.signal(signal.SIGINT, signal.default_int_handler); signal.signal(signal.SIGHUP, signal.SIG_DFL);"
)
"""A script's background job has SIGINT ignored, one of nohup SIGHUP; so may these tests."""
START = f"import sys, signal; {HANDLED} from vc4lab.cli.start import run; run()"
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


def started(*arguments: object, before: str = "", **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", before + START, *map(str, arguments)]
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.parametrize("number", CODES)
def test_pictures_and_recordings_are_saved(number: signal.Signals, tmp_path: Path) -> None:
    moments = random.Random(int(number))
    for turn in range(3):
        shot, film = tmp_path / f"{turn}.png", tmp_path / f"{turn}.gif"
        arguments = "boot", GEARS, "--headless", "--screenshot", shot, "--record", film
        with started(*arguments, "--every", 10) as process:
            assert process.stdout is not None
            while "frames in" not in process.stdout.readline():  # a second has been drawn
                assert process.poll() is None
            time.sleep(moments.uniform(0, 0.3))
            process.send_signal(number)
            _out, said = process.communicate(timeout=60)
        assert process.returncode == CODES[number], said
        assert "Exception ignored" not in said
        assert "Traceback" not in said
        with Image.open(shot) as picture:
            assert picture.convert("L").getextrema()[1] > 100
        with Image.open(film) as frames:
            assert frames.size == (640, 480)


@pytest.mark.parametrize("saving", [False, True])
@pytest.mark.parametrize("number", CODES)
def test_a_signal_while_a_debugger_is_waited_for(
    number: signal.Signals, saving: bool, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    state = tmp_path / "end.state"
    more = ("--save-state", state) if saving else ()
    with started("boot", GEARS, "--headless", "--gdb", port, *more) as process:
        assert process.stderr is not None
        while "waiting for a debugger" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(number)
        _out, said = process.communicate(timeout=60)
    assert process.returncode == CODES[number], said
    assert "Traceback" not in said
    assert state.is_file() == saving


def test_a_signal_while_all_cores_sleep(tmp_path: Path) -> None:
    """With --realtime the host sleeps: it wakes up."""
    arguments = "boot", KERNELS / "mini_uart.img", "--realtime", "--serial", "pty"
    with started(*arguments) as process:
        assert process.stderr is not None
        assert "serial line" in process.stderr.readline()
        time.sleep(0.7)
        process.send_signal(signal.SIGTERM)
        _out, said = process.communicate(timeout=60)
    assert process.returncode == 143, said


AFTER_ITS_RUN = """
import signal
from vc4lab.soc.machine import Machine
whole = Machine.run
def interrupted(self, *arguments):
    whole(self, *arguments)
    signal.raise_signal(signal.SIGTERM)
Machine.run = interrupted
"""


def test_the_cards_image_is_written(tmp_path: Path) -> None:
    card = tmp_path / "card.img"
    card.write_bytes(bytes(10_000 * 512))
    arguments = "boot", KERNELS / "card.img", "--card", card, "--write-image"
    with started(*arguments, before=AFTER_ITS_RUN) as process:
        _out, said = process.communicate(timeout=60)
    assert process.returncode == 143, said
    assert "1 blocks written" in said
    assert card.read_bytes()[9 * 512 : 10 * 512] == b"!OK\n" * 128


@pytest.mark.parametrize("command", ["replay", "run"])
def test_commands_without_a_board(command: str, tmp_path: Path) -> None:
    program = tmp_path / "endless.qasm"
    program.write_text(":a\n nop\n brr -, a\n nop\n nop\n nop\n")
    job = ROOT / "tests" / "data" / "vc4-jobs" / "glmark2_ideas"
    endless = "--budget", 10**9, "--engine", "interpreter"
    arguments = {"replay": (job, "--engine", "interpreter", "--threads", 1), "run": (program, *endless)}
    for moment in (0.8, 1.1, 1.4):
        with started(command, *arguments[command]) as process:
            time.sleep(moment)
            process.send_signal(signal.SIGINT)
            _out, said = process.communicate(timeout=60)
        assert process.returncode == 130, said
        assert "Traceback" not in said


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, *arguments: object) -> None:
        self.ours, theirs = pty.openpty()
        command = [sys.executable, "-c", START, *map(str, arguments)]
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        self.text = b""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.ours)

    def wait_for(self, text: bytes) -> None:
        until = time.monotonic() + 60
        while text not in self.text:
            assert time.monotonic() < until, self.text
            self._read(1.0)

    def _read(self, seconds: float) -> bool:
        with contextlib.suppress(OSError):
            if select.select([self.ours], [], [], seconds)[0]:
                data = os.read(self.ours, 4096)
                self.text += data
                return bool(data)
        return False

    def type(self, keys: bytes) -> None:
        os.write(self.ours, keys)

    def code(self) -> int:
        until = time.monotonic() + 60
        while self.process.poll() is None:
            assert time.monotonic() < until, self.text
            self._read(0.1)
        while self._read(0.0):
            pass
        return self.process.returncode


def test_keys_that_leave() -> None:
    keys = LeaveKeys()
    assert keys.rest(b"x\x01\x01x\x01") == b"x\x01x"  # twice is one
    assert keys.rest(b"q\x01") == b"q"
    assert not keys.pressed
    assert keys.rest(b"Xy") == b"y"
    assert keys.pressed


def test_ctrl_a_x_leaves_the_serial_line() -> None:
    arguments = "boot", KERNELS / "mini_uart.img", "--serial", "stdio", "--headless"
    with Terminal(*arguments) as terminal:
        terminal.wait_for(b"?")
        terminal.type(b"\x01x")
        assert terminal.code() == 0
    assert b"left with Ctrl-A X" in terminal.text


def test_ctrl_a_x_leaves_a_program_that_never_reads() -> None:
    """More is typed than a UART's buffer holds; the program draws and looks at no key."""
    with Terminal("boot", GEARS, "--serial", "stdio", "--headless") as terminal:
        terminal.wait_for(b"gears")
        terminal.type(b"0123456789" * 10 + b"\x01X")
        assert terminal.code() == 0
    assert b"left with Ctrl-A X" in terminal.text


def test_in_a_pipe_ctrl_a_x_are_bytes_like_others() -> None:
    arguments = "boot", KERNELS / "mini_uart.img", "--serial", "stdio", "--headless"
    with started(*arguments, stdin=subprocess.PIPE) as process:
        _out, said = process.communicate("\x01x" * 3, timeout=60)
    assert "left with" not in said
