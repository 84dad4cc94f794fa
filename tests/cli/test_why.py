"""`vc4lab why`: stages of captured frames, of drivers' jobs, and what is no capture."""

from pathlib import Path

import pytest
from tests.mistakes.mistakes import MISTAKES
from tests.mistakes.scene import Scene
from typer.testing import CliRunner

from vc4lab.cli.main import app
from vc4lab.jobs.model import JobsCapture
from vc4lab.jobs.recorder import JobsRecorder
from vc4lab.jobs.store import save_jobs
from vc4lab.soc.debug.captured import capture

DATA = Path(__file__).parents[1] / "data"
RUNNER = CliRunner()


@pytest.fixture(scope="module")
def turned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The capture of a triangle that faces away."""
    mistake = next(one for one in MISTAKES if one.name == "only the other face is enabled")
    scene = Scene(mistake.example, mistake.change)
    recorder = JobsRecorder(JobsCapture("boot", mistake.example), first=1, last=1)
    capture(scene.machine, recorder)
    scene.run()
    recorder.close()
    path = tmp_path_factory.mktemp("why") / "turned.vc4cap"
    save_jobs(recorder.capture, path)
    return path


def test_a_frame_without_a_picture(turned: Path) -> None:
    result = RUNNER.invoke(app, ["why", str(turned)])
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0] == "frame 1"
    assert any(line.endswith("tile lists 32 (once for each tile), facing 0") for line in lines)
    assert any(line.startswith("    DRAW-006 at 0x") for line in lines)
    assert lines[-1] == "1 of 1 frames have no picture"


def test_a_replay_says_it_too(turned: Path) -> None:
    result = RUNNER.invoke(app, ["replay", str(turned)])
    assert result.exit_code == 0
    assert "DRAW-006" in result.output


def test_recorded_jobs() -> None:
    result = RUNNER.invoke(app, ["why", str(DATA / "vc4-jobs" / "tri_arm64")])
    assert result.exit_code == 0
    assert "3 vertices, 1 triangle" in result.output
    assert "0 of 1 frames have no picture" in result.output


def test_a_capture_of_jobs() -> None:
    result = RUNNER.invoke(app, ["why", str(DATA / "captures" / "tri.vc4cap"), "--frame", "1"])
    assert result.exit_code == 0
    assert result.output.startswith("frame 1\n")


def test_a_capture_of_an_opengl_program() -> None:
    result = RUNNER.invoke(app, ["why", str(DATA / "captures" / "small.vc4cap")])
    assert result.exit_code == 0, result.output
    assert "left after each stage: " in result.output


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([str(DATA / "captures" / "small.vc4cap"), "--frame", "99"], 2, "it has no frame 99"),
        ([str(DATA / "nothing.vc4cap")], 2, "CAP-"),
        ([str(DATA / "captures" / "tri.vc4cap"), "--frame", "9"], 2, "it has no frame 9"),
    ],
)
def test_what_cannot_be_looked_at(arguments: list[str], code: int, words: str) -> None:
    result = RUNNER.invoke(app, ["why", *arguments])
    assert result.exit_code == code
    assert words in result.output
