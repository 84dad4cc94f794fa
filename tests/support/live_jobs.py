# mypy: ignore-errors
# ruff: noqa: F821, RUF059 - clients are other programs
"""Recorded jobs as files that a client hands in again, live."""

import inspect
import json
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.drm_client import run_client

from vc4lab.drm.device import gpu
from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.kernel.hardware import run_job
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.v3d.core import V3D

JOBS = Path(__file__).parents[1] / "data" / "vc4-jobs"
SURFACES = (
    "color_read", "color_write", "zs_read", "zs_write", "msaa_color_write", "msaa_zs_write",
)  # fmt: skip


def slow_jobs(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Each job of a device takes so much longer."""
    real = gpu.run_job

    def slow(*arguments: Any) -> bool:
        time.sleep(seconds)
        return real(*arguments)

    monkeypatch.setattr(gpu, "run_job", slow)


def held_jobs(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Each job of a device begins a moment after its client's `go()`, however slow the host is."""
    real = gpu.run_job

    def held(*arguments: Any) -> bool:
        until = time.monotonic() + 60
        while not (folder / "go").exists() and time.monotonic() < until:
            time.sleep(0.002)
        (folder / "go").unlink(missing_ok=True)
        time.sleep(0.05)  # the client may wait by now
        return real(*arguments)

    monkeypatch.setattr(gpu, "run_job", held)


def prepare(name: str, folder: Path, place: int = 0) -> bytes:
    """One of a run's jobs as files for a client; the colour surface that it draws alone."""
    run = RecordedRun(JOBS / name)
    job = run.jobs[place]
    table = json.loads((job.path / "submit.json").read_text())
    assert job.submit is not None
    run.contents.load(job.submit.buffers, run.memory)
    for index, entry in enumerate(table["bos"]):
        data = run.memory.read(entry["addr"], entry["size"])
        size = entry["used_size"] if entry["shader"] else entry["size"]
        (folder / f"{index}.bin").write_bytes(data[:size])
    for stream in ("bin_cl", "shader_rec", "uniforms"):
        (folder / f"{stream}.bin").write_bytes(getattr(job.submit, stream))
    table["surfaces"] = [list(table[surface].values()) for surface in SURFACES]
    (folder / "job.json").write_text(json.dumps(table))
    assert run_job(V3D(run.memory), job.build())
    target = job.submit.buffers[job.submit.surface("color_write").hindex]
    return run.memory.read(target.address, target.size)


def shader_index(folder: Path, which: int) -> int:
    """Place of a prepared job's shader among its buffers: 0 fragment, 1 vertex, 2 coordinate."""
    index: int = struct.unpack_from("<3I", (folder / "shader_rec.bin").read_bytes())[which]
    return index


class Live:
    """A prepared job in a client: its buffers made and filled, to be handed in again and again."""

    def __init__(self, folder, fd=None, labels=False):
        import json

        self.folder = folder
        with open(f"{folder}/job.json") as file:
            self.job = json.load(file)
        self.fd = open_card("renderD128") if fd is None else fd
        self.handles, self.views = [], []
        for index, entry in enumerate(self.job["bos"]):
            data = self.content(index)
            if entry["shader"]:
                held, place = buffer(data)
                handle = ioctl(self.fd, 0x45, "IIQII", len(data), 0, place, 0, 0)[3]
                self.views.append(None)
            else:
                handle = create_bo(self.fd, len(data))
                self.views.append(map_bo(self.fd, handle, len(data)))
                self.views[-1][:] = data
            self.handles.append(handle)
            if labels:
                held, place = buffer(b"label %d" % index)
                ioctl(self.fd, 0x4A, "IIQ", handle, len(held.raw), place)
        self.colour = self.job["color_write"]["hindex"]

    def content(self, name):
        with open(f"{self.folder}/{name}.bin", "rb") as file:
            return file.read()

    def submit(self, perfmon=0, in_sync=0, out_sync=0):
        """The job's sequence number."""
        job, names = self.job, ("bin_cl", "shader_rec", "uniforms")
        streams = [buffer(self.content(name) or b"\0") for name in names]
        sizes = [len(self.content(name)) for name in names]
        held, places = buffer(struct.pack(f"<{len(self.handles)}I", *self.handles))
        surfaces = b"".join(struct.pack("<IIHH", *values) for values in job["surfaces"])
        data = bytearray(
            struct.pack("<QQQQ", *[place for _, place in streams], places)
            + struct.pack("<II", *sizes[:2])
            + struct.pack("<III", job["shader_rec_count"], sizes[2], len(self.handles))
            + struct.pack("<HH", job["width"], job["height"])
            + bytes(job[n] for n in ("min_x_tile", "min_y_tile", "max_x_tile", "max_y_tile"))
            + surfaces
            + struct.pack("<IIIB3x", *job["clear_color"], job["clear_z"], job["clear_s"])
            + struct.pack("<IQIIII", job["flags"], 0, perfmon, in_sync, out_sync, 0)
        )
        assert len(data) == 176
        fcntl.ioctl(self.fd, number(0x40, 176), data)
        return struct.unpack_from("<Q", data, 152)[0]

    def go(self):
        """Let the next job of `held_jobs` begin."""
        open(f"{self.folder}/go", "w").close()

    def finish(self, seqno, name="drawn"):
        """Wait for a job and keep its colour surface in a file."""
        ioctl(self.fd, 0x41, "QQ", seqno, 10**11)
        ioctl(self.fd, 0x42, "IIQ", self.handles[self.colour], 0, 0)
        with open(f"{self.folder}/{name}", "wb") as file:
            file.write(self.views[self.colour][:])


def run_live(device: DrmDevice, client: Callable[[], None], *arguments: str, expect: int | None = 0) -> str:
    """`run_client` for a client that uses `Live`."""
    return run_client(device, client, *arguments, expect=expect, helpers=inspect.getsource(Live))
