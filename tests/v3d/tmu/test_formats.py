"""Texel decoding: the table of types, reference values, and the native twin bit for bit."""

import hashlib
import random

import numpy as np
import pytest
from tests.support.texture_reference import DECODERS, decode_etc1, decode_yuyv

from vc4lab.records.texture import TextureType
from vc4lab.simd import Function, Target, build, i32x16, load, ptr, store, targets
from vc4lab.v3d.tmu.formats import FORMATS
from vc4lab.v3d.tmu.texel_codecs import expand, unpack, unpack_etc1, unpack_yuyv


def test_every_type_has_a_row_and_a_decoder() -> None:
    assert set(FORMATS) == set(TextureType)
    apart = {TextureType.ETC1, TextureType.RGBA64, TextureType.YUYV422R}
    assert set(DECODERS) == set(TextureType) - apart


@pytest.mark.parametrize(
    ("texture_type", "raw", "word"),
    [
        (TextureType.RGBA8888, 0x11223344, 0x11223344),
        (TextureType.RGBX8888, 0x11223344, 0xFF223344),
        (TextureType.RGBA4444, 0x1234, 0x44332211),
        (TextureType.RGBA5551, 0xF801, 0xFF0000FF),
        (TextureType.RGBA5551, 0x003E, 0x00FF0000),
        (TextureType.RGB565, 0xF800, 0xFF0000FF),
        (TextureType.RGB565, 0x07E0, 0xFF00FF00),
        (TextureType.RGB565, 0x0001, 0xFF080000),
        (TextureType.LUMINANCE, 0x12, 0xFF121212),
        (TextureType.ALPHA, 0x12, 0x12000000),
        (TextureType.LUMALPHA, 0x1234, 0x12343434),
        (TextureType.BW1, 1, 0xFFFFFFFF),
        (TextureType.BW1, 0, 0xFF000000),
        (TextureType.A4, 0xA, 0xAA000000),
        (TextureType.A1, 1, 0xFF000000),
    ],
)
def test_golden_decoding(texture_type: TextureType, raw: int, word: int) -> None:
    assert DECODERS[texture_type](raw) == word


def test_etc1_block_by_hand() -> None:
    """Individual mode, no flip: left half 0x8 grey with table 0, right half 0x1 with table 7."""
    block = 0x818181_1C << 32 | 0x0000_0000
    assert decode_etc1(block, 0, 0) == 0xFF8A8A8A  # 0x88 + 2
    assert decode_etc1(block, 3, 3) == 0xFF404040  # 0x11 + 47
    pixel_2_1 = 4 * 2 + 1
    negative_large = block | 1 << (16 + pixel_2_1) | 1 << pixel_2_1
    assert decode_etc1(negative_large, 2, 1) == 0xFF000000  # 0x11 - 183, clamped
    differential = 0x84000002 << 32  # R = 16 and 16 - 4, G = B = 0
    assert decode_etc1(differential, 0, 0) & 255 == (16 << 3 | 16 >> 2) + 2
    assert decode_etc1(differential, 2, 0) & 255 == (12 << 3 | 12 >> 2) + 2
    assert decode_etc1(differential | 1 << 32, 2, 0) & 255 == (16 << 3 | 16 >> 2) + 2


def valid_etc1(block: int) -> bool:
    """Whether both colours are inside their five bits: ETC1 says nothing about other blocks."""
    colours = [block >> shift & 255 for shift in (56, 48, 40)]
    sums = [(byte >> 3) + (byte & 3) - (byte & 4) for byte in colours]
    return not block >> 33 & 1 or all(0 <= value < 32 for value in sums)


def test_etc1_as_an_independent_decoder_has_it() -> None:
    """The digest is of what texture2ddecoder 1.0.6 (PyPI) makes of the same 4096 blocks."""
    rng = random.Random(2026)
    blocks: list[int] = []
    while len(blocks) < 4096:
        block = rng.getrandbits(64)
        if valid_etc1(block):
            blocks.append(block)
    picture = np.zeros((256, 256), "<u4")
    for number, block in enumerate(blocks):
        row, column = 4 * (number // 64), 4 * (number % 64)
        words = [[decode_etc1(block, x, y) for x in range(4)] for y in range(4)]
        picture[row : row + 4, column : column + 4] = words
    assert hashlib.sha256(picture.tobytes()).hexdigest() == (
        "29babba33daa54c8f805d6cdb25fcbfdb1e928e95c44685a1d604a50690263c2"
    )


def run16(body, words: list[list[int]], target: Target) -> list[int]:
    """Runs a staged function of 16-lane words over arrays whose length is a multiple of 16."""

    def entry(source, result):
        store(result, body(*(load(i32x16, source + 64 * n) for n in range(len(words)))))

    module = build("codec", {"f": Function((ptr, ptr), None, entry)}, target=target)
    results: list[int] = []
    for start in range(0, len(words[0]), 16):
        source = np.array([w[start : start + 16] for w in words], np.uint32)
        out = np.zeros(16, np.uint32)
        module["f"](source.ctypes.data, out.ctypes.data)
        results += out.tolist()
    return results


@pytest.mark.parametrize("target", targets(), ids=str)
@pytest.mark.parametrize("texture_type", sorted(DECODERS))
def test_native_decoding(texture_type: TextureType, target: Target) -> None:
    rng = random.Random(int(texture_type))
    bits = min(FORMATS[texture_type].unit_bits, 32)
    raws = [rng.getrandbits(32) for _ in range(256)]
    words = run16(lambda raw: expand(texture_type, unpack(texture_type, raw)), [raws], target)
    assert words == [DECODERS[texture_type](raw & ((1 << bits) - 1)) for raw in raws]


@pytest.mark.parametrize("target", targets(), ids=str)
def test_native_blocks_and_pairs(target: Target) -> None:
    rng = random.Random(1)
    low, high, x, y = ([rng.getrandbits(n) for _ in range(512)] for n in (32, 32, 2, 2))
    words = run16(unpack_etc1, [low, high, x, y], target)
    blocks = [
        int.from_bytes((a | b << 32).to_bytes(8, "little"), "big") for a, b in zip(low, high, strict=True)
    ]
    assert words == [decode_etc1(*values) for values in zip(blocks, x, y, strict=True)]
    for order in ("yuv", "uyv", "vuy"):
        pairs = run16(lambda pair, at, order=order: unpack_yuyv(pair, at, order), [low, x], target)
        reference = [decode_yuyv(pair, odd & 1, order) for pair, odd in zip(low, x, strict=True)]
        assert pairs == reference, order
