"""`explain`, `unknowns` and `replay` as a person calls them."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.explain import explain
from vc4lab.cli.replay import replay
from vc4lab.cli.unknowns import unknowns

JOBS = Path(__file__).parents[1] / "data" / "vc4-jobs"
RUNNER = CliRunner()


def app() -> typer.Typer:
    result = typer.Typer()
    for command in (explain, unknowns, replay):
        result.command()(command)
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


def test_replay_lists() -> None:
    result = RUNNER.invoke(app(), ["replay", str(JOBS / "tri_arm64"), "--lists"])
    assert result.exit_code == 0
    assert "Tile binning mode configuration" in result.output
    assert "end of frame" in result.output


@pytest.mark.parametrize("arguments", [["nowhere"], [str(JOBS), "--engine", "magic"]])
def test_replay_bad_input(arguments: list[str]) -> None:
    result = RUNNER.invoke(app(), ["replay", *arguments])
    assert result.exit_code == ExitCode.BAD_INPUT
    assert result.output.strip()
