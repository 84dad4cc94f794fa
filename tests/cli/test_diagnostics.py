"""What a user sees of a mistake: `vc4lab boot` and `vc4lab explain`."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app
from vc4lab.diagnostics import catalogue
from vc4lab.diagnostics.table import write_table

if TYPE_CHECKING:
    from click.testing import Result

KERNELS = Path(__file__).parents[1] / "soc" / "kernels"
DOCS = Path(__file__).parents[2] / "docs"
SCRIPT, MESSAGE, MAILBOX = 0x100000, 0x180000, 0x3F00B8A0
Boot = Callable[..., "Result"]


@pytest.fixture
def boot(tmp_path: Path) -> Boot:
    """`boot("script", steps, message, options…)`: the script kernel with its script after it."""

    def run(
        kernel: str, steps: list[tuple[int, int, int]], message: bytes, *options: str,
        code: ExitCode = ExitCode.OK,
    ) -> Result:  # fmt: skip
        image = (KERNELS / f"{kernel}.img").read_bytes().ljust(SCRIPT - 0x8000, b"\0")
        image += b"".join(struct.pack("<3I", *step) for step in steps)
        image = image.ljust(MESSAGE - 0x8000, b"\0") + message
        (tmp_path / "kernel7.img").write_bytes(image)
        result = CliRunner().invoke(app, ["boot", str(tmp_path), "--headless", *options])
        assert result.exit_code == code, result.output
        return result

    return run


FRAMEBUFFER = struct.pack(
    "<16I", 68, 0, 0x48003, 8, 8, 16, 8, 0x48005, 4, 4, 32, 0x40001, 8, 4, 4096, 0
) + bytes(8)
FRAME = 0x3C000000
"""Where the firmware puts it with gpu_mem=64."""
ALLOCATE = (1, MAILBOX, MESSAGE | 8), (3, MAILBOX - 8, 0xFF)
"""The message is sent, and its reply waited for."""


def test_a_guard_zone_stops_a_strict_run(boot: Boot) -> None:
    store = (1, FRAME + 16 * 8 * 4, 1)
    free = boot("script", [*ALLOCATE, store], FRAMEBUFFER)
    assert "SOC-086" not in free.output
    result = boot("script", [*ALLOCATE, store], FRAMEBUFFER, "--strict", code=ExitCode.STRICT_STOP)
    assert "the CPU writes 0 bytes past the end of the framebuffer" in result.output
    assert "stopped by --strict at SOC-086" in result.output


def test_both_readings_of_a_picture(boot: Boot, tmp_path: Path) -> None:
    shot = tmp_path / "a.png"
    store = (1, FRAME, 0x000000FF)
    result = boot("script", [*ALLOCATE, store], FRAMEBUFFER, "--both-orders", "--screenshot", str(shot))
    assert "SOC-084" in result.output
    with Image.open(shot) as image:
        assert image.size == (32, 8)
        both = {image.getpixel((0, 0)), image.getpixel((16, 0))}
        assert both == {(255, 0, 0), (0, 0, 255)}


def test_caches(boot: Boot) -> None:
    message = struct.pack("<7I", 28, 0, 0x10002, 4, 0, 0, 0)
    steps = [(1, 0x200000, 28), (1, MAILBOX, 0x200008)]
    assert "CACHE-001" not in boot("caches", steps, message).output
    result = boot("caches", steps, message, "--caches", "check")
    assert "CACHE-001 [caches] at 0x00200000: the firmware reads a mailbox message" in result.output
    boot("caches", steps, message, "--caches", "some", code=ExitCode.BAD_INPUT)


@pytest.mark.parametrize("code", ["SOC-086", "CACHE-001", "CLE-022", "MEM-002"])
def test_codes_are_explained(code: str) -> None:
    result = CliRunner().invoke(app, ["explain", code])
    assert result.exit_code == 0
    assert catalogue()[code].title in result.output


def test_the_page_of_all_codes_is_what_the_catalogue_says() -> None:
    """Write it anew with `python -m vc4lab.diagnostics.table > docs/diagnostics.md`."""
    assert (DOCS / "diagnostics.md").read_text(encoding="utf-8") == write_table()
