"""`vc4lab opt`: what it writes runs and is quicker, what it says, and what it refuses."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import vc4lab
from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app
from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.shader_rules import check_shader
from vc4lab.drm.recorded.programs import programs_of_run
from vc4lab.qpu.dialects.choose import assemble_source
from vc4lab.qpu.lint.lint import lint
from vc4lab.qpu.optimise import checking
from vc4lab.qpu.optimise.checking import Checked, Difference
from vc4lab.qpu.optimise.optimise import optimise

DATA = Path(__file__).parents[1] / "data"
RUNS = sorted(
    path
    for path in [*(DATA / "vc4-jobs").iterdir(), *(DATA / "vc4-conformance").iterdir()]
    if path.is_dir() and path.name != "blobs"
)
SAXPY = vc4lab.examples() / "qpu" / "saxpy.qasm"
LANES = vc4lab.examples() / "qpu" / "lanes.qasm"
INPUTS = ["--qpus", "2", "-m", "x=4096", "-m", "y=4096", "-u", "x + 64*qpu, y + 64*qpu, 2.0, 128, 32"]
VC4ASM = """\
# what vc4asm's dialect alone has
.set count, ra1
mov count, 4
:loop
mov r0, ra2
add r1, r0, 5; mov vpm, r1
sub.setf count, count, 1
brr.anynz -, :loop
nop
nop
nop
mov interrupt, 1
thrend
nop
nop
"""


def run(*arguments: str | Path, code: int = ExitCode.OK) -> str:
    result = CliRunner().invoke(app, ["opt", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.output


def test_the_result_is_quicker_and_right(tmp_path: Path) -> None:
    out = tmp_path / "better.qasm"
    text = run(SAXPY, *INPUTS, "-o", out)
    before, after = (int(word) for word in text.rpartition("qasm: ")[2].split() if word.isdigit())
    assert 0 < after < before
    x, y = np.arange(512, dtype=np.float32), np.ones(512, np.float32)
    old, new = vc4lab.Kernel(SAXPY), vc4lab.Kernel(out)  # the interface is kept
    assert np.array_equal(old(x, y, a=3.0, qpus=3), new(x, y, a=3.0, qpus=3))
    assert len(new.code) < len(old.code)
    assert set(new.assembly.labels) >= {"saxpy", "next", "done"}  # type: ignore[union-attr]


def test_an_interface_is_enough_to_time(tmp_path: Path) -> None:
    text = run(SAXPY, "--qpus", "1", "-o", tmp_path / "x.bin")
    assert "clocks before" in text
    assert (tmp_path / "x.bin").stat().st_size % 8 == 0


def test_never_slower(tmp_path: Path) -> None:
    """Two instructions less, but the instruction cache has it wait longer."""
    text = run(LANES, "-m", "out=64", "-u", "5, out", "-o", tmp_path / "same.bin")
    assert "is quicker, and is kept" in text
    assert (tmp_path / "same.bin").read_bytes() == assemble_source(LANES.read_text()).bytes


def test_dialects_and_binaries(tmp_path: Path) -> None:
    source, words = tmp_path / "v.qasm", tmp_path / "v.bin"
    source.write_text(VC4ASM)
    text = run(source, "-o", tmp_path / "better.qasm")
    assert "not timed: give its memory and uniforms" in text
    better = assemble_source((tmp_path / "better.qasm").read_text(), dialect="vc4asm")
    old = assemble_source(VC4ASM, dialect="vc4asm")
    assert len(better.words) < len(old.words)
    assert "loop" in better.labels
    words.write_bytes(old.bytes)
    run(words, "-o", tmp_path / "w.bin")
    assert (tmp_path / "w.bin").read_bytes() == better.bytes


def test_a_program_that_differs_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Checked(1, 0, 0, 0, Difference(0, "vpm", 3))
    monkeypatch.setattr(checking, "check", lambda *_: found)
    text = run(SAXPY, "-o", tmp_path / "x.qasm", code=ExitCode.ERRORS)
    assert "so nothing is written: random input 0: VPM and DMA differ at access 3" in text
    assert not (tmp_path / "x.qasm").exists()
    run(SAXPY, "--no-check", "-o", tmp_path / "x.qasm")
    assert (tmp_path / "x.qasm").exists()


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ([SAXPY, "--entry", "x"], "there is no label 'x' (known: saxpy, next, done)"),
        ([SAXPY, "-m", "x"], "expected NAME=BYTES"),
        ([SAXPY, "-u", "1++2"], "uniform '1++2'"),
        ([SAXPY, "-m", "x=@none"], "none: "),
        ([SAXPY, "--chip", "none"], "none"),
        ([SAXPY, "--board", "none"], "none"),
        (["none.qasm"], "none.qasm: "),
    ],
)
def test_what_cannot_be_used(arguments: list[str | Path], wanted: str) -> None:
    assert wanted in run(*arguments, code=ExitCode.BAD_INPUT)


@pytest.mark.parametrize("path", RUNS[::4], ids=lambda path: path.name)
def test_programs_of_real_drivers(path: Path) -> None:
    """They do the same, break no restriction, and the kernel takes them."""
    for one in programs_of_run(path, Reporter()):
        found = optimise(one.words)
        assert len(found.words) <= len(one.words)
        assert checking.check(one.words, found.words, runs=1).difference is None
        assert lint(found.words) == []
        check_shader(found.words)


def test_a_program_without_an_end_is_left(tmp_path: Path) -> None:
    source = tmp_path / "open.qasm"
    source.write_text("mov vpm, r0\nadd r1, ra0, 1\nmov vpm, r1\n")
    assert "instructions" in run(source, "-o", tmp_path / "o.qasm")
