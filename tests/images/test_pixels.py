"""Stored pixels as bytes: 565, the order of 32 bits, and the average of samples."""

import numpy as np

from vc4lab.images.pixels import average_of_samples, colours, from_565, full_resolution_bytes
from vc4lab.images.tiling import Tiling


def test_565_fills_a_byte_by_repeating_high_bits() -> None:
    texels = np.arange(1 << 16, dtype=np.uint16)
    found = from_565(texels)
    assert (found[:, 3] == 255).all()
    for channel, (low, bits) in enumerate(((11, 5), (5, 6), (0, 5))):
        numbers = texels >> low & (1 << bits) - 1
        expected = [int(f"{n:0{bits}b}" * 2, 2) >> (2 * bits - 8) for n in range(1 << bits)]
        assert (found[:, channel] == np.array(expected)[numbers]).all()


def test_pixels_of_32_bits_stay_as_they_are() -> None:
    memory = np.arange(4 * 3 * 2, dtype=np.uint8)
    found = colours(memory, 3, 2, 32, Tiling.RASTER)
    assert (found == memory.reshape(2, 3, 4)).all()


def test_samples_are_averaged_to_the_nearest_quad_by_quad() -> None:
    """In a tile, quads follow each other by rows; in a quad, samples, then its four pixels."""
    width, height = 40, 34
    raw = np.random.default_rng(1).integers(0, 256, full_resolution_bytes(width, height), np.uint8)
    found = average_of_samples(raw, width, height)
    assert found.shape == (height, width, 4)
    columns = -(-width // 32)
    for y in range(height):
        for x in range(width):
            tile = (y // 32) * columns + x // 32
            quad = (y % 32 // 2) * 16 + x % 32 // 2
            pixel = y % 2 * 2 + x % 2
            first = 16384 * tile + 64 * quad + 4 * pixel
            samples = [raw[first + 16 * n : first + 16 * n + 4].astype(int) for n in range(4)]
            assert (found[y, x] == (sum(samples) + 2) // 4).all()
