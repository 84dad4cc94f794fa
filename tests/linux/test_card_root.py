"""Which partition is taken as root, and what is said of cards that have none."""

import contextlib
import random
import struct
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from vc4lab.cli import linux as command
from vc4lab.cli import session
from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app
from vc4lab.cli.settings import Settings
from vc4lab.drm.setup.places import Brought, find_brought
from vc4lab.linux.boots import LinuxBoot, LinuxPlan
from vc4lab.linux.card_root import NoRoot, root_of
from vc4lab.linux.init import NO_SHELL
from vc4lab.soc.devices.serial.serial import SerialPort
from vc4lab.soc.machine import Machine, Stop
from vc4lab.soc.options import MachineOptions

EXT4 = bytes(0x438) + b"\x53\xef" + bytes(0x400)
FAT32 = bytes(0x52) + b"FAT32   " + bytes(1000)
OTHER = bytes(2048)


def table(*kinds: int) -> bytes:
    """A boot sector whose partitions are 8 sectors long."""
    rows = [struct.pack("<B3xB3xII", 0, kind, 8 + 8 * n, 8) for n, kind in enumerate(kinds)]
    return bytes(446) + b"".join(rows).ljust(64, b"\0") + b"\x55\xaa"


def image(tmp_path: Path, *parts: bytes) -> Path:
    path = tmp_path / "card.img"
    path.write_bytes(b"".join(part.ljust(4096, b"\0") for part in parts))
    return path


def test_the_root_is_found(tmp_path: Path) -> None:
    assert root_of(image(tmp_path, table(12, 0x83), FAT32, EXT4)) == "/dev/mmcblk0p2"
    assert root_of(image(tmp_path, table(0x82, 12, 0x83), OTHER, FAT32, OTHER)) == "/dev/mmcblk0p2"
    assert root_of(image(tmp_path, EXT4)) == "/dev/mmcblk0"
    assert root_of(tmp_path) == "/dev/mmcblk0p1"


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ((b"",), "no ext4 and no FAT partition"),
        ((table(0x83), OTHER), "no ext4 and no FAT partition"),
        ((table(0xEE), EXT4), "has a GUID partition table"),
        ((table(0x83)[:300],), "no ext4 and no FAT partition"),
    ],
)
def test_no_root(tmp_path: Path, parts: tuple[bytes, ...], text: str) -> None:
    with pytest.raises(NoRoot, match=text):
        root_of(image(tmp_path, *parts))


def test_damaged_tables_are_read_to_an_end(tmp_path: Path) -> None:
    random.seed(14)
    for _ in range(200):
        head = bytearray(table(12, 0x83, 0x83, 5))
        for _byte in range(8):
            head[random.randrange(440, 512)] = random.randrange(256)
        path = image(tmp_path, bytes(head), FAT32, EXT4)
        with contextlib.suppress(NoRoot):
            assert root_of(path).startswith("/dev/mmcblk0")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--card", "no such card"), "no such card"),
        (("--card", "/dev/null"), "is neither a folder nor a file"),
        (("--write-image",), "there is no --card"),
        (("--card", "/", "--", "true"), "--card: a program runs in the root of --setup only"),
    ],
)
def test_what_is_said(arguments: tuple[str, ...], text: str) -> None:
    result = CliRunner().invoke(app, ["linux", *arguments])
    assert result.exit_code == ExitCode.BAD_INPUT
    assert text in result.output
    assert "Traceback" not in result.output


def started(card: Path, append: str) -> tuple[Machine, SerialPort]:
    """A Debian kernel whose root cannot be mounted."""
    brought = find_brought()
    if brought is None:
        pytest.skip("vc4lab linux --setup has not been run")
    boot = LinuxBoot(brought, LinuxPlan(append=f"root=/dev/mmcblk0 {append}"))
    boot.make_root()
    port = SerialPort()
    port.attended = True
    options = MachineOptions("pi3", card=str(card), extras=boot.extras)
    return Machine(boot.kernel.image, serial=port, options=options), port


def test_the_shell_after_a_root_that_cannot_be_mounted_takes_commands(tmp_path: Path) -> None:
    """It was the host's listener, which showed nothing of what was typed and did nothing."""
    machine, port = started(image(tmp_path, EXT4, bytes(1 << 20)), "")

    def wait(text: str) -> None:
        while text not in port.text:
            assert machine.run(seconds=0.1).reason is Stop.SECONDS, port.text[-2000:]
            assert machine.seconds < 60, port.text[-2000:]

    wait("vc4lab: /dev/mmcblk0 cannot be mounted")
    wait("a shell in the RAM disk follows; exit halts\n")
    wait("# ")
    port.type("echo $((6 * 7))\r")
    wait("echo $((6 * 7))\n42\n")
    port.type("exit\r")
    while machine.run(seconds=1).reason is Stop.SECONDS:
        assert machine.seconds < 90
    assert "System halted" in port.text


def test_without_a_terminal_it_is_the_end(tmp_path: Path) -> None:
    """A shell that waits for ever would be a hang."""
    machine, port = started(image(tmp_path, EXT4, bytes(1 << 20)), NO_SHELL)
    port.attended = False
    assert machine.run().reason is Stop.HANG
    assert "without a terminal, nothing can go on" in port.text


@pytest.mark.parametrize("terminal", [True, False])
def test_the_kernel_is_told_whether_there_is_a_terminal(
    brought: Brought, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    kept: list[Settings] = []
    monkeypatch.setattr(session, "run_session", lambda settings: kept.append(settings) or 0)
    stdin = SimpleNamespace(isatty=lambda: terminal)
    monkeypatch.setattr(command, "sys", SimpleNamespace(stdin=stdin))
    card = image(tmp_path, EXT4)
    result = CliRunner().invoke(app, ["linux", "--card", str(card), "--initrd", str(card)])
    assert result.exit_code == 0, result.output
    extras = kept[0].machine.extras
    assert extras is not None
    assert extras.command_line is not None
    assert (NO_SHELL in extras.command_line.split()) == (not terminal)
