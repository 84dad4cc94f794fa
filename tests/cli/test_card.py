"""`vc4lab boot` with an SD card: what it is, and what is written to it."""

import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app

KERNEL = Path(__file__).parent.parent / "soc" / "kernels" / "card.img"
SIZE = 10_000 * 512


def vc4lab(*arguments: object, code: ExitCode = ExitCode.OK):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


@pytest.fixture
def image(tmp_path):
    path = tmp_path / "card.img"
    content = bytearray(SIZE)
    content[8192 * 512 : 8192 * 512 + 4] = b"disk"
    path.write_bytes(content)
    return path


def test_a_folder_is_its_own_card(tmp_path):
    shutil.copy(KERNEL, tmp_path / "kernel7.img")
    before = sorted(tmp_path.iterdir())
    assert "V!OK" in vc4lab("boot", tmp_path).output
    assert sorted(tmp_path.iterdir()) == before
    result = vc4lab("boot", tmp_path, "--write-image", code=ExitCode.BAD_INPUT)
    assert "CLI-006" in result.output
    assert "is a folder" in result.output


def test_a_bare_image_has_no_card():
    assert "SOC-060" in vc4lab("boot", KERNEL, "--seconds", 0.1).output
    assert "CLI-006" in vc4lab("boot", KERNEL, "--write-image", code=ExitCode.BAD_INPUT).output


def test_writes_stay_in_memory(image):
    before = image.read_bytes()
    assert "disk!OK" in vc4lab("boot", KERNEL, "--card", image).output
    assert image.read_bytes() == before


def test_write_image(image):
    before = image.read_bytes()
    result = vc4lab("boot", KERNEL, "--card", image, "--write-image")
    assert f"1 blocks written to {image}" in result.output.replace("\n", "")
    after = image.read_bytes()
    assert after[9 * 512 : 10 * 512] == b"!OK\n" * 128
    assert after[: 9 * 512] + bytes(512) + after[10 * 512 :] == before


def test_a_hang_loses_nothing(image, tmp_path):
    kernel = tmp_path / "kernel.img"
    kernel.write_bytes(KERNEL.read_bytes().replace(bytes.fromhex("80000cf1"), bytes(4)))
    arguments = kernel, "--card", image, "--write-image", "--frames", 1
    vc4lab("boot", *arguments, code=ExitCode.GUEST_HANG)
    assert image.read_bytes()[9 * 512 : 10 * 512] == b"!OK\n" * 128


def test_states_with_a_card(image, tmp_path):
    state = tmp_path / "state"
    vc4lab("boot", KERNEL, "--card", image, "--seconds", 2e-4, "--save-state", state)
    before = image.read_bytes()
    vc4lab("boot", KERNEL, "--card", image, "--load-state", state, "--write-image")
    assert image.read_bytes() != before


def test_a_card_that_is_not_there(tmp_path):
    result = vc4lab("boot", KERNEL, "--card", tmp_path / "nothing", code=ExitCode.BAD_INPUT)
    assert "BOOT-022" in result.output
    os.mkfifo(tmp_path / "pipe")
    result = vc4lab("boot", KERNEL, "--card", tmp_path / "pipe", code=ExitCode.BAD_INPUT)
    assert "BOOT-022" in result.output


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_image_that_may_not_be_written(image):
    image.chmod(0o444)
    result = vc4lab("boot", KERNEL, "--card", image, "--write-image", code=ExitCode.OUTPUT)
    assert "CLI-001" in result.output


def test_an_image_that_disappears(image, monkeypatch):
    def full(_slot: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("vc4lab.soc.media.card_slot.CardSlot.save", full)
    result = vc4lab("boot", KERNEL, "--card", image, "--write-image", code=ExitCode.OUTPUT)
    assert "No space left" in result.output
