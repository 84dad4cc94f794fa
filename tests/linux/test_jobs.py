"""What is seen of the V3D's jobs, and monitors, without a Linux."""

import hashlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.support.frames import BACKGROUND, Frame

from vc4lab.linux.jobs import KEPT_PICTURES, Jobs
from vc4lab.linux.running import Linux
from vc4lab.records.control import build
from vc4lab.soc.devices.buses.i2c import Monitor
from vc4lab.soc.devices.serial.serial import SerialPort
from vc4lab.soc.display.connector import Connector
from vc4lab.soc.display.hdmi import Hdmi
from vc4lab.soc.videocore.edid import edid_of


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


def machine_with_connector() -> Any:
    monitor = Monitor(edid_of([(1920, 1080, 60)]))
    connector = Connector(monitor, Hdmi(), lambda level: None)
    return SimpleNamespace(hardware=SimpleNamespace(monitor=monitor, connector=connector))


@pytest.mark.parametrize(
    ("asked", "modes"),
    [
        ((800, 601), [(800, 601, 60)]),
        ((800, 601, 75), [(800, 601, 75)]),
        (("1280x720@50,800x600",), [(1280, 720, 50), (800, 600, 60)]),
    ],
)
def test_another_monitor(asked: tuple[int | str, ...], modes: list[tuple[int, int, int]]) -> None:
    machine = machine_with_connector()
    guest = Linux(machine, SerialPort())
    guest.disconnect()
    assert not machine.hardware.monitor.connected
    guest.connect(*asked)
    assert machine.hardware.monitor.connected
    assert machine.hardware.monitor.edid == edid_of(modes)


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        *(
            (mode, r"sides of 1 to 2048 pixels and 1 to 240 Hz")
            for mode in [(0, 600), (800, 2049), (800, -1), (800, 600, 0), (800, 600, 241)]
        ),
        (("800x600,large",), "'large' is not a mode"),
        ((",".join(["640x480"] * 9),), "1 to 8 modes, not 9"),
        ((1920, 1080, 75), "174.6 MHz"),
    ],
)
def test_monitors_that_do_not_exist(asked: tuple[int | str, ...], text: str) -> None:
    machine = machine_with_connector()
    with pytest.raises(ValueError, match=text):
        Linux(machine, SerialPort()).connect(*asked)
    assert machine.hardware.monitor.edid == edid_of([(1920, 1080, 60)])


@pytest.mark.parametrize("asked", [(), (800,), ("800", 600), (1, 2, 3, 4)])
def test_what_is_no_monitor(asked: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match="a text, or width, height and rate"):
        Linux(machine_with_connector(), SerialPort()).connect(*asked)
