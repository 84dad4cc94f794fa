"""The stock tools of Debian that read input devices, where they are installed."""

import os
import subprocess
import threading
import time
from pathlib import Path

from tests.support.host_tools import need, need_library
from tests.support.supervised import need_supervisor

from vc4lab.drm.device.device import DrmDevice

LISTS = "/usr/libexec/libinput/libinput-list-devices"
REPORTS = "/usr/libexec/libinput/libinput-debug-events"
CHECKKEYS = "/usr/libexec/installed-tests/SDL2/checkkeys"
TIMEOUT = 60


def run(tmp_path: Path, *program: str, keys: tuple[int, ...] = (), **environment: str) -> str:
    """What a tool prints; keys are typed when it has the keyboard for half a second."""
    need_supervisor()
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
    need("evtest")
    shown = run(tmp_path, "timeout", "1", "evtest", "/dev/input/event0")
    assert 'Input device name: "vc4lab keyboard"' in shown
    assert "(KEY_A)" in shown
    assert "(REP_DELAY)" in shown


def test_libinput_lists_both_devices(tmp_path: Path) -> None:
    need(LISTS)
    shown = run(tmp_path, LISTS)
    assert "vc4lab keyboard" in shown
    assert "Capabilities:     keyboard" in shown
    assert "Capabilities:     pointer" in shown


def test_libinput_reports_keys(tmp_path: Path) -> None:
    need(REPORTS)
    shown = run(tmp_path, REPORTS, "--show-keycodes", keys=(30,))
    assert "KEY_A (30) pressed" in shown
    assert "KEY_A (30) released" in shown


def test_sdl_on_kmsdrm_receives_keys_and_text(tmp_path: Path) -> None:
    need(CHECKKEYS)
    for name in ("drm", "gbm", "EGL"):
        need_library(name)
    shown = run(
        tmp_path, CHECKKEYS, keys=(30,),
        SDL_VIDEODRIVER="kmsdrm", XDG_RUNTIME_DIR=str(tmp_path),
    )  # fmt: skip
    assert "Key pressed :  scancode 4 = A" in shown
    assert 'INPUT Text (\\x61): "a"' in shown
    assert "Key released:  scancode 4 = A" in shown
