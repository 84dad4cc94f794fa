"""What is seen of the V3D's jobs, and monitors, without a Linux."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.support.frames import BACKGROUND, Frame

from vc4lab.linux.jobs import KEPT_PICTURES, Jobs
from vc4lab.linux.running import connect
from vc4lab.records.control import build
from vc4lab.soc.devices.i2c import Monitor
from vc4lab.soc.videocore.edid import edid_block


def watched(frame: Frame) -> Jobs:
    jobs = Jobs(lambda: 2.5)
    jobs.watch(frame.v3d)
    return jobs


def test_a_job_has_its_size_and_its_pixels() -> None:
    frame = Frame(128, 64)
    jobs = watched(frame)
    drawn = frame.bin(b"")
    (job,) = jobs
    assert (job.number, job.width, job.height, job.failed) == (0, 128, 64, False)
    assert job.binning is not None
    assert job.binning[0] < job.binning[1]
    assert job.rendering[0] < job.rendering[1]
    assert (job.address, job.seconds) == (frame.surface, 2.5)
    assert job.pixels is not None
    assert np.array_equal(job.pixels, drawn.view(np.uint8).reshape(64, 128, 4))
    assert job.digest == hashlib.sha256(drawn.tobytes()).hexdigest()
    low = BACKGROUND & 0xFF, BACKGROUND >> 8 & 0xFF, BACKGROUND >> 16 & 0xFF
    assert job.image is not None
    assert job.image.getpixel((3, 3)) == low[::-1]  # blue first


def test_a_job_that_only_renders_and_one_that_is_not_watched() -> None:
    frame = Frame(64, 64)
    jobs = watched(frame)
    frame.render(b"")
    assert jobs[0].binning is None
    jobs.close()
    frame.render(b"")
    assert len(jobs) == 1
    assert repr(jobs) == "<Jobs: 1>"


def test_only_the_last_jobs_keep_their_pixels() -> None:
    frame = Frame(64, 64)
    jobs = watched(frame)
    for _count in range(KEPT_PICTURES + 2):
        frame.render(b"")
    assert [job.pixels is None for job in jobs] == [True] * 2 + [False] * KEPT_PICTURES
    assert jobs[0].image is None
    assert len({job.digest for job in jobs}) == 1


def test_jobs_that_store_nothing_or_outside() -> None:
    frame = Frame(64, 64)
    jobs = watched(frame)
    frame.surface = 0
    frame.render(b"")
    frame.surface = 0x3FFFFFF0
    frame.render(b"")
    frame.run(build(24) * 3)
    assert [job.digest for job in jobs] == [""] * len(jobs)
    assert len(jobs) >= 2


def machine_with_monitor() -> Any:
    return SimpleNamespace(hardware=SimpleNamespace(monitor=Monitor(edid_block(1920, 1080, 60))))


def test_another_monitor() -> None:
    machine = machine_with_monitor()
    connect(machine, 800, 601, 75)
    assert machine.hardware.monitor.edid == edid_block(800, 601, 75)


@pytest.mark.parametrize(
    "mode", [(0, 600, 60), (800, 2049, 60), (800, -1, 60), (800, 600, 0), (800, 600, 241)]
)
def test_monitors_that_do_not_exist(mode: tuple[int, int, int]) -> None:
    machine = machine_with_monitor()
    with pytest.raises(ValueError, match=r"sides of 1 to 2048 pixels and 1 to 240 Hz"):
        connect(machine, *mode)
    assert machine.hardware.monitor.edid == edid_block(1920, 1080, 60)
