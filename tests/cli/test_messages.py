"""`explain`, `unknowns` and `replay` as a person calls them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.explain import explain
from vc4lab.cli.groups import spread
from vc4lab.cli.replay import replay
from vc4lab.cli.unknowns import unknowns

JOBS = Path(__file__).parents[1] / "data" / "vc4-jobs"
RUNNER = CliRunner()


def app() -> typer.Typer:
    result = typer.Typer()
    for command in (explain, unknowns, replay):
        result.command()(spread(command))
    return result


def test_explain() -> None:
    result = RUNNER.invoke(app(), ["explain", "cle-001"])
    assert result.exit_code == 0
    assert "Reserved record id" in result.output
    assert "Cure:" in result.output
    assert "DRM-001" in RUNNER.invoke(app(), ["explain"]).output
    result = RUNNER.invoke(app(), ["explain", "CLE-999"])
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "There is no diagnostic" in result.output


def test_unknowns() -> None:
    result = RUNNER.invoke(app(), ["unknowns", "sublist_depth"])
    assert "* 2: two return addresses" in result.output
    assert RUNNER.invoke(app(), ["unknowns"]).exit_code == 0
    assert RUNNER.invoke(app(), ["unknowns", "x"]).exit_code == ExitCode.BAD_INPUT


def test_unknowns_as_json() -> None:
    from vc4lab.diagnostics.unknown import table

    rows = json.loads(RUNNER.invoke(app(), ["unknowns", "--json"]).output)
    assert [row["name"] for row in rows] == list(table())
    assert all(row["default"] in row["choices"] for row in rows)
    (row,) = json.loads(RUNNER.invoke(app(), ["unknowns", "sublist_depth", "--json"]).output)
    assert row["question"]


def test_switches_of_replay() -> None:
    run = str(JOBS / "tri_arm64")
    assert RUNNER.invoke(app(), ["replay", run, "--unknown", "fill_rule=bottom-left"]).exit_code == 0
    for text in ("fill_rul=top-left", "fill_rule=x", "fill_rule"):
        result = RUNNER.invoke(app(), ["replay", run, "--unknown", text])
        assert result.exit_code == ExitCode.BAD_INPUT
        assert "fill_rule" in result.output


def test_replay_lists() -> None:
    result = RUNNER.invoke(app(), ["replay", str(JOBS / "tri_arm64"), "--list"])
    assert result.exit_code == 0
    for text in (
        "Tile binning mode configuration",
        "Compressed primitive list",  # in the tile's list, after the branch
        "GL shader record",
        "attribute 1: address=0x00105008",
        "coordinate shader 0x00108000",
        "thrend",
        "end of frame",
    ):
        assert text in result.output, text


def test_listed_textures() -> None:
    path = JOBS / "glmark2_texture_texture-filter_nearest"
    result = RUNNER.invoke(app(), ["replay", str(path), "--list", "--job", "2"])
    assert result.exit_code == 0
    assert "job0001:" not in result.output
    assert "TMU0 request 0 parameter 1" in result.output
    assert "texture: rgba8888" in result.output or "texture: rgbx8888" in result.output


def test_replay_one_job() -> None:
    result = RUNNER.invoke(app(), ["replay", str(JOBS / "kmscube_smooth"), "--job", "1"])
    assert "1 of 1 jobs drawn" in result.output
    result = RUNNER.invoke(app(), ["replay", str(JOBS / "kmscube_smooth"), "--job", "9"])
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "no job 9" in result.output


@pytest.mark.parametrize("arguments", [["nowhere"], [str(JOBS), "--engine", "magic"]])
def test_replay_bad_input(arguments: list[str]) -> None:
    result = RUNNER.invoke(app(), ["replay", *arguments])
    assert result.exit_code == ExitCode.BAD_INPUT
    assert result.output.strip()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_output_that_nobody_takes() -> None:
    """A full disk or a closed pipe after the command is no internal error."""
    command = [sys.executable, "-m", "vc4lab", "explain"]
    with open("/dev/full", "wb") as full:
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode == ExitCode.OUTPUT
    assert "CLI-001" in result.stderr
    read, write = os.pipe()
    os.close(read)
    with open(write, "wb") as closed:
        result = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True)
    assert result.returncode == ExitCode.OUTPUT
    assert not result.stderr


@pytest.mark.parametrize(("stdin", "is_empty"), [("<&0", False), ("</dev/null", True), ("<&-", True)])
def test_a_program_that_ends_early_may_have_nothing_to_read(stdin: str, is_empty: bool) -> None:
    program = "from vc4lab.cli.exit_codes import ended_early; print(ended_early(6, 40))"
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {stdin}', sys.executable, program],
        stdin=subprocess.PIPE, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("the program ended after 6 of 40 frames")
    assert ("standard input is empty" in done.stdout) == is_empty
