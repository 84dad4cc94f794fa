"""Of a job that was given up nothing is drawn later: its buffers may be others' by then."""

from collections.abc import Callable

import numpy as np
import pytest
from tests.support.frames import ARRAY, BACKGROUND, CORNERS, RED, Frame, solid, triangle
from tests.support.jobs import viewport

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.built_job import BuiltJob
from vc4lab.drm.kernel.hardware import JobReports, run_job
from vc4lab.records.control import build
from vc4lab.v3d.core import V3D
from vc4lab.v3d.tiles.threads import Abandoned, TileThreads

ENDLESS = ":a\nbrr -, a\nnop\nnop\nnop\nnop\nthrend\nnop\nnop"
Ranges = tuple[int, int, int, int]


def lists(frame: Frame, program: str) -> Ranges:
    """Both lists of a triangle with a program."""
    shader = frame.nv_shader(program, triangle(*CORNERS), 0)
    start, end, tiles = frame.job.binning(viewport(frame.job) + shader + ARRAY)
    return start, end, *frame.job.rendering(tiles, frame.surface, clear=BACKGROUND)


def endless(frame: Frame, _monkeypatch: pytest.MonkeyPatch) -> Ranges:
    return lists(frame, ENDLESS)


def abandoned(frame: Frame, monkeypatch: pytest.MonkeyPatch) -> Ranges:
    def run(*_args: object, **_options: object) -> None:
        monkeypatch.undo()
        raise Abandoned

    monkeypatch.setattr(TileThreads, "run", run)
    return lists(frame, solid(RED))


def circle(frame: Frame, _monkeypatch: pytest.MonkeyPatch) -> Ranges:
    """A rendering list that stores a tile and goes back."""
    job, start = frame.job, frame.job.room(0)
    mode = build(113, address=frame.surface, width=job.width, height=job.height, format=1)
    job.put(mode + build(115) + build(24) + build(16, address=start))
    return 0, 0, start, job.top


@pytest.mark.parametrize("way", [endless, abandoned, circle])
def test_the_next_job_draws_only_its_own(
    way: Callable[[Frame, pytest.MonkeyPatch], Ranges], monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = Frame()
    reporter = Reporter()
    v3d = frame.v3d = V3D(frame.job.memory, JobReports(reporter))
    assert not run_job(v3d, BuiltJob(*way(frame, monkeypatch), 128, 128, None, 4))
    assert [item.code for item in reporter.items][-1:] == ["DRM-016"]
    freed, size = frame.surface, 128 * 128 * 4
    others = bytes([0x5A]) * size
    frame.job.memory.write(freed, others)

    frame.job.width = frame.job.height = 64
    frame.surface = frame.job.room(64 * 64 * 4)
    corners = ((-64, -64), (-64, 256), (256, -64))
    shader = frame.nv_shader(solid(RED), triangle(*corners), 0)
    picture = frame.bin(viewport(frame.job) + shader + ARRAY)
    assert set(np.unique(picture)) == {RED}
    assert frame.job.memory.read(freed, size) == others
