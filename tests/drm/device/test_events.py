# ruff: noqa: F821 - clients are other programs
"""Listeners of a virtual device: what they hear, and that one that raises hangs no program."""

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.drm_client import run_client
from tests.support.live_jobs import prepare, run_live
from tests.support.supervised import need_supervisor

from vc4lab.drm import events
from vc4lab.drm.device import gpu
from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.events import CallAnswered, JobCounted, JobDone
from vc4lab.drm.supervisor import supervisor
from vc4lab.v3d.events import FrameDone, FrameDrawn


@pytest.fixture(autouse=True)
def _possible() -> None:
    need_supervisor()


def client() -> None:
    live = Live(sys.argv[1])
    for _ in range(2):
        live.finish(live.submit())
    print("done")


def two_jobs(device: DrmDevice, folder: Path) -> str:
    """A program that submits a job twice and waits for both."""
    prepare("tri_amd64", folder)
    return run_live(device, client, str(folder)).strip()


def test_jobs_and_calls_are_heard_by_all(tmp_path: Path) -> None:
    begun = time.monotonic()
    with DrmDevice(paced=False, threads=1) as device:
        heard: list[list[Any]] = [[], []]
        for list_ in heard:
            device.gpu.job_counted.subscribe(list_.append)
            device.gpu.job_done.subscribe(list_.append)
            device.v3d.listeners.frame_done.subscribe(list_.append)
            device.v3d.listeners.frame_drawn.subscribe(list_.append)
        finished: list[int] = []
        device.gpu.job_done.subscribe(lambda _event: finished.append(device.gpu.finished))
        calls: list[CallAnswered] = []
        device.supervisor.call_answered.subscribe(calls.append)
        assert two_jobs(device, tmp_path) == "done"
    assert heard[0] == heard[1]
    kinds = [type(event) for event in heard[0]]
    assert kinds == [FrameDrawn, FrameDone, JobCounted, JobDone] * 2
    done = [event for event in heard[0] if isinstance(event, JobDone)]
    assert [event.seqno for event in done] == [1, 2]
    assert begun < done[0].ready < done[1].ready < time.monotonic()
    assert finished == [0, 1], "heard before programs that wait go on"
    assert calls


@pytest.mark.parametrize("place", ["counted", "done", "frame", "call"])
def test_a_listener_that_raises_ends_the_run(place: str, tmp_path: Path) -> None:
    def fails(_event: object) -> None:
        raise LookupError(place)

    with DrmDevice(paced=False, threads=1) as device:
        listeners: Any = {
            "counted": device.gpu.job_counted,
            "done": device.gpu.job_done,
            "frame": device.v3d.listeners.frame_done,
            "call": device.supervisor.call_answered,
        }[place]
        one = listeners.subscribe(fails)
        with pytest.raises(LookupError, match=place):
            two_jobs(device, tmp_path)
        one.close()
        assert two_jobs(device, tmp_path) == "done"


def test_the_first_exception_of_several_is_raised(tmp_path: Path) -> None:
    def fails(what: str) -> None:
        raise LookupError(what)

    with DrmDevice(paced=False, threads=1) as device:
        device.gpu.job_done.subscribe(lambda _event: fails("first"))
        device.gpu.job_done.subscribe(lambda _event: fails("second"))
        with pytest.raises(LookupError, match="first"):
            two_jobs(device, tmp_path)


@pytest.mark.parametrize("place", ["picture", "frame"])
def test_a_listener_of_pictures_that_raises_ends_the_run(
    place: str, make_device: Callable[..., DrmDevice]
) -> None:
    device = make_device(device="xlnx", cpu_memory="pi3")
    accounts = device.cpu_memory
    assert accounts is not None
    if place == "frame" and accounts.failure:
        pytest.skip(accounts.failure)

    def flips() -> None:
        fd = open_card()
        crtc, fb, _, _ = show(fd)
        for _ in range(3):
            flip(fd, crtc, fb)
            events(fd)
        print("done")

    def fails(_event: object) -> None:
        raise LookupError(place)

    listeners: Any = {"picture": device.screen.handed_over, "frame": accounts.frame_counted}[place]
    with listeners.subscribe(fails), pytest.raises(LookupError, match=place):
        run_client(device, flips)
    assert run_client(device, flips) == "done\n"


def test_no_event_is_made_without_a_listener(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def made(*_arguments: object) -> None:
        raise AssertionError("an event that no one hears")

    for module in (events, gpu, supervisor):
        for name in ("JobCounted", "JobDone", "CallAnswered"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, made)
    with DrmDevice(paced=False, threads=1) as device:
        assert two_jobs(device, tmp_path) == "done"


def test_the_first_moment_of_all_sources_counts(device: DrmDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    for moments in ([None, 5.0, 3.0], [3.0, None, 5.0], [5.0, 3.0, None], [3.0, 3.0, 5.0]):
        sources = [SimpleNamespace(next_event=lambda moment=moment: moment) for moment in moments]
        monkeypatch.setattr(device.files, "sources", sources)
        assert device.files.next_event() == 3.0
    monkeypatch.setattr(device.files, "sources", sources[:0])
    assert device.files.next_event() is None


def test_a_job_wakes_the_supervisor_for_flips_and_for_calls_that_it_answers(
    device: DrmDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[int] = []
    lists: Any = device.screen.flips, device.supervisor.waiting._waiting
    monkeypatch.setattr(
        device.supervisor, "wake", lambda: woken.append([bool(one) for one in lists].index(True))
    )
    device._job_signalled()
    for waiting in lists:
        waiting.append(object())
        device._job_signalled()
        waiting.clear()
    assert woken == [0, 1]
