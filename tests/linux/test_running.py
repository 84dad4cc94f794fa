"""Programs in a booted Linux from Python, with a machine that only answers."""

from types import SimpleNamespace
from typing import Any

import pytest

from vc4lab.linux.running import Linux, LinuxStopped
from vc4lab.soc.devices.serial.serial import SerialPort
from vc4lab.soc.machine import RunResult, Stop

Script = dict[str, list[str | int]]


class Answering:
    """Takes commands as the guest does; a script says what comes back, step by step.

    A text is printed, a number is the exit code, "frame" a picture.
    """

    def __init__(self, script: Script, port: SerialPort) -> None:
        self.script, self.port = script, port
        self.seconds = 0.0
        self.frames = SimpleNamespace(count=0, listeners=[])
        self.typed = b""
        self.stops: RunResult | None = None
        self._steps: list[str | int] = []
        self._command = b""

    def run(self, frames: int | None = None, seconds: float = 0.0) -> RunResult:
        """A step of the script."""
        self._take()
        self.seconds += seconds
        step = self._steps.pop(0) if self._steps else ""
        if step == "frame":
            self.frames.count += 1
        elif isinstance(step, int):
            self._print(f"\033_vc4lab exit {step}\033\\")
        else:
            self._print(step)
        return self.stops or RunResult(Stop.SECONDS, self.frames.count, self.seconds, "")

    def _take(self) -> None:
        while self.port.pending:
            line = bytearray()
            while self.port.pending and not line.endswith(b"\n"):
                line.append(self.port.receive())
            if line == b"!\n":
                command = self._command.decode().removeprefix("stty -echo -onlcr; ")
                self._steps, self._command = list(self.script[command]), b""
            elif line.startswith(b"+"):
                self._command += line[1:-1]
            else:
                self.typed += line
                self._steps = list(self.script[line.decode()])

    def _print(self, text: str) -> None:
        for byte in text.encode():
            self.port.send(byte)


def answering(script: Script) -> tuple[Linux, Answering]:
    port = SerialPort()
    machine = Answering(script, port)
    fake: Any = machine
    return Linux(fake, port), machine


def test_output_and_exit_code() -> None:
    linux, _machine = answering({"ls": ["a\r\n", "b\n", 0], "exec 'a b' '$x'": [3]})
    done = linux.run("ls")
    assert (done.code, done.output) == (0, "a\nb\n")
    assert linux.run(["a b", "$x"]).code == 3
    assert not linux.is_running


def test_pictures_that_are_waited_for() -> None:
    script: Script = {"exec cube": ["hi", *["frame"] * 5], "\x03": ["bye", 130]}
    linux, machine = answering(script)
    done = linux.run(["cube"], frames=3)
    assert (done.code, done.output, machine.frames.count) == (None, "hi", 3)
    with pytest.raises(LinuxStopped, match="running already"):
        linux.run("ls")
    assert linux.wait(frames=2).code is None
    done = linux.interrupt()
    assert (done.code, done.output, machine.typed) == (130, "hibye", b"\x03")


def test_a_program_that_ends_before_its_pictures() -> None:
    linux, _machine = answering({"exec cube": ["frame", "no display", 1]})
    done = linux.run(["cube"], frames=3)
    assert (done.code, done.output) == (1, "no display")


def test_what_does_not_end_is_said() -> None:
    linux, machine = answering({"yes": ["y\n"]})
    with pytest.raises(LinuxStopped, match=r"within 1 s of guest time; the output was: y"):
        linux.run("yes", seconds=1)
    assert 1 <= machine.seconds < 1.1
    machine.stops = RunResult(Stop.CRASH, 0, 0.0, "the kernel has panicked")
    with pytest.raises(LinuxStopped, match="panicked"):
        linux.wait()
