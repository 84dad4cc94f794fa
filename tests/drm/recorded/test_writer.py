# ruff: noqa: F821 - clients are other programs
"""Live jobs in a folder: replay draws the same bytes; limits, full disks, folders in use."""

import errno
import json
from pathlib import Path

import pytest
from tests.support.live_jobs import prepare, run_live

from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.kernel.hardware import run_job
from vc4lab.drm.recorded import writer
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.drm.recorded.writer import JobRecorder
from vc4lab.v3d.core import V3D


def record(device: DrmDevice, folder: Path, **limits: int) -> tuple[JobRecorder, list[str]]:
    said: list[str] = []
    recorder = JobRecorder(folder, device.memory.guest, on_stop=said.append, **limits)
    device.gpu.recorder = recorder
    return recorder, said


def drawn(folder: Path) -> list[bytes]:
    """The colour surface after each job of a replay."""
    run = RecordedRun(folder)
    v3d = V3D(run.memory)
    out = []
    for job in run.jobs:
        assert run_job(v3d, job.build())
        assert job.submit is not None
        target = job.submit.buffers[job.submit.surface("color_write").hindex]
        out.append(run.memory.read(target.address, target.size))
    assert not run.reporter.items
    return out


@pytest.mark.parametrize("name", ["tri_amd64", "glmark2_texture_texture-filter_mipmap"])
def test_replay_draws_what_was_drawn(device: DrmDevice, tmp_path: Path, name: str) -> None:
    """The client changes buffers between its jobs, also those that the GPU has drawn into."""
    prepare(name, tmp_path)
    recorder, said = record(device, tmp_path / "run")

    def client() -> None:
        live = Live(sys.argv[1])
        colour = live.views[live.colour]
        before = colour[:]
        live.finish(live.submit(), "1")
        live.finish(live.submit(), "2")
        colour[:] = before  # as it was when the first job began
        colour[100:200] = bytes(range(100))
        live.finish(live.submit(), "3")
        other = Live(sys.argv[1])  # the same handles in another file
        other.finish(other.submit(), "4")
        for handle in live.handles:
            ioctl(live.fd, 0x09, "II", handle, 0, direction=1)
        for view in live.views:
            if view is not None:
                view.close()
        third = Live(sys.argv[1])  # addresses that were free
        third.views[third.colour][:] = b"\xa5" * len(third.views[third.colour])
        third.finish(third.submit(), "5")

    run_live(device, client, str(tmp_path))
    assert recorder.jobs == 5
    assert not said
    assert drawn(tmp_path / "run") == [(tmp_path / f"{n}").read_bytes() for n in range(1, 6)]
    table = json.loads((tmp_path / "run" / "job0003" / "submit.json").read_text())
    assert table["seqno"] == 3
    assert table["program"].startswith("python")


def test_a_picture_that_the_gpu_drew_is_not_kept(device: DrmDevice, tmp_path: Path) -> None:
    prepare("tri_amd64", tmp_path)
    record(device, tmp_path / "run")

    def client() -> None:
        live = Live(sys.argv[1], labels=True)
        for _ in range(3):
            live.finish(live.submit())

    run_live(device, client, str(tmp_path))
    run = RecordedRun(tmp_path / "run")
    assert len(run.jobs) == 3
    for job in run.jobs:
        table = json.loads((job.path / "submit.json").read_text())
        colour = table["bos"][table["color_write"]["hindex"]]
        assert colour.get("zero")
        assert "whole" not in colour
        assert colour["label"] == f"label {table['color_write']['hindex']}"


@pytest.mark.parametrize("limits", [{"max_jobs": 2}, {"max_bytes": 20_000}])
def test_limits(device: DrmDevice, tmp_path: Path, limits: dict[str, int]) -> None:
    prepare("tri_amd64", tmp_path)
    recorder, said = record(device, tmp_path / "run", **limits)

    def client() -> None:
        live = Live(sys.argv[1])
        for _ in range(4):
            live.views[live.colour][0:64] = os.urandom(64)
            live.views[live.colour][:] = os.urandom(len(live.views[live.colour]))
            live.finish(live.submit())

    run_live(device, client, str(tmp_path))
    assert device.gpu.jobs == 4
    assert len(said) == 1
    assert f"{recorder.jobs} jobs recorded" in said[0]
    assert len(drawn(tmp_path / "run")) == recorder.jobs < 4
    assert not recorder.failed
    written = sum(path.stat().st_size for path in (tmp_path / "run").rglob("*.bin"))
    assert written < 20_000


def test_a_full_disk_ends_the_recording_and_nothing_else(
    device: DrmDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare("tri_amd64", tmp_path)
    recorder, said = record(device, tmp_path / "run")
    real = writer.write_file

    def full(path: Path, data: bytes) -> None:
        if recorder.jobs == 2 and path.name == "submit.json":
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        real(path, data)

    monkeypatch.setattr(writer, "write_file", full)

    def client() -> None:
        live = Live(sys.argv[1])
        for _ in range(4):
            live.finish(live.submit())

    run_live(device, client, str(tmp_path))
    assert device.gpu.jobs == 4
    assert recorder.failed
    assert said == [f"{tmp_path / 'run'}: No space left on device; 2 jobs recorded so far"]
    names = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert names == ["blobs", "job0001", "job0002"]
    assert len(drawn(tmp_path / "run")) == 2


def test_a_folder_with_a_run_is_left_alone(device: DrmDevice, tmp_path: Path) -> None:
    (tmp_path / "job0001").mkdir()
    with pytest.raises(OSError, match="already contains a run"):
        JobRecorder(tmp_path, device.memory.guest)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match="exists"):
        JobRecorder(tmp_path / "file", device.memory.guest)
