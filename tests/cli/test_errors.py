"""A message of error severity is never exit code 0, in whatever command."""

import re
import struct
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import vc4lab.cli
from vc4lab.cli import messages
from vc4lab.cli.exit_codes import ExitCode, table
from vc4lab.cli.main import app
from vc4lab.cli.messages import never_0_after_errors, note, reporter_of
from vc4lab.diagnostics import Severity, StrictStop

SMALL = Path(__file__).parent.parent / "data/captures/small.vc4cap"
JOBS = Path(__file__).parent.parent / "data/vc4-jobs" / "glmark2_buffer_update-method_map"
END = "\nnop ; nop ; thrend\nnop\nnop\n"
STORE = "mov vw_setup, 0x1a00\nmov vpm, 1\nldi vw_setup, 0x80904000\n"
LOOKUP = "mov t0s, unif\nnop ; nop ; ldtmu0"
TO_BUS = (0xE3A01103, 0xE5811000, 0xEAFFFFFE)
"""mov r1, #0xC0000000; str r1, [r1]; b ."""


def vc4lab_(*arguments: str | Path | int) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("code", "text", "uniforms"),
    [
        ("QPU-062", "mov r0, unif\nmov r1, unif", "5"),
        ("QPU-063", STORE + "mov vw_addr, unif\nmov -, vw_wait", "a + 64"),
        ("QPU-064", LOOKUP, "0x100"),
    ],
)
def test_a_program_that_completes_with_errors(tmp_path, code, text, uniforms):
    path = tmp_path / "program.qasm"
    path.write_text(text + END)
    arguments = ["run", path, "-m", "a=64", "-u", uniforms]
    found, output = vc4lab_(*arguments)
    assert code in output
    assert "1 of 1 programs completed" in output
    assert found == ExitCode.ERRORS
    assert vc4lab_(*arguments, "--strict")[0] == ExitCode.STRICT_STOP
    assert vc4lab_(*arguments, "--no-check")[0] == ExitCode.OK


@pytest.mark.parametrize(("more", "code"), [((), ExitCode.ERRORS), (("--strict",), 4)])
def test_a_black_picture(tmp_path, more, code):
    """What the ARM writes to a bus address is lost: the screen stays black."""
    image = tmp_path / "kernel7.img"
    image.write_bytes(struct.pack("<3I", *TO_BUS))
    found, output = vc4lab_("boot", image, "--seconds", "0.0001", "--headless", *more)
    assert "SOC-003" in output
    assert found == code


def test_a_draw_that_no_frame_has():
    code, output = vc4lab_("show", SMALL, "--draw", 999)
    assert code == ExitCode.BAD_INPUT
    assert "there is no draw 999: a frame has 3 at most" in output
    code, output = vc4lab_("show", SMALL, "--frame", 1, "--draw", 4)
    assert code == ExitCode.BAD_INPUT
    assert "frame 1 has 3 at most" in output


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--draw", 999), "there is no draw 999: a frame has 1 at most"),
        (("--frame", 1, "--draw", 1), "frame 1 has 0 at most"),
        (("--draws", "--draw", 2), "a frame has 1 at most"),
        (("--draw", 0), "for --picture"),
    ],
)
def test_a_draw_that_no_frame_of_recorded_jobs_has(more, words):
    code, output = vc4lab_("show", JOBS, *more)
    assert code == ExitCode.BAD_INPUT
    assert words in output


@pytest.mark.parametrize("ends_with", [0, 1, 3, 77])
def test_the_code_of_a_program_stays_unless_it_is_0(ends_with):
    def command() -> None:
        with never_0_after_errors():
            reporter_of().report("GL-001", "a message")
            raise typer.Exit(ends_with)

    with pytest.raises(typer.Exit) as end:
        command()
    assert end.value.exit_code == (ends_with or ExitCode.ERRORS)


def test_a_command_that_returns(monkeypatch):
    with never_0_after_errors():
        reporter_of().report("SOC-002", "a warning")
        note(Severity.WARNING)
    with pytest.raises(typer.Exit) as end, never_0_after_errors():
        note(Severity.ERROR)
    assert end.value.exit_code == ExitCode.ERRORS
    with never_0_after_errors():
        pass  # the command before has left nothing
    with pytest.raises(StrictStop), never_0_after_errors():
        reporter_of(strict=True).report("GL-001", "a message")


def test_no_command_has_a_reporter_of_its_own():
    """Else its errors would not count."""
    for path in Path(vc4lab.cli.__file__).parent.glob("*.py"):
        if path.name != Path(messages.__file__).name:
            assert not re.search(r"\bReporter\(", path.read_text()), path


def test_the_table_says_it():
    assert f"{ExitCode.ERRORS.value}   errors were reported" in table()
    assert vc4lab_("--help")[1].count("errors were reported") == 1
