"""Limits of the level of detail: by the number of levels where that suffices, else by programs."""

from typing import Any

import numpy as np
import pytest
from tests.driver.drawing import Drawing
from tests.driver.shaders import TEXTURED, VARYING
from tests.mesa.conftest import RunningServer

from vc4lab.driver.draws.textures import clamps_level
from vc4lab.mesa.protocol import objects
from vc4lab.mesa.protocol.codes import Filter, MipFilter, Primitive

SIZE, LEVELS = 32, 5
GREY = [40 * level for level in range(1, LEVELS + 1)]
"""Of each level."""
SQUARE = np.array([[-1, -1, 0, 1], [1, -1, 0, 1], [-1, 1, 0, 1], [1, 1, 0, 1]])


@pytest.fixture
def mipmapped(drawing: Drawing) -> tuple[int, int]:
    """A target of 32 x 32 pixels, and a texture of which each level has a grey of its own."""
    target = drawing.texture(SIZE, SIZE)
    drawing.target(target)
    drawing.viewport(SIZE, SIZE)
    drawing.defaults()
    texture = drawing.texture(SIZE, SIZE, levels=LEVELS)
    for level, grey in enumerate(GREY):
        drawing.put(texture, np.full((SIZE >> level, SIZE >> level, 4), grey, np.uint8), level)
    return target, texture


def seen(drawing: Drawing, textures: tuple[int, int], level: float, **sampler: Any) -> int:
    """The grey of a square whose texels lie so close that this is the level of detail."""
    target, texture = textures
    drawing.shaders(VARYING, TEXTURED.format(target="2D"))
    drawing.sampled(texture, last_level=LEVELS - 1, **sampler)
    step = 2.0**level
    coordinates = np.array([[0, 0], [step, 0], [0, step], [step, step]])
    rest = np.tile([0.0, 1.0], (4, 1))
    drawing.vertices(np.concatenate([SQUARE, coordinates, rest], axis=1), 4, 4)
    drawing.draw(Primitive.TRIANGLE_STRIP, 4)
    found = drawing.get(target)
    assert (found == found[0, 0]).all()
    return int(found[0, 0, 0])


def grey(level: float) -> float:
    return float(np.interp(level, range(LEVELS), GREY))


NEAREST: dict[str, Any] = {"min_mip_filter": MipFilter.NEAREST}
LINEAR: dict[str, Any] = {"min_mip_filter": MipFilter.LINEAR}


@pytest.mark.parametrize(
    ("mip", "level", "limits", "expected"),
    [
        (NEAREST, 0, (0, 1000), 0),
        (NEAREST, 2, (0, 1000), 2),
        (NEAREST, 0, (2, 1000), 2),
        (NEAREST, 3, (2, 1000), 3),
        (NEAREST, 3, (0, 1), 1),
        (NEAREST, 3, (0, 1.4), 1),
        (NEAREST, 3, (0, 0), 0),
        (NEAREST, 1, (3, 3), 3),
        (LINEAR, 0, (0.75, 1000), 0.75),
        (LINEAR, 1, (0.75, 1000), 1),
        (LINEAR, 3, (0, 1.25), 1.25),
        (LINEAR, 3, (0, 2), 2),
        (LINEAR, 3, (0, -1), 0),
        (LINEAR, 0, (3, 1), 3),
    ],
)
def test_the_level_of_detail_is_limited(
    drawing: Drawing,
    mipmapped: tuple[int, int],
    gpu: RunningServer,
    mip: dict[str, Any],
    level: float,
    limits: tuple[float, float],
    expected: float,
) -> None:
    found = seen(drawing, mipmapped, level, min_lod=limits[0], max_lod=limits[1], **mip)
    assert abs(found - grey(expected)) <= 2
    assert gpu.codes() == []


def test_filters_without_levels_follow_the_limits(drawing: Drawing, mipmapped: tuple[int, int]) -> None:
    """Texels are never magnified above 0, always where no more is allowed."""
    target, _ = mipmapped
    chequered = drawing.texture(2, 2)
    texels = np.zeros((2, 2, 4), np.uint8)
    texels[0, 0] = texels[1, 1] = 255
    drawing.put(chequered, texels)
    textures = target, chequered
    filters = {"min_img_filter": Filter.LINEAR, "mag_img_filter": Filter.NEAREST}

    def greys(**limits: float) -> int:
        drawing.shaders(VARYING, TEXTURED.format(target="2D"))
        drawing.sampled(textures[1], **filters, **limits)
        rest = np.tile([0.0, 1.0], (4, 1))
        coordinates = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
        drawing.vertices(np.concatenate([SQUARE, coordinates, rest], axis=1), 4, 4)
        drawing.draw(Primitive.TRIANGLE_STRIP, 4)
        return len(np.unique(drawing.get(target)[..., 0]))

    assert greys(min_lod=0.0, max_lod=1000.0) == 2
    assert greys(min_lod=1.0, max_lod=1000.0) > 8
    filters = {"min_img_filter": Filter.NEAREST, "mag_img_filter": Filter.LINEAR}
    assert greys(min_lod=1.0, max_lod=1000.0) == 2
    assert greys(min_lod=0.0, max_lod=0.0) > 8


def test_limits_that_another_frame_changes(drawing: Drawing, mipmapped: tuple[int, int]) -> None:
    """Textures that fade in: the same program with other limits."""
    for least in (3.0, 2.25, 1.5, 0.75, 0.0):
        found = seen(drawing, mipmapped, 0, min_lod=least, max_lod=1000.0, **LINEAR)
        assert abs(found - grey(least)) <= 2


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_limits_that_are_no_numbers(
    drawing: Drawing, mipmapped: tuple[int, int], gpu: RunningServer, bad: float
) -> None:
    for limits in ((0.0, bad), (bad, 1000.0), (bad, bad)):
        seen(drawing, mipmapped, 1, min_lod=limits[0], max_lod=limits[1], **LINEAR)
    assert gpu.codes() == []


def test_programs_clamp_only_where_they_have_to() -> None:
    def asked(mip: MipFilter, least: float, most: float) -> bool:
        return clamps_level(objects.SamplerState(min_mip_filter=mip, min_lod=least, max_lod=most), LEVELS - 1)

    assert not asked(MipFilter.LINEAR, 0.0, 1000.0)
    assert not asked(MipFilter.LINEAR, 0.0, 2.0)
    assert not asked(MipFilter.NEAREST, 0.0, 1.5)
    assert not asked(MipFilter.NONE, 2.0, 3.0)
    assert asked(MipFilter.LINEAR, 0.0, 1.5)
    assert asked(MipFilter.NEAREST, 1.0, 1000.0)
