"""Clients of ours in Debian, with the real vc4.ko: a picture that TXP writes, and a gamma ramp."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from tests.linux.guest_programs import send

from vc4lab.linux.running import Linux


def test_the_composed_picture_is_written_back(linux: Callable[..., Linux], tmp_path: Path) -> None:
    """Two planes, one over the other, of which the client compares each pixel."""
    guest = linux()
    done = guest.run(send(guest, "writeback", tmp_path))
    assert (done.code, done.output) == (0, "right\n")
    codes = {item.code for item in guest.machine.reporter.items}
    assert not codes & {"SOC-096", "SOC-097"}


def test_a_gamma_ramp_changes_the_picture(linux: Callable[..., Linux], tmp_path: Path) -> None:
    """The console with noise on it, and the same with a ramp that inverts."""
    guest = linux()
    program = send(guest, "gamma", tmp_path)
    noise = "head -c 2000000 /dev/urandom > /dev/fb0; sleep 0.1"
    assert guest.run(f"echo 0 > /sys/class/graphics/fbcon/cursor_blink; {noise}").code == 0
    before = np.asarray(guest.screen.image)
    assert len(np.unique(before)) > 64  # 16 bits a pixel
    assert guest.run(f"{program} & sleep 0.5").code == 0
    assert np.array_equal(np.asarray(guest.screen.image), 255 - before)
