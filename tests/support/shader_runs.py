"""Shaders executed as TGSI stands, in SSA form, and optimised: all must give the same words."""

import random
from pathlib import Path

import numpy as np

from vc4lab.driver.compiler.ssa.from_tgsi import to_ssa
from vc4lab.driver.compiler.ssa.inspection import check_ssa
from vc4lab.driver.compiler.ssa.loops import unroll
from vc4lab.driver.compiler.ssa.ops import Words
from vc4lab.driver.compiler.ssa.optimise import optimise
from vc4lab.driver.compiler.ssa.reference import Endless, Inputs, Outputs, run
from vc4lab.driver.compiler.tgsi.parser import parse
from vc4lab.driver.compiler.tgsi.program import Program
from vc4lab.driver.compiler.tgsi.reference import run_tgsi

SAMPLES = sorted((Path(__file__).parents[1] / "data" / "tgsi").glob("*.tgsi"))
LANES = 16
START = (
    "FRAG\nDCL IN[0], GENERIC[0], PERSPECTIVE\nDCL OUT[0], COLOR\nDCL CONST[0..3]\n"
    "DCL TEMP[0..3]\nIMM[0] UINT32 {0, 1, 1065353216, 1073741824}\n"
)


def words(*values: float) -> Words:
    """Floats, one for each lane, again and again until there are enough."""
    return np.resize(np.array(values, np.float32), LANES).view(np.uint32)


def any_inputs(seed: int, budget: int = 500) -> Inputs:
    """Floats between -4 and 4 in inputs; among the uniforms also small whole numbers."""
    rng = np.random.default_rng(seed)

    def floats(count: int) -> Words:
        return rng.uniform(-4, 4, count).astype(np.float32).view(np.uint32)

    table = {(number, c): floats(LANES) for number in range(8) for c in range(4)}
    uniforms = floats(4 * 64)
    uniforms[::3] = rng.integers(0, 6, len(uniforms[::3]))

    def sampler(name: str, texture: str, unit: int, args: list[Words]) -> list[Words]:
        total = sum((k + 1) * arg.view(np.float32) for k, arg in enumerate(args))
        return [np.sin(total + unit + k).astype(np.float32).view(np.uint32) for k in range(4)]

    return Inputs(LANES, table, table, (uniforms,), sampler, budget)


def both(program: Program, inputs: Inputs) -> Outputs | None:
    """What all give; None if they find no end. Raises AssertionError where they differ."""
    function = to_ssa(program)
    check_ssa(function)
    smaller = optimise(to_ssa(program))
    check_ssa(smaller)
    unrolled = unroll(optimise(to_ssa(program)))
    check_ssa(unrolled)
    found: list[Outputs | None] = []
    with np.errstate(all="ignore"):
        for execute in (
            lambda: run_tgsi(program, inputs),
            lambda: run(function, inputs),
            lambda: run(smaller, inputs),
            lambda: run(unrolled, inputs),
        ):
            try:
                found.append(execute())
            except Endless:
                found.append(None)
    first = found[0]
    for step, other in zip(("SSA", "optimised", "unrolled"), found[1:], strict=True):
        assert (first is None) == (other is None), f"{step}: only one of them ends"
        if first is None or other is None:
            continue
        assert np.array_equal(first.discarded, other.discarded), f"{step}: other lanes discarded"
        for place, expected in first.outputs.items():
            given = other.outputs.get(place, np.zeros_like(expected))
            assert np.array_equal(expected, given), f"{step}: output {place} differs"
    return first


def result(body: str, **inputs: object) -> np.ndarray:
    """OUT[0].x of a program that begins with START, as floats."""
    outputs = both(parse(START + body + "END\n"), Inputs(LANES, **inputs))  # type: ignore[arg-type]
    assert outputs is not None
    return outputs.outputs[0, 0].view(np.float32)


class AnyProgram:
    """A random program: conditions, loops with and without ends, jumps, arrays, discards."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._lines: list[str] = []
        self._loops = 0

    def text(self) -> str:
        self._statements(self._rng.randrange(2, 12), 0)
        start = (
            "FRAG\nDCL IN[0..1], GENERIC[0], PERSPECTIVE\nDCL OUT[0..1], COLOR\nDCL CONST[0..7]\n"
            "DCL TEMP[0..3]\nDCL TEMP[4..6], ARRAY(1), LOCAL\nDCL ADDR[0]\n"
            "IMM[0] UINT32 {0, 1, 1065353216, 3212836864}\n"
        )
        return start + "\n".join([*self._lines, "END"]) + "\n"

    def _source(self) -> str:
        files = ("IN[0]", "IN[1]", "TEMP[0]", "TEMP[1]", "TEMP[2]", "TEMP[3]", "CONST[1]", "IMM[0]")
        register = self._rng.choice((*files, "TEMP[5]", "CONST[ADDR[0].x+1]", "TEMP[ADDR[0].x+4](1)"))
        swizzle = "".join(self._rng.choice("xyzw") for _ in range(4))
        return self._rng.choice(("", "", "-")) + f"{register}.{swizzle}"

    def _target(self) -> str:
        names = ("TEMP[0]", "TEMP[1]", "TEMP[2]", "OUT[0]", "OUT[1]", "TEMP[4]")
        register = self._rng.choice((*names, "TEMP[ADDR[0].x+4](1)"))
        mask = "".join(letter for letter in "xyzw" if self._rng.random() < 0.6)
        return f"{register}.{mask}" if mask else register

    def _statements(self, count: int, depth: int) -> None:
        for _ in range(count):
            self._statement(depth)

    def _statement(self, depth: int) -> None:
        rng, lines = self._rng, self._lines
        kind = rng.choice(("op",) * 6 + ("if",) * 3 + ("loop", "loop", "jump", "kill", "address"))
        if kind == "if" and depth < 4:
            lines.append(f"{rng.choice(('IF', 'UIF'))} {self._source()}")
            self._statements(rng.randrange(4), depth + 1)
            if rng.random() < 0.5:
                lines.append("ELSE")
                self._statements(rng.randrange(4), depth + 1)
            lines.append("ENDIF")
        elif kind == "loop" and depth < 3:
            lines.append("BGNLOOP")
            self._loops += 1
            self._statements(rng.randrange(1, 4), depth + 1)
            if rng.random() < 0.9:
                lines += [f"FSLT TEMP[3].x, {self._source()}, {self._source()}"]
                lines += ["UIF TEMP[3].xxxx", "BRK", "ENDIF"]
            self._statements(rng.randrange(3), depth + 1)
            self._loops -= 1
            lines.append("ENDLOOP")
        elif kind == "jump" and self._loops:
            lines.append(rng.choice(("BRK", "BRK", "CONT")))
        elif kind == "kill":
            lines.append(rng.choice(("KILL", f"KILL_IF {self._source()}")))
        elif kind == "address":
            lines.append(f"{rng.choice(('ARL', 'ARR'))} ADDR[0].x, {self._source()}")
        else:
            name = rng.choice(("ADD", "MUL", "MAX", "MOV", "MAD", "DP3", "FSLT", "UADD", "ADD_SAT"))
            operands = {"MOV": 1, "MAD": 3}.get(name, 2)
            sources = ", ".join(self._source() for _ in range(operands))
            lines.append(f"{name} {self._target()}, {sources}")
