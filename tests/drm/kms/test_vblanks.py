# ruff: noqa: F821, RUF059 - clients are other programs
"""Vblanks that are seen late, since the host was busy, and those of a CRTC that is switched off."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.drm_client import run_client

from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.kms import legacy, screen
from vc4lab.drm.kms.legacy import Legacy
from vc4lab.drm.kms.screen import Flip, Screen, Waiter
from vc4lab.drm.objects.fences import Fence
from vc4lab.drm.uapi.results import Later

PERIOD = 1 / 60


class Clock:
    """time.monotonic as the test says it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


class Listens:
    """An open file that notes its events: kind, user, moment, sequence."""

    def __init__(self) -> None:
        self.events: list[tuple[int, int, float, int]] = []

    def add_event(self, kind: int, user: int, moment: float, sequence: int, crtc: int) -> None:
        self.events.append((kind, user, moment, sequence))

    def promise_event(self) -> None:
        pass

    def holds(self, number: int) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (screen, legacy):
        monkeypatch.setattr(module, "time", made)
    monkeypatch.setattr("vc4lab.drm.objects.fences.time", made)
    return made


@pytest.fixture
def shown(clock: Clock) -> Screen:
    """A screen that is on, at 60 Hz, whose first vblank is now."""
    made = Screen()
    made.crtc.state.update(ACTIVE=1, MODE_ID=made.in_formats)
    made._period = made.blobs[made.in_formats], PERIOD
    return made


def near(moment: float, vblank: int) -> bool:
    return abs(moment - (1000.0 + vblank * PERIOD)) < 1e-6


def test_events_seen_late_come_in_the_order_of_their_vblanks(shown: Screen, clock: Clock) -> None:
    file: Any = Listens()
    shown.wait_for(Waiter(3, file, user=3))
    shown.wait_for(Waiter(1, file, user=1))
    shown.add_flip(Flip(file, user=2, wants_event=True))
    clock.now += 0.5 * PERIOD
    shown.wait_for(Waiter(2, file, user=4))
    clock.now += 7 * PERIOD
    shown.tick(clock.now)
    assert [(user, sequence) for _, user, _, sequence in file.events] == [
        (1, 1), (2, 1), (4, 2), (3, 3),
    ]  # fmt: skip
    assert all(near(moment, sequence) for _, _, moment, sequence in file.events)


def test_a_flip_comes_at_the_vblank_after_its_fence(shown: Screen, clock: Clock) -> None:
    """The job was through in time, the supervisor looks three vblanks later."""
    file: Any = Listens()
    fence = Fence()
    shown.add_flip(Flip(file, [fence], user=1, wants_event=True))
    clock.now += 1.5 * PERIOD
    fence.signal()
    clock.now += 3 * PERIOD
    shown.tick(clock.now)
    ((_, _, moment, sequence),) = file.events
    assert sequence == 2
    assert near(moment, 2)


def test_a_fence_from_before_does_not_make_a_flip_earlier(shown: Screen, clock: Clock) -> None:
    file: Any = Listens()
    fence = Fence(done=True)
    clock.now += 5.5 * PERIOD
    shown.add_flip(Flip(file, [fence], wants_event=True))
    shown.tick(clock.now)
    assert not file.events
    clock.now += PERIOD
    shown.tick(clock.now)
    assert [event[3] for event in file.events] == [6]


def test_a_wait_seen_late_is_answered_with_its_vblank(shown: Screen, clock: Clock) -> None:
    parts: Any = None
    waits = Legacy(shown, parts, parts, parts, parts).wait_vblank
    clock.now += 1.25 * PERIOD
    args = SimpleNamespace(type=1, sequence=2, tval_sec=0, tval_usec=0)
    call: Any = SimpleNamespace(args=args, file=Listens())
    later = waits(call)
    assert isinstance(later, Later)
    assert later.done() is None
    clock.now += 4 * PERIOD
    assert later.done() == 0
    assert args.sequence == 3
    assert near(args.tval_sec + args.tval_usec / 1e6, 3)
    args.type, args.sequence = 0, 2  # one that has been: what there is now
    assert waits(call) is None
    assert args.sequence == 5


def test_what_waits_for_vblanks_goes_on_when_the_crtc_is_switched_off() -> None:
    def client() -> None:
        fd = open_card()
        crtc, fb, view, pitch = show(fd)
        off = "QIIIIIII" + MODE
        last = ioctl(fd, 0x3A, "IIqq", 1, 0, 0, 0)[1]
        ioctl(fd, 0x3A, "IIqq", 1 | 0x4000000, 5000, 47, 0)  # in 83 seconds
        began = time.monotonic()
        ioctl(fd, 0xA2, off, 0, 0, crtc, 0, 0, 0, 0, 0, *[0] * 14, b"")
        ((kind, user, sequence, where),) = events(fd)
        assert (kind, user, where) == (1, 47, crtc)
        assert last <= sequence < last + 600
        assert time.monotonic() - began < 10

    with DrmDevice(threads=1) as device:
        run_client(device, client)


def test_dpms_is_a_change_of_the_crtc() -> None:
    def client() -> None:
        fd = open_card()
        crtc, connector, _ = resources(fd)
        held, place = buffer(bytes(4 * 64 + 8 * 64))

        def dpms(new=None):
            count = ioctl(fd, 0xB9, "QQIII4x", place, place + 256, 64, connector, 0)[2]
            ids = struct.unpack_from(f"<{count}I", held.raw)
            values = struct.unpack_from(f"<{count}Q", held.raw, 256)
            for prop, value in zip(ids, values, strict=True):
                name = ioctl(fd, 0xAA, "QQII32sII", 0, 0, prop, 0, b"", 0, 0)[4]
                if name.rstrip(bytes(1)) == b"DPMS":
                    if new is not None:
                        ioctl(fd, 0xAB, "QII", new, prop, connector)
                    return value

        def off():
            return refused(fd, 0x3A, "IIqq", 1, 0, 0, 0) == errno.EINVAL

        dpms(3)
        assert dpms() == 3, "without a CRTC it is a word"
        crtc, fb, view, pitch = show(fd)
        assert dpms() == 0, "a mode switches it on"
        dpms(1)
        assert dpms() == 3, "there is no standby"
        assert off()
        assert refused(fd, 0xB0, "IIIIQ", crtc, fb, 1, 0, 0) == errno.EINVAL
        dpms(2)
        assert off()
        dpms(0)
        assert not off()
        flip(fd, crtc, fb, 5)
        assert events(fd)[0][1] == 5
        mode = next(m for m in modes(fd, connector) if (m[1], m[6]) == (640, 480))
        dpms(3)
        set_crtc(fd, crtc, connector, fb, mode)
        assert dpms() == 0
        assert not off()
        dpms(3)
        assert off(), "the mode has switched it on in between"
        ioctl(fd, 0xA2, "QIIIIIII" + MODE, 0, 0, crtc, 0, 0, 0, 0, 0, *[0] * 14, b"")
        assert dpms() == 3

    with DrmDevice(threads=1) as device:
        run_client(device, client)


def test_a_wait_from_now_on_ends_although_signals_interrupt_it() -> None:
    """Linux has written back which vblank it is, so that a restart waits for the same."""

    def client() -> None:
        fd = open_card()
        show(fd)
        left = [150]

        def rings(*_):
            left[0] -= 1
            if not left[0]:
                signal.setitimer(signal.ITIMER_REAL, 0)

        signal.signal(signal.SIGALRM, rings)
        signal.siginterrupt(signal.SIGALRM, False)
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        ioctl(fd, 0x3A, "IIqq", 1, 30, 0, 0)
        print(left[0])

    with DrmDevice(threads=1) as device:
        assert int(run_client(device, client)) > 0
