"""Debian's Linux itself, where `vc4lab linux --setup` has been run; skipped elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pytest

from vc4lab import DrmDevice
from vc4lab.drm.device.host import why_not
from vc4lab.drm.kms.modes import parse_modes
from vc4lab.linux.running import Linux

Boot = Callable[..., Linux]


def test_programs_run_one_after_another(linux: Boot) -> None:
    assert linux().run("uname -m").output == "aarch64\n"
    assert linux().run(["sh", "-c", "exit 7"]).code == 7
    done = linux().run("modetest -M vc4 -c")
    assert "1920x1080" in done.output
    assert done.code == 0


def test_the_cube_has_the_bytes_of_the_virtual_device(linux: Boot) -> None:
    """vc4.ko submits the jobs here, the virtual device's own half of the driver there."""
    guest = linux()
    pictures = []
    guest.machine.frames.listeners.insert(
        0, lambda _count: pictures.append(np.asarray(guest.screen.image))
    )
    assert guest.run(["kmscube"], frames=8).code is None
    guest.interrupt()
    if why_not():
        pytest.skip(f"programs cannot run on a virtual GPU here: {why_not()}")
    quiet, _other = os.pipe()
    kept = os.dup(0)
    os.dup2(quiet, 0)  # kmscube ends when there is something to read
    try:
        with DrmDevice(modes=parse_modes("1920x1080"), paced=False) as device:
            wanted = np.asarray(device.run(["kmscube"], frames=3, arm64=True).screen.image)
    finally:
        os.dup2(kept, 0)
    assert any(np.array_equal(picture, wanted) for picture in pictures)
