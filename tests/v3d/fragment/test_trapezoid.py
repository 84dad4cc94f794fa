"""Trapezoids with vertices from the buffer: attributes along the edge, engines compared."""

import struct

import numpy as np
import pytest
from tests.support.programs import GOURAUD
from tests.v3d.fragment.scene import Scene, vertex, words

from vc4lab.v3d.state.tile_context import FragmentKey

PROGRAM = words(
    GOURAUD
    + """
    nop ; nop ; sbwait
    mov tlbz, rb15 ; nop
    mov tlbc, r3 ; nop
    nop ; nop ; thrend
    nop ; nop
    nop ; nop ; sbdone
"""
)

VERTICES = [vertex(50.5, 2, 0.25, 1.0, 0.0, 1.0, 0.5), vertex(20, 60, 0.75, 1.0, 1.0, 0.25, 0.5)]


def scene(data: bytes, **key: object) -> Scene:
    result = Scene()
    options = {"n_varyings": 3, "z_update": True} | key
    result.add_list(
        FragmentKey(PROGRAM, primitive="rht", **options),  # type: ignore[arg-type]
        VERTICES,
        data,
        rht_boundary=8 * 16,
    )
    return result


@pytest.mark.parametrize(
    ("data", "key"),
    [
        (b"\x30\x81" + struct.pack("<2H", 0, 1) + b"\x80", {}),
        (b"\x30\x81" + struct.pack("<2H", 0, 1) + b"\x80", {"flat_flags": 2}),
        (b"\x30\x81" + struct.pack("<4h", 808, 32, 320, 960) + b"\x80", {"index_bits": 32}),
    ],
)
def test_engines_agree(data: bytes, key: dict[str, object]) -> None:
    drawn = scene(data, **key)
    pictures = [drawn.render(engine) for engine in ("fast", "exact", "interpreter")]
    depths = drawn.depth()
    assert all((picture == pictures[0]).all() for picture in pictures)
    covered = depths != 0xFFFFFF00
    assert covered[10, 8:40].all()
    assert not covered[10, :8].any()


def test_attributes_change_along_the_edge_only() -> None:
    drawn = scene(b"\x30\x81" + struct.pack("<2H", 0, 1) + b"\x80")
    picture = drawn.render()
    red = picture & 0xFF
    for row in (5, 30, 55):
        inside = red[row, 8:20]
        assert (inside == inside[0]).all()
    assert red[5, 10] < red[30, 10] < red[55, 10]
    depth = drawn.depth()[:, 10] >> 8
    expected = (0.25 + 0.5 * (np.arange(64) + 0.5 - 2) / 58) * 2**24
    assert np.abs(depth[2:60] - expected[2:60]).max() < 4
