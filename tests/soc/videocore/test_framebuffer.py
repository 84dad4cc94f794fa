"""The framebuffer's small depths, its palette, and the part of a larger picture that is shown."""

import struct

import pytest

from vc4lab.soc.videocore.framebuffer import RGB
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

HALT = bytes.fromhex("feffffea")
COLOURS = [(16 * i, 255 - 16 * i, i) for i in range(16)]
WORDS = [red | green << 8 | blue << 16 for red, green, blue in COLOURS]


def show(machine, depth: int, data: bytes, **geometry: int):
    framebuffer = machine.videocore.framebuffer
    framebuffer.change(**{"width": 16, "height": 2, "order": RGB, "depth": depth, **geometry})
    assert framebuffer.allocate()
    framebuffer.palette[:16] = WORDS
    machine.memory.write(framebuffer.address, data)
    return framebuffer.image()


@pytest.mark.parametrize(
    ("depth", "byte", "pixels"),
    [(1, 0b10110001, [1, 0, 0, 0, 1, 1, 0, 1]), (2, 0b11100100, [0, 1, 2, 3]), (4, 0x5A, [10, 5])],
)
@pytest.mark.parametrize("first", ["low", "high"])
def test_small_depths(boot, depth, byte, pixels, first):
    machine = boot(HALT, unknowns=DEFAULT_UNKNOWNS.with_(framebuffer_small_pixels=first))
    image = show(machine, depth, bytes((byte,)))
    expected = pixels if first == "low" else pixels[::-1]
    assert [image.getpixel((x, 0)) for x in range(len(pixels))] == [COLOURS[p] for p in expected]
    assert machine.videocore.framebuffer.geometry.pitch == 32


def test_a_window_of_a_larger_picture(boot):
    machine = boot(HALT)
    lines = b"".join(bytes((y << 4 | y,)) * 32 for y in range(4))
    image = show(machine, 4, lines, virtual_width=64, virtual_height=4)
    assert image.getpixel((0, 1)) == COLOURS[1]
    framebuffer = machine.videocore.framebuffer
    machine.memory.write(framebuffer.address + 2 * 32 + 1, b"\x98")
    framebuffer.change(x=3, y=2)
    image = framebuffer.image()
    assert image.size == (16, 2)
    assert [image.getpixel((0, y)) for y in range(2)] == [COLOURS[9], COLOURS[3]]
    framebuffer.change(x=48, y=2)
    assert framebuffer.image().getpixel((15, 1)) == COLOURS[3]
    framebuffer.change(x=1000, y=1000)
    assert (framebuffer.geometry.x, framebuffer.geometry.y) == (48, 2)


def test_palette_of_channel_1(boot):
    machine = boot(HALT)
    words = (16, 2, 16, 2, 0, 4, 0, 0, 0, 0)
    machine.memory.write(0x1000, struct.pack("<10I", *words) + struct.pack("<2H", 0, 0xF800))
    assert machine.videocore.framebuffer_channel(0x1000) == 0
    framebuffer = machine.videocore.framebuffer
    machine.memory.write(framebuffer.address, b"\x01")
    assert framebuffer.image().getpixel((0, 0)) == (255, 0, 0)


@pytest.mark.parametrize(("choice", "colour"), [("bgr", (0, 0, 255)), ("rgb", (255, 0, 0))])
def test_the_order_of_channel_1(boot, choice, colour):
    """Byte 0 of a pixel is 255."""
    machine = boot(HALT, unknowns=DEFAULT_UNKNOWNS.with_(framebuffer_order_channel_1=choice))
    machine.memory.write(0x1000, struct.pack("<10I", 16, 2, 16, 2, 0, 32, 0, 0, 0, 0))
    assert machine.videocore.framebuffer_channel(0x1000) == 0
    framebuffer = machine.videocore.framebuffer
    machine.memory.write(framebuffer.address, b"\xff\0\0\xff")
    assert framebuffer.image().getpixel((0, 0)) == colour


def channel_1(machine, *words: int) -> tuple[int, ...]:
    """A request by mailbox channel 1; the structure as it comes back."""
    machine.memory.write(0x1000, struct.pack("<10I", *words))
    assert machine.videocore.framebuffer_channel(0x40001000) == 0
    return struct.unpack("<10I", machine.memory.read(0x1000, 40))


def test_a_repeated_request_of_channel_1_flips_pages(boot):
    """So did programs of 2012 to 2015: the second page was drawn before it is asked for."""
    machine = boot(HALT)
    framebuffer = machine.videocore.framebuffer
    request = (16, 4, 16, 8, 0, 32, 0, 0, 0, 0)
    first = channel_1(machine, *request)
    machine.memory.fill(framebuffer.address + 4 * first[4], 4 * first[4], 0xFF)
    flipped = channel_1(machine, *request[:7], 4, 0, 0)
    assert flipped[8:] == first[8:]
    assert framebuffer.image().getpixel((0, 0)) == (255, 255, 255)
    assert framebuffer.flips == 1
    channel_1(machine, *request)
    assert framebuffer.image().getpixel((0, 0)) == (0, 0, 0)
    assert framebuffer.flips == 2


@pytest.mark.parametrize("other", [(8, 4, 16, 8, 0, 32), (16, 4, 32, 8, 0, 32), (16, 4, 16, 8, 0, 24)])
def test_another_size_of_channel_1_is_a_new_picture(boot, other):
    machine = boot(HALT)
    framebuffer = machine.videocore.framebuffer
    channel_1(machine, 16, 4, 16, 8, 0, 32, 0, 0, 0, 0)
    machine.memory.fill(framebuffer.address, framebuffer.allocated_size, 0xFF)
    channel_1(machine, *other, 0, 0, 0, 0)
    assert framebuffer.image().getpixel((0, 0)) == (0, 0, 0)


@pytest.mark.parametrize(
    ("config", "firmware", "colour"),
    [
        ("", "today", (0, 0, 255)),
        ("", "2015", (255, 0, 0)),
        ("framebuffer_swap=0", "today", (255, 0, 0)),
        ("framebuffer_swap=1", "2015", (0, 0, 255)),
    ],
)
def test_the_order_of_channel_1_by_config_and_firmware(boot, config, firmware, colour):
    """Byte 0 of a pixel is 255."""
    machine = boot(HALT, config, firmware=firmware)
    channel_1(machine, 16, 2, 16, 2, 0, 32, 0, 0, 0, 0)
    framebuffer = machine.videocore.framebuffer
    machine.memory.write(framebuffer.address, b"\xff\0\0\xff")
    assert framebuffer.image().getpixel((0, 0)) == colour


@pytest.mark.parametrize("depth", [0, 3, 5, 12, 64, 0xFFFFFFFF])
def test_other_depths_become_32(boot, depth):
    machine = boot(HALT)
    machine.videocore.framebuffer.change(depth=depth)
    assert machine.videocore.framebuffer.geometry.depth == 32


ALPHA_COUNTS = "framebuffer_ignore_alpha=0\n"


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize(
    ("config", "options", "counts"),
    [
        ("", {}, False),
        ("framebuffer_ignore_alpha=1\n", {"firmware": "2015"}, False),
        ("", {"firmware": "2015"}, True),
        ("", {"unknowns": DEFAULT_UNKNOWNS.with_(framebuffer_alpha="mode")}, True),
        (ALPHA_COUNTS, {}, True),
    ],
)
def test_whether_alpha_counts(boot, mode, config, options, counts):
    """Windows of alpha 255 beside a picture of alpha 0, as Ultibo's programs have them."""
    machine = boot(HALT, config=config, **options)
    image = show(machine, 32, bytes((7, 7, 7, 0, 7, 7, 7, 255)), alpha_mode=mode)
    shown = [image.getpixel((x, 0)) != (0, 0, 0) for x in range(2)]
    assert shown == ([mode == 0, mode == 1] if counts and mode < 2 else [True, True])
    machine.display_lint.picture()
    assert not machine.reporter.has("SOC-089")


@pytest.mark.parametrize(("mode", "levels"), [(0, [200, 100, 0]), (1, [0, 99, 200]), (2, [200, 200, 200])])
@pytest.mark.parametrize("order", [0, 1])
def test_alpha_over_black(boot, mode, levels, order):
    machine = boot(HALT, config=ALPHA_COUNTS)
    data = bytes((200, 0, 200, 0, 200, 0, 200, 127, 200, 0, 200, 255))
    image = show(machine, 32, data, alpha_mode=mode, order=order)
    pixels = [image.getpixel((x, 0)) for x in range(3)]
    assert [(red, green) for red, green, _blue in pixels] == [
        (pytest.approx(level, abs=1), 0) for level in levels
    ]
    assert all(red == blue for red, _green, blue in pixels)


CURSOR_AT = 0x8000


def test_cursor(boot):
    machine = boot(HALT)
    machine.memory.fill(CURSOR_AT, 4 * 16 * 16, 0)
    machine.memory.set_u32(CURSOR_AT, 0xFF102030)
    machine.memory.set_u32(CURSOR_AT + 4 * (16 * 2 + 3), 0x80FF0000)
    framebuffer = machine.videocore.framebuffer
    cursor = framebuffer.cursor
    assert not cursor.place(1, 5, 5), "there is no picture yet"
    assert cursor.set_picture(machine.memory, 16, 16, 0xC0000000 | CURSOR_AT, 3, 2)
    assert cursor.place(1, 5, 6)
    image = show(machine, 32, bytes(4), width=64, height=32)
    assert image.getpixel((2, 4)) == (0x10, 0x20, 0x30)
    assert image.getpixel((5, 6)) == (128, 0, 0)
    assert image.getpixel((6, 6)) == (0, 0, 0)
    cursor.place(0, 5, 6)
    assert framebuffer.image().getpixel((2, 4)) == (0, 0, 0)
    for x, y in ((0, 0), (63, 31), (1 << 31, 0), (64, 5)):
        cursor.place(1, x, y)
        assert framebuffer.image().size == (64, 32)


@pytest.mark.parametrize(
    ("width", "height", "address", "hot"),
    [(0, 0, 0, 0), (15, 16, 0, 0), (65, 64, 0, 0), (16, 16, 0x3FFFFFF0, 0), (16, 16, 0, 16)],
)
def test_cursors_that_make_no_sense(boot, width, height, address, hot):
    machine = boot(HALT)
    cursor = machine.videocore.framebuffer.cursor
    assert not cursor.set_picture(machine.memory, width, height, address, hot, 0)
    cursor.place(1, 0, 0)
    assert show(machine, 32, b"").getpixel((0, 0)) == (0, 0, 0)


@pytest.mark.parametrize(("mode", "alpha"), [(0, 255), (1, 0)])
def test_a_transparent_picture_is_told(boot, mode, alpha):
    machine = boot(HALT, config=ALPHA_COUNTS)
    show(machine, 32, bytes((200, 0, 0, alpha)) * 16, alpha_mode=mode)
    machine.display_lint.picture()
    assert machine.reporter.has("SOC-089")


@pytest.mark.parametrize(
    ("mode", "pixel"), [(0, (9, 0, 0, 0)), (1, (200, 0, 0, 200)), (2, (9, 0, 0, 0)), (1, (0, 0, 0, 9))]
)
def test_other_pictures_are_not(boot, mode, pixel):
    machine = boot(HALT, config=ALPHA_COUNTS)
    show(machine, 32, bytes(pixel) * 16, alpha_mode=mode)
    machine.display_lint.picture()
    assert not machine.reporter.has("SOC-089")
