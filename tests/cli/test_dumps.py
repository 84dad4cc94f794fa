"""Commands with dumps of other tools: CLIF, hang states, lists of VC4_DEBUG=cl; jobs of gl captures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.jobs.test_clif import DEBUG_CL
from tests.jobs.test_hang_states import hang, with_endless_fragments
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app
from vc4lab.jobs.dumps.clif_reader import read_clif
from vc4lab.jobs.work import digest_of

DATA = Path(__file__).parents[1] / "data"
TRIANGLE = DATA / "captures" / "tri.vc4cap"
SMALL = DATA / "captures" / "small.vc4cap"


def vc4lab(*arguments: object, code: ExitCode = ExitCode.OK) -> str:
    """The output of a command."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture(scope="module")
def clif(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The triangle as CLIF."""
    folder = tmp_path_factory.mktemp("clif") / "jobs"
    assert vc4lab("unpack", "--clif", TRIANGLE, folder) == f"{folder}: 1 job\n"
    return folder / "frame-1-job-1.clif"


def same_pictures(*paths: Path) -> bool:
    """Whether picture files have the same pixels."""
    first, *others = (np.asarray(Image.open(one)) for one in paths)
    return all(one.shape == first.shape and (one == first).all() for one in others)


def test_clif_of_recorded_jobs(tmp_path: Path) -> None:
    folder = tmp_path / "jobs"
    assert "3 jobs" in vc4lab("unpack", "--clif", DATA / "vc4-jobs" / "kmscube_smooth", folder)
    assert sorted(one.name for one in folder.iterdir()) == [f"frame-{n}-job-1.clif" for n in (1, 2, 3)]


def test_a_clif_is_taken_without_being_told(clif: Path, tmp_path: Path) -> None:
    vc4lab("replay", TRIANGLE, "-o", tmp_path / "0.png")
    vc4lab("replay", clif, "-o", tmp_path / "1.png")
    vc4lab("pack", clif, tmp_path / "packed.vc4cap")
    vc4lab("replay", tmp_path / "packed.vc4cap", "-o", tmp_path / "2.png")
    vc4lab("unpack", clif, tmp_path / "folder")
    vc4lab("replay", tmp_path / "folder", "-o", tmp_path / "3.png")
    for number in (1, 2, 3):  # a dump does not know that blue is shown first
        with Image.open(tmp_path / f"{number}.png") as image:
            Image.merge("RGB", image.convert("RGB").split()[::-1]).save(tmp_path / f"{number}.png")
    assert same_pictures(*(tmp_path / f"{number}.png" for number in range(4)))
    shown = vc4lab("show", clif)
    assert shown.startswith("clif frame-1-job-1.clif: ")
    assert "write CT1EA" in shown
    assert "Clear colours" in vc4lab("show", clif, "--lists")
    assert "1 jobs, 1 draws" in vc4lab("show", clif, "--draws")
    assert "drawn" in vc4lab("pixel", clif, "30,30")
    assert "fragment" in vc4lab("disasm", clif)
    assert digest_of(str(clif)) != digest_of(str(TRIANGLE))


def test_a_hang_is_named(clif: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.dump"
    path.write_bytes(hang(with_endless_fragments(read_clif(clif.read_bytes(), "x"))))
    assert "note thread 1 (rendering) stood at" in vc4lab("show", path)
    assert "the V3D hangs: a fragment shader does not end" in vc4lab("replay", path, code=ExitCode.GUEST_HANG)
    said = vc4lab("why", path, code=ExitCode.ERRORS)
    assert "thread 1 (rendering) stood at" in said
    assert "the V3D hangs: a fragment shader does not end" in said


def test_lists_alone_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "cl.txt"
    path.write_text(DEBUG_CL)
    assert "Depth offset  factor=1.5" in vc4lab("show", path)
    for command in ("replay", "why"):
        assert "CAP-013" in vc4lab(command, path, code=ExitCode.BAD_INPUT)
    assert "CAP-013" in vc4lab("unpack", path, tmp_path / "x", code=ExitCode.BAD_INPUT)


def test_the_jobs_of_commands(tmp_path: Path) -> None:
    """A capture of gl from before it had jobs: they are made when they are asked for."""
    vc4lab("unpack", "--jobs", SMALL, tmp_path / "folder")
    assert (tmp_path / "folder" / "jobs" / "2" / "job-1-binning.txt").exists()
    vc4lab("replay", tmp_path / "folder", "-o", tmp_path / "1.png")
    vc4lab("replay", SMALL, "-o", tmp_path / "0.png")
    assert same_pictures(tmp_path / "0.png", tmp_path / "1.png")
