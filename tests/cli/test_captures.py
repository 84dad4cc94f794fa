"""`vc4lab show`, `unpack` and `replay` with captures."""

import json
from pathlib import Path

import numpy as np
from PIL import Image
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app
from vc4lab.driver.capture.load import open_capture
from vc4lab.driver.capture.player import Player
from vc4lab.driver.capture.work import watched

SMALL = Path(__file__).parents[1] / "data" / "captures" / "small.vc4cap"


def vc4lab(*arguments: object, code: ExitCode = ExitCode.OK) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_an_archive_is_drawn(tmp_path):
    output = vc4lab("replay", SMALL, "-o", tmp_path / "x.png", "--every", tmp_path / "all")
    assert output.splitlines() == [
        f"frame {number}: 64x48, 3 draws, the picture as it was captured" for number in (1, 2)
    ]
    with Image.open(tmp_path / "x.png") as one, Image.open(tmp_path / "all/frame0002.png") as other:
        assert (np.asarray(one) == np.asarray(other)).all()


def test_unpacked_edited_drawn(tmp_path):
    folder = tmp_path / "small"
    vc4lab("unpack", SMALL, folder)
    assert "CAP-005" in vc4lab("unpack", SMALL, folder, code=ExitCode.BAD_INPUT)
    assert vc4lab("replay", folder).count("the picture as it was captured") == 2
    file = folder / "constants" / "constants-1.csv"
    file.write_text(file.read_text().replace("1.0,0.25", "0.0,0.25"))
    output = vc4lab("replay", folder)
    assert output.count("pixels differ from the picture as it was captured") == 2
    file.write_text("name,x,y,z,w\nCONST[0],1,x")
    output = vc4lab("replay", folder, code=ExitCode.BAD_INPUT)
    assert f"CAP-006: {file}:2: " in output
    assert "vc4lab explain CAP-006" in output


def test_what_is_edited_for_nothing(tmp_path):
    """A program of a state that is another now."""
    folder = tmp_path / "small"
    vc4lab("unpack", SMALL, folder)
    for name, before, after in (
        ("programs/program-1-fragment.qasm", "mov r1.8b, ra0", "mov r1.8b, 0"),
        ("state/blend-1.txt", "rt[0].blend_enable = no", "rt[0].blend_enable = yes"),
    ):
        (folder / name).write_text((folder / name).read_text().replace(before, after, 1))
    output = vc4lab("replay", folder)
    assert "programs/program-1-fragment.qasm was edited, but no draw uses it" in output


def test_shown(tmp_path):
    output = vc4lab("show", SMALL, "--frame", 1, "--draw", 2)
    assert output.splitlines()[:3] == ["frame 1: 13 commands, 3 draws", "  draw 2", "    commands"]
    for text in (
        "      draw mode=triangle_strip count=4 instances=1",
        "rt[0].rgb_src_factor = src_alpha",
        "        row,IN[0].x,IN[0].y,IN[0].z,IN[0].w\n        0,-0.5,-0.5,0.0,1.0\n",
        "CONST[0], 1.0, 0.25, 0.0, 0.5",
        "          0: MOV OUT[0], CONST[0]",
        "fragment program: 13 instructions",
        "uniform 0: CONST[0].z",
    ):
        assert text in output
    assert "draw 1" not in output
    assert "Tile binning" not in output
    output = vc4lab("show", SMALL, "--frame", 2, "--lists", "--pictures", tmp_path / "pictures")
    assert "frame 1" not in output
    assert "112  Tile binning mode configuration" in output
    assert "dump resource=resource-1" in output
    with Image.open(tmp_path / "pictures" / "data-1.png") as image:
        assert image.size == (8, 8)
    assert "it has no frame 3, but 1, 2" in vc4lab("show", SMALL, "--frame", 3, code=ExitCode.BAD_INPUT)


def test_options_of_recorded_jobs(tmp_path):
    for option in (("--job", 1), ("--lists",), ("--tiles", tmp_path / "x.csv")):
        output = vc4lab("replay", SMALL, *option, code=ExitCode.BAD_INPUT)
        assert "is for recorded jobs" in output
    folder = tmp_path / "jobs"
    folder.mkdir()
    assert "no capture" in vc4lab("replay", folder, "--recompile", code=ExitCode.BAD_INPUT)


def test_timed_and_counted(tmp_path):
    """As recorded jobs are: the archive, and the folder that `unpack` makes of it."""
    folder = tmp_path / "small"
    vc4lab("unpack", SMALL, folder)
    output = vc4lab("replay", SMALL, "--timing", "--counters", "--board", "pi1")
    lines = output.splitlines()
    assert lines[0] == "frame 1: 64x48, 3 draws, the picture as it was captured"
    assert "frame 2: performance counters" in lines
    assert not any("see --timing" in line for line in lines)
    assert any(line.startswith("frame 2: ") and "clocks (videocore4 on pi1)" in line for line in lines)
    assert lines[-1].startswith("2 pictures in 2 jobs: pi0 ")
    found = json.loads(vc4lab("replay", folder, "--timing", "--counters", "--json"))
    assert (found["jobs"], found["pictures"], found["board"]) == (2, 2, "pi3")
    assert [one["name"] for one in found["frames"]] == list(found["counters"])
    profiled = json.loads(vc4lab("profile", SMALL, "--no-what-if", "--json"))
    assert [one["name"] for one in profiled["frames"]] == ["frame 1", "frame 2"]
    other = json.loads(vc4lab("replay", SMALL, "--timing", "--json", "--chip", "cluster-2"))
    assert other["chip"] == "cluster-2"
    assert "counters" not in other
    output = vc4lab("replay", SMALL, "--counters")
    assert output.count("performance counters") == 2
    assert "(no early Z here; see --timing)" in output
    wrong = vc4lab("replay", SMALL, "--board", "pi1", code=ExitCode.BAD_INPUT)
    assert "--board goes with --timing" in wrong


def test_jobs_of_a_frame_have_numbers():
    player = Player(open_capture(SMALL))
    with watched(player, work=True, counters=True) as watch:
        for _ in player.play():
            pass
        jobs = watch.take(7)
    assert [one.name for one in jobs] == ["frame 7 job 1", "frame 7 job 2"]
    for one in jobs:
        (frame,) = one.frames
        assert one.counted[9] == frame.totals()["covered_quads"]
    assert watch.take(8) == []
