"""Debian's Linux itself, where `vc4lab linux --setup` has been run; skipped elsewhere."""

import contextlib
import os
from collections.abc import Callable

import numpy as np
import pytest

from vc4lab import DrmDevice
from vc4lab.drm.device.host import why_not
from vc4lab.drm.kms.modes import parse_modes
from vc4lab.linux.jobs import Jobs
from vc4lab.linux.running import Linux, LinuxStopped
from vc4lab.soc.debug.debug_memory import DebugMemory

Boot = Callable[..., Linux]


def test_programs_run_one_after_another(linux: Boot) -> None:
    assert linux().run("uname -m").output == "aarch64\n"
    assert linux().run(["sh", "-c", "exit 7"]).code == 7
    done = linux().run("modetest -M vc4 -c")
    assert "1920x1080" in done.output
    assert done.code == 0


def one_job_for_each_frame(jobs: Jobs) -> None:
    assert len(jobs) >= 3
    assert {(job.width, job.height, job.failed) for job in jobs} == {(1920, 1080, False)}
    assert len({job.digest for job in jobs}) == len(jobs)
    assert [job.seconds for job in jobs] == sorted(job.seconds for job in jobs)
    assert jobs[-1].image is not None


def test_the_cube_has_the_bytes_of_the_virtual_device(linux: Boot) -> None:
    """vc4.ko submits the jobs here, the virtual device's own half of the driver there."""
    guest = linux()
    pictures = []
    guest.machine.frames.listeners.insert(0, lambda _count: pictures.append(np.asarray(guest.screen.image)))
    assert guest.run(["kmscube"], frames=8).code is None
    jobs = guest.jobs()
    guest.wait(frames=4)
    guest.interrupt()
    jobs.close()
    one_job_for_each_frame(jobs)
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


BARRIER = bytes.fromhex("bf3203d5")
"""dmb oshst, which stands before each store to a register."""
LOAD_HIGH = 0x52A00000
"""movz wN, #…, lsl #16."""
CIRCLE = 0xFD000000
"""The bus address of a place in the VideoCore's part of RAM, which Linux leaves alone."""


@pytest.fixture(scope="module")
def submission() -> list[int]:
    """The address of vc4.ko's function that submits, once a guest has said it: all begin as one state."""
    return []


def break_submission(guest: Linux, address: int, submission: list[int]) -> None:
    """A fault in vc4.ko: all binning lists begin at this address (a multiple of 0x10000)."""
    if not submission:  # it takes the guest 2 s of the host's time
        found = guest.run("grep ' vc4_submit_next_bin_job' /proc/kallsyms").output.split()[0]
        submission.append(int(found, 16))
    memory = DebugMemory(guest.machine, guest.machine.cpu)
    code = memory.read(submission[0], 0x180)
    places = [at for at in range(0, len(code), 4) if code[at : at + 4] == BARRIER]
    if len(places) != 4:  # L2CACTL, SLCACTL, CT0CA, CT0EA
        pytest.skip("another version of vc4.ko")
    register = code[places[2] + 4] & 31
    word = LOAD_HIGH | address >> 16 << 5 | register
    assert memory.write(submission[0] + places[2], word.to_bytes(4, "little"))


@pytest.mark.parametrize(
    ("address", "code", "text"),
    [
        (0x7E000000, "CLE-003", "where the device registers are"),
        (CIRCLE, "CLE-006", "loops without reaching its end"),
    ],
)
def test_a_fault_in_a_module_is_named(
    linux: Boot, submission: list[int], address: int, code: str, text: str
) -> None:
    guest = linux()
    guest.machine.memory.write(CIRCLE, bytes((16,)) + CIRCLE.to_bytes(4, "little"))
    break_submission(guest, address, submission)
    with contextlib.suppress(LinuxStopped):
        guest.run(["kmscube", "-c", "2"], seconds=3)
    found = [item for item in guest.machine.reporter.items if item.code == code]
    assert found, guest.machine.reporter.summary()
    assert text in found[0].message
    assert found[0].pc is not None
    assert "<vc4_submit_next_bin_job+0x" in found[0].pc
    assert "called by vc4_submit_cl_ioctl+0x" in found[0].pc


def test_another_monitor(linux: Boot) -> None:
    guest = linux()
    guest.connect(800, 600)
    modes = guest.run("modetest -M vc4 -c").output
    assert "800x600" in modes
    assert "1920x1080" not in modes


def test_flips_that_do_not_wait_count_as_frames(linux: Boot) -> None:
    guest = linux()
    guest.connect(640, 480)
    done = guest.run(["glmark2-es2-drm", "-s", "1x1", "-b", "build:duration=60"], frames=5)
    before = guest.machine.seconds
    assert done.code is None
    guest.wait(frames=10)
    guest.interrupt()
    assert guest.machine.seconds - before < 0.7
