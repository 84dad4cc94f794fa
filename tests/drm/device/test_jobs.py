# ruff: noqa: F821, RUF059 - clients are other programs
"""Recorded jobs handed in by a live client: the bytes that replay draws; bad ones refused."""

from __future__ import annotations

import inspect
import json
import textwrap
from pathlib import Path

import pytest
from tests.support.drm_client import CLIENT, run_client

from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.kernel.hardware import run_job
from vc4lab.drm.kernel.jobs import BuiltJob
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.v3d.core import V3D

JOBS = Path(__file__).parents[2] / "data" / "vc4-jobs"
SURFACES = (
    "color_read", "color_write", "zs_read", "zs_write", "msaa_color_write", "msaa_zs_write",
)  # fmt: skip


def prepare(name: str, folder: Path) -> bytes:
    """A recorded run's first job as files for a client; the colour surface that replay draws."""
    run = RecordedRun(JOBS / name)
    job = run.jobs[0]
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


def client() -> None:
    import json

    folder = sys.argv[1]

    def content(name):
        with open(f"{folder}/{name}.bin", "rb") as file:
            return file.read()

    with open(f"{folder}/job.json") as file:
        job = json.load(file)
    fd = open_card("renderD128")
    handles, views = [], []
    for index, entry in enumerate(job["bos"]):
        data = content(index)
        if entry["shader"]:
            held, place = buffer(data)
            handles.append(ioctl(fd, 0x45, "IIQII", len(data), 0, place, 0, 0)[3])
            views.append(None)
        else:
            handles.append(create_bo(fd, len(data)))
            views.append(map_bo(fd, handles[-1], len(data)))
            views[-1][:] = data
    streams = [buffer(content(name) or b"\0") for name in ("bin_cl", "shader_rec", "uniforms")]
    sizes = [len(content(name)) for name in ("bin_cl", "shader_rec", "uniforms")]
    held, places = buffer(struct.pack(f"<{len(handles)}I", *handles))
    surfaces = b"".join(struct.pack("<IIHH", *values) for values in job["surfaces"])
    data = bytearray(
        struct.pack("<QQQQ", *[place for _, place in streams], places)
        + struct.pack("<II", *sizes[:2])
        + struct.pack("<III", job["shader_rec_count"], sizes[2], len(handles))
        + struct.pack("<HH", job["width"], job["height"])
        + bytes(job[n] for n in ("min_x_tile", "min_y_tile", "max_x_tile", "max_y_tile"))
        + surfaces
        + struct.pack("<IIIB3x", *job["clear_color"], job["clear_z"], job["clear_s"])
        + struct.pack("<IQIIII", job["flags"], 0, 0, 0, 0, 0)
    )
    assert len(data) == 176
    fcntl.ioctl(fd, number(0x40, 176), data)
    seqno = struct.unpack_from("<Q", data, 152)[0]
    ioctl(fd, 0x41, "QQ", seqno, 10**11)
    colour = job["color_write"]["hindex"]
    ioctl(fd, 0x42, "IIQ", handles[colour], 0, 0)
    with open(f"{folder}/drawn", "wb") as file:
        file.write(views[colour][:])
    print("job", seqno)


RUNS = (
    "tri_amd64", "kmscube_smooth", "glmark2_ideas", "glmark2_texture_texture-filter_mipmap",
    "glmark2_buffer_update-method_map",
)  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_a_live_job_draws_what_replay_draws(device: DrmDevice, tmp_path: Path, name: str) -> None:
    expected = prepare(name, tmp_path)
    run_client(device, client, str(tmp_path))
    assert device.gpu.jobs == 1
    assert (tmp_path / "drawn").read_bytes() == expected


def test_a_refused_job_is_einval_and_a_sentence(device: DrmDevice, tmp_path: Path) -> None:
    prepare("tri_amd64", tmp_path)
    table = json.loads((tmp_path / "job.json").read_text())
    table["flags"] = 0x100
    (tmp_path / "job.json").write_text(json.dumps(table))
    text = run_client(device, client, str(tmp_path), expect=1)
    assert "Invalid argument" in text
    assert device.gpu.jobs == 0
    assert any(item.code == "DRM-017" for item in device.reporter.items)
    assert "python job 1" in device.reporter.items[0].message


def test_shaders_are_checked_when_they_are_made(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card("renderD128")
        for code in (bytes(64), b"\xff" * 64, bytes(8)):
            held, place = buffer(code)
            assert refused(fd, 0x45, "IIQII", len(code), 0, place, 0, 0) == errno.EINVAL
        assert refused(fd, 0x45, "IIQII", 7, 0, 0, 0, 0) == errno.EINVAL
        assert refused(fd, 0x45, "IIQII", 8, 0, 0, 0, 0) == errno.EFAULT

    run_client(device, client)
    assert {item.code for item in device.reporter.items} <= {"DRM-018", "DRM-021"}
    assert any("shader, instruction 0" in item.message for item in device.reporter.items)


def test_shader_buffers_cannot_be_mapped_or_exported(device: DrmDevice, tmp_path: Path) -> None:
    prepare("tri_amd64", tmp_path)

    def client() -> None:
        fd = open_card("renderD128")
        with open(f"{sys.argv[1]}/0.bin", "rb") as file:
            held, place = buffer(file.read())
        handle = ioctl(fd, 0x45, "IIQII", len(held.raw), 0, place, 0, 0)[3]
        assert refused(fd, 0x44, "IIQ", handle, 0, 0) == errno.EINVAL
        assert refused(fd, 0x2D, "IIi", handle, 0, -1) == errno.EINVAL
        assert refused(fd, 0x48, "IIQ", handle, 0, 0) == errno.EINVAL
        assert refused(fd, 0x4B, "IIII", handle, 1, 0, 0) == errno.EINVAL
        ioctl(fd, 0x09, "II", handle, 0, direction=1)

    run_client(device, client, str(tmp_path))


def test_waiting_and_hang_state(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        handle = create_bo(fd, 4096)
        ioctl(fd, 0x42, "IIQ", handle, 0, 0)
        ioctl(fd, 0x41, "QQ", 0, 0)
        assert refused(fd, 0x41, "QQ", 5, 0) == errno.ETIME
        began = time.monotonic()
        assert refused(fd, 0x41, "QQ", 5, 50_000_000) == errno.ETIME
        assert time.monotonic() - began >= 0.05
        assert refused(fd, 0x46, "Q38I", *[0] * 39) == errno.ENOENT

    run_client(device, client)


def test_a_job_without_an_end_is_given_up_and_can_be_looked_at(
    device: DrmDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hang(v3d: V3D, built: BuiltJob, name: str = "job") -> bool:
        v3d.reporter.report("DRM-016", f"{name}: no frame ended", block="DRM")
        return False

    def look() -> None:
        client()
        fd = open_card()
        places, place = buffer(bytes(16 * 64))
        count = ioctl(fd, 0x46, "QI37I", place, 64, *[0] * 37)
        first = struct.unpack_from("<IIII", places.raw)
        assert count[1] == 5, count
        assert first[2] % 4096 == 0
        assert first[1] >= 0x100000
        assert refused(fd, 0x46, "Q38I", *[0] * 39) == errno.ENOENT

    monkeypatch.setattr("vc4lab.drm.device.gpu.run_job", hang)
    prepare("tri_amd64", tmp_path)
    monkeypatch.setattr(
        "tests.support.drm_client.CLIENT", CLIENT + textwrap.dedent(inspect.getsource(client))
    )
    run_client(device, look, str(tmp_path))
    assert any(item.code == "DRM-016" for item in device.reporter.items)


def test_performance_monitors(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card("renderD128")
        events = [1, 3, 9] + [0] * 13
        number = ioctl(fd, 0x4C, "II16B", 0, 3, *events)[0]
        held, place = buffer(b"\xff" * 24)
        ioctl(fd, 0x4E, "I4xQ", number, place)
        assert held.raw == bytes(24)
        ioctl(fd, 0x4D, "I", number)
        assert refused(fd, 0x4D, "I", number) == errno.EINVAL
        assert refused(fd, 0x4C, "II16B", 0, 17, *events) == errno.EINVAL
        assert refused(fd, 0x4C, "II16B", 0, 1, 30, *[0] * 15) == errno.EINVAL

    run_client(device, client)
