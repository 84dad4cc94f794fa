"""A long chain of float operations whose result only the chip's rounding gives.

GPU_FFT prints a relative error of 3.3e-7 on boards for 256 points, where results rounded to nearest
would give 0.7e-7: sums and products are rounded toward zero (`make conformance GPU_FFT=DIR`). Here
is the same without GPU_FFT: points are turned by a small angle, again and again.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from vc4lab.qpu.text.assembler import assemble
from vc4lab.v3d.user_programs.experiment import Experiment

TURNS = 200
ANGLE = 0.01
STEP = 1 / 16
PROGRAM = f"""
        mov  ra0, unif          # the cosine of the angle
        mov  ra1, unif          # its sine
        itof r1, elem_num
        mov  r0, unif
        fmul r0, r1, r0
        mov  r1, 1.0
        fadd r0, r0, r1         # x of each lane: 1 and so many steps
        mov  r1, 0.5            # y
        ldi  ra3, {TURNS}
turn:   fmul r2, r0, ra0
        fmul r3, r1, ra1
        fsub r2, r2, r3
        fmul r3, r0, ra1
        fmul r1, r1, ra0
        fadd r1, r1, r3
        mov  r0, r2
        nop
        sub.setf ra3, ra3, 1
        brr.anynz -, turn
        nop
        nop
        nop
        ldi  vw_setup, 0x1a00   # whole rows
        mov  vpm, r0
        mov  vpm, r1
        ldi  vw_setup, 0x81104000
        mov  vw_addr, unif      # two rows of 16 words
        mov  -, vw_wait
        nop ; nop ; thrend
        nop
        nop
"""


def toward_zero(value: Fraction) -> Fraction:
    """The float of 24 bits next to a value that is not farther from zero."""
    if not value:
        return value
    unit = Fraction(2) ** (math.frexp(float(value))[1] - 24)
    return math.trunc(value / unit) * unit


def to_nearest(value: Fraction) -> Fraction:
    return Fraction(float(np.float32(float(value))))


def turned(rounded: Callable[[Fraction], Fraction]) -> np.ndarray:
    """The points after all turns, in exact arithmetic with a rounding after each operation."""
    c, s = (Fraction(float(np.float32(f(ANGLE)))) for f in (math.cos, math.sin))
    points = []
    for lane in range(16):
        x, y = rounded(1 + lane * Fraction(STEP)), Fraction(1, 2)
        for _ in range(TURNS):
            x, y = (rounded(rounded(x * c) - rounded(y * s)), rounded(rounded(y * c) + rounded(x * s)))
        points.append((float(x), float(y)))
    return np.array(points).T


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_a_long_chain_of_sums_and_products(engine: str) -> None:
    experiment = Experiment(assemble(PROGRAM).bytes, engine=engine)
    area = experiment.add_area("out=128")
    cosine, sine = (float(np.float32(f(ANGLE))) for f in (math.cos, math.sin))
    report = experiment.run(1, [f"{cosine!r}, {sine!r}, {STEP}, out"])
    assert (report.completed, report.waiting) == (1, [])
    here = experiment.memory.array(area.address, 32, "f4").reshape(2, 16).astype(float)
    np.testing.assert_array_equal(here, turned(toward_zero))


def test_no_other_rounding_would_do() -> None:
    """The error is that of rounding toward zero: it grows with each turn, not with its root."""
    angle = TURNS * math.atan2(*(float(np.float32(f(ANGLE))) for f in (math.sin, math.cos)))
    x, y = 1 + STEP * np.arange(16), np.full(16, 0.5)
    exact = np.array([x * math.cos(angle) - y * math.sin(angle), x * math.sin(angle) + y * math.cos(angle)])

    def error(points: np.ndarray) -> float:
        return float(np.sqrt(((points - exact) ** 2).sum() / (exact**2).sum()))

    assert error(turned(toward_zero)) > 5 * error(turned(to_nearest))
