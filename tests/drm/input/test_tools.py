"""The stock tools of Debian that read input devices, where they are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest

from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.device.host import why_not

LIBINPUT = Path("/usr/libexec/libinput")
SDL = Path("/usr/libexec/installed-tests/SDL2")
TIMEOUT = 30


def run(tmp_path: Path, *program: str, keys: tuple[int, ...] = (), **environment: str) -> str:
    """What a tool prints; keys are typed when it has the keyboard for half a second."""
    if shutil.which(program[0]) is None:
        pytest.skip(f"{program[0]} is not installed")
    if why_not():
        pytest.skip(f"no supervisor here: {why_not()}")
    output = tmp_path / "output"
    with DrmDevice(threads=1, input=True) as device, output.open("wb") as file:
        source = device.input
        assert source is not None

        def play() -> None:
            until = time.monotonic() + TIMEOUT
            while time.monotonic() < until and not source.keyboard.files:
                time.sleep(0.05)
            time.sleep(0.5)
            for code in keys:
                source.key(code, True)
                source.key(code, False)
            while time.monotonic() < until and "eleased" not in output.read_text():
                time.sleep(0.05)
            device.supervisor.stop()

        thread = threading.Thread(target=play if keys else lambda: None)
        thread.start()
        device.run(
            program, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
            environment={**os.environ, **environment},
        )  # fmt: skip
        thread.join()
    return output.read_text()


def test_evtest_names_every_key(tmp_path: Path) -> None:
    shown = run(tmp_path, "timeout", "1", "evtest", "/dev/input/event0")
    if "No such file" in shown and "evtest" in shown:
        pytest.skip("evtest is not installed")
    assert 'Input device name: "vc4lab keyboard"' in shown
    assert "(KEY_A)" in shown
    assert "(REP_DELAY)" in shown


def test_libinput_lists_both_devices(tmp_path: Path) -> None:
    shown = run(tmp_path, str(LIBINPUT / "libinput-list-devices"))
    assert "vc4lab keyboard" in shown
    assert "Capabilities:     keyboard" in shown
    assert "Capabilities:     pointer" in shown


def test_libinput_reports_keys(tmp_path: Path) -> None:
    shown = run(tmp_path, str(LIBINPUT / "libinput-debug-events"), "--show-keycodes", keys=(30,))
    assert "KEY_A (30) pressed" in shown
    assert "KEY_A (30) released" in shown


def test_sdl_on_kmsdrm_receives_keys_and_text(tmp_path: Path) -> None:
    shown = run(
        tmp_path, str(SDL / "checkkeys"), keys=(30,),
        SDL_VIDEODRIVER="kmsdrm", XDG_RUNTIME_DIR=str(tmp_path),
    )  # fmt: skip
    if "Couldn't initialize SDL" in shown or "not available" in shown:
        pytest.skip(f"no SDL on kmsdrm here: {shown.strip()[:200]}")
    assert "Key pressed :  scancode 4 = A" in shown
    assert 'INPUT Text (\\x61): "a"' in shown
    assert "Key released:  scancode 4 = A" in shown
