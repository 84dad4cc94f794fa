"""`vc4lab run`: programs with memory and uniforms, and what is said when something is wrong."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app
from vc4lab.qpu.text.assembler import assemble

NUMBERS = """
        bra -, 0                # never reached
        nop
        nop
        nop
.global numbers
numbers:
        mov  r0, unif
        add  r0, r0, elem_num
        ldi  r1, 0x1a00
        add  vw_setup, r1, qpu_num
        mov  vpm, r0
        mov  r1, qpu_num
        shl  r1, r1, 7
        ldi  r2, 0x80904000
        add  vw_setup, r2, r1
        mov  vw_addr, unif
        mov  -, vw_wait
        nop ; nop ; thrend
        nop
        nop
"""
WAITS = "sacq -, 5\nnop ; nop ; thrend\nnop\nnop\n"


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["run", *map(str, arguments)])
    return result.exit_code, result.output


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "numbers.qasm"
    path.write_text(NUMBERS)
    return path


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_dump_after_a_run(program: Path, engine: str) -> None:
    code, text = run(
        program, "--entry", "numbers", "--qpus", "3", "-m", "c=192",
        "-u", "100*qpu + 0x10, c + 64*qpu", "-d", "c:int:34", "--engine", engine,
    )  # fmt: skip
    assert code == ExitCode.OK
    assert "3 of 3 programs completed, 42 instructions" in text
    assert "216         217\n" in text


def test_float_uniforms_files_and_output(tmp_path: Path, program: Path) -> None:
    binary = tmp_path / "numbers.bin"
    binary.write_bytes(assemble(NUMBERS).bytes[32:])
    (tmp_path / "in").write_bytes(bytes(range(64)))
    target = tmp_path / "out"
    code, text = run(
        binary, "-m", f"c=@{tmp_path / 'in'}", "-u", "1.5, c", "-o", f"c={target}", "-d", "c:hex:2"
    )
    assert code == ExitCode.OK
    assert "c+0x0000: 3fc00000 3fc00001" in text
    assert len(target.read_bytes()) == 64


def test_hex_words(tmp_path: Path) -> None:
    path = tmp_path / "nothing.hex"
    path.write_text("300009e7009e7000\n100009e7009e7000\n100009e7009e7000\n")
    assert run(path)[0] == ExitCode.OK


def test_waiting_programs_are_named(tmp_path: Path) -> None:
    path = tmp_path / "waits.asm"
    path.write_text(WAITS)
    code, text = run(path, "--qpus", "2")
    assert code == ExitCode.GUEST_HANG
    assert "QPU 1 at 0x00001000 `sacq -, 5` waits for an increment of semaphore 5" in text
    assert run(path, "--strict")[0] == ExitCode.STRICT_STOP


HASTY = """
        mov  ra1, unif
        mov  r0, ra1            # too early
        brr  over
        nop
        nop
        nop
        mov  recip, r0          # never comes here
        mov  r0, r4
over:   nop ; nop ; thrend
        nop
        nop
"""


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_lint_and_watch(tmp_path: Path, engine: str) -> None:
    path = tmp_path / "hasty.qasm"
    path.write_text(HASTY)
    code, text = run(path, "-u", "5", "--engine", engine)
    assert code == ExitCode.ERRORS
    assert "QPU-101 [QPU] at 0x00001008: ra1 is read, but was written by the instruction" in text
    assert "QPU-102 [QPU] at 0x00001038: r4 is read" in text
    assert text.count(f"    {path}:3: mov r0, ra1\n") == 2
    assert "QPU-061 [QPU] at 0x00001008: QPU 0 `mov r0, ra1`: ra1 is read" in text
    assert text.count("QPU-061") == 1
    code, text = run(path, "-u", "5", "--strict", "--engine", engine)
    assert code == ExitCode.STRICT_STOP
    assert "stopped (strict): QPU-102" in text
    code, text = run(path, "--no-check", "--strict", "--engine", engine)
    assert code == ExitCode.OK
    assert "QPU-" not in text


def test_binaries_are_looked_over_too(tmp_path: Path) -> None:
    path = tmp_path / "hasty.bin"
    path.write_bytes(assemble(HASTY).bytes)
    text = run(path, "-u", "5")[1]
    assert "QPU-101 [QPU] at 0x00001008" in text
    assert "QPU-061" in text


def test_what_newcomers_did(tmp_path: Path) -> None:
    """The mistakes of the first hour: r4 too early, vpm at the end, a branch in a delay slot."""
    end = "nop ; nop ; thrend\nnop\n"
    for number, (program, lint_code) in enumerate(
        (
            ("mov recip, 1.0\nmov r0, r4\n" + end + "nop\n", "QPU-102"),
            ("ldi vw_setup, 0x1a00\n" + end + "mov vpm, 1\n", "QPU-104"),
            ("brr +0\nbrr +0\nnop\nnop\nnop\n" + end + "nop\n", "QPU-112"),
            ("mov r0, 1\n", "QPU-121"),
        )
    ):
        path = tmp_path / f"{number}.qasm"
        path.write_text(program)
        assert lint_code in run(path)[1]
        assert run(path, "--strict")[0] == ExitCode.STRICT_STOP


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--qpus", "13"], "--qpus"),
        (["-u", "nowhere"], "there is no memory called 'nowhere'"),
        (["-u", "1 + "], "expected numbers, memory names, qpu"),
        (["-u", "3x"], "'3x' is not a number"),
        (["-u", "1e99"], "too large"),
        (["-m", "c"], "NAME=BYTES or NAME=@FILE"),
        (["-m", "c=0"], "do not fit"),
        (["-m", "c=@/no/such/folder/file"], "No such file"),
        (["-d", "x"], "dump 'x'"),
        (["--engine", "magic"], "'jit', 'interpreter'"),
        (["--entry", "x"], "there is no label 'x'"),
        (["-o", "x=y"], "NAME=FILE"),
    ],
)
def test_mistakes_are_sentences(program: Path, arguments: list[str], message: str) -> None:
    if "-o" in arguments:
        arguments = ["--entry", "numbers", *arguments]
    code, text = run(program, *arguments)
    assert code == ExitCode.BAD_INPUT
    assert message in text


def test_files_that_are_no_programs(tmp_path: Path) -> None:
    odd = tmp_path / "odd.bin"
    odd.write_bytes(b"123")
    assert "64-bit words" in run(odd)[1]
    assert "No such file" in run(tmp_path / "none.qasm")[1]
    (tmp_path / "bad.hex").write_text("zz\n")
    assert "hexadecimal" in run(tmp_path / "bad.hex")[1]
    (tmp_path / "bad.qasm").write_text("frob r0\n")
    assert run(tmp_path / "bad.qasm")[0] == ExitCode.BAD_INPUT
    code, text = run(tmp_path / "bad.hex", "--entry", "start")
    assert (code, "no labels" in text) == (ExitCode.BAD_INPUT, True)


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_the_smallest_example(engine: str) -> None:
    program = Path(__file__).parents[2] / "examples" / "qpu" / "lanes.qasm"
    options = ["--qpus", "3", "-m", "out=256", "-u", "100*qpu, out + 64*qpu", "-d", "out:int:48"]
    code, output = run(program, "--engine", engine, *options)
    assert code == ExitCode.OK
    lines = [line for line in output.splitlines() if "+0x" in line]
    words = [int(word) for line in lines for word in line.split()[1:]]
    assert words == [100 * qpu + lane for qpu in range(3) for lane in range(16)]


def test_switches(tmp_path: Path) -> None:
    """Undocumented arithmetic can be decided otherwise, in both engines."""
    path = tmp_path / "big.qasm"
    path.write_text(NUMBERS.replace("add  r0, r0, elem_num", "ldi r0, 0x7f7fffff\nftoi r0, r0"))
    arguments = [path, "--entry", "numbers", "-m", "out=64", "-u", "0, out", "-d", "out:hex:1"]
    assert "00000000" in run(*arguments)[1]
    for engine in ("jit", "interpreter"):
        other = [*arguments, "--engine", engine, "--unknown", "ftoi_out_of_range=saturate"]
        assert "7fffffff" in run(*other)[1]
    code, output = run(*arguments, "--unknown", "ftoi_out_of_range=no")
    assert code == ExitCode.BAD_INPUT
    assert "saturate" in output


@pytest.mark.parametrize("name", ["program.c", "program.s", "program.o"])
def test_a_program_by_name(tmp_path: Path, program: Path, name: str) -> None:
    """Out of what `asm` writes for a C program, GNU as and a linker, as `disasm --symbol` takes it."""
    path = tmp_path / name
    written = CliRunner().invoke(app, ["asm", str(program), "-o", str(path), "--name", "code"])
    assert written.exit_code == ExitCode.OK
    padded = ["--symbol", "code", "-m", "c=64", "-u", "0, c", "--no-check"]
    code, text = run(path, *padded)
    plain = run(program, *padded[2:])
    assert (code, text.partition(" in ")[0]) == (plain[0], plain[1].partition(" in ")[0])
    code, text = run(path, "--symbol", "nothing")
    assert code == ExitCode.BAD_INPUT
    assert "nothing" in text
    assert "no labels" in run(path, "--symbol", "code", "--entry", "numbers")[1]


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no devices here")
def test_endless_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device is read up to a limit, and the message names it."""
    from vc4lab.debug import launch
    from vc4lab.v3d.user_programs import experiment

    monkeypatch.setattr(launch, "LARGEST_PROGRAM", 1 << 20)
    monkeypatch.setattr(experiment, "LARGEST_AREA", 1 << 20)
    code, output = run(Path("/dev/zero"))
    assert (code, output) == (
        ExitCode.BAD_INPUT, "/dev/zero: exceeds the limit of 1 MiB\n"
    )  # fmt: skip
    path = tmp_path / "p.qasm"
    path.write_text("nop; nop; thrend\nnop\nnop\n")
    code, output = run(path, "-m", "x=@/dev/zero")
    assert code == ExitCode.BAD_INPUT
    assert output == "/dev/zero: exceeds the limit of 1 MiB\n"
