"""Planes of brightness and colour, pixel by pixel beside plain Python."""

import struct

import numpy as np
import pytest
from tests.soc.display.lists import END, FIXED, PICTURE, UNITY, VALID

from vc4lab.diagnostics import Reporter
from vc4lab.memory import GuestMemory
from vc4lab.scanout.composer import Composer, picture_of
from vc4lab.scanout.display_unknowns import DEFAULT_UNKNOWNS
from vc4lab.soc.display.hvs import Hvs
from vc4lab.soc.display.planes import LIST_WORDS, planes_of, shown

YUV420, NV12, YUV422, NV16, H264 = 8, 9, 10, 11, 12
LIMITED_601 = 0x00F00000, 0xE73304A8, 0x00066204
FULL = 0, 0xEA349400, 0x000599C5
COLOUR, OTHER = PICTURE + 0x10000, PICTURE + 0x20000
SIZE = 22, 10
V_FLIP = 1 << 15
SAND_ROWS = 24
"""Of a column, of both planes."""


def words(kind, pitches, *, order=0, tiling=0, csc=LIMITED_601, size=SIZE, scaled=None, address=0):
    """A plane in a display list."""
    count = len(pitches)
    places = [(address or PICTURE), COLOUR, OTHER][:count]
    if tiling:
        places[1] = PICTURE + {1: 64, 2: 128, 3: 256}[tiling] * 12
    made = [255 << 24, *([] if scaled is None else [scaled[1] << 16 | scaled[0]])]
    made += [FIXED | size[1] << 16 | size[0], 0xC0C0C0C0]
    made += [place | 0xC0000000 for place in places] + [0xC0C0C0C0] * count
    made += [*pitches, *csc]
    unity = UNITY if scaled is None else 0
    control = VALID | len(made) + 1 << 24 | tiling << 20 | order << 13 | unity | kind
    return [control, *made]


def composed(memory, made, size=SIZE, **unknowns):
    lists = bytearray(4 * LIST_WORDS)
    made = [*made, END]
    lists[: 4 * len(made)] = struct.pack(f"<{len(made)}I", *made)
    found, damage = planes_of(lists, 0)
    assert not damage
    scene = shown(memory, found, size, 0)
    assert scene.planes
    composer = Composer(memory, DEFAULT_UNKNOWNS.with_(**unknowns))
    return np.asarray(picture_of(composer.pixels(scene))).astype(int)


def samples(memory, kind, order, tiling):
    """Random ones in memory, and as arrays."""
    random = np.random.default_rng(kind * 16 + order)
    width, height = SIZE
    columns, rows = -(-width // 2), -(-height // 2) if kind in (YUV420, NV12) else height
    luma = random.integers(0, 256, (height, width), np.uint8)
    pair = random.integers(0, 256, (2, rows, columns), np.uint8)
    first, second = pair[::-1] if order else pair  # as they lie in memory
    column = {0: 0, 1: 64, 2: 128, 3: 256}[tiling]

    def put(base, pitch, data):
        for y, row in enumerate(data):
            for x, value in enumerate(row):
                at = y * pitch + x
                if column:
                    at = x // column * column * SAND_ROWS + y * column + x % column
                memory.write(base + at, bytes((value,)))

    put(PICTURE, 64, luma)
    if kind in (NV12, NV16):
        both = np.stack([first, second], 2).reshape(rows, 2 * columns)
        put(PICTURE + column * 12 if column else COLOUR, 64, both)
    else:
        put(COLOUR, 32, first)
        put(OTHER, 32, second)
    return luma.astype(int), pair.astype(int)


def upsampled(chroma, half_y, blends):
    width, height = SIZE
    out = np.zeros((height, width), int)
    rows, columns = chroma.shape
    for y in range(height):
        for x in range(width):
            cx, cy = x // 2, y // 2 if half_y else y
            if not blends:
                out[y, x] = chroma[cy, cx]
                continue
            nx = min(max(cx + (1 if x & 1 else -1), 0), columns - 1)
            ny = min(max(cy + (1 if y & 1 else -1), 0), rows - 1) if half_y else cy
            upper = 3 * chroma[cy, cx] + chroma[cy, nx]
            lower = 3 * chroma[ny, cx] + chroma[ny, nx]
            out[y, x] = (3 * upper + lower + 8) >> 4
    return out


def converted(luma, pair, kind, csc, *, blends=True, rounding=128):
    cb, cr = (upsampled(one, kind in (YUV420, NV12), blends) - 128 for one in pair)
    if csc is LIMITED_601:  # 1.164, 1.594, -0.391, -0.813, 2.016 in 256ths
        luma = luma - 16
        rows = (298, 0, 408), (298, -100, -208), (298, 516, 0)
    else:
        rows = (256, 0, 358), (256, -88, -183), (256, 453, 0)
    made = [(a * luma + b * cb + c * cr + rounding) >> 8 for a, b, c in rows]
    return np.clip(np.stack(made, 2), 0, 255)


PITCHES = {YUV420: (64, 32, 32), YUV422: (64, 32, 32), NV12: (64, 64), NV16: (64, 64)}


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("kind", PITCHES)
@pytest.mark.parametrize("csc", [LIMITED_601, FULL])
def test_formats(kind, order, csc):
    memory = GuestMemory()
    luma, pair = samples(memory, kind, order, 0)
    pixels = composed(memory, words(kind, PITCHES[kind], order=order, csc=csc))
    assert (pixels == converted(luma, pair, kind, csc)).all()


@pytest.mark.parametrize("kind", [NV12, H264])
@pytest.mark.parametrize("tiling", [1, 2, 3])
def test_columns(tiling, kind):
    """SAND: both planes in each column, one after the other. Linux names that H264."""
    memory = GuestMemory()
    luma, pair = samples(memory, NV12, 0, tiling)
    made = words(kind, (SAND_ROWS, SAND_ROWS), tiling=tiling)
    assert (composed(memory, made) == converted(luma, pair, NV12, LIMITED_601)).all()
    made[0] |= V_FLIP
    made[4] += 9 * {1: 64, 2: 128, 3: 256}[tiling]
    made[5] += 4 * {1: 64, 2: 128, 3: 256}[tiling]
    assert (composed(memory, made) == converted(luma, pair, NV12, LIMITED_601)[::-1]).all()


def test_columns_side_by_side():
    """A plane wider than a column of 64 bytes."""
    memory = GuestMemory()
    memory.write(PICTURE, bytes(0x4000))
    for column in range(3):
        memory.write(PICTURE + column * 64 * SAND_ROWS, bytes((16 + 50 * column,)) * 64 * 12)
        start = PICTURE + column * 64 * SAND_ROWS + 64 * 12
        memory.write(start, bytes((128,)) * 64 * 12)
    made = words(NV12, (SAND_ROWS, SAND_ROWS), tiling=1, size=(160, 12))
    pixels = composed(memory, made, (160, 12))
    assert [pixels[5, x].tolist() for x in (0, 63, 64, 127, 128, 159)] == [
        [level] * 3 for level in (0, 0, 58, 58, 116, 116)
    ]


def test_a_part_that_begins_within_a_column():
    memory = GuestMemory()
    luma, pair = samples(memory, NV12, 0, 1)
    made = words(NV12, (SAND_ROWS, SAND_ROWS), tiling=1, size=(12, 10), address=PICTURE + 10)
    made[5] += 10
    pixels = composed(memory, made, (12, 10))
    whole = converted(luma, pair, NV12, LIMITED_601)
    assert (pixels[:, 1:] == whole[:, 11:]).all()  # the first column has no colour on its left


def test_the_screen_hears_of_changed_colours():
    memory = GuestMemory()
    hvs = Hvs(memory, Reporter())
    data = [*words(NV12, (64, 64)), END]
    hvs.lists[: 4 * len(data)] = struct.pack(f"<{len(data)}I", *data)
    hvs.values[0x50] = 1 << 31 | SIZE[0] << 12 | SIZE[1]
    before = hvs.content()
    assert hvs.holds(before)
    memory.write(COLOUR + 1, b"\xff")
    assert not hvs.holds(before)


def test_colour_between_samples_is_as_the_switch_says():
    memory = GuestMemory()
    luma, pair = samples(memory, NV12, 0, 0)
    pixels = composed(memory, words(NV12, (64, 64)), hvs_chroma="nearest")
    assert (pixels == converted(luma, pair, NV12, LIMITED_601, blends=False)).all()
    assert (pixels != converted(luma, pair, NV12, LIMITED_601)).any()


def test_sums_are_rounded_as_the_switch_says():
    memory = GuestMemory()
    luma, pair = samples(memory, NV12, 0, 0)
    pixels = composed(memory, words(NV12, (64, 64)), hvs_csc_rounding="down")
    assert (pixels == converted(luma, pair, NV12, LIMITED_601, rounding=0)).all()
    assert (pixels != converted(luma, pair, NV12, LIMITED_601)).any()


def test_a_scaled_plane_under_another_alpha():
    """The converted pixels go the way of all others: scaled, blended, anew with each picture."""
    memory = GuestMemory()
    memory.write(PICTURE, bytes((235,)) * 64 * 10)
    memory.write(COLOUR, bytes((128,)) * 64 * 10)
    made = words(NV12, (64, 64), scaled=(44, 20))
    assert (composed(memory, made, (44, 20)) == 255).all()
    made[1] = 0x80 << 24
    pixels = composed(memory, made, (44, 20))
    assert set(pixels.ravel().tolist()) == {128}


def test_a_plane_is_made_anew_with_each_picture():
    memory = GuestMemory()
    memory.write(COLOUR, bytes((128,)) * 64 * 10)
    lists = bytearray(4 * LIST_WORDS)
    made = [*words(NV12, (64, 64)), END]
    lists[: 4 * len(made)] = struct.pack(f"<{len(made)}I", *made)
    composer, seen = Composer(memory), []
    for level in (16, 235):
        memory.write(PICTURE, bytes((level,)) * 64 * 10)
        scene = shown(memory, planes_of(lists, 0)[0], SIZE, 0)
        seen.append(int(composer.pixels(scene)[3, 3, 0]))
    assert seen == [0, 255]


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (words(YUV420, (64, 32, 32), tiling=2), "columns) of three planes"),
        (words(NV12, (64, 64), size=(0, 4)), "it has no pixels"),
        (words(NV12, (64, 64), address=0x3FFFFF00), "not in RAM"),
        (words(NV12, (0xFFFF, 0xFFFF), tiling=3, size=(4094, 4094)), "not in RAM"),
        (words(H264, (64, 64)), "pixel format 12 (H264) without columns"),
        (words(13, (64,)), "pixel format 13"),
        (words(NV12, (64, 64))[:8], ""),
    ],
)
def test_what_is_not_shown_is_said(made, text):
    reporter = Reporter()
    hvs = Hvs(GuestMemory(1 << 24), reporter)
    if not text:  # a plane that is shorter than its format
        made[0] = made[0] & ~(0x3F << 24) | len(made) << 24
    data = [*made, END]
    hvs.lists[: 4 * len(data)] = struct.pack(f"<{len(data)}I", *data)
    hvs.values[0x50] = 1 << 31 | 64 << 12 | 64
    hvs.picture(1)
    assert [item.code for item in reporter.items] == ["SOC-095" if text else "SOC-094"]
    assert text in reporter.summary()
    assert hvs.image().size == (64, 64)
