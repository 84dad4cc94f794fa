"""`vc4lab disasm` and `lint` on recorded work: jobs of real drivers, captures."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app
from vc4lab.cli.recorded_programs import recorded_programs
from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.shader_rules import check_shader
from vc4lab.drm.recorded.programs import programs_of_run
from vc4lab.qpu.dialects.blocks import program_text
from vc4lab.qpu.dialects.choose import assemble_source
from vc4lab.qpu.lint.lint import lint

DATA = Path(__file__).parents[1] / "data"
RUNS = sorted(
    path
    for path in [*(DATA / "vc4-jobs").iterdir(), *(DATA / "vc4-conformance").iterdir()]
    if path.is_dir() and path.name != "blobs"
)
CAPTURES = sorted((DATA / "captures").glob("*.vc4cap"))
BUMP = DATA / "vc4-jobs" / "glmark2_bump_bump-render_normals"


def run(*words: object, code: int = 0) -> str:
    """What a command prints."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result.output


def test_there_are_runs_of_real_drivers() -> None:
    assert len(RUNS) > 30


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name)
def test_programs_of_real_drivers_break_no_rule_and_assemble_again(path: Path) -> None:
    found = programs_of_run(path, Reporter())
    assert found or path.name in ("glmark2_clear",)
    assert len({(one.kind, one.words) for one in found}) == len(found)
    for one in found:
        assert lint(one.words) == []
        check_shader(one.words)
        for dialect in ("qpuasm", "vc4asm"):
            text = program_text(one.words, dialect, one.address, known=one.notes)
            assert assemble_source(text, dialect=dialect).words == one.words


def test_uniforms_and_textures_have_notes() -> None:
    text = run("disasm", BUMP)
    assert re.search(r"# program \d+: fragment, job\d+, 0x[0-9a-f]{8}, \d+ instructions", text)
    assert "rgba8888 1024x1024 levels=1" in text
    assert re.search(r"# uniform \d+ \(0xbf800000, -1\)", text)
    one = run("disasm", BUMP, "--program", 1, "--dialect", "vc4asm")
    assert one.count("# program ") == 1
    assert ":L0" in one


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_captures(path: Path) -> None:
    text = run("disasm", path)
    assert {"fragment", "vertex"} <= set(re.findall(r"# program \d+: (\w+), ", text))
    assert run("lint", path, "--profile", "linux") == ""
    for one in recorded_programs(str(path)):
        assert assemble_source(program_text(one.words), dialect="qpuasm").words == one.words


def test_a_capture_of_the_driver_says_what_uniforms_are() -> None:
    text = run("disasm", DATA / "captures" / "small.vc4cap")
    assert "(texture p0)" in text
    assert "(CONST[0].w)" in text


def test_what_has_no_programs(tmp_path: Path) -> None:
    for words in (["disasm", tmp_path], ["disasm", DATA / "vc4-jobs" / "glmark2_clear"],
                  ["disasm", BUMP, "--program", 99], ["disasm", BUMP / "none.vc4cap"],
                  ["lint", tmp_path / "none.vc4cap"]):  # fmt: skip
        run(*words, code=ExitCode.BAD_INPUT)
    broken = tmp_path / "broken.vc4cap"
    broken.write_bytes(b"PK\3\4" + bytes(100))
    assert "CAP-" in run("disasm", broken, code=ExitCode.BAD_INPUT)
    assert "--program goes with" in run("disasm", __file__, "--program", 1, code=ExitCode.BAD_INPUT)
