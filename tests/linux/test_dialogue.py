"""Output and answers on the serial line, and the guest's half of it on the host's own shell."""

import os
import pty
import select
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from vc4lab.linux.dialogue import Dialogue
from vc4lab.linux.init import LISTENER
from vc4lab.soc.devices.serial.serial import SerialPort

READY, EXIT_7 = b"\033_vc4lab ready\033\\", b"\033_vc4lab exit 7\033\\"


class Heard:
    """A dialogue, and what it gives out."""

    def __init__(self) -> None:
        self.text = bytearray()
        self.answers = 0
        self.dialogue = Dialogue(self.text.extend, self._answered)

    def _answered(self) -> None:
        self.answers += 1


def test_answers_do_not_show() -> None:
    heard = Heard()
    heard.dialogue.feed(b"one" + READY + b"two" + EXIT_7 + b"three")
    assert heard.text == b"onetwothree"
    assert (heard.dialogue.ready, heard.dialogue.code, heard.answers) == (True, 7, 2)


@pytest.mark.parametrize(
    "other", [b"\033[31mred\033[0m", b"\033\033[H", b"\033_vc4lab " + b"long" * 50, b"\033_vc4la\033_vc4la."]
)
def test_everything_else_does(other: bytes) -> None:
    heard = Heard()
    heard.dialogue.feed(other + READY)
    assert heard.text == other
    assert heard.dialogue.ready


@pytest.mark.parametrize("words", [b"exit", b"exit -1", b"exit x", b"", b"read\xff"])
def test_strange_answers_change_nothing(words: bytes) -> None:
    heard = Heard()
    heard.dialogue.feed(b"\033_vc4lab " + words + b"\033\\")
    assert (heard.dialogue.ready, heard.dialogue.code, heard.answers) == (False, None, 0)


def test_a_long_command_is_sent_in_lines_that_a_terminal_takes() -> None:
    port = SerialPort()
    Heard().dialogue.send(port, "echo " + "x" * 3000 + "\necho y")
    raw = bytes(port.receive() for _byte in range(port.pending))
    lines = raw.split(b"\n")
    assert max(map(len, lines)) <= 501
    assert lines[-4:] == [b"/", b"+echo y", b"!", b""]
    assert b"".join(line[1:] for line in lines[:-4]) == b"echo " + b"x" * 3000


def test_a_command_that_the_serial_line_cannot_keep_is_refused() -> None:
    """It would lose its end, with which the guest begins, and never come to one."""
    heard, port = Heard(), SerialPort()
    heard.dialogue.ready = True
    for command in ("x" * 65_500, "\n" * 40_000, "\x03" * 33_000, "a\0b"):
        with pytest.raises(ValueError, match="the command"):
            heard.dialogue.send(port, command)
    assert heard.dialogue.ready
    assert not port.pending
    heard.dialogue.send(port, "x" * 65_000)
    raw = bytes(port.receive() for _byte in range(port.pending))
    assert raw.endswith(b"x\n!\n")


class Shell:
    """The listener under the host's shell, on a pseudo terminal."""

    def __init__(self, folder: Path) -> None:
        tools = folder / "bin"
        tools.mkdir()
        (tools / "busybox").write_text('#!/bin/sh\nexec "$@"\n')
        (tools / "busybox").chmod(0o755)
        script = folder / "listen"
        script.write_bytes(LISTENER)
        self.heard = Heard()
        self.ours, theirs = pty.openpty()
        path = f"{tools}:{os.environ['PATH']}"
        self.process = subprocess.Popen(
            ["setsid", "-c", "sh", str(script)], stdin=theirs, stdout=theirs, stderr=theirs,
            env={**os.environ, "PATH": path},
        )  # fmt: skip
        os.close(theirs)

    def wait(self, text: bytes = b"") -> None:
        """Until it is ready for a command, or has printed a text."""
        deadline = time.monotonic() + 60
        while not (text in self.heard.text if text else self.heard.dialogue.ready):
            assert time.monotonic() < deadline, bytes(self.heard.text)
            if select.select([self.ours], [], [], 0.1)[0]:
                self.heard.dialogue.feed(os.read(self.ours, 4096))

    def run(self, command: str) -> tuple[int | None, str]:
        """Exit code and output."""
        port = SerialPort()
        self.heard.text.clear()
        self.heard.dialogue.send(port, command)
        os.write(self.ours, bytes(port.receive() for _byte in range(port.pending)))
        self.wait()
        return self.heard.dialogue.code, self.heard.text.decode().replace("\r", "")

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()
        os.close(self.ours)


@pytest.mark.skipif(not (shutil.which("stty") and shutil.which("setsid")), reason="stty or setsid is missing")
def test_the_listener_runs_one_command_after_another(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    try:
        shell.wait()
        assert shell.run("echo one; exit 3") == (3, "one\n")
        quoted = shlex.join(["printf", "%s|", "a b", "$HOME", "'", "\\", "*"])
        assert shell.run(f"exec {quoted}") == (0, "a b|$HOME|'|\\|*|")
        assert shell.run("exec /no/program 2>/dev/null")[0] in (126, 127)
        assert shell.run("printf %s " + "x" * 2000) == (0, "x" * 2000)
        assert shell.run("printf %s " + "x" * 20_000 + " | wc -c") == (0, "20000\n")
        script = "if true\nthen\n  cat <<E | wc -c\n1\n\n3\nE\nfi\necho 'a\nb'"
        assert shell.run(script) == (0, "5\na\nb\n")
        keys = "".join(map(chr, (*range(1, 10), *range(11, 32), 127)))
        assert shell.run(shlex.join(["printf", "%s", keys]) + " | wc -c") == (0, "31\n")
        assert shell.run("kill -9 $$") == (137, "Killed\n") or shell.heard.dialogue.code == 137
        assert shell.run("kill -INT $$")[0] == 130
        assert shell.run("true") == (0, "")
        os.write(shell.ours, b"\x03")  # nothing runs
        assert shell.run("true") == (0, "")
        shell.heard.dialogue.send(port := SerialPort(), "echo begun; exec sleep 60")
        os.write(shell.ours, bytes(port.receive() for _byte in range(port.pending)))
        shell.heard.text.clear()
        shell.wait(b"begun")
        os.write(shell.ours, b"\x03")
        shell.wait()
        assert shell.heard.dialogue.code == 130
        assert shell.run("echo still here") == (0, "still here\n")
    finally:
        shell.close()
