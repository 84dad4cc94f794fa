# ruff: noqa: F821 - clients are other programs
"""Pictures for other threads, while a program draws; and the last of the frames asked for."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy
import pytest
from tests.support.drm_client import run_client
from tests.support.live_jobs import prepare, run_live, slow_jobs

from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.device.pictures import LONGEST_WAIT
from vc4lab.drm.kms.screen import Flip
from vc4lab.drm.objects.fences import Fence

Pixels = numpy.ndarray[Any, Any]


def turning_pages() -> None:
    """Two buffers, each filled with one number and then shown, in turn, without an end."""
    fd = open_card()
    crtc, first, view, pitch = show(fd)
    handle, pitch, size = dumb(fd, 640, 480)
    pages = [(first, view), (add_fb(fd, 640, 480, pitch, handle), map_dumb(fd, handle, size))]
    number = 0
    while True:
        number += 1
        fb, view = pages[number % 2]
        view[:] = bytes([number % 251]) * len(view)
        flip(fd, crtc, fb)
        events(fd)


def test_a_picture_for_another_thread_is_whole(device: DrmDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = device.pictures.composer.pixels

    def slowly(shown: Any) -> Pixels:
        top = at_once(shown)
        time.sleep(0.1)  # long enough for a program that may go on to draw again
        return numpy.concatenate([top[:240], at_once(shown)[240:]])

    monkeypatch.setattr(device.pictures.composer, "pixels", slowly)
    taken: list[Pixels] = []

    def watch() -> None:
        while device.screen.frames < 5:
            time.sleep(0.01)
        taken.extend(numpy.asarray(device.screenshot()) for _ in range(3))
        device.supervisor.stop()

    thread = threading.Thread(target=watch)
    thread.start()
    run_client(device, turning_pages, expect=None)
    thread.join()
    assert len(taken) == 3
    for picture in taken:
        assert (picture == picture[0, 0, 0]).all()


def test_what_is_not_drawn_yet_is_waited_for(device: DrmDevice) -> None:
    fence = Fence()
    with ThreadPoolExecutor(1) as pool, device.pictures.served_by_this_thread():
        device.screen.add_flip(Flip(None, [fence]))
        began = time.monotonic()
        asked = pool.submit(device.screenshot)
        while device.pictures.next_event() is None:
            time.sleep(0.001)
        now = time.monotonic()
        assert began + LONGEST_WAIT <= (device.files.next_event() or 0.0) <= now + LONGEST_WAIT
        device.files.tick(began)
        assert not asked.done()
        fence.signal()
        assert device.files.next_event() == 0.0
        device.files.tick(began)
        assert asked.result(60) is None  # the screen is off
        device.screen.add_flip(Flip(None, [Fence()]))  # never done: the picture comes all the same
        asked = pool.submit(device.screenshot)
        while device.pictures.next_event() is None:
            time.sleep(0.001)
        device.files.tick(time.monotonic() + LONGEST_WAIT)
        assert asked.result(60) is None
        asked = pool.submit(device.screenshot)
        while device.pictures.next_event() is None:
            time.sleep(0.001)
    assert asked.result(60) is None  # nothing runs any more


def test_a_picture_that_fails_is_the_askers_problem(
    device: DrmDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_shown: Any) -> Pixels:
        raise MemoryError

    monkeypatch.setattr(type(device.pictures), "pixels", property(fails))
    with ThreadPoolExecutor(1) as pool, device.pictures.served_by_this_thread():
        asked = pool.submit(device.screenshot)
        while device.pictures.next_event() is None:
            time.sleep(0.001)
        device.files.tick(time.monotonic())
        with pytest.raises(MemoryError):
            asked.result(60)


def test_no_frame_comes_after_the_last_one(device: DrmDevice) -> None:
    counts: list[int] = []

    def one_more(count: int) -> None:
        counts.append(count)
        device.screen.touched()  # the program is quick: its next picture is there already

    device.frame_listeners.append(one_more)
    device.stop_after = 3
    device.screen.touched()
    for _ in range(6):
        device.screen.tick(time.monotonic())
    assert (device.screen.frames, counts) == (3, [1, 2, 3])


def leaves_early() -> None:
    """Shows what the GPU draws; with the argument "early" it ends before that is drawn."""
    fd = open_card()
    crtc, _, _, _ = show(fd)
    live = Live(sys.argv[1], fd)
    handle = live.handles[live.colour]
    ioctl(fd, 0x48, "IIQ", handle, 0, 0x0700000000000001)
    fb = add_fb(fd, 640, 480, 640 * 4, handle)
    live.submit()
    flip(fd, crtc, fb)
    if sys.argv[2] == "late":
        events(fd)


def test_what_a_program_handed_over_is_shown_before_it_goes(
    device: DrmDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare("glmark2_build_use-vbo_true", tmp_path, 2)
    slow_jobs(monkeypatch, 0.2)
    run_live(device, leaves_early, str(tmp_path), "late")
    shown = numpy.asarray(device.screenshot())
    frames = device.screen.frames
    assert len(numpy.unique(shown)) > 20
    run_live(device, leaves_early, str(tmp_path), "early")
    assert device.screen.frames == 2 * frames
    assert (numpy.asarray(device.screenshot()) == shown).all()
