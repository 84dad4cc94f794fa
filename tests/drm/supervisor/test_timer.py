# ruff: noqa: F821, RUF059 - clients are other programs
"""The descriptor by which the supervisor wakes at a vblank, not at the next millisecond."""

import select
import time

import pytest
from tests.support.drm_client import run_client
from tests.support.supervised import need_supervisor

from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.supervisor.timer import Timer


def test_a_timer_is_readable_from_its_moment_on() -> None:
    timer = Timer()
    poller = select.poll()
    poller.register(timer.descriptor, select.POLLIN)
    assert not poller.poll(0)
    moment = time.monotonic() + 0.0503
    timer.set(moment)
    while not poller.poll(1000):
        pass
    assert time.monotonic() >= moment
    timer.set(moment)
    assert poller.poll(0), "it stays so"
    timer.set(time.monotonic() + 100)
    assert not poller.poll(0)
    timer.set(0.0)  # long ago
    assert poller.poll(60_000)
    timer.set(None)
    assert not poller.poll(0)
    timer.close()
    timer.close()


def test_the_supervisor_wakes_at_vblanks(monkeypatch: pytest.MonkeyPatch) -> None:
    need_supervisor()
    moments: set[float | None] = set()
    real = Timer.set

    def noted(self: Timer, moment: float | None) -> None:
        moments.add(moment)
        real(self, moment)

    monkeypatch.setattr(Timer, "set", noted)

    def client() -> None:
        fd = open_card()
        crtc, fb, view, pitch = show(fd)
        for number in range(3):
            flip(fd, crtc, fb, number)
            data = os.read(fd, 1024)
            seconds, micro = struct.unpack_from("<II", data, 16)
            print(seconds * 1_000_000 + micro)

    with DrmDevice(threads=1) as device:
        shown = [int(line) for line in run_client(device, client).split()]
    assert len(shown) == 3
    for vblank in shown:
        assert any(moment and abs(moment * 1e6 - vblank) < 3 for moment in moments)
    assert None in moments
