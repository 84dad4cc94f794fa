"""TGSI in SSA form: every sample and many random programs give the same words both ways."""

import math
import random
from pathlib import Path

import numpy as np
import pytest
from tests.support.shader_runs import LANES, SAMPLES, START, AnyProgram, any_inputs, both, result, words

from vc4lab.driver.compiler.ssa import from_tgsi
from vc4lab.driver.compiler.ssa.expand import SETS, SIMPLE
from vc4lab.driver.compiler.ssa.from_tgsi import to_ssa
from vc4lab.driver.compiler.ssa.inspection import check_ssa, print_ssa
from vc4lab.driver.compiler.ssa.ops import OPS, compute
from vc4lab.driver.compiler.ssa.reference import Inputs, run
from vc4lab.driver.compiler.ssa.values import Value
from vc4lab.driver.compiler.tgsi.operations import OPERATIONS, Shape
from vc4lab.driver.compiler.tgsi.parser import parse
from vc4lab.driver.compiler.tgsi.program import TgsiError


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_samples_give_the_same_both_ways(path: Path) -> None:
    program = parse(path.read_text())
    for seed in range(3):
        assert both(program, any_inputs(seed)) is not None or "loop" in path.stem


@pytest.mark.parametrize("seed", range(150))
def test_random_programs_give_the_same_both_ways(seed: int) -> None:
    program = parse(AnyProgram(random.Random(seed)).text())
    both(program, any_inputs(seed, budget=60))


def test_random_programs_are_not_all_trivial() -> None:
    texts = [AnyProgram(random.Random(seed)).text() for seed in range(150)]
    for part in ("ELSE", "BRK", "CONT", "KILL_IF", "TEMP[ADDR[0].x+4](1)"):
        assert sum(part in text for text in texts) > 10


def test_lanes_leave_a_loop_at_different_times() -> None:
    """Each lane counts up to its own input."""
    found = result(
        "MOV TEMP[0].x, IMM[0].x\nBGNLOOP\nSGE TEMP[1].x, TEMP[0].x, IN[0].x\n"
        "IF TEMP[1].x\nBRK\nENDIF\nADD TEMP[0].x, TEMP[0].x, IMM[0].z\nENDLOOP\n"
        "MOV OUT[0].x, TEMP[0].x\n",
        inputs={(0, 0): words(0, 1, 2.5, 7)},
    )
    assert found[:4].tolist() == [0, 1, 3, 7]


def test_continue_skips_the_rest_of_the_turn() -> None:
    """Sum of the odd numbers below 6."""
    found = result(
        "BGNLOOP\nSGE TEMP[1].x, TEMP[0].x, CONST[0].x\nIF TEMP[1].x\nBRK\nENDIF\n"
        "ADD TEMP[0].x, TEMP[0].x, IMM[0].z\nMUL TEMP[2].x, TEMP[0].x, CONST[0].y\n"
        "FRC TEMP[2].x, TEMP[2].x\nIF TEMP[2].x\nELSE\nCONT\nENDIF\n"
        "ADD TEMP[3].x, TEMP[3].x, TEMP[0].x\nENDLOOP\nMOV OUT[0].x, TEMP[3].x\n",
        uniforms=(words(6.0, 0.5, 0.0, 0.0),),
    )
    assert found[0] == 1 + 3 + 5


def test_a_condition_joins_what_its_ways_made() -> None:
    found = result(
        "MOV TEMP[0].x, IMM[0].w\nSLT TEMP[1].x, IN[0].x, IMM[0].x\nIF TEMP[1].x\n"
        "MOV TEMP[0].x, IMM[0].z\nELSE\nADD TEMP[0].x, TEMP[0].x, TEMP[0].x\nENDIF\n"
        "MOV OUT[0].x, TEMP[0].x\n",
        inputs={(0, 0): words(-1, 1)},
    )
    assert found[:2].tolist() == [1, 4]


def test_arrays_are_memory() -> None:
    """Written directly, read by an index; beyond the array 0 is read, and nothing is written."""
    body = (
        "DCL TEMP[4..6], ARRAY(1), LOCAL\nDCL ADDR[0]\n"
        "MOV TEMP[4].x, IMM[0].z\nMOV TEMP[6].x, IMM[0].w\n"
        "ARL ADDR[0].x, IN[0].x\nMOV TEMP[ADDR[0].x+5](1).x, CONST[0].x\n"
        "ADD OUT[0].x, TEMP[4].x, TEMP[ADDR[0].x+4](1).x\n"
    )
    text = START.replace("DCL TEMP[0..3]\n", "DCL TEMP[0..3]\n" + body.partition("MOV")[0])
    program = parse(text + "MOV" + body.partition("MOV")[2] + "END\n")
    inputs = Inputs(LANES, {(0, 0): words(0, 1, 2, 9)}, {}, (words(10.0),))
    outputs = both(program, inputs)
    assert outputs is not None
    # the indices of the write: 1, 2, 3 (none), 10 (none)
    assert outputs.outputs[0, 0].view(np.float32)[:4].tolist() == [2.0, 1.0, 3.0, 1.0]
    assert to_ssa(program).arrays == {"TEMP(1)": 3}


def test_discarded_lanes() -> None:
    program = parse(START + "KILL_IF IN[0].xxxx\nIF IN[0].y\nKILL\nENDIF\nEND\n")
    outputs = both(program, Inputs(LANES, {(0, 0): words(-1, 1, 1), (0, 1): words(0, 0, 1)}))
    assert outputs is not None
    assert outputs.discarded[:3].tolist() == [True, False, True]


def test_components_are_read_before_they_are_written() -> None:
    found = result(
        "MOV TEMP[0], IN[0]\nMOV TEMP[0].xy, TEMP[0].yxxx\nMUL OUT[0].x, TEMP[0].x, IMM[0].w\n",
        inputs={(0, 0): words(3), (0, 1): words(5)},
    )
    assert found[0] == 10


def test_derivatives_are_those_of_a_quad() -> None:
    values = {(0, 0): words(1, 3, 10, 20)}
    assert result("DDX OUT[0].x, IN[0].x\n", inputs=values)[:4].tolist() == [2, 2, 10, 10]
    assert result("DDY OUT[0].x, IN[0].x\n", inputs=values)[:4].tolist() == [9, 17, 9, 17]


@pytest.mark.parametrize(
    ("op", "operands", "expected"),
    [
        ("fadd", (1.5, 2.0), 3.5),
        ("ffract", (-0.25,), 0.75),
        ("fround", (2.5,), 2.0),
        ("fsign", (-3.0,), -1.0),
        ("frsq", (-4.0,), 0.5),
        ("fpow", (2.0, 3.0), 8.0),
        ("fsat", (7.0,), 1.0),
        ("fsat", (math.nan,), 0.0),
        ("fneg", (1.0,), -1.0),
        ("fabs", (-1.0,), 1.0),
        ("flt", (1.0, 2.0), 0xFFFFFFFF),
        ("fge", (math.nan, 2.0), 0),
        ("b2f", (5,), 1.0),
        ("asr", (0x80000000, 33), 0xC0000000),
        ("shl", (1, 33), 2),
        ("iadd", (0xFFFFFFFF, 2), 1),
        ("imul", (0xFFFFFFFF, 0xFFFFFFFF), 1),
        ("idiv", (0xFFFFFFF9, 2), 0xFFFFFFFD),
        ("idiv", (7, 0), 0),
        ("imod", (0xFFFFFFF9, 2), 0xFFFFFFFF),
        ("udiv", (7, 0), 0xFFFFFFFF),
        ("umod", (7, 4), 3),
        ("ineg", (0x80000000,), 0x80000000),
        ("iabs", (0xFFFFFFFF,), 1),
        ("ilt", (0xFFFFFFFF, 0), 0xFFFFFFFF),
        ("ult", (0xFFFFFFFF, 0), 0),
        ("f2i", (-1.9,), 0xFFFFFFFF),
        ("f2i", (1e20,), 0x7FFFFFFF),
        ("f2u", (-1.0,), 0),
        ("i2f", (0xFFFFFFFF,), -1.0),
        ("u2f", (0x80000000,), 2.0**31),
        ("select", (0, 5, 7), 7),
    ],
)
def test_operations(op: str, operands: tuple[float, ...], expected: float) -> None:
    """A float stands for its bits, a whole number for a word."""

    def word(value: float) -> np.ndarray:
        if isinstance(value, float):
            return np.array([value], np.float32).view(np.uint32)
        return np.array([value], np.uint32)

    assert compute(OPS[op], [word(one) for one in operands])[0] == word(expected)[0]


def test_every_operation_of_tgsi_has_a_translation() -> None:
    texts = []
    for one in OPERATIONS.values():
        if one.shape in (Shape.FLOW, Shape.KILL):
            continue
        operands = ["IN[0]"] * one.sources
        if one.is_texture:
            operands[-1] = "SAMP[0], " + ("2D_MSAA" if one.name == "TXF" else "SHADOW2D")
        target = "ADDR[0]" if one.name in ("ARL", "ARR", "UARL") else "TEMP[0]"
        texts.append(f"{one.name} {target}, {', '.join(operands)}")
    start = START.replace("DCL TEMP[0..3]\n", "DCL TEMP[0..3]\nDCL ADDR[0]\nDCL SAMP[0]\n")
    program = parse(start + "\n".join(texts) + "\nMOV OUT[0], TEMP[0]\nEND\n")
    both(program, any_inputs(1))
    assert set(SIMPLE) | set(SETS) <= set(OPERATIONS)
    assert set(SIMPLE.values()) <= set(OPS)


def test_the_listing() -> None:
    program = parse(
        START + "MUL TEMP[0].x, IN[0].x, CONST[1].y\nUIF TEMP[0].x\nMOV TEMP[1].x, IMM[0].z\n"
        "ENDIF\nBGNLOOP\nADD TEMP[1].x, TEMP[1].x, TEMP[0].x\nBRK\nENDLOOP\n"
        "MOV OUT[0].xy, TEMP[1].x\nEND\n"
    )
    assert print_ssa(to_ssa(program)) == (
        "FRAG\n"
        "  %0 = input 0, 0\n"
        "  %1 = uniform 0, 1, 1\n"
        "  %2 = fmul %0, %1\n"
        "  if %2\n"
        "    give 0x3f800000\n"
        "  else\n"
        "    give 0x0\n"
        "  end %3:TEMP[1].x\n"
        "  loop %4:TEMP[1].x = %3\n"
        "    %5 = fadd %4, %2\n"
        "    break %5\n"
        "  end %6:TEMP[1].x\n"
        "  output 0, 0, %6\n"
        "  output 0, 1, %6\n"
        "  output 0, 2, 0x0\n"
        "  output 0, 3, 0x0\n"
    )


def test_origins_are_lines_of_the_text() -> None:
    function = to_ssa(parse(START + "MUL TEMP[0].x, IN[0].x, IN[0].y\nEND\n"))
    assert [one.line for one in function.values() if one.op == "fmul"] == [7]


def test_too_large_programs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_tgsi, "MOST_NAMES", 10)
    body = "BGNLOOP\nMOV TEMP[0], IN[0]\nMOV TEMP[1], IN[0]\nMOV TEMP[2], IN[0]\nBRK\nENDLOOP\nEND\n"
    with pytest.raises(TgsiError, match="too many values meet"):
        to_ssa(parse(START + body))


def test_the_checks_notice() -> None:
    """A value that is used before it is made, and one that is made twice."""
    function = to_ssa(parse(START + "MOV OUT[0], IN[0]\nEND\n"))
    check_ssa(function)
    block = function.body[0]
    block.values.insert(0, Value("fabs", (block.values[-1].args[0],)))  # type: ignore[union-attr]
    with pytest.raises(AssertionError, match="not seen"):
        check_ssa(function)
    block.values[0] = block.values[1]  # type: ignore[union-attr]
    with pytest.raises(AssertionError, match="made twice"):
        check_ssa(function)


def test_endless_loops_have_a_budget() -> None:
    assert both(parse(START + "BGNLOOP\nENDLOOP\nEND\n"), Inputs(LANES, budget=50)) is None
    function = to_ssa(parse(START + "BGNLOOP\nENDLOOP\nMOV OUT[0], IN[0]\nEND\n"))
    assert not [one for one in function.values() if one.op == "output"]
    assert run(to_ssa(parse(START + "END\n")), Inputs(LANES)).outputs[0, 0].sum() == 0


def test_of_two_zeros_the_second_counts() -> None:
    """Whatever numpy's vector unit does; and a number counts more than none."""
    zeros = [np.array([0, 0x80000000] * 20, np.uint32), np.array([0x80000000, 0] * 20, np.uint32)]
    for op in ("fmin", "fmax"):
        assert compute(OPS[op], zeros).tolist() == zeros[1].tolist()
    nan, one = np.array([0x7FC00000], np.uint32), np.array([0x3F800000], np.uint32)
    for op in ("fmin", "fmax"):
        assert compute(OPS[op], [nan, one])[0] == compute(OPS[op], [one, nan])[0] == 0x3F800000
