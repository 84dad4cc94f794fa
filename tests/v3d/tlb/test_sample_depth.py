"""Depths of samples: a plane that rises beyond the depth range within a pixel stays in it."""

import ctypes

import pytest

from vc4lab.simd import Value, build, i32, kernel, ptr, splat, store
from vc4lab.v3d.tlb.depth_stencil import sample_depth

FAR = 0xFFFFFF


@kernel(args=(ptr, i32, i32))
def sampled(out: Value, centre: Value, step: Value) -> None:
    store(out, sample_depth(splat(centre), step))


@pytest.mark.parametrize(
    ("centre", "step", "depth"),
    [
        (1000, 24, 1024),
        (1000, -24, 976),
        (FAR - 3, 3, FAR),
        (FAR - 3, 4, FAR),
        (FAR, 1 << 22, FAR),
        (3, -3, 0),
        (3, -4, 0),
        (0x7F << 24 | 3, -1, 2),
    ],
)
def test_depths_of_samples_stay_between_the_planes(centre: int, step: int, depth: int) -> None:
    out = (ctypes.c_int32 * 16)()
    build("sample_depth", {"sampled": sampled})["sampled"](ctypes.addressof(out), centre, step)
    assert list(out) == [depth] * 16
