# ruff: noqa: F821 - clients are other programs
"""Copies of the programs' epoll instances and sync files do not pile up."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.support.descriptors import open_descriptors
from tests.support.drm_client import run_client

from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.objects.fences import Fence, SyncFiles
from vc4lab.drm.processes.census import FIRST_LOOK, Census
from vc4lab.drm.supervisor import supervisor


def test_sync_files_that_no_program_has_are_let_go() -> None:
    files, fences = SyncFiles(), [Fence() for _ in range(FIRST_LOOK + 1)]
    descriptors = [files.make(fence) for fence in fences]
    child = subprocess.Popen(["sleep", "60"], pass_fds=descriptors[:1])
    for descriptor in descriptors:
        os.close(descriptor)
    before = open_descriptors()
    census = Census()
    assert census.gone([], files, [child.pid]) == (set(), set())
    _, gone = census.gone([], files, [child.pid])
    assert len(gone) == FIRST_LOOK
    for number in gone:
        files.forget(number)
    assert len(list(files)) == 1
    assert open_descriptors() == before - FIRST_LOOK
    for fence in fences:
        fence.signal()
    assert not list(files)
    child.kill()
    child.wait()


def test_few_are_not_looked_at() -> None:
    assert Census().gone(range(FIRST_LOOK - 1), [], []) == (set(), set())
    assert Census().gone(range(FIRST_LOOK - 1), [], []) == (set(), set())


def test_epoll_instances_that_were_closed(
    device: DrmDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def client() -> None:
        fd = open_card()
        poll = select.epoll()
        for _ in range(200):
            select.epoll().close()
        poll.register(fd, select.EPOLLIN)
        until = time.monotonic() + 60
        while not os.path.exists(sys.argv[1]) and time.monotonic() < until:
            assert poll.poll(0) == []
            time.sleep(0.05)

    few, kept = tmp_path / "few", []

    def count(*_call_and_answer: object) -> None:
        kept.append(len(list(device.supervisor.files.polls)))
        if max(kept) > 150 and kept[-1] < FIRST_LOOK:
            few.touch()

    monkeypatch.setattr(supervisor, "_SWEEP_SECONDS", 0.2)
    device.supervisor.on_call = count
    run_client(device, client, str(few))
    assert max(kept) > 150
    assert kept[-1] < FIRST_LOOK
    assert not list(device.supervisor.files.polls)
