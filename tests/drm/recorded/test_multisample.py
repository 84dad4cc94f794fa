"""A driver's triangle as a 4x multisample job: no such job is recorded, so one is made of it."""

import json
import shutil
from pathlib import Path

import numpy
import pytest

from vc4lab.drm.recorded.replay import replay
from vc4lab.memory import GuestMemory
from vc4lab.records.control import parse_list

JOBS = Path(__file__).parents[2] / "data" / "vc4-jobs"
COLOUR, SAMPLES, DEPTH = 0x20_0000, 0x21_0000, 0x22_0000
MULTISAMPLE, DECIMATE_4X = 0x01, 0x10
"""Bits of color_write, as in record 113."""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The recorded triangle in 2x2 tiles of 32x32 pixels, resolved and dumped."""
    shutil.copytree(JOBS / "tri_arm64", tmp_path / "run")
    shutil.copytree(JOBS / "blobs", tmp_path / "blobs")
    job = tmp_path / "run" / "job0001"
    data = bytearray((job / "bin_cl.bin").read_bytes())
    memory = GuestMemory()
    memory.write(0x1000, bytes(data))
    for record in parse_list(memory.read, 0x1000, 0x1000 + len(data)):
        place = record.address - 0x1000
        if record.id == 112:
            data[place + 13 : place + 15] = b"\x02\x02"
            data[place + 15] |= 1
        elif record.id == 96:
            data[place + 1] |= 0x40  # oversample 4x
    (job / "bin_cl.bin").write_bytes(data)
    submit = json.loads((job / "submit.json").read_text())
    submit["max_x_tile"] = submit["max_y_tile"] = 1
    submit["bos"][4] |= {"addr": COLOUR, "size": 0x30000, "used_size": 0x30000}
    submit["color_write"]["bits"] |= MULTISAMPLE | DECIMATE_4X
    for name, address in (("msaa_color_write", SAMPLES), ("msaa_zs_write", DEPTH)):
        submit[name] = {"hindex": 4, "offset": address - COLOUR, "bits": 0, "flags": 0}
    (job / "submit.json").write_text(json.dumps(submit))
    return tmp_path / "run"


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_a_multisample_job(run: Path, engine: str) -> None:
    result = replay(run, engine=engine)
    assert not result.reporter.items
    assert result.drawn == 1
    plain, resolved = replay(JOBS / "tri_arm64").image, result.image
    assert plain is not None
    assert resolved is not None
    before, after = (numpy.asarray(image).astype(int) for image in (plain, resolved))
    differing = (before != after).any(axis=-1)
    assert 20 < differing.sum() < 300  # the edges
    # What differs lies between the colours of neighbours: a blend with the clear colour.
    assert (before[~differing] == after[~differing]).all()
    # Without color_write the picture is the average of the samples that were dumped.
    path = run / "job0001" / "submit.json"
    submit = json.loads(path.read_text())
    submit["color_write"] |= {"hindex": 0xFFFFFFFF, "bits": MULTISAMPLE | DECIMATE_4X}
    path.write_text(json.dumps(submit))
    dumped = replay(run, engine=engine)
    assert not dumped.reporter.items
    assert dumped.image is not None
    assert dumped.image.tobytes() == resolved.tobytes()


@pytest.mark.parametrize(("tiles", "code"), [(4, None), (3, "DRM-025"), (2, "DRM-013")])
def test_room_of_full_resolution_surfaces(run: Path, tiles: int, code: str | None) -> None:
    """The kernel does not ask for the last tile's room; here that is a warning."""
    path = run / "job0001" / "submit.json"
    submit = json.loads(path.read_text())
    submit["bos"][4]["size"] = submit["bos"][4]["used_size"] = 0x20000 + tiles * 16384
    path.write_text(json.dumps(submit))
    # One thread: what the last tile writes beyond its room hits lists that others may be reading.
    result = replay(run, threads=1)
    assert [item.code for item in result.reporter.items] == ([code] if code else [])
    assert result.drawn == (code != "DRM-013")
