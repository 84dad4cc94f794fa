"""Shader records of every kind as text that people edit, and the arrays that they name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vc4lab.capture.errors import CaptureError
from vc4lab.jobs.load import open_jobs
from vc4lab.jobs.model import JobsCapture, Patched, Written
from vc4lab.jobs.player import JobsPlayer
from vc4lab.jobs.unpack import unpack_jobs
from vc4lab.jobs.views import JobViews, View
from vc4lab.memory import GuestMemory
from vc4lab.records.codes import VgPrimitive
from vc4lab.records.control import build, parse_list
from vc4lab.records.declarations import VertexArrayPrimitives, VgCoordinateArray
from vc4lab.records.shader import Attribute, GlShader, GlShaderRecord, NvShaderRecord, VgShaderRecord
from vc4lab.records.states import GlShaderState, NvShaderState, VgShaderState

TRIANGLE = Path(__file__).parents[1] / "data" / "captures" / "tri.vc4cap"
LIST, RECORD, ARRAY, CODE, UNIFORMS = 0x1000, 0x2000, 0x3000, 0x4000, 0x5000


def views_of(records: bytes, **memory: bytes) -> dict[str, View]:
    """The views of a list; memory: bytes at the addresses above, by name."""
    guest = GuestMemory(1 << 20)
    guest.write(LIST, records)
    for name, data in memory.items():
        guest.write(globals()[name], data)
    made = JobViews(guest, "job")
    made.list("binning", LIST, LIST + len(records))
    return {one.file: one for one in made.views}


def edited(view: View, number: int, old: str, new: str) -> bytes:
    """The bytes of a line with other words."""
    line = [one for one in view.lines if one.encode is not None][number]
    assert old in line.text
    assert line.encode is not None
    assert line.encode(line.text) == line.encode(line.text)
    return line.encode(line.text.replace(old, new))


def test_an_extended_record() -> None:
    arrays = [Attribute(ARRAY, 12, 0x1234 + 0x100 * number, 0, 0) for number in range(8)]
    record = GlShader(GlShaderRecord.make(fs_code=CODE, fs_uniforms=UNIFORMS), tuple(arrays), extended=True)
    found = views_of(
        build(GlShaderState, address=RECORD, extended=1, attributes=3)
        + build(VertexArrayPrimitives, length=2),
        RECORD=record.to_bytes(),
    )
    view = found["job-shader-00002000.txt"]
    lines = [one for one in view.lines if one.encode is not None]
    assert len(lines) == 1 + 8 + 8
    assert [one.address for one in lines[9:]] == [RECORD + 100 + 4 * number for number in range(8)]
    assert lines[9].text.endswith("ignored=0 upper=18")
    assert edited(view, 9, "upper=18", "upper=1") == bytes.fromhex("00010000")
    tables = sorted(name for name in found if "vertices" in name)
    assert len(tables) == 8, tables
    rows = [one.address for one in found["job-vertices-00003000.csv"].lines if one.encode is not None]
    assert rows == [ARRAY, ARRAY + 0x1234]


def test_vertices_that_are_shaded_already() -> None:
    record = NvShaderRecord.make(stride=20, code=CODE, uniforms=UNIFORMS, vertices=ARRAY)
    data = np.arange(10, dtype=np.float32).tobytes()
    found = views_of(
        build(NvShaderState, address=RECORD) + build(VertexArrayPrimitives, length=2),
        RECORD=record.to_bytes(),
        ARRAY=data,
    )
    view = found["job-vertices-00003000.csv"]
    assert [one.text for one in view.lines[1:]] == ["0,0.0,1.0,2.0,3.0,4.0", "1,5.0,6.0,7.0,8.0,9.0"]
    assert edited(view, 1, "5.0", "0.5")[:4] == np.float32(0.5).tobytes()
    assert edited(found["job-shader-00002000.txt"], 0, "stride=20", "stride=24")[1] == 24


def test_arrays_of_bytes_and_of_half_words() -> None:
    arrays = (Attribute(ARRAY, 3, 4, 0, 0), Attribute(ARRAY + 0x100, 6, 6, 4, 4))
    found = views_of(
        build(GlShaderState, address=RECORD, attributes=2) + build(VertexArrayPrimitives, length=1),
        RECORD=GlShader(GlShaderRecord.make(fs_code=CODE), arrays).to_bytes(),
        ARRAY=bytes([1, 2, 255]) + bytes(0xFD) + bytes([1, 0, 255, 255, 2, 1]),
    )
    assert found["job-vertices-00003000.csv"].lines[1].text == "0,1,2,255"
    halves = found["job-vertices-00003100.csv"]
    assert halves.lines[1].text == "0,1,65535,258"
    assert edited(halves, 0, "65535", "3") == bytes([1, 0, 3, 0, 2, 1])
    with pytest.raises(ValueError, match="'300' is no number of 1 bytes"):
        edited(found["job-vertices-00003000.csv"], 0, "255", "300")


def test_points_of_vector_graphics() -> None:
    points = np.array([[16, -8], [32767, 0]], np.int16).tobytes()
    found = views_of(
        build(VgShaderState, address=RECORD)
        + build(VgCoordinateArray, type=VgPrimitive.TRIANGLES, length=2, address=ARRAY),
        RECORD=VgShaderRecord.make(code=CODE, uniforms=UNIFORMS).to_bytes(),
        ARRAY=points,
    )
    assert "job-shader-00002000.txt" in found
    view = found["job-coordinates-00003000.csv"]
    assert view.lines[1].text == "0,1,-0.5"
    assert edited(view, 0, "-0.5", "2.25") == np.array([16, 36], np.int16).tobytes()
    for wrong in ("9999", "wide"):
        with pytest.raises(ValueError, match="no coordinates"):
            edited(view, 0, "-0.5", wrong)


@pytest.fixture
def extended(tmp_path: Path) -> Path:
    """The triangle with an extended record, unpacked."""
    capture = open_jobs(TRIANGLE)
    put_extended(capture)
    unpack_jobs(capture, tmp_path / "folder")
    return tmp_path / "folder"


def put_extended(capture: JobsCapture) -> None:
    """Make the triangle's record an extended one: eight arrays, whose strides go on after them."""
    (frame,) = capture.frames
    player = JobsPlayer(capture)
    player.run(frame)
    written = {one.register: one.value for one in frame.events if isinstance(one, Written)}
    read = player.memory.read
    for record in parse_list(read, written["CT0CA"], written["CT0EA"]):
        if isinstance(record.payload, GlShaderState):
            new = build(GlShaderState, address=record.payload.address, extended=1, attributes=0)
            strides = record.payload.address + 100
            assert read(strides, 32) == bytes(32)
            place = next(n for n, one in enumerate(frame.events) if one == Written("CT0EA", written["CT0EA"]))
            frame.events.insert(place, Patched(record.address, new))
            return
    raise AssertionError("no shader state")


def picture(path: Path) -> np.ndarray:
    """What the frame draws."""
    ((_, result),) = JobsPlayer(open_jobs(path)).play()
    assert result.image is not None
    return np.asarray(result.image).astype(int)


def test_an_extended_record_that_was_edited_is_drawn(extended: Path) -> None:
    ((_, result),) = JobsPlayer(open_jobs(TRIANGLE)).play()
    before = picture(extended)
    assert (before == np.asarray(result.image)).all()
    (file,) = extended.glob("jobs/1/job-1-shader-*.txt")
    lines = file.read_text().split("\n")
    (first,) = (n for n, one in enumerate(lines) if "strides" in one)
    assert "upper=0" in lines[first + 1]
    file.write_text("\n".join([*lines[: first + 1], lines[first + 1].replace("upper=0", "upper=1"),
                               *lines[first + 2 :]]))  # fmt: skip
    assert (picture(extended) != before).any()
    file.write_text(file.read_text().replace("upper=1", "upper=16777216"))
    with pytest.raises(CaptureError) as caught:
        open_jobs(extended)
    assert (caught.value.code, caught.value.line) == ("CAP-006", first + 2)
    assert "doesn't fit in 24 bits" in caught.value.text
