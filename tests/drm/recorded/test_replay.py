"""Recorded driver jobs drawn: the horse, the crate, the cat, the cube, as golden pictures.

`VC4LAB_ACCEPT=1 pytest tests/drm/recorded/test_replay.py` rewrites the pictures; look at them
before committing.
"""

import json
import os
import shutil
from pathlib import Path

import numpy
import pytest
from PIL import Image
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.drm.recorded.byte_order import ByteOrder
from vc4lab.drm.recorded.replay import replay

JOBS = Path(__file__).parents[2] / "data" / "vc4-jobs"
PICTURES = Path(__file__).parents[2] / "data" / "replay-pictures"
RUNS = sorted(path.name for path in JOBS.iterdir() if path.is_dir() and path.name != "blobs")


@pytest.mark.parametrize("name", RUNS)
def test_golden_pictures(name: str) -> None:
    result = replay(JOBS / name)
    assert result.drawn == result.jobs
    assert not result.reporter.items
    assert result.image is not None
    golden = PICTURES / f"{name}.png"
    if os.environ.get("VC4LAB_ACCEPT"):
        PICTURES.mkdir(exist_ok=True)
        result.image.save(golden, optimize=True)
    with Image.open(golden) as expected:
        assert expected.size == result.image.size
        difference = numpy.asarray(expected).astype(int) - numpy.asarray(result.image)
    assert not difference.any(), f"{numpy.count_nonzero(difference.any(axis=-1))} pixels differ"


def test_interpreter_draws_the_same() -> None:
    fast, golden = (replay(JOBS / "tri_arm64", engine=e).image for e in ("jit", "interpreter"))
    assert fast is not None
    assert golden is not None
    assert fast.tobytes() == golden.tobytes()


def test_triangle_corners() -> None:
    """Red, green and blue corners on the clear colour, whatever the golden file says."""
    result = replay(JOBS / "tri_arm64")
    assert result.order is ByteOrder.RGBA
    image = result.image
    assert image is not None
    assert image.getpixel((0, 63)) == (0x40, 0x80, 0xBF)
    pixels = numpy.asarray(image)
    assert pixels[3, 5].argmax() == 0
    assert pixels[3, 58].argmax() == 1
    assert pixels[52, 32].argmax() == 2


def test_command(tmp_path: Path) -> None:
    import typer

    from vc4lab.cli.groups import spread
    from vc4lab.cli.replay import replay as command

    app = typer.Typer()
    app.command()(spread(command))
    picture = tmp_path / "out" / "cube.png"
    every = tmp_path / "every"
    arguments = [str(JOBS / "kmscube_smooth"), "-o", str(picture), "--every", str(every)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    assert "3 of 3 jobs drawn, 640x480 bgra" in result.output
    assert len(list(every.iterdir())) == 3
    assert picture.exists()
    for name in ("x.unknown", "x.psd", "x"):  # the second can only be read
        result = CliRunner().invoke(app, [str(JOBS / "tri_arm64"), "-o", str(tmp_path / name)])
        assert result.exit_code == ExitCode.BAD_INPUT
        assert "unknown picture format" in result.output
    (tmp_path / "file").touch()
    target = tmp_path / "file" / "x.png"
    result = CliRunner().invoke(app, [str(JOBS / "tri_arm64"), "-o", str(target)])
    assert result.exit_code == ExitCode.OUTPUT


def test_the_format_of_a_565_frame(tmp_path: Path) -> None:
    import typer

    from vc4lab.cli.groups import spread
    from vc4lab.cli.replay import replay as command

    shutil.copytree(JOBS / "tri_arm64", tmp_path / "run")
    shutil.copytree(JOBS / "blobs", tmp_path / "blobs")
    place = tmp_path / "run" / "job0001" / "submit.json"
    submit = json.loads(place.read_text())
    assert submit["color_write"]["bits"] & 12 == 1 << 2  # rgba8888
    submit["color_write"]["bits"] ^= 12  # bgr565
    place.write_text(json.dumps(submit))
    app = typer.Typer()
    app.command()(spread(command))
    for order in ("auto", "bgra"):
        result = CliRunner().invoke(app, [str(tmp_path / "run"), "--order", order])
        assert "1 of 1 jobs drawn, 64x64 rgb565" in result.output, result.output
    found = replay(tmp_path / "run")
    assert (found.format, found.bits_per_pixel) == ("rgb565", 16)
    whole = replay(JOBS / "tri_arm64")
    assert (whole.format, whole.bits_per_pixel) == ("rgba", 32)
    assert found.image is not None
    assert whole.image is not None
    steps = numpy.asarray(found.image).astype(int) - numpy.asarray(whole.image)
    assert 0 < abs(steps).max() <= 8


def test_damage_shows_in_the_exit_code(tmp_path: Path) -> None:
    """What can be drawn is drawn, but a script sees that a part of the recording is missing."""
    import typer

    from vc4lab.cli.groups import spread
    from vc4lab.cli.replay import replay as command

    app = typer.Typer()
    app.command()(spread(command))
    shutil.copytree(JOBS / "tri_arm64", tmp_path / "run")
    shutil.copytree(JOBS / "blobs", tmp_path / "blobs")
    vertices = tmp_path / "blobs" / "6bf8937b38bdf449122c.z"
    vertices.unlink()
    result = CliRunner().invoke(app, [str(tmp_path / "run")])
    assert "1 of 1 jobs drawn" in result.output
    assert result.exit_code == ExitCode.BAD_INPUT
    result = CliRunner().invoke(app, [str(tmp_path / "run"), "--list"])
    assert "rendering list" in result.output
    assert result.exit_code == ExitCode.BAD_INPUT


def test_a_job_without_colour(tmp_path: Path) -> None:
    """A depth-only job at the end of a run: the picture before it, and a word about it."""
    shutil.copytree(JOBS / "tri_arm64", tmp_path / "run")
    shutil.copytree(JOBS / "blobs", tmp_path / "blobs")
    last = tmp_path / "run" / "job0002"
    shutil.copytree(tmp_path / "run" / "job0001", last)
    submit = json.loads((last / "submit.json").read_text())
    depth = {"hindex": 4, "offset": 0, "bits": 0x12, "flags": 0}
    submit |= {"color_write": {**depth, "hindex": 0xFFFFFFFF, "bits": 0}, "zs_write": depth}
    submit["bos"][4] |= {"addr": 0x800000, "handle": 70}
    (last / "submit.json").write_text(json.dumps(submit))
    whole = replay(tmp_path / "run")
    first = replay(tmp_path / "run", number=1)
    assert [item.message for item in whole.reporter.items] == [
        "job0002 writes no colour surface; the picture is that of job0001"
    ]
    assert whole.image is not None
    assert first.image is not None
    assert whole.image.tobytes() == first.image.tobytes()
    alone = replay(tmp_path / "run", number=2)
    assert alone.image is None
    assert (alone.drawn, alone.reporter.items[0].code) == (2, "DRM-015")
