"""Cube maps: faces, and levels of detail where a quad lies on several faces."""

import itertools

import numpy as np
import pytest
from tests.v3d.tmu.sampling import BASE, SPECIAL, TARGETS, ZEROS, check, cube_block, words

from vc4lab.memory import GuestMemory
from vc4lab.records.texture import MinFilter, TextureConfig
from vc4lab.simd import Target
from vc4lab.v3d.tmu.kernels import sample_words
from vc4lab.v3d.tmu.texture_state import describe_texture

STRIDE = 0x8000
EDGES_AND_CORNERS = [
    direction for direction in itertools.product((-1.0, 0.0, 1.0), repeat=3)
    if sum(abs(part) for part in direction) >= 2
]  # fmt: skip


def mipmapped(**changes) -> TextureConfig:
    parts = {
        "base": BASE, "width": 64, "height": 64, "levels": 7, "cube": True, "cube_stride": STRIDE,
        "mag_filter": 0, "min_filter": MinFilter.LINEAR_MIP_LINEAR,
    }  # fmt: skip
    return TextureConfig(**parts | changes)


def test_cube_maps() -> None:
    for filter_code, levels in ((0, 1), (1, 1), (MinFilter.LINEAR_MIP_LINEAR, 4)):
        config = mipmapped(levels=levels, mag_filter=filter_code & 1, min_filter=filter_code)
        rng = np.random.default_rng(12)
        xyz = rng.uniform(-1, 1, (3, 16))
        xyz /= np.abs(xyz).max(axis=0)
        check(config, *(words(axis) for axis in xyz))
        check(config, SPECIAL, SPECIAL[::-1], words(np.linspace(-1, 1, 16)))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.level)
def test_quads_on_several_faces(target: Target) -> None:
    for direction in EDGES_AND_CORNERS:
        for step in (0.004, 0.05, 0.7):
            check(mipmapped(), *cube_block(direction, step), only=(target,))
    # A program that does not divide, lanes that look away from each other, no stride.
    check(mipmapped(), *cube_block((1, 1, 0), 0.1, scale=0.75), only=(target,))
    check(mipmapped(cube_stride=0), *cube_block((1, 1, 0), 0.1), only=(target,))
    ones = words(np.tile([1.0, -1.0, 1.0, 1.0], 4)), words(np.tile([0.5, 0.5, 1.0, -1.0], 4))
    check(mipmapped(), *ones, words(np.linspace(-1, 1, 16)), only=(target,))
    check(mipmapped(), SPECIAL, SPECIAL[3:] + SPECIAL[:3], SPECIAL[::-1], only=(target,))


def test_levels_do_not_jump_at_the_edges_of_faces() -> None:
    """Each level has a shade of its own; blocks along a circle that crosses four edges.

    An eye in the middle of the cube sees texels of about the same size on both sides of an edge.
    """
    config = mipmapped(min_filter=MinFilter.NEAREST_MIP_LINEAR, mag_filter=1)
    kind, descriptor = describe_texture(*config.parameters(), 3)
    ram = GuestMemory()
    for face, level in itertools.product(range(6), range(7)):
        size = 4 * max(64 >> level, 4) ** 2
        ram.write(descriptor.base[level] + face * STRIDE, bytes([level * 40]) * size)
    zeros = np.array(ZEROS, np.uint32)
    for angle in np.linspace(0, 2 * np.pi, 113):
        direction = (float(np.cos(angle)), float(np.sin(angle)), 0.1)
        s, t, r = (np.array(axis, np.uint32) for axis in cube_block(direction, 4 / 64))
        shades = sample_words(kind, descriptor, ram, s, t, r, zeros).view(np.uint8)
        # Texels per pixel: 2 in the middle of a face (seen at a distance of 1), up to 4 at its
        # edges, where the plane of the pixels is inclined by 45 degrees.
        assert 20 <= shades.min() <= shades.max() <= 110, angle
