# ruff: noqa: F821, RUF059 - clients are other programs
"""Recorded jobs handed in by a live client: the bytes that replay draws; bad ones refused."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.drm_client import run_client
from tests.support.live_jobs import held_jobs, prepare, run_live
from tests.support.supervised import need_supervisor

from vc4lab.drm.device.device import DrmDevice


def client() -> None:
    live = Live(sys.argv[1])
    seqno = live.submit()
    live.finish(seqno)
    print("job", seqno)


RUNS = (
    "tri_amd64", "kmscube_smooth", "glmark2_ideas", "glmark2_texture_texture-filter_mipmap",
    "glmark2_buffer_update-method_map",
)  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_a_live_job_draws_what_replay_draws(device: DrmDevice, tmp_path: Path, name: str) -> None:
    expected = prepare(name, tmp_path)
    run_live(device, client, str(tmp_path))
    assert device.gpu.jobs == 1
    assert (tmp_path / "drawn").read_bytes() == expected


def test_an_error_of_ours_ends_the_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would wait for a job that is never drawn."""
    prepare("tri_amd64", tmp_path)

    def broken(*_: Any) -> bool:
        raise ZeroDivisionError("a mistake in the simulator")

    monkeypatch.setattr("vc4lab.drm.device.gpu.run_job", broken)
    need_supervisor()
    with (
        DrmDevice(paced=False, threads=1) as device,
        pytest.raises(ZeroDivisionError, match="a mistake in the simulator"),
    ):
        run_live(device, client, str(tmp_path))


def test_nothing_is_remembered_of_shaders_that_are_gone(device: DrmDevice, tmp_path: Path) -> None:
    """Each start of a program has them elsewhere: what is known of them would pile up."""
    expected = prepare("glmark2_ideas", tmp_path)
    for _ in range(2):
        (tmp_path / "drawn").unlink(missing_ok=True)
        run_live(device, client, str(tmp_path))
        assert (tmp_path / "drawn").read_bytes() == expected
        end = time.monotonic() + 30
        while any(map(len, remembered(device))):
            assert time.monotonic() < end, list(map(len, remembered(device)))
            time.sleep(0.01)


def remembered(device: DrmDevice) -> list[Any]:
    """What the V3D knows of the shaders and textures that it has met."""
    frames, coordinates = device.v3d.frames.preparer, device.v3d.binning.coordinates
    found: list[Any] = [frames.pipelines._known, frames._draws.pipelines.made, frames._draws]
    for programs in (frames.programs, coordinates.programs):
        found += [programs._programs, programs._met, programs._textures, programs._layouts]
    for stage in (frames.vertices, coordinates):
        found += [stage._pipelines, stage.shaders._places, stage.shaders._keep]
    return found


def test_a_surface_that_is_not_there_may_have_bits(device: DrmDevice, tmp_path: Path) -> None:
    expected = prepare("tri_amd64", tmp_path)
    table = json.loads((tmp_path / "job.json").read_text())
    table["surfaces"][3] = [0xFFFFFFFF, 0, 0x12, 0]  # zs_write
    (tmp_path / "job.json").write_text(json.dumps(table))
    run_live(device, client, str(tmp_path))
    assert (tmp_path / "drawn").read_bytes() == expected


def test_a_refused_job_is_einval_and_a_sentence(device: DrmDevice, tmp_path: Path) -> None:
    prepare("tri_amd64", tmp_path)
    table = json.loads((tmp_path / "job.json").read_text())
    table["flags"] = 0x100
    (tmp_path / "job.json").write_text(json.dumps(table))
    text = run_live(device, client, str(tmp_path), expect=1)
    assert "Invalid argument" in text
    assert device.gpu.jobs == 0
    assert any(item.code == "DRM-017" for item in device.reporter.items)
    assert "] job 1: " in device.reporter.items[0].message


def test_a_refusal_names_the_buffer_by_its_label(device: DrmDevice, tmp_path: Path) -> None:
    """Attributes that begin so late that their buffer is too short for them."""
    prepare("tri_amd64", tmp_path)
    records = bytearray((tmp_path / "shader_rec.bin").read_bytes())
    count = 4 * (3 + 2)  # handles of three shaders and two arrays
    records[count + 36 : count + 40] = (1 << 20).to_bytes(4, "little")
    (tmp_path / "shader_rec.bin").write_bytes(records)

    def client() -> None:
        Live(sys.argv[1], labels=True).submit()

    run_live(device, client, str(tmp_path), expect=1)
    (item,) = device.reporter.items
    assert re.search(r"\] job 1: .* \(in bo 'label \d' 0x", item.message), item.message


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

    run_live(device, client, str(tmp_path))


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


def test_synchronising_a_dma_buf_waits_for_its_jobs(
    device: DrmDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who reads waits for the job that draws into it, who writes for every job that uses it."""
    held_jobs(monkeypatch, tmp_path)
    expected = prepare("tri_amd64", tmp_path)

    def client() -> None:
        live = Live(sys.argv[1])
        other = next(n for n, view in enumerate(live.views) if view is not None and n != live.colour)

        def busy(seqno):
            return refused(live.fd, 0x41, "QQ", seqno, 0) == errno.ETIME

        def sync(index, flags):
            number = ioctl(live.fd, 0x2D, "IIi", live.handles[index], 2, -1)[2]
            fcntl.ioctl(number, 0x40086200, struct.pack("<Q", flags))
            os.close(number)

        for index, flags, waits in (
            (live.colour, 1, True),
            (live.colour, 2, True),
            (live.colour, 3, True),
            (live.colour, 5, False),
            (other, 1, False),
            (other, 2, True),
            (other, 6, False),
        ):
            seqno = live.submit()
            assert busy(seqno)
            if waits:
                live.go()
            sync(index, flags)
            assert busy(seqno) != waits, (index, flags)
            if not waits:
                live.go()
            live.finish(seqno)

    run_live(device, client, str(tmp_path))
    assert (tmp_path / "drawn").read_bytes() == expected


def test_sync_files_are_merged(device: DrmDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held_jobs(monkeypatch, tmp_path)
    prepare("tri_amd64", tmp_path)

    def client() -> None:
        live = Live(sys.argv[1])
        files = []
        for _ in range(2):
            box = ioctl(live.fd, 0xBF, "II", 0, 0)[0]
            seqno = live.submit(out_sync=box)
            files.append(ioctl(live.fd, 0xC1, "IIiI", box, 1, -1, 0)[2])

        def merge(first, second):
            data = bytearray(struct.pack("<32siiII", b"both", second, -1, 0, 0))
            try:
                fcntl.ioctl(first, 0xC0303E03, data)
            except OSError as error:
                return -error.errno
            return struct.unpack("<32siiII", data)[2]

        def status(number):
            data = bytearray(struct.pack("<32siIIIQ", b"", 0, 0, 0, 0, 0))
            fcntl.ioctl(number, 0xC0383E04, data)
            return struct.unpack("<32siIIIQ", data)[1]

        both = merge(files[0], files[1])
        assert both >= 0
        assert status(both) == 0
        live.go()
        select.select([files[0]], [], [])
        assert select.select([both], [], [], 0)[0] == []
        live.go()
        assert select.select([both], [], [], 60)[0] == [both]
        assert status(both) == status(files[1]) == 1
        ioctl(live.fd, 0x41, "QQ", seqno, 0)
        assert select.select([merge(files[1], both)], [], [], 0)[0]
        assert merge(files[0], 0) == merge(files[0], 999) == merge(files[0], live.fd) == -2
        assert merge(os.eventfd(0), files[0]) == -errno.ENOTTY

    run_live(device, client, str(tmp_path))
