"""`vc4lab compile` through its command function."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from vc4lab.cli.compile import compile as command
from vc4lab.cli.groups import spread
from vc4lab.qpu.isa.encoding import words_of
from vc4lab.qpu.lint.lint import lint

SHADERS = Path(__file__).parents[1] / "data" / "tgsi"
CEL = SHADERS / "ints.shading-cel.1.frag.tgsi"
APP = typer.Typer()
APP.command("compile")(spread(command))
RUN = CliRunner()


def test_a_fragment_program_is_listed() -> None:
    result = RUN.invoke(APP, [str(CEL)])
    assert result.exit_code == 0
    assert "# fragment program: " in result.output
    assert "tlbz" in result.output
    assert "# varyings: GENERIC[0].x" in result.output
    assert "CONST[" not in result.output.partition("instructions")[0]
    assert "# SSA" not in result.output
    assert "tlbz" not in RUN.invoke(APP, [str(CEL), "--no-depth"]).output
    assert "v8muld" in RUN.invoke(APP, [str(CEL), "--blend"]).output


def test_steps_are_explained() -> None:
    output = RUN.invoke(APP, [str(CEL), "--explain"]).output
    for part in ("# text\nFRAG", "# SSA", "# without conditions", " # 46: 34: MOV OUT[0].w, IMM[0].zzzz"):
        assert part in output


@pytest.mark.parametrize("stage", ["vertex", "coordinate"])
def test_programs_of_a_vertex_shader(stage: str, tmp_path: Path) -> None:
    path = tmp_path / "program.bin"
    shader = SHADERS / "ints.jellyfish.2.vert.tgsi"
    result = RUN.invoke(APP, [str(shader), "--stage", stage, "-o", str(path)])
    assert result.exit_code == 0
    assert f"# {stage} program: " in result.output
    assert "viewport x scale" in result.output
    assert lint(words_of(path.read_bytes())) == []


def test_what_is_no_shader() -> None:
    result = RUN.invoke(APP, ["-"], input="FRAG\n  0: JUMP\n")
    assert result.exit_code != 0
    assert "TGSI-002" in result.output
    assert RUN.invoke(APP, [str(CEL), "--stage", "vertex"]).exit_code != 0
