"""Loops whose turns are known become their turns."""

import numpy as np
import pytest
from tests.support.shader_runs import START, result

from vc4lab.driver.compiler.ssa.from_tgsi import to_ssa
from vc4lab.driver.compiler.ssa.loops import unroll
from vc4lab.driver.compiler.ssa.optimise import optimise, walk
from vc4lab.driver.compiler.ssa.values import Loop
from vc4lab.driver.compiler.tgsi.parser import parse
from vc4lab.v3d.tmu.requests import MAX_REQUESTS


def loops_of(body: str) -> tuple[int, int]:
    """How many loops a shader has, before and after those with known turns are unrolled."""
    function = optimise(to_ssa(parse(START + body + "END\n")))
    count = sum(isinstance(node, Loop) for node in walk(function.body))
    return count, sum(isinstance(node, Loop) for node in walk(unroll(function).body))


COUNT = (  # TEMP[0].x from 0 to a limit
    "MOV TEMP[0].x, IMM[0].x\nBGNLOOP\nISGE TEMP[1].x, TEMP[0].x, {limit}\nUIF TEMP[1].x\n"
    "BRK\nENDIF\n"
    "{body}UADD TEMP[0].x, TEMP[0].x, IMM[0].y\nENDLOOP\n"
)
INNER = COUNT.replace("TEMP[0]", "TEMP[2]").replace("TEMP[1]", "TEMP[3]")
ADD = "ADD TEMP[1].y, TEMP[1].y, IMM[0].z\n"
END = "MOV OUT[0].x, TEMP[1].y\n"
LIMITS = "IMM[1] UINT32 {{5, 32, 33, 3}}\n"
UNROLLED = {
    "a constant limit": (COUNT.format(limit="IMM[1].x", body=ADD), 1, 0, 5),
    "as many turns as may be": (COUNT.format(limit="IMM[1].y", body=ADD), 1, 0, 32),
    "one more": (COUNT.format(limit="IMM[1].z", body=ADD), 1, 1, 33),
    "a limit in a uniform": (COUNT.format(limit="CONST[0].x", body=ADD), 1, 1, 2),
    "the inner one counts to the outer one": (
        COUNT.format(limit="IMM[1].x", body=INNER.format(limit="TEMP[0].x", body=ADD)), 2, 0, 10
    ),
    "an inner one that is not known": (
        COUNT.format(limit="IMM[1].w", body=INNER.format(limit="CONST[0].x", body=ADD)), 2, 3, 6
    ),
    "a turn is left early": (
        COUNT.format(
            limit="IMM[1].x",
            body="USEQ TEMP[3].x, TEMP[0].x, IMM[1].w\nUIF TEMP[3].x\n"
            "UADD TEMP[0].x, TEMP[0].x, IMM[0].y\nCONT\nENDIF\n" + ADD,
        ), 1, 0, 4,
    ),
    "lanes leave on their own": (
        COUNT.format(
            limit="IMM[1].x", body="UIF IN[0].x\nBRK\nENDIF\n" + ADD
        ), 1, 1, 5,
    ),
    "a condition that is not known, without a jump": (
        COUNT.format(limit="IMM[1].x", body=f"UIF CONST[0].x\n{ADD}ELSE\n{ADD}{ADD}ENDIF\n"),
        1, 0, 5,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNROLLED)
def test_loops_whose_turns_are_known(name: str) -> None:
    body, before, after, expected = UNROLLED[name]
    text = LIMITS.format() + body + END
    assert loops_of(text) == (before, after)
    found = result(text, uniforms=(np.array([2, 0, 0, 0], np.uint32),))
    assert (found == expected).all()


def test_large_loops_stay() -> None:
    """A body of 20 operations in 32 turns."""
    body = "".join(f"MUL TEMP[1].y, TEMP[1].y, CONST[{n % 4}].x\n" for n in range(20))
    text = LIMITS.format() + COUNT.format(limit="IMM[1].y", body=body) + END
    assert loops_of(text) == (1, 1)
    assert loops_of(text.replace("IMM[1].y\n", "IMM[1].x\n")) == (1, 0)


@pytest.mark.parametrize(("limit", "expected"), [("x", (2, 0)), ("y", (2, 3))])
def test_unrolled_requests_fit_the_texture_unit(limit: str, expected: tuple[int, int]) -> None:
    """5 x 5 samples become as many; of 5 x 12 two loops stay unrolled, and three are left."""
    sample = "TEX TEMP[0].yzw, IN[0].xyzz, SAMP[0], 2D\nADD TEMP[1].y, TEMP[1].y, TEMP[0].y\n"
    inner = INNER.format(limit=f"IMM[1].{limit}", body=sample)
    text = START.replace("DCL TEMP", "DCL SAMP[0]\nDCL TEMP", 1)
    body = "IMM[1] UINT32 {5, 12, 0, 0}\n" + COUNT.format(limit="IMM[1].x", body=inner) + END
    function = optimise(to_ssa(parse(text + body + "END\n")))
    count = sum(isinstance(node, Loop) for node in walk(function.body))
    left = [node for node in walk(unroll(function).body) if isinstance(node, Loop)]
    samples = [one for one in function.values() if one.op == "sample"]
    assert len(samples) <= MAX_REQUESTS
    assert (count, len(left)) == expected
