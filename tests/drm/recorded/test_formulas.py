"""Pictures of driver jobs against formulas: the scene's shader evaluated in double precision.

glmark2's grids shade a pixel by d = fract(x * y * 0.0001), then by steps on d. The driver hands
whole pixel coordinates (x, 480 - y) to the shader, so that d needs nothing but the pixel.
"""

from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

from vc4lab.drm.recorded.replay import replay

JOBS = Path(__file__).parents[2] / "data" / "vc4-jobs"


def conditional(d: numpy.ndarray) -> numpy.ndarray:
    for _ in range(5):
        d = numpy.where(d >= 0.5, 2 * d % 1, 3 * d % 1)
    return d


def simple(d: numpy.ndarray) -> numpy.ndarray:
    return 3 * d % 1


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("glmark2_conditionals_fragment-steps_5", conditional),
        ("glmark2_loop_fragment-loop_false", simple),
        ("glmark2_loop_fragment-uniform_true", simple),
    ],
)
def test_grids(name: str, formula: Callable[[numpy.ndarray], numpy.ndarray]) -> None:
    image = replay(JOBS / name).image
    assert image is not None
    red = numpy.asarray(image)[..., 0].astype(int)
    y, x = numpy.mgrid[0:480, 0:640]
    expected = numpy.rint(255 * formula(x * (480 - y) * 0.0001 % 1))
    covered = red > 0
    assert covered.sum() > 100_000
    # 32-bit arithmetic falls to the other side of a jump in a few pixels
    assert (abs(red - expected)[covered] <= 2).mean() > 0.99
