"""`vc4lab boot` with a debugger, traces, serial lines and saved states."""

import io
import os
import socket
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from PIL import Image
from tests.support.elf import make_elf
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app
from vc4lab.cli.serial_ends import TcpPort
from vc4lab.cli.serial_line import SerialLine
from vc4lab.cli.session import run_session
from vc4lab.cli.settings import PictureOptions, Settings
from vc4lab.soc.devices.serial.serial import SerialPort

KERNELS = Path(__file__).parent.parent / "soc" / "kernels"
HELLO = KERNELS / "hello.img"


def vc4lab(*arguments: object, code: ExitCode = ExitCode.OK, **options: object):
    result = CliRunner().invoke(app, [str(a) for a in arguments], **options)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def test_gdb_port():
    assert "target remote :" in vc4lab("boot", HELLO, "--gdb", 0, "--no-gdb-wait").output
    vc4lab("boot", HELLO, "--gdb", 99999, code=ExitCode.BAD_INPUT)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert "CLI-004" in vc4lab("boot", HELLO, "--gdb", port, code=ExitCode.BAD_INPUT).output


def test_trace(tmp_path):
    assert "write  uart0.DR" in vc4lab("boot", HELLO, "--trace", "mmio").output
    log = tmp_path / "log.txt"
    result = vc4lab("boot", HELLO, "--trace", "all", "--trace-to", log)
    assert "uart0" not in result.output
    assert "uart0.FR" in log.read_text()
    bad = vc4lab("boot", HELLO, "--trace", "mmio,nonsense", code=ExitCode.BAD_INPUT)
    assert "nonsense" in bad.output
    nowhere = tmp_path / "no" / "log.txt"
    vc4lab("boot", HELLO, "--trace", "all", "--trace-to", nowhere, code=ExitCode.OUTPUT)


def test_symbols(tmp_path):
    elf = tmp_path / "program.elf"
    elf.write_bytes(make_elf({"halt": (0x8028, 4)}, {0x8000: HELLO.read_bytes()}))
    result = vc4lab("boot", HELLO, "--symbols", elf, "--frames", 1, code=ExitCode.GUEST_HANG)
    assert "0x00008028 <halt>" in result.output
    missing = vc4lab("boot", HELLO, "--symbols", tmp_path / "no.elf", code=ExitCode.BAD_INPUT)
    assert "BOOT-030" in missing.output


ECHO = KERNELS / "mini_uart.img"


class Background:
    """`vc4lab boot` in a process of its own, with its lines on standard error."""

    def __init__(self, *arguments: object, **options: object) -> None:
        code = "import sys; from vc4lab.cli.main import run; sys.argv[0] = 'vc4lab'; run()"
        command = [sys.executable, "-c", code, "boot", *map(str, arguments)]
        options.setdefault("stdin", subprocess.DEVNULL)
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
        )

    def __enter__(self) -> subprocess.Popen[str]:
        return self.process

    def __exit__(self, *_details: object) -> None:
        self.process.kill()
        self.process.communicate()


def test_serial_line_on_a_port():
    with Background(ECHO, "--serial", "tcp:0") as process:
        port = int(process.stderr.readline().rsplit(" ", 1)[1])
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            assert client.recv(1) == b"?"
            client.sendall(b"x")
            assert client.recv(1) == b"x"
        assert process.wait(60) == 0


def test_serial_line_on_a_pseudo_terminal():
    with Background(ECHO, "--serial", "pty") as process:
        name = process.stderr.readline().split()[-1]
        terminal = os.open(name, os.O_RDWR | os.O_NOCTTY)
        try:
            assert os.read(terminal, 1) == b"?"
            os.write(terminal, b"x")
            assert os.read(terminal, 1) == b"x"
        finally:
            os.close(terminal)
        assert process.wait(60) == 0


def test_keys_arrive_at_once_and_the_terminal_is_given_back():
    ours, theirs = os.openpty()
    before = termios.tcgetattr(theirs)
    with Background(ECHO, "--serial", "stdio", stdin=theirs) as process:
        assert process.stdout.read(1) == "?"
        assert not termios.tcgetattr(theirs)[3] & (termios.ICANON | termios.ECHO)
        os.write(ours, b"x")
        assert process.stdout.read(1) == "x"
        assert process.wait(60) == 0
    assert termios.tcgetattr(theirs) == before
    os.close(ours)
    os.close(theirs)


def test_a_program_waits_in_vain_when_the_keyboard_has_ended():
    with Background(ECHO, "--serial", "stdio") as process:
        assert process.wait(60) == ExitCode.GUEST_HANG
        assert "SOC-040" in process.stderr.read()


@pytest.mark.parametrize(
    ("encoding", "text"), [("utf-8", "20 °C…\ufffd!"), ("latin-1", "20 °C??!"), ("ascii", "20 ?C??!")]
)
def test_characters_of_several_bytes_are_shown(monkeypatch, encoding, text):
    """Each became a question mark, in a Debian's log as well."""
    shown = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", shown)
    line = SerialLine(None)
    for byte in "20 °C…".encode() + b"\xff!":
        line.port.send(byte)
    shown.flush()
    assert shown.buffer.getvalue().decode(encoding) == text


def test_bad_serial_lines(tmp_path):
    for text in ("tcp:", "tcp:x", "tcp:99999", "tcp:example.org:80"):
        vc4lab("boot", HELLO, "--serial", text, code=ExitCode.BAD_INPUT)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = vc4lab("boot", HELLO, "--serial", f"tcp:{port}", code=ExitCode.BAD_INPUT)
        assert "CLI-004" in result.output
    vc4lab("boot", HELLO, "--serial", f"file:{tmp_path / 'log'}")
    assert (tmp_path / "log").read_text() == "hello from the ARM\n"


def test_a_client_that_never_reads():
    port = TcpPort(0)
    with socket.create_connection(("127.0.0.1", port.port), timeout=60):
        for _ in range(300):
            port.send(bytes(20_000))
            port.receive()
        port.close()


def test_window_without_a_display(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    assert "no display" in vc4lab("boot", HELLO, "--window").output


def test_closing_the_window_ends_the_run(monkeypatch):
    pygame = pytest.importorskip("pygame", reason="pygame-ce is not installed")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    pygame.display.init()
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    card = Path(__file__).parents[2] / "examples" / "naan" / "sdcard"
    assert "the window was closed" in vc4lab("boot", card, "--window").output


def test_every(tmp_path):
    card = Path(__file__).parents[2] / "examples" / "naan" / "sdcard"
    for every, frames in ((2, 3), (3, 2)):
        film = tmp_path / f"{every}.webp"
        vc4lab("boot", card, "--frames", 6, "--record", film, "--every", every, "--headless")
        with Image.open(film) as image:
            assert image.n_frames == frames


def test_states(tmp_path):
    card = Path(__file__).parents[2] / "examples" / "triangle" / "sdcard"
    state, shots = tmp_path / "state", [tmp_path / "1.png", tmp_path / "2.png"]
    saved = vc4lab("boot", card, "--frames", 1, "--save-state", state, "--screenshot", shots[0])
    assert "state: " in saved.output
    vc4lab("boot", card, "--load-state", state, "--seconds", 0.1, "--screenshot", shots[1])
    assert shots[0].read_bytes() == shots[1].read_bytes()
    bad = vc4lab("boot", HELLO, "--load-state", state, code=ExitCode.BAD_INPUT)
    assert "CLI-005" in bad.output
    missing = tmp_path / "no"
    assert "CLI-005" in vc4lab("boot", HELLO, "--load-state", missing, code=2).output


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("option", ["--serial", "--trace-to"])
def test_a_disk_that_is_full(option):
    words = ["--trace", "mmio"] if option == "--trace-to" else []
    result = vc4lab("boot", HELLO, *words, option, "/dev/full", code=ExitCode.OUTPUT)
    assert "CLI-001: /dev/full" in result.output
    assert "the program has ended" in result.output


class EndedProgram:
    """A guest whose program has ended as soon as the machine runs."""

    def __init__(self, code: int) -> None:
        self.code = code
        self.port = SerialPort(lambda data: None)
        self.error = None

    def begin(self, machine) -> None:
        machine.end("the program has ended")

    def leave_by(self, leaves) -> bool:
        return False

    def look(self) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.mark.parametrize(("own", "code"), [(0, ExitCode.GUEST_HANG), (5, ExitCode.OK)])
def test_a_program_in_the_guest_that_ends_before_its_frames(own, code, capsys):
    """A code of its own goes first; `vc4lab linux` gives it."""
    settings = Settings(HELLO, pictures=PictureOptions(headless=True), frames=7, serial="none")
    assert run_session(settings, EndedProgram(own)) is code
    assert "the program ended after 0 of 7 frames" in capsys.readouterr().err
