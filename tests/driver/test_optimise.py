"""SSA made smaller: the same words, and what is gone by its listing."""

import numpy as np
import pytest
from tests.support.shader_runs import LANES, SAMPLES, START, both

from vc4lab.driver.compiler.ssa.from_tgsi import to_ssa
from vc4lab.driver.compiler.ssa.inspection import print_ssa
from vc4lab.driver.compiler.ssa.optimise import optimise
from vc4lab.driver.compiler.ssa.reference import Inputs
from vc4lab.driver.compiler.tgsi.parser import parse


def optimised(body: str) -> str:
    """The listing of the optimised program, without its first line."""
    return print_ssa(optimise(to_ssa(parse(START + body + "END\n")))).partition("\n")[2]


def test_equal_values_are_made_once_and_unused_ones_not_at_all() -> None:
    assert optimised(
        "MUL TEMP[0].x, IN[0].x, IN[0].y\nMUL TEMP[1].x, IN[0].x, IN[0].y\n"
        "SIN TEMP[2], IN[0].x\nADD OUT[0].xyzw, TEMP[0].x, TEMP[1].x\n"
    ) == (
        "  %0 = input 0, 0\n  %1 = input 0, 1\n  %2 = fmul %0, %1\n  %3 = fadd %2, %2\n"
        "  output 0, 0, %3\n  output 0, 1, %3\n  output 0, 2, %3\n  output 0, 3, %3\n"
    )


def test_constants_are_computed() -> None:
    assert optimised(
        "ADD TEMP[0].x, IMM[0].z, IMM[0].z\nMUL TEMP[0].x, TEMP[0].x, IMM[0].w\n"
        "MUL OUT[0], TEMP[0].x, IMM[0].z\n"
    ) == "".join(f"  output 0, {component}, 0x40800000\n" for component in range(4))


@pytest.mark.parametrize(("index", "register"), [("xxxx", 1), ("yyyy", 2), ("wwww", None), ("zzzz", None)])
def test_uniforms_at_a_known_index_are_not_looked_up(index: str, register: int | None) -> None:
    text = START + (
        "DCL ADDR[0]\nIMM[1] INT32 {1, 2, 100000, -1}\n"
        f"  0: UARL ADDR[0].x, IMM[1].{index}\n"
        "  1: MOV OUT[0].x, CONST[ADDR[0].x].yyyy\n  2: END\n"
    )
    uniforms = (np.arange(16, dtype=np.uint32),)
    outputs = both(parse(text), Inputs(LANES, uniforms=uniforms))
    assert outputs is not None
    small = optimise(to_ssa(parse(text)))
    read = [one for one in small.values() if one.op.startswith("uniform")]
    if register is None:
        assert [one.op for one in read] == ["uniform_at"]
        assert not outputs.outputs[0, 0].any()
    else:
        assert [(one.op, one.attributes) for one in read] == [("uniform", (0, register, 1))]
        assert (outputs.outputs[0, 0] == 4 * register + 1).all()


def test_what_ways_agree_on_has_one_name() -> None:
    """Both ways make the same; a loop does not change it; its counter stays."""
    assert optimised(
        "MOV TEMP[0].x, IN[0].x\nUIF IN[0].y\nMOV TEMP[1].x, IN[0].x\nELSE\n"
        "MOV TEMP[1].x, TEMP[0].x\nENDIF\nBGNLOOP\nMOV TEMP[1].x, TEMP[1].x\nBRK\nENDLOOP\n"
        "MOV OUT[0], TEMP[1].x\n"
    ) == (
        "  %0 = input 0, 0\n  %1 = input 0, 1\n  if %1\n  else\n  end\n  loop\n    break\n  end\n"
        "  output 0, 0, %0\n  output 0, 1, %0\n  output 0, 2, %0\n  output 0, 3, %0\n"
    )


def test_zeros_keep_their_sign() -> None:
    """x + 0 is not x: of -0 it is 0."""
    assert "fadd" in optimised("ADD OUT[0], IN[0].x, IMM[0].x\n")


def test_samples_become_smaller() -> None:
    sizes = []
    for path in SAMPLES:
        program = parse(path.read_text())
        before, after = to_ssa(program), optimise(to_ssa(program))
        sizes.append((len(before.values()), len(after.values())))
    assert all(after <= before for before, after in sizes)
    assert sum(after for _, after in sizes) < 0.9 * sum(before for before, _ in sizes)
