"""Varyings, W and Z of a fragment against their definitions in double precision."""

import numpy as np
import pytest
from tests.support.programs import GOURAUD
from tests.v3d.fragment.scene import Scene, vertex, words

from vc4lab.v3d.state.tile_context import FragmentKey

END = """
    nop ; nop ; sbwait
    mov tlbc, {colour} ; nop ; thrend
    nop ; nop
    nop ; nop ; sbdone
"""
COLOUR = words(GOURAUD + END.format(colour="r3"))
W_BITS = words("mov r0, ra15" + END.format(colour="r0"))
Z_BITS = words("mov r0, rb15" + END.format(colour="r0"))
FLAT_BITS = words("mov r0, vary\n nop\n mov r0, r5\n" + END.format(colour="r0"))
X_Y = words("mov r0, x_coord\n mov r1, y_coord\n shl r1, r1, 15\n shl r1, r1, 1\n or r0, r0, r1\n"
            + END.format(colour="r0"))  # fmt: skip


def weights(corners, width, height):
    """Barycentric coordinates of all pixel centres, shape (3, height, width)."""
    (x0, y0), (x1, y1), (x2, y2) = corners
    px = np.arange(width)[None, :] + 0.5
    py = np.arange(height)[:, None] + 0.5
    area = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
    w1 = ((px - x0) * (y2 - y0) - (py - y0) * (x2 - x0)) / area
    w2 = ((x1 - x0) * (py - y0) - (y1 - y0) * (px - x0)) / area
    return np.stack([1 - w1 - w2, w1, w2])


CORNERS = [(-20.5, -10.25), (150.0, 20.5), (30.75, 160.0)]
ONE_OVER_W = [1.0, 0.25, 0.5]


def scene_of(program, values, **key):
    scene = Scene(128, 128)
    vertices = [
        vertex(*corner, depth, w, *varyings)
        for corner, w, (depth, *varyings) in zip(CORNERS, ONE_OVER_W, values, strict=True)
    ]
    n_varyings = len(values[0]) - 1
    scene.add(FragmentKey(program=program, n_varyings=n_varyings, **key), vertices)
    return scene


def test_varyings_are_perspective_correct():
    values = np.array([[0.5, 0.1, 0.9, 0.3], [0.5, 0.8, 0.2, 0.4], [0.5, 0.5, 0.6, 1.0]])
    image = scene_of(COLOUR, values.tolist()).render()
    b = weights(CORNERS, 128, 128) * np.array(ONE_OVER_W)[:, None, None]
    covered = image != 0
    assert covered.sum() > 5000
    for channel in range(3):
        expected = (b * values[:, channel + 1, None, None]).sum(0) / b.sum(0) * 255
        got = (image >> 8 * channel) & 255
        assert np.abs(got - expected)[covered].max() < 0.51


def test_w_is_the_reciprocal_of_the_linear_one_over_w():
    image = scene_of(W_BITS, [[0.5]] * 3).render()
    expected = 1 / (weights(CORNERS, 128, 128) * np.array(ONE_OVER_W)[:, None, None]).sum(0)
    covered = image != 0
    got = image.view(np.float32)
    assert np.abs(got / expected - 1)[covered].max() < 1e-6


def test_z_is_linear_in_24_bits():
    depths = np.array([0.25, 0.75, 1.0])
    image = scene_of(Z_BITS, depths[:, None].tolist()).render()
    expected = (weights(CORNERS, 128, 128) * depths[:, None, None]).sum(0) * 2**24
    assert np.abs(image - expected)[image != 0].max() < 4


def test_flat_varying_is_the_last_vertex_bit_by_bit():
    bits = 0x00000007  # a denormal as a float: must not be touched
    scene = Scene()
    corners = [vertex(0, 0, 0.5, 1, 1), vertex(60, 0, 0.5, 1, 2), vertex(0, 60, 0.5, 1, 3)]
    corners[2][3] = bits
    key = FragmentKey(program=FLAT_BITS, n_varyings=1, flat_flags=1)
    scene.add(key, corners)
    for engine in ("fast", "exact", "interpreter"):
        image = scene.render(engine)
        assert set(np.unique(image)) == {0, bits}


def test_pixel_coordinates_are_those_of_the_frame():
    image = scene_of(X_Y, [[0.5]] * 3).render()
    y, x = np.mgrid[0:128, 0:128]
    covered = weights(CORNERS, 128, 128).min(0) > 0.001
    assert (image == (y << 16 | x))[covered].all()


@pytest.mark.parametrize("count", [1, 5, 8, 11])
def test_many_varyings_arrive_in_order(count):
    text = "".join(f"mov r0, vary\n fmul r0, r0, ra15\n fadd r{k % 2 + 1}, r0, r5\n" for k in range(count))
    program = words(text + END.format(colour=f"r{(count - 1) % 2 + 1}"))
    values = [[0.5, *(float(k + 1) for k in range(count))]] * 3
    image = scene_of(program, values).render().view(np.float32)
    assert set(np.unique(image)) == {0.0, float(count)}
