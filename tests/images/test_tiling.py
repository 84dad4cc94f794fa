"""Image layouts: the vector form against the manual's formula, round trips, the mip chain."""

import numpy as np
import pytest
from tests.support.texture_layouts import texel_bit_address, tile

from vc4lab.images.tile_kernels import column_offset, combine, mixed_column, mixed_row, row_offset
from vc4lab.images.tiling import (
    UTILE_SHAPES,
    Tiling,
    detile,
    image_bytes,
    mip_chain,
    padded_size,
    pitch_bytes,
    texel_bit_addresses,
)
from vc4lab.simd import Function, Target, build, i32, i32x16, iota, load, ptr, store, targets

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


def test_levels_of_other_sizes_stand_in_the_room_of_the_power_of_two_above() -> None:
    chain = mip_chain(800, 600, 32, 3)
    assert [(level.width, level.height) for level in chain] == [(800, 600), (400, 300), (200, 150)]
    assert [level.size for level in chain] == [800 * 608 * 4, 512 * 512 * 4, 256 * 256 * 4]
    assert [level.pitch for level in chain[1:]] == [65536, 32768]  # rows of 4 KiB tiles
    rooms = mip_chain(800, 600, 32, 3, padded=True)
    assert [(level.width, level.height) for level in rooms] == [(800, 600), (512, 512), (256, 256)]
    assert [level.offset for level in rooms] == [level.offset for level in chain]
    narrow = mip_chain(300, 5, 32, 9)
    assert [(level.width, level.height) for level in narrow[-2:]] == [(2, 1), (1, 1)]


def test_block_compressed_chain_counts_blocks() -> None:
    chain = mip_chain(256, 256, 64, 9, block=4)
    assert chain[1].offset == -(32 * 32 * 8)
    assert [level.width for level in chain][-3:] == [4, 2, 1]
    assert chain[8].size == 64


def test_raster_rows_have_a_power_of_two_pitch() -> None:
    (level,) = mip_chain(100, 60, 32, 1, raster=True)
    assert (level.tiling, level.pitch) == (Tiling.RASTER, 512)


@pytest.mark.parametrize("target", targets(), ids=str)
@pytest.mark.parametrize("tiling", list(Tiling))
@pytest.mark.parametrize("bits", ALL_BITS)
def test_native_addresses(bits: int, tiling: Tiling, target: Target) -> None:
    """Also a width of an odd number of tiles, where no power-of-two trick would do."""
    shape = UTILE_SHAPES[bits]

    def entry(coordinates, results, pitch):
        x, y = load(i32x16, coordinates), load(i32x16, coordinates + 64)
        column, row = column_offset(x, shape, tiling), row_offset(y, pitch, shape, tiling)
        store(results, combine(column, row))

    module = build("address", {"f": Function((ptr, ptr, i32), None, entry)}, target=target)
    rng = np.random.default_rng(bits)
    for width in (2048, 800, 8 * shape.width * 3):
        x, y = rng.integers(0, width, 16), rng.integers(0, 2048, 16)
        coordinates = np.concatenate([x, y]).astype(np.int32)
        result = np.zeros(16, np.int32)
        pitch = pitch_bytes(width, bits, tiling)
        module["f"](coordinates.ctypes.data, result.ctypes.data, pitch)
        for lane in range(16):
            reference = texel_bit_address(int(x[lane]), int(y[lane]), width, bits, tiling)
            assert result[lane] == reference // 8


@pytest.mark.parametrize("target", targets(), ids=str)
def test_native_addresses_with_a_layout_per_lane(target: Target) -> None:
    shape = UTILE_SHAPES[32]

    def entry(coordinates, results, pitch):
        x, y = load(i32x16, coordinates), load(i32x16, coordinates + 64)
        linear_tile = (iota() & 1) != 0
        column = mixed_column(x, shape, linear_tile)
        store(results, combine(column, mixed_row(y, load(i32x16, pitch), shape, linear_tile)))

    module = build("mixed", {"f": Function((ptr, ptr, ptr), None, entry)}, target=target)
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 64, 16), rng.integers(0, 64, 16)
    coordinates = np.concatenate([x, y]).astype(np.int32)
    tilings = [Tiling.LT if lane & 1 else Tiling.T for lane in range(16)]
    pitches = np.array([pitch_bytes(64, 32, tiling) for tiling in tilings], np.int32)
    result = np.zeros(16, np.int32)
    module["f"](coordinates.ctypes.data, result.ctypes.data, pitches.ctypes.data)
    for lane, tiling in enumerate(tilings):
        reference = texel_bit_address(int(x[lane]), int(y[lane]), 64, 32, tiling)
        assert result[lane] == reference // 8
