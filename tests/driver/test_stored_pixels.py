"""What becomes of a pixel that is drawn: depth and stencil tests, blending, colour masks."""

from typing import Any

import numpy as np
import pytest
from tests.driver.drawing import BGRA, DEPTH, DEPTH_STENCIL, RGBA, Drawing, stencil_face
from tests.driver.test_draws import CORNERS, GREEN, RED, SIZE, SURE, fill, inside, rectangle

from vc4lab.mesa.protocol import state_commands
from vc4lab.mesa.protocol.codes import BlendFactor, Compare, StencilOp
from vc4lab.mesa.protocol.formats import Format


@pytest.mark.parametrize("near_first", [False, True])
def test_the_depth_test(drawing: Drawing, near_first: bool) -> None:
    colour, depth = drawing.texture(SIZE, SIZE), drawing.texture(SIZE, SIZE, DEPTH, bind=1)
    drawing.target(colour, depth)
    drawing.viewport(SIZE, SIZE)
    drawing.defaults()
    drawing.depth(depth_enabled=True, depth_writemask=True, depth_func=Compare.LESS)
    drawing.clear(5, depth=1.0)
    near, far = rectangle(10.1, 10.1, 60.1, 60.1), rectangle(30.1, 30.1, 90.1, 90.1)
    draws = [(near, RED, -0.5), (far, GREEN, 0.5)]
    for points, paint, z in draws if near_first else draws[::-1]:
        fill(drawing, points, paint, z)
    expected = np.zeros((SIZE, SIZE, 4), np.uint8)
    expected[30:90, 30:90] = [0, 255, 0, 255]
    expected[10:60, 10:60] = [255, 0, 0, 255]
    assert (drawing.get(colour) == expected).all()
    z_bytes = drawing.get(depth)[..., 3]
    assert (z_bytes[10:60, 10:60] == 0x40).all()
    assert (z_bytes[60:90, 60:90] == 0xC0).all()
    assert (z_bytes[:10] == 0xFF).all()


def test_depth_outlives_a_readback(drawing: Drawing) -> None:
    """Colour and depth are stored, loaded, and go on."""
    colour, depth = drawing.texture(SIZE, SIZE, BGRA), drawing.texture(SIZE, SIZE, DEPTH, bind=1)
    drawing.target(colour, depth)
    drawing.viewport(SIZE, SIZE)
    drawing.defaults()
    drawing.depth(depth_enabled=True, depth_writemask=True, depth_func=Compare.LESS)
    drawing.clear(5, depth=1.0)
    fill(drawing, rectangle(10.1, 10.1, 60.1, 60.1), RED, -0.5)
    drawing.get(colour)
    fill(drawing, rectangle(30.1, 30.1, 90.1, 90.1), GREEN, 0.5)
    expected = np.zeros((SIZE, SIZE, 4), np.uint8)
    expected[30:90, 30:90] = [0, 255, 0, 255]
    expected[10:60, 10:60] = [0, 0, 255, 255]
    assert (drawing.get(colour) == expected).all()


@pytest.mark.parametrize("writemask", [255, 0x55])
def test_the_stencil_test(drawing: Drawing, writemask: int) -> None:
    colour = drawing.texture(SIZE, SIZE)
    depth = drawing.texture(SIZE, SIZE, DEPTH_STENCIL, bind=1)
    drawing.target(colour, depth)
    drawing.viewport(SIZE, SIZE)
    drawing.defaults()
    drawing.clear(7, depth=1.0, stencil=0)
    drawing.depth(stencil_face(Compare.ALWAYS, StencilOp.REPLACE, writemask=writemask))
    drawing.client.submit(state_commands.SetStencilRef(0xFF, 0xFF))
    fill(drawing, CORNERS, RED)
    drawing.depth(stencil_face(Compare.EQUAL, StencilOp.KEEP))
    drawing.client.submit(state_commands.SetStencilRef(writemask, writemask))
    fill(drawing, rectangle(0, 0, SIZE, 50), GREEN)
    covered = inside(CORNERS)
    assert (drawing.get(depth)[..., 0] == np.where(covered, writemask, 0))[SURE].all()
    expected = np.where(covered[..., None], [255, 0, 0, 255], 0)
    expected[:50] = np.where(covered[:50, :, None], [0, 255, 0, 255], 0)
    assert (drawing.get(colour) == expected)[SURE].all()


@pytest.mark.parametrize("format_", [RGBA, BGRA, Format.B5G6R5_UNORM])
def test_blending_and_colour_masks(drawing: Drawing, format_: Any) -> None:
    handle = drawing.texture(SIZE, SIZE, format_)
    drawing.target(handle)
    drawing.viewport(SIZE, SIZE)
    drawing.defaults()
    drawing.clear(4, (0.0, 0.0, 1.0, 1.0))
    alpha = {"rgb_src_factor": BlendFactor.SRC_ALPHA, "rgb_dst_factor": BlendFactor.INV_SRC_ALPHA}
    drawing.blend(blend_enable=True, colormask=0b1101, **alpha)
    fill(drawing, rectangle(0, 0, SIZE, 40), (1, 1, 0, 0.5))
    found = drawing.get(handle)
    top, bottom = found[20, 20].tolist(), found[60, 60].tolist()
    if format_ == RGBA:
        assert abs(np.array(top) - [128, 0, 128, 255]).max() <= 1
        assert bottom == [0, 0, 255, 255]
    elif format_ == BGRA:
        assert abs(np.array(top) - [128, 0, 128, 255]).max() <= 1
        assert bottom == [255, 0, 0, 255]
    else:
        word = top[0] | top[1] << 8
        assert abs(np.array([word >> 11, word & 31]) - 16).max() <= 1
        assert word >> 5 & 63 == 0
        assert bottom == [31, 0]
