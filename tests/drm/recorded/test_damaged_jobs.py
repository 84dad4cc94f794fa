"""Recorded jobs that are damaged: a message with the job, the record and the rule."""

import json
import os
import shutil
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.drm.recorded.edited import bos, change_list, edit, surface

from vc4lab.diagnostics import Reporter
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.drm.uapi.submit import JobError
from vc4lab.records.control import build

JOBS = Path(__file__).parents[2] / "data" / "vc4-jobs"


def refused(run: Path) -> str:
    reporter = Reporter()
    recorded = RecordedRun(run, reporter)
    with pytest.raises(JobError) as caught:
        recorded.jobs[0].build()
    assert caught.value.diagnostic in reporter.items
    return reporter.summary()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": "wide"}, "DRM-002"),
        ({"width": 1 << 16}, "'width' is not an unsigned integer of 16 bits"),
        ({"bos": 3}, "DRM-002"),
        ({"clear_color": [1]}, "DRM-002"),
        ({"bin_cl_size": -1}, "DRM-002"),
        ({"bos": bos(0, addr=1 << 40)}, "DRM-004"),
        ({"bos": bos(0, size=0)}, "DRM-004"),
        ({"bos": bos(1, addr=0xFFF)}, "0xfff is not a multiple of the page size"),
        ({"bos": bos(4, addr=0x90_0008)}, "DRM-004"),
        ({"bos": bos(4, addr=0, size=1 << 30)}, "DRM-004"),
        ({"bos": lambda old: old[:3]}, "DRM-005"),
        ({"shader_rec_count": 0}, "DRM-008"),
        ({"shader_rec_size": 40}, "DRM-008"),
        ({"uniforms_size": 8}, "DRM-009"),
        ({"max_x_tile": 2}, "DRM-014"),
        ({"min_x_tile": 1}, "DRM-014"),
        ({"color_write": surface(hindex=0xFFFFFFFF)}, "DRM-013"),
        ({"color_write": surface(hindex=99)}, "DRM-005"),
        ({"color_write": surface(offset=8)}, "not a multiple of 16"),
        ({"color_write": surface(offset=16384)}, "DRM-013"),
        ({"color_write": surface(bits=0x4C)}, "reserved format"),
        ({"color_write": surface(bits=0xFFFF)}, "DRM-013"),
        ({"height": 0}, "DRM-013"),
        ({"zs_write": surface(hindex=4, bits=0x11)}, None),
        ({"zs_write": surface(hindex=4, bits=0x14)}, "neither colour nor depth"),
        ({"msaa_color_write": surface(hindex=4, bits=1)}, "no format bits"),
    ],
)
def test_damaged_descriptions(run: Path, changes: dict[str, Any], message: str | None) -> None:
    edit(run, **changes)
    if message is None:
        RecordedRun(run).jobs[0].build()
    else:
        assert message in refused(run)


@pytest.mark.parametrize(
    ("edit_list", "message"),
    [
        (lambda d: build(16, address=0) + d, "DRM-006"),
        (lambda d: b"\xff" + d, "reserved id 0xff"),
        (lambda d: d[:-2], "does not end with 7 and 4"),
        (lambda d: d[:16] + d[17:], "DRM-007"),
        (lambda d: d[:17] + d[16:], "record 6 twice"),
        (lambda d: d[:16] + d, "record 112 twice"),
        (lambda d: d[:13] + b"\0" + d[14:], "DRM-007"),
        (lambda d: d[:0x50] + d[0x4B:], "more shader states"),
        (lambda d: d[:0x4B] + d[0x50:], "before any shader state"),
        (lambda d: d[:0x4C] + b"\x12" + d[0x4D:], "DRM-008"),
        (lambda d: d[:40], "cut off"),
    ],
)
def test_damaged_lists(run: Path, edit_list: Any, message: str) -> None:
    change_list(run, edit_list((run / "job0001" / "bin_cl.bin").read_bytes()))
    assert message in refused(run)


@pytest.mark.parametrize(
    ("changes", "code", "rule"),
    [
        ({"bos": lambda old: old[:3]}, "DRM-005", "9.3"),
        ({"shader_rec_size": 40}, "DRM-008", "9.3"),
        ({"uniforms_size": 8}, "DRM-009", "9.3"),
        ({"bos": bos(0, shader=False)}, "DRM-011", "9.3"),
        ({"bos": bos(0, size=16)}, "DRM-011", "9.5.2"),
    ],
)
def test_a_refusal_names_job_record_and_rule(
    run: Path, changes: dict[str, Any], code: str, rule: str
) -> None:
    """Also where the stream after the record is what does not fit."""
    edit(run, **changes)
    (line,) = [line for line in refused(run).splitlines() if code in line]
    assert "job0001: binning list, byte 75: " in line
    assert f"(rule {rule})" in line


def test_the_same_fault_in_two_jobs_is_told_twice(run: Path) -> None:
    edit(run, uniforms_size=8)
    shutil.copytree(run / "job0001", run / "job0002")
    reporter = Reporter()
    recorded = RecordedRun(run, reporter)
    for job in recorded.jobs:
        with pytest.raises(JobError):
            job.build()
    assert [item.message[:7] for item in reporter.items] == ["job0001", "job0002"]


@pytest.mark.parametrize("name", ["bin_cl", "shader_rec", "uniforms"])
@pytest.mark.parametrize("damage", ["missing", "half", "folder", "pipe"])
def test_incomplete_streams(run: Path, name: str, damage: str) -> None:
    """A job without all of its streams is left out: never half of a picture, never a wait."""
    path = run / "job0001" / f"{name}.bin"
    data = path.read_bytes()
    path.unlink()
    if damage == "half":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "folder":
        path.mkdir()
    elif damage == "pipe":
        os.mkfifo(path)
    assert "DRM-003" in refused(run)
    assert "DRM-008" not in refused(run)


@pytest.mark.parametrize("name", ["bin_cl_size", "shader_rec_size", "uniforms_size", "width"])
def test_fields_that_must_be_there(run: Path, name: str) -> None:
    path = run / "job0001" / "submit.json"
    table = json.loads(path.read_text())
    del table[name]
    path.write_text(json.dumps(table))
    assert f"field '{name}'" in refused(run)


def test_missing_files(run: Path) -> None:
    (run / "job0001" / "submit.json").write_text("{" * 100000)
    assert "DRM-002" in refused(run)
    reporter = Reporter()
    assert not RecordedRun(run / "nowhere", reporter).jobs
    assert reporter.has("DRM-001")


def test_damaged_blobs(run: Path) -> None:
    name = next((run.parent / "blobs").glob("2937811f*")).name
    (run.parent / "blobs" / name).write_bytes(b"not zlib")
    assert "DRM-018" in refused(run), "a program of zeros is one of breakpoints"
    for name in ("../secret.z", "/etc/passwd", ""):
        edit(run, bos=bos(3, blob=name))
        reporter = Reporter()
        with pytest.raises(JobError):
            RecordedRun(run, reporter).jobs[0].build()
        assert reporter.has("DRM-003")


def test_a_blob_cannot_grow_beyond_its_buffer(run: Path) -> None:
    (run.parent / "blobs" / "bomb.z").write_bytes(zlib.compress(b"\xaa" * (1 << 20)))
    edit(run, bos=bos(3, blob="bomb.z"))
    recorded = RecordedRun(run)
    recorded.jobs[0].build()
    assert recorded.memory.read(0x105000, 4096) == b"\xaa" * 4096


def test_overruns_are_refused(run: Path) -> None:
    data = (run / "job0001" / "bin_cl.bin").read_bytes()
    change_list(run, data[:0x52] + struct.pack("<I", 70000) + data[0x56:])
    reporter = Reporter()
    with pytest.raises(JobError, match="DRM-012"):
        RecordedRun(run, reporter).jobs[0].build()
    assert reporter.has("CLE-015")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_hostile_streams(run: Path, data: st.DataObject) -> None:
    """Any bytes in the streams: a built job or a refusal, nothing else."""
    directory = run / "job0001"
    for name in ("bin_cl", "shader_rec", "uniforms"):
        raw = bytearray((JOBS / "tri_arm64" / "job0001" / f"{name}.bin").read_bytes())
        for _ in range(data.draw(st.integers(0, 3))):
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
        (directory / f"{name}.bin").write_bytes(raw)
    recorded = RecordedRun(run)
    try:
        recorded.jobs[0].build()
    except JobError as error:
        code = error.diagnostic.code
    else:
        code = "DRM-000"
    assert code.startswith("DRM-")


def test_a_run_without_its_blobs(tmp_path):
    """Said once, with the places looked at; nothing is drawn from zeros."""
    shutil.copytree(JOBS / "kmscube_smooth", tmp_path / "moved" / "kmscube_smooth")
    reporter = Reporter()
    run = RecordedRun(tmp_path / "moved" / "kmscube_smooth", reporter)
    (item,) = reporter.items
    assert item.code == "DRM-003"
    assert "folder blobs with the contents of" in item.message
    assert str(tmp_path / "moved" / "blobs") in item.message
    for job in run.jobs:
        with pytest.raises(JobError):
            job.build()
    shutil.copytree(JOBS / "blobs", tmp_path / "moved" / "kmscube_smooth" / "blobs")
    reporter = Reporter()
    RecordedRun(tmp_path / "moved" / "kmscube_smooth", reporter).jobs[0].build()
    assert not reporter.items


@pytest.mark.parametrize(
    ("text", "message"),
    [(b'{"a": "\xe9"}', "byte 7 is not UTF-8"), (b'{"a": x}', "not JSON"), (b"", "not JSON")],
)
def test_descriptions_that_are_no_json(tmp_path, text, message):
    (tmp_path / "job0001").mkdir()
    (tmp_path / "job0001" / "submit.json").write_bytes(text)
    reporter = Reporter()
    RecordedRun(tmp_path, reporter)
    assert [message in item.message for item in reporter.items] == [True]


def test_a_run_without_end(monkeypatch):
    """The streams of all jobs together have a limit, which is said."""
    from vc4lab.drm.recorded import jobs

    monkeypatch.setattr(jobs, "MAX_RUN", 10)
    reporter = Reporter()
    run = RecordedRun(JOBS / "kmscube_smooth", reporter)
    assert [job.submit is None for job in run.jobs] == [False, True, True]
    assert "the run's streams exceed 10 bytes" in reporter.items[0].message
