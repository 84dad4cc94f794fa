"""glmark2 in Debian: its jobs beside those of the virtual device, and states saved while it draws.

Skipped where `vc4lab linux --setup` has not been run.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vc4lab import DrmDevice
from vc4lab.drm.device.host import why_not
from vc4lab.drm.kms.modes import parse_modes
from vc4lab.linux.jobs import Job, Jobs
from vc4lab.linux.running import Linux, LinuxStopped
from vc4lab.soc.states.state import save_state

Boot = Callable[..., Linux]
SIZE = 800, 601
"""glmark2 validates at 800x600, and does not start where the screen has just that size."""
SCENES = "build:use-vbo=true", "texture:texture-filter=nearest", "bump:bump-render=normals"


COMMAND = ["glmark2-es2-drm", "--validate", *(part for scene in SCENES for part in ("-b", scene))]
"""A program whose pictures do not depend on the time."""


@pytest.fixture
def quiet_input() -> Iterator[None]:
    """Standard input with nothing to read, and without an end."""
    quiet, other = os.pipe()
    kept = os.dup(0)
    os.dup2(quiet, 0)
    yield
    os.dup2(kept, 0)
    for descriptor in (quiet, other, kept):
        os.close(descriptor)


def drawn(jobs: Jobs) -> list[tuple[int, int, str]]:
    return [(job.width, job.height, job.digest) for job in jobs]


@pytest.mark.usefixtures("quiet_input")
def test_each_job_draws_the_bytes_of_the_virtual_device(linux: Boot) -> None:
    """vc4.ko submits the jobs here, the virtual device's own half of the driver there."""
    guest = linux()
    if why_not():
        pytest.skip(f"programs cannot run on a virtual GPU here: {why_not()}")
    guest.connect(*SIZE)
    jobs = guest.jobs()
    assert guest.run(COMMAND, seconds=60).code == 0
    jobs.close()
    with DrmDevice(modes=parse_modes("{}x{}".format(*SIZE)), paced=False) as device:
        wanted = Jobs()
        wanted.watch(device.v3d)
        device.run(COMMAND, arm64=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert len(jobs) > 2 * len(SCENES)
    assert drawn(jobs) == drawn(wanted)


GO_ON = """
import sys
from vc4lab.linux.boots import LinuxBoot, LinuxPlan
from vc4lab.drm.setup.places import find_brought
from vc4lab.linux.jobs import Jobs
from vc4lab.soc.machine import Machine
from vc4lab.soc.states.state import load_state
boot = LinuxBoot(find_brought(None, "arm64"), LinuxPlan())
machine = Machine(boot.kernel.image, options=boot.options)
load_state(machine, __import__("pathlib").Path(sys.argv[1]))
jobs = Jobs.of(machine)
machine.run(seconds=float(sys.argv[2]))
print(*(f"{job.seconds:.9f} {job.digest}" for job in jobs), sep="\\n")
"""
MORE = 0.1
"""Guest time after the state, in which a scene draws several frames."""


def lines(jobs: list[Job]) -> list[str]:
    return [f"{job.seconds:.9f} {job.digest}" for job in jobs]


def test_a_state_that_is_saved_while_it_draws_goes_on_to_the_same_bytes(linux: Boot, tmp_path: Path) -> None:
    """In another process, which has nothing of this one but the file."""
    guest = linux()
    guest.connect(320, 240)
    with pytest.raises(LinuxStopped, match="did not end within"):
        guest.run(["glmark2-es2-drm", "-s", "1x1", "-b", "shading:duration=60"], seconds=0.6)
    state = tmp_path / "draws.state"
    save_state(guest.machine, state)
    jobs = guest.jobs()
    guest.machine.run(seconds=MORE)
    jobs.close()
    assert len(jobs) >= 3
    assert len({job.digest for job in jobs}) >= 3
    other = subprocess.run(
        [sys.executable, "-c", GO_ON, str(state), str(MORE)],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert other.returncode == 0, other.stderr
    assert other.stdout.split("\n")[:-1] == lines(jobs[:])
