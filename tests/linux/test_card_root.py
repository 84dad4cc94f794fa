"""Which partition is taken as root, and what is said of cards that have none."""

from __future__ import annotations

import contextlib
import random
import struct
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app
from vc4lab.linux.card_root import NoRoot, root_of

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
