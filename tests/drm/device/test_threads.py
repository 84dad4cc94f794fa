# ruff: noqa: F821 - clients are other programs
"""The GPU's threads end with their device, whether it is closed or only let go of."""

from pathlib import Path

import pytest
from tests.support.live_jobs import prepare, run_live
from tests.support.supervised import need_supervisor
from tests.support.threads import left_of, simulator_threads

from vc4lab.drm.device.device import DrmDevice


@pytest.mark.parametrize("closed", [True, False])
def test_threads_end_with_the_device(tmp_path: Path, closed: bool) -> None:
    need_supervisor()

    def client() -> None:
        live = Live(sys.argv[1])
        live.finish(live.submit())

    expected = prepare("glmark2_ideas", tmp_path, 1)
    before = simulator_threads()
    device = DrmDevice(paced=False, threads=2)
    run_live(device, client, str(tmp_path))
    assert (tmp_path / "drawn").read_bytes() == expected
    started = simulator_threads() - before
    assert {"vc4lab-gpu", "vc4lab-watchdog", "vc4lab-team-1"} == {each.name for each in started}
    if closed:
        device.close()
        assert {each.name for each in left_of(started, 0.2)} <= {"vc4lab-team-1"}
    del device
    assert not left_of(started)
