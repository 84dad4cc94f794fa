"""Debian's arm64 programs with Mesa's vc4 under qemu, where `vc4lab drm --setup` brought them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.supervised import need_supervisor

from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.setup.places import Brought, find_brought


@pytest.fixture
def arm64() -> Brought:
    """What is there."""
    need_supervisor()
    found = find_brought()
    if found is None:
        pytest.skip("no arm64 driver: vc4lab drm --setup brings it")
    return found


@pytest.fixture
def only_the_host() -> None:
    """Here it is about what was brought."""


def run(device: DrmDevice, arm64: Brought, *program: str, **options: Any) -> int:
    return device.run(program, arm64=arm64.suite, **options)


def test_the_card_is_found(device: DrmDevice, arm64: Brought, tmp_path: Path) -> None:
    with open(tmp_path / "out", "w+") as out:
        assert run(device, arm64, "drm_info", stdout=out) == 0
        out.seek(0)
        text = out.read()
    assert "Driver: vc4 (Broadcom VC4 graphics)" in text
    assert "Device: platform brcm,bcm2835-vc4" in text


def test_mesas_driver_draws(device: DrmDevice, arm64: Brought) -> None:
    read, write = os.pipe()  # kmscube ends when something is typed
    try:
        for mode in ([], ["-A"]):
            before = device.gpu.jobs
            run(
                device, arm64, "sh", "-c", f"kmscube {' '.join(mode)}",
                frames=5, stdin=read, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            assert device.gpu.jobs >= before + 5
            picture = device.screenshot()
            assert picture is not None
            colours = picture.convert("RGB").resize((64, 36)).getcolors(64 * 36)
            assert colours is not None
            assert len(colours) > 100
    finally:
        os.close(read)
        os.close(write)


def test_as_people_type_it(arm64: Brought, tmp_path: Path) -> None:
    picture = tmp_path / "build.png"
    result = subprocess.run(
        [
            *(sys.executable, "-m", "vc4lab", "drm", "--suite", arm64.suite, "--frames", "3"),
            *("--screenshot", str(picture), "--", "glmark2-es2-drm", "-b", "build"),
        ],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert picture.stat().st_size > 1000
