"""Lines, loops and ALUs of timed programs; hints: pairs do what both did, waits name their request."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from tests.v3d.user_programs.test_random_programs import arithmetic
from typer.testing import CliRunner

import vc4lab
from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app
from vc4lab.qpu.isa.encoding import NOP, Alu
from vc4lab.qpu.isa.operations import Signal
from vc4lab.qpu.optimise.pairs import merged
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.run.environment import Environment
from vc4lab.qpu.run.interpreter import Interpreter
from vc4lab.qpu.text.assembler import assemble

SAXPY = vc4lab.examples() / "qpu" / "saxpy.qasm"
OPTIONS = ["-m", "x=4096", "-m", "y=4096", "-u", "x + 64*qpu, y + 64*qpu, 2.0, 128, 32", "--qpus", "2"]


class _Place(Environment):
    """Uniforms and numbers, nothing else."""

    def __init__(self) -> None:
        self.read = 0

    def uniform(self) -> object:
        self.read += 1
        return np.full(16, 0x3F800000 + 77 * self.read, np.uint32)

    def element_number(self) -> object:
        return np.arange(16, dtype=np.uint32)

    def x_coord(self) -> object:
        return np.arange(16, dtype=np.uint32) & 1

    y_coord = x_coord

    def qpu_number(self) -> object:
        return np.full(16, 3, np.uint32)


def after(words: list[int], seed: int) -> list[bytes]:
    """Registers and flags after some instructions and enough empty ones."""
    program = Program((*words, *[NOP.value] * 4))
    machine = Interpreter(program, _Place())
    values = np.random.default_rng(seed)
    keys = [*((file, n) for file in "ab" for n in range(32)), *(("r", n) for n in range(6))]
    for key in keys:
        machine.write(key, values.integers(0, 1 << 32, 16, np.uint32))
    for _ in program.words:
        machine.step()
    found = [np.array(np.broadcast_to(machine.read(key), 16)).tobytes() for key in keys]
    return found + [np.array(np.broadcast_to(machine.flag(name), 16)).tobytes() for name in "znc"]


def one_operation(r: random.Random, word: int) -> int:
    """The instruction without one of its operations, which then goes nowhere."""
    alu = Alu(word).replace(pm=0, pack=0, unpack=0, **{r.choice(("raddr_a", "raddr_b")): 39})
    if alu.signal == Signal.SMALL_IMMEDIATE and r.random() < 0.8:
        alu = alu.replace(signal=Signal.NONE, raddr_b=39)
    if r.random() < 0.5:
        return alu.replace(op_mul=0, waddr_mul=39).encode()
    return alu.replace(op_add=0, waddr_add=39).encode()


def test_pairs_compute_what_both_did() -> None:
    r = random.Random(5)
    found = 0
    for _ in range(30_000):
        first, second = arithmetic(r), arithmetic(r)
        if r.random() < 0.9:  # mostly one operation each
            first, second = one_operation(r, first), one_operation(r, second)
        word = merged(first, second)
        if word is None:
            continue
        found += 1
        assert after([word], found) == after([first, second], found), (hex(first), hex(second), hex(word))
        if found == 150:
            break
    assert found > 20


@pytest.mark.parametrize(
    ("lines", "fits"),
    [
        ("add ra1, r0, r1\nfmul rb2, r2, r3", True),
        ("add ra1, r0, r1\nmov rb2, r3", True),
        ("fmul r0, r1, r2\nadd r3, r1, r2", True),
        ("add r0, r0, r1\nfmul r2, r0, r3", False),
        ("add ra1, r0, r1\nfmul ra2, r2, r3", False),
        ("add r0, ra1, ra1\nfmul r1, ra2, ra2", False),
        ("add.setf r0, r0, r1\nfmul.zs r2, r2, r3", False),
        ("add r0, r0, 1\nfmul r2, r2, 2", False),
        ("add r0, r0, 1\nfmul r2, r2, rb3", False),
        ("mov vpm, r0\nmov vw_setup, r1", False),
        ("mov r0, unif\nmov r1, unif", False),
        ("mov t0s, r0\nfmul r1, r2, r3", True),
        ("nop ; nop ; ldtmu0\nfmul r0, r4, r1", False),
    ],
)
def test_what_fits_one_instruction(lines: str, fits: bool) -> None:
    first, second = assemble(lines).words
    assert (merged(first, second) is not None) == fits


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, ["run", *map(str, arguments)])
    assert result.exit_code == ExitCode.OK, result.output
    return result.output


def test_lines_loops_and_alus() -> None:
    text = run(SAXPY, *OPTIONS, "--timing", "--lines")
    assert "ALUs: add 68.4 %, mul 6.0 %, both 0.0 % of 1062 instructions" in text
    assert "64 rounds of" in text
    assert "line 28, 0x00001080 to line 43, 0x000010f8" in text
    rows = [line for line in text.splitlines() if "fmul r0, r4, ra2" in line and " .m " in line]
    assert len(rows) == 1
    assert "TMU result" in rows[0]


def test_clocks_of_lines_are_those_of_the_qpus() -> None:
    """Of each instruction and in all; a loop has those of its lines."""
    found = json.loads(run(SAXPY, *OPTIONS, "--timing", "--json"))["timing"]
    in_all = sum(alus["clocks"] for alus in found["alus"])
    assert in_all == sum(one["busy"] + sum(one["stalls"].values()) for one in found["qpus"])
    (loop,) = found["loops"]
    assert loop["rounds"] == 64
    assert loop["alus"]["issued"] == 64 * 16
    assert 0 < found["of_peak"] < 0.05


def test_hints() -> None:
    text = run(SAXPY, *OPTIONS, "--timing", "--hints")
    hints = text.partition("hints:\n")[2]
    assert "waits 66.3 clocks (TMU result)" in hints or "(TMU result), " in hints
    assert "after the texture request at 0x00001090" in hints or "0x00001088" in hints
    assert "2 of the 3 delay slots of `brr.anynz" in hints
    assert "fit one instruction" in hints


def test_they_go_with_timing() -> None:
    for option in ("--lines", "--hints"):
        result = CliRunner().invoke(app, ["run", str(SAXPY), *OPTIONS, option])
        assert result.exit_code == ExitCode.BAD_INPUT
        assert f"{option} goes with --timing" in result.output
