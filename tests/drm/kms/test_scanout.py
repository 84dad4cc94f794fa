"""Planes over each other: compiled code against the plain form, and each switch."""

import random
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.scanout_reference import reference

from vc4lab.drm.kms.formats import FORMATS
from vc4lab.memory import MEMORY_SIZE, GuestMemory
from vc4lab.scanout.colours import Matrix
from vc4lab.scanout.composer import Composer, Plane, Shown
from vc4lab.scanout.display_unknowns import DEFAULT_UNKNOWNS, Unknowns
from vc4lab.scanout.formats import TILE_ROWS, Format, fourcc

ADDRESS = 0x100_0000
ROOM = 1 << 16
XR24, AR24 = FORMATS[fourcc("XR24")], FORMATS[fourcc("AR24")]


@pytest.fixture(scope="module")
def memory() -> GuestMemory:
    made = GuestMemory(guard=True)
    noise = random.Random(4).randbytes(4 * ROOM)
    made.write(ADDRESS, noise)
    made.write(MEMORY_SIZE - ROOM, noise[:ROOM])
    return made


def drawn(shown: Shown, memory: GuestMemory, unknowns: Unknowns = DEFAULT_UNKNOWNS) -> Any:
    """Rows of red, green, blue, by the compiled code, beside which nothing is written."""
    pitch = 4 * shown.width + 12
    held = numpy.full(pitch * shown.height + 64, 0xA5, numpy.uint8)
    Composer(memory, unknowns).draw(shown, held.ctypes.data, pitch)
    lines = held[: pitch * shown.height].reshape(shown.height, pitch)
    assert (lines[:, 4 * shown.width :] == 0xA5).all()
    assert (held[pitch * shown.height :] == 0xA5).all()
    return lines[:, : 4 * shown.width].reshape(shown.height, shown.width, 4)[..., 2::-1]


def whole(width: int, height: int, kind: Format = XR24, **more: Any) -> Plane:
    """A plane in its own size at the upper left corner."""
    pitch = -(-width * kind.bits // 1024) * 128
    given = {"source": (0, 0, width << 16, height << 16), "target": (0, 0, width, height), **more}
    return Plane(ADDRESS, pitch, width, height, kind, **{"tiled": False, **given})


@st.composite
def planes(draw: st.DrawFn) -> Plane:
    """Any plane that the kernel lets through, at most 80x64."""
    kind = draw(st.sampled_from(list(FORMATS.values())))
    width, height = draw(st.integers(1, 80)), draw(st.integers(1, 64))
    tiled = kind.tiled and draw(st.booleans())
    pitch = -(-width * kind.bits // 8)
    pitch = -(-pitch // 128) * 128 if tiled else pitch + draw(st.integers(0, 9))
    size = pitch * (-(-height // TILE_ROWS) * TILE_ROWS if tiled else height)
    address = draw(st.sampled_from([ADDRESS, ADDRESS + 12, MEMORY_SIZE - size]))
    x, y = draw(st.integers(0, (width << 16) - 1)), draw(st.integers(0, (height << 16) - 1))
    if draw(st.booleans()):
        x, y = x & ~0xFFFF, y & ~0xFFFF
    columns = draw(st.integers(1, (width << 16) - x))
    rows = draw(st.integers(1, (height << 16) - y))
    wide = draw(st.sampled_from([max(columns >> 16, 1), *range(1, 50, 7), 1000]))
    high = draw(st.sampled_from([max(rows >> 16, 1), *range(1, 40, 6), 1000]))
    left, top = draw(st.integers(-60, 60)), draw(st.integers(-60, 60))
    return Plane(
        address, pitch, width, height, kind, tiled, (x, y, columns, rows), (left, top, wide, high),
        draw(st.sampled_from([255, 0, 1, 128, 254])), draw(st.integers(0, 2)),
        (draw(st.booleans()), draw(st.booleans())),
    )  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(planes(), max_size=3), st.integers(1, 40), st.integers(1, 24), st.data())
def test_any_planes_look_as_in_the_plain_form(
    memory: GuestMemory, several: list[Plane], width: int, height: int, data: st.DataObject
) -> None:
    shown = Shown(width, height, tuple(several))
    nearest, wraps, down = (data.draw(st.booleans()) for _ in range(3))
    unknowns = DEFAULT_UNKNOWNS.with_(
        hvs_filter="nearest" if nearest else "polyphase",
        hvs_shrink_limit="wraps" if wraps else "scales",
        hvs_blend_rounding="down" if down else "nearest",
    )
    wanted = reference(shown, memory, nearest=nearest, wraps=wraps, down=down)
    assert drawn(shown, memory, unknowns).tolist() == [[list(p) for p in row] for row in wanted]


@pytest.mark.parametrize("kind", FORMATS.values(), ids=lambda kind: kind.name)
def test_formats_have_the_channels_of_their_names(memory: GuestMemory, kind: Format) -> None:
    """The plain form and the code read the same declaration; here are known pixels."""
    pure = {
        name: sum((1 << bits) - 1 << low for low, bits in channels)
        for name, channels in (
            ("red", [kind.red]), ("green", [kind.green]), ("blue", [kind.blue]),
            ("all", [kind.red, kind.green, kind.blue]),
        )
    }  # fmt: skip
    memory = GuestMemory()
    size = kind.bits // 8
    for n, value in enumerate(pure.values()):
        memory.write(ADDRESS + n * size, value.to_bytes(size, "little"))
    picture = drawn(Shown(4, 1, (whole(4, 1, kind, blend=0),)), memory)
    assert picture.tolist() == [[[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]]]


KNOWN = {
    "XR24": (0x00112233, (0x11, 0x22, 0x33)),
    "AB24": (0xFF112233, (0x33, 0x22, 0x11)),
    "RG16": (0xF800, (255, 0, 0)),
    "BG16": (0xF800, (0, 0, 255)),
    "AR15": (0x7C00, (255, 0, 0)),
    "RG24": (0x112233, (0x11, 0x22, 0x33)),
    "BG24": (0x112233, (0x33, 0x22, 0x11)),
    "RGB8": (0xE0, (255, 0, 0)),
    "BGR8": (0xC0, (0, 0, 255)),
    "XR12": (0x0F84, (255, 0x88, 0x44)),
    "RX12": (0xF840, (255, 0x88, 0x44)),
    "BA12": (0x48F0, (255, 0x88, 0x44)),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_pixels(name: str) -> None:
    memory = GuestMemory()
    value, colour = KNOWN[name]
    memory.write(ADDRESS, value.to_bytes(4, "little"))
    picture = drawn(Shown(1, 1, (whole(1, 1, FORMATS[fourcc(name)], blend=0),)), memory)
    assert tuple(picture[0, 0]) == colour


def test_products_are_rounded_as_the_switch_says(memory: GuestMemory) -> None:
    """All pairs of a byte and an alpha, over black."""
    memory = GuestMemory()
    for alpha in range(256):
        line = b"".join(bytes([value, value, value, alpha]) for value in range(256))
        memory.write(ADDRESS + 1024 * alpha, line)
    values, alphas = numpy.meshgrid(range(256), range(256))
    shown = Shown(256, 256, (whole(256, 256, AR24, blend=2),))
    near = drawn(shown, memory)[..., 0]
    assert (near == (2 * values * alphas + 255) // 510).all()
    down = drawn(shown, memory, DEFAULT_UNKNOWNS.with_(hvs_blend_rounding="down"))[..., 0]
    assert (down == values * alphas // 255).all()


def test_narrow_channels_are_widened_as_the_switch_says(memory: GuestMemory) -> None:
    """A ramp of the 64 greens, and of the 32 reds, of RGB565."""
    pixels = [(v >> 1) << 11 | v << 5 for v in range(64)]
    memory.write(ADDRESS, b"".join(pixel.to_bytes(2, "little") for pixel in pixels))
    shown = Shown(64, 1, (whole(64, 1, FORMATS[fourcc("RG16")]),))
    repeats = drawn(shown, memory)[0].tolist()
    assert [p[1] for p in repeats] == [v << 2 | v >> 4 for v in range(64)]
    assert [p[0] for p in repeats[::2]] == [v << 3 | v >> 2 for v in range(32)]
    near = drawn(shown, memory, DEFAULT_UNKNOWNS.with_(hvs_expand="nearest"))[0].tolist()
    assert [p[1] for p in near] == [(510 * v + 63) // 126 for v in range(64)]
    assert [p[0] for p in near[::2]] == [(510 * v + 31) // 62 for v in range(32)]


def edge() -> GuestMemory:
    """Black on the left, white on the right, of 8 pixels."""
    memory = GuestMemory()
    memory.write(ADDRESS, bytes(16) + bytes([255] * 16))
    return memory


def test_a_plane_is_scaled_as_the_switch_says() -> None:
    shown = Shown(32, 1, (whole(8, 1, target=(0, 0, 32, 1)),))
    smooth = drawn(shown, edge())[0, :, 0]
    assert len(set(smooth[8:24].tolist())) > 4
    assert smooth[0] == 0
    assert smooth[31] == 255
    plain = drawn(shown, edge(), DEFAULT_UNKNOWNS.with_(hvs_filter="nearest"))[0, :, 0]
    assert plain.tolist() == [0] * 16 + [255] * 16


def test_a_plane_that_is_shrunk_a_lot_is_as_the_switch_says() -> None:
    memory = GuestMemory()
    memory.write(ADDRESS, bytes(4 * 64) + bytes([255] * 4 * (2048 - 64)))
    shown = Shown(32, 1, (whole(2048, 1, target=(0, 0, 32, 1)),))
    assert drawn(shown, memory)[0, :, 0].tolist() == [0] + [255] * 31
    wraps = drawn(shown, memory, DEFAULT_UNKNOWNS.with_(hvs_shrink_limit="wraps"))
    assert not wraps.any()  # the factor 64 has no bit below the 21st: all is the first pixel


def test_gamma_ramps() -> None:
    memory = GuestMemory()
    memory.write(ADDRESS, bytes([10, 20, 30, 0]))
    same = bytes(range(256))
    shown = Shown(1, 1, (whole(1, 1),), (same[::-1], same, same))
    assert drawn(shown, memory).tolist() == [[[225, 20, 10]]]
    assert reference(shown, memory) == [[(225, 20, 10)]]


@pytest.mark.parametrize("width", [1, 16, 37])
def test_a_colour_matrix_and_then_ramps(width: int) -> None:
    noise = random.Random(width)
    memory = GuestMemory()
    memory.write(ADDRESS, noise.randbytes(4 * width * 3))
    ones = Matrix((511, 0, 0, 0, 511, 0, 0, 0, 511))
    ramps = noise.randbytes(256), noise.randbytes(256), noise.randbytes(256)
    for matrix in (
        ones,
        Matrix(tuple(noise.randint(-511, 511) for _ in range(9)), (-128, 127, 3)),
        Matrix((0, 511, 0, -511, 511, 0, 170, 170, 170)),
    ):
        for gamma in (None, ramps):
            shown = Shown(width, 3, (whole(width, 3),), gamma, matrix=matrix)
            got = drawn(shown, memory).tolist()
            assert got == [[list(p) for p in row] for row in reference(shown, memory)]
    plain = drawn(Shown(width, 3, (whole(width, 3),)), memory).astype(int)
    shown = Shown(width, 3, (whole(width, 3),), matrix=ones)
    assert (drawn(shown, memory) == plain).all(), "511/512 to the nearest is one"
    down = drawn(shown, memory, DEFAULT_UNKNOWNS.with_(hvs_matrix_rounding="down"))
    assert (down == plain - (plain > 0)).all()
