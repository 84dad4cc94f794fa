# ruff: noqa: F821 - clients are other programs
"""Copies of the programs' epoll instances and sync files do not pile up."""

import os
import subprocess

from tests.support.descriptors import open_descriptors
from tests.support.drm_client import run_client

from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.objects.fences import Fence, SyncFiles
from vc4lab.drm.processes.census import FIRST_LOOK, Census


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


def test_epoll_instances_that_were_closed(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        poll = select.epoll()
        for _ in range(200):
            select.epoll().close()
        time.sleep(3.5)
        poll.register(fd, select.EPOLLIN)
        assert poll.poll(0) == []

    kept = []
    device.supervisor.on_call = lambda call, answer: kept.append(len(list(device.supervisor.files.polls)))
    run_client(device, client)
    assert max(kept) > 150
    assert kept[-1] < FIRST_LOOK
    assert not list(device.supervisor.files.polls)
