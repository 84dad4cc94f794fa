"""Image layouts: the vector form against the manual's formula, round trips, the mip chain."""

import numpy as np
import pytest

from vc4lab.v3d.fragment.tiling import (
    Tiling,
    detile,
    image_bytes,
    mip_chain,
    padded_size,
    texel_bit_address,
    texel_bit_addresses,
    tile,
)

ALL_BITS = (1, 4, 8, 16, 32, 64)


@pytest.mark.parametrize("tiling", list(Tiling))
@pytest.mark.parametrize("bits", ALL_BITS)
def test_vector_form_follows_the_literal_formula(bits: int, tiling: Tiling) -> None:
    width, height = 150, 77
    addresses = texel_bit_addresses(width, height, bits, tiling)
    for y in range(0, height, 5):
        for x in range(width):
            assert addresses[y, x] == texel_bit_address(x, y, width, bits, tiling)


@pytest.mark.parametrize("tiling", [Tiling.T, Tiling.LT])
@pytest.mark.parametrize("bits", ALL_BITS)
def test_padded_image_is_a_permutation_of_its_memory(bits: int, tiling: Tiling) -> None:
    width, height = padded_size(150, 77, bits, tiling)
    addresses = np.sort(texel_bit_addresses(width, height, bits, tiling).ravel())
    assert np.array_equal(addresses, np.arange(width * height) * bits)
    assert image_bytes(150, 77, bits, tiling) * 8 == width * height * bits


def test_t_format_tile_order_of_the_manual() -> None:
    """Figure 14: sub-tiles of an even row go up, right, down; odd rows run backwards."""
    corners = [(0, 0), (0, 16), (16, 16), (16, 0), (32, 0)]
    assert [texel_bit_address(x, y, 64, 32, Tiling.T) // 8 for x, y in corners] == [
        0, 1024, 2048, 3072, 4096,
    ]  # fmt: skip
    corners = [(48, 48), (48, 32), (32, 32), (32, 48), (16, 48)]
    assert [texel_bit_address(x, y, 64, 32, Tiling.T) // 8 for x, y in corners] == [
        8192, 9216, 10240, 11264, 12288,
    ]  # fmt: skip


@pytest.mark.parametrize("tiling", list(Tiling))
@pytest.mark.parametrize("bits", ALL_BITS)
def test_tile_and_detile_are_inverse(bits: int, tiling: Tiling) -> None:
    rng = np.random.default_rng(bits)
    dtype = np.dtype(f"u{max(bits // 8, 1)}")
    picture = rng.integers(0, 1 << bits, (45, 101), dtype=dtype if bits >= 8 else np.uint8)
    memory = tile(picture, bits, tiling)
    assert np.array_equal(detile(memory, 101, 45, bits, tiling), picture)


def test_raster_stride_and_short_memory() -> None:
    picture = np.arange(12, dtype=np.uint32).reshape(3, 4)
    memory = tile(picture, 32, Tiling.RASTER, stride=64)
    assert len(memory) == 192
    assert np.array_equal(detile(memory, 4, 3, 32, Tiling.RASTER, stride=64), picture)
    cut = detile(bytes(memory)[:72], 4, 3, 32, Tiling.RASTER, stride=64)
    assert cut.tolist() == [[0, 1, 2, 3], [4, 5, 0, 0], [0, 0, 0, 0]]


def test_mip_offsets_of_a_recorded_512x512_texture() -> None:
    chain = mip_chain(512, 512, 32, 10)
    assert [-level.offset for level in chain] == [
        0, 0x40000, 0x50000, 0x54000, 0x55000, 0x55400, 0x55500, 0x55540, 0x55580, 0x555C0,
    ]  # fmt: skip
    assert [level.tiling for level in chain] == [Tiling.T] * 5 + [Tiling.LT] * 5
    assert [level.width for level in chain] == [512 >> n for n in range(10)]


def test_mip_chain_of_other_sizes_uses_the_power_of_two_above() -> None:
    chain = mip_chain(800, 600, 32, 3)
    assert [(level.width, level.height) for level in chain] == [(800, 600), (512, 512), (256, 256)]
    assert chain[0].size == 800 * 608 * 4


def test_block_compressed_chain_counts_blocks() -> None:
    chain = mip_chain(256, 256, 64, 9, block=4)
    assert chain[1].offset == -(32 * 32 * 8)
    assert [level.width for level in chain][-3:] == [4, 2, 1]
    assert chain[8].size == 64


def test_raster_rows_have_a_power_of_two_pitch() -> None:
    (level,) = mip_chain(100, 60, 32, 1, raster=True)
    assert (level.tiling, level.pitch) == (Tiling.RASTER, 512)
