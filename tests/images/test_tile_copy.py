"""Boxes in and out of tiled images: against the table of addresses."""

import numpy as np
import pytest

from vc4lab.images.tile_kernels import TEXEL_BITS, copy_box
from vc4lab.images.tiling import Tiling, detile, image_bytes, pitch_bytes


@pytest.mark.parametrize("bits", TEXEL_BITS)
@pytest.mark.parametrize("tiling", [Tiling.T, Tiling.LT])
@pytest.mark.parametrize("box", [(0, 0, 75, 70), (3, 5, 1, 1), (13, 31, 40, 35), (16, 16, 32, 8)])
def test_a_box_goes_in_and_comes_out(bits: int, tiling: Tiling, box: tuple[int, int, int, int]) -> None:
    width, height = 75, 70
    rng = np.random.default_rng(bits)
    pitch = pitch_bytes(width, bits, tiling)
    image = rng.integers(0, 256, image_bytes(width, height, bits, tiling), np.uint8)
    kind = np.dtype(f"<u{bits // 8}")
    expected = detile(image, width, height, bits, tiling)
    x, y, wide, high = box
    stride = wide * bits // 8 + 8
    rows = rng.integers(0, 256, (high, stride), np.uint8)
    new = rows[:, : wide * bits // 8].copy().view(kind)
    place = image.ctypes.data, bits, tiling, pitch, box, rows.ctypes.data, stride
    copy_box(*place, to_tiles=True)
    expected[y : y + high, x : x + wide] = new
    assert (detile(image, width, height, bits, tiling) == expected).all()
    margin = rows[:, wide * bits // 8 :].copy()
    rows[:, : wide * bits // 8] = 0
    copy_box(*place, to_tiles=False)
    assert (rows[:, : wide * bits // 8].copy().view(kind) == new).all()
    assert (rows[:, wide * bits // 8 :] == margin).all()
