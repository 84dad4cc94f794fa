"""The session in lines: what commands say, scripts, and lines that make no sense."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.support.debug_sessions import saxpy
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app
from vc4lab.debug.console import Console

LANES = Path(__file__).parents[2] / "examples" / "qpu" / "lanes.qasm"
OPTIONS = [str(LANES), "-m", "out=64", "-u", "5, out"]


@pytest.fixture
def console() -> Console:
    lines: list[str] = []
    made = Console(saxpy(), lines.append)
    made.lines = lines  # type: ignore[attr-defined]
    return made


def say(console: Console, line: str) -> str:
    """What a command prints."""
    lines: list[str] = console.lines  # type: ignore[attr-defined]
    lines.clear()
    console.execute(line)
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("bogus", "there is no command 'bogus'"),
        ("contineu", "did you mean 'continue'"),
        ("p 1/0", "divides by zero"),
        ("p 1 +", "is no expression"),
        ("p foo", "there is no 'foo' here"),
        ("p __import__('os')", "functions are any, all"),
        ("p r0.f.real", "there is no view .real"),
        ("p 9**9**9", "not possible"),
        ("p 1 << 999", "too large"),
        ("p vpm[64]", "rows 0 to 63"),
        ("p/z r0", "there is no format /z"),
        ("b 99999", "no instruction at or after line"),
        ("b *3", "no address of an instruction"),
        ("b next qpu 9", "there is no QPU '9'"),
        ("delete 7", "there is no breakpoint 7"),
        ("catch QPU-999", "there is no message"),
        ("info", "info registers | flags"),
        ("info registers r9", "there is no register"),
        ("x/999999999x x", "0x00d00000: "),
        ("set r0", "set TARGET = VALUE"),
        ("set qpu = 1", "cannot be given a value"),
        ("goto 99", "only 0 to 0 were reached"),
        ("output z=f", "NAME=FILE"),
        ("source /nowhere", "No such file"),
        ("step -1", "is no number of times"),
        ("qpu 7", "there is no QPU"),
        ("quit 999", "an exit code is 0 to 255"),
        ("p " + "r0 + " * 400 + "1", "at most"),
    ],
)
def test_what_is_wrong_is_a_sentence(console: Console, line: str, answer: str) -> None:
    assert answer in say(console, line)
    assert not console.done


def test_formats_and_values(console: Console) -> None:
    assert say(console, "p/x 255") == "255 = 000000ff"
    assert say(console, "p 0xffffffff == -1") == "0xffffffff == -1 = true"
    assert say(console, "p elem_num * 2").endswith("= 0 2 4 6 8 10 12 14 16 18 20 22 24 26 28 30")
    assert say(console, "x/4f x") == "0x00d00000: 0 1 2 3"
    assert say(console, "set ra0[3] = 1.5") == "ra0[3] = 1.5"
    assert say(console, "p/h ra0[3]") == "ra0[3] = 0,1.938"
    assert say(console, "p/b ra0[3]") == "ra0[3] = 00 00 c0 3f"


def test_an_empty_line_steps_again(console: Console) -> None:
    say(console, "stepi")
    assert "saxpy.qasm:13" in say(console, "")
    say(console, "p 1")
    assert say(console, "") == ""


def test_scripts_and_exit_codes(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("# comment\nbreak 13\ncontinue\nquit 3\nbogus\n")
    result = CliRunner().invoke(app, ["debug", *OPTIONS, "-x", str(script)])
    assert result.exit_code == 3
    assert "lanes.qasm:13" in result.output
    assert "bogus" not in result.output
    script.write_text(f"source {script}\n")
    result = CliRunner().invoke(app, ["debug", *OPTIONS, "-x", str(script), "--batch"])
    assert "scripts name scripts too deep" in result.output
    result = CliRunner().invoke(app, ["debug", *OPTIONS, "--ex", "continue", "--ex", "p mem[out]", "--batch"])
    assert "mem[out] = 5" in result.output
    assert CliRunner().invoke(app, ["debug"]).exit_code == ExitCode.BAD_INPUT
    assert CliRunner().invoke(app, ["debug", "nowhere"]).exit_code == ExitCode.BAD_INPUT
    assert "terminal" in CliRunner().invoke(app, ["debug", *OPTIONS, "--screen"]).output
    assert "neither stdio nor a port" in CliRunner().invoke(app, ["debug", "--dap", "x"]).output


@pytest.mark.parametrize("seed", range(3))
def test_random_lines(console: Console, seed: int) -> None:
    """Words of commands, expressions and noise in any order: never an exception."""
    r = random.Random(seed)
    words = [
        *console.commands,
        "r0",
        "ra3[5]",
        "z",
        "next",
        "mem[x]",
        "/x",
        "/4f",
        "=",
        "1",
        "-1",
        "0x1000",
        "if",
    ]
    words += [
        "qpu 1",
        "*",
        "(",
        ")",
        "[",
        "all(r0 > 1)",
        "'",
        "\x00",
        "é",
        "1e400",
        "registers",
        "$r0.f",
        "9" * 30,
    ]
    left_out = {"source", "output", "quit", "q", "exit"}
    for _ in range(150):
        line = " ".join(r.choice(words) for _ in range(r.randrange(1, 5)))
        if line.split()[0] not in left_out:
            say(console, line)
    assert not console.done
