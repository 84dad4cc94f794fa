"""Parts of T-tiled images in display lists, as Linux writes them, beside the image they are of."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.soc.display.lists import BGRA, END, PICTURE, RGB565, RGB_ORDER, RGBA8888, plane

from vc4lab.images.tiling import Tiling, texel_bit_addresses
from vc4lab.memory import GuestMemory
from vc4lab.scanout.composer import Composer, picture_of
from vc4lab.soc.display.planes import LIST_WORDS, planes_of, shown

TILED, V_FLIP, H_FLIP = 3, 1 << 15, 1 << 16
TILE, SUBTILE, UTILE_LINE, UTILE_ROW = 4096, 1024, 16, 256
IMAGES = {RGBA8888: (32, BGRA, (160, 128)), RGB565: (16, RGB_ORDER, (320, 128))}
"""Bits, order (blue in the low bits), pixels; five tiles by four."""


def begin(x, y, bits, tiles, *, up):
    """Address in the image, and the pitch's word, of a plane whose first line begins at (x, y)."""
    across = 1024 // bits
    before, column, row, line = x // across, x % across, y // 32, y % 32
    at = row * tiles * TILE + line // 4 % 4 * UTILE_ROW + line % 4 * UTILE_LINE
    lower = line >= 16
    if row % 2:
        at += (tiles - before) * TILE - (1 if lower else 2) * SUBTILE
    else:
        at += before * TILE + (SUBTILE if lower else 0)
    pitch = column << 26 | before << 16 | tiles - before
    return at, pitch | (31 - line if up else line) << 8 | up << 15 | (row % 2) << 14


@pytest.fixture(scope="module")
def images():
    """Memory with each image in turn, and its pixels."""
    made = {}
    for kind, (bits, _order, (width, height)) in IMAGES.items():
        memory = GuestMemory(1 << 22)
        numbers = np.random.default_rng(bits).integers(0, 1 << bits, (height, width), np.uint32)
        place = texel_bit_addresses(width, height, bits, Tiling.T) // 8
        data = np.zeros(width * height * bits // 8, np.uint8)
        for byte in range(bits // 8):
            data[place + byte] = numbers >> 8 * byte & 0xFF
        memory.write(PICTURE, data.tobytes())
        made[kind] = memory, numbers
    return made


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([*IMAGES]), st.booleans(), st.booleans(), st.data())
def test_any_part_in_any_direction(images, kind, up, back, data):
    memory, numbers = images[kind]
    bits, order, (width, height) = IMAGES[kind]
    x, y = data.draw(st.integers(0, width - 1)), data.draw(st.integers(0, height - 1))
    columns, rows = data.draw(st.integers(1, width - x)), data.draw(st.integers(1, height - y))
    at, pitch = begin(x, y + rows - 1 if up else y, bits, 5, up=up)
    flips = (V_FLIP if up else 0) | (H_FLIP if back else 0)
    words = plane(kind, order, (columns, rows), PICTURE + at, pitch, tiling=TILED, more=flips)
    lists = bytearray(4 * LIST_WORDS)
    lists[: 4 * len(words) + 4] = struct.pack(f"<{len(words) + 1}I", *words, END)
    found, damage = planes_of(lists, 0)
    assert not damage
    scene = shown(memory, found, (columns, rows), 0)
    assert len(scene.planes) == 1
    picture = np.asarray(picture_of(Composer(memory).pixels(scene))).astype(np.uint32)
    part = numbers[y : y + rows, x : x + columns]
    part = part[:: -1 if up else 1, :: -1 if back else 1]
    if bits == 32:
        assert np.array_equal(picture @ (1 << 16, 1 << 8, 1), part & 0xFFFFFF)
    else:
        assert np.array_equal((picture >> (3, 2, 3)) @ (1 << 11, 1 << 5, 1), part)
