"""The framebuffer's small depths, its palette, and the part of a larger picture that is shown."""

from __future__ import annotations

import struct

import pytest

from vc4lab.soc.framebuffer import RGB
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


@pytest.mark.parametrize("depth", [0, 3, 5, 12, 64, 0xFFFFFFFF])
def test_other_depths_become_32(boot, depth):
    machine = boot(HALT)
    machine.videocore.framebuffer.change(depth=depth)
    assert machine.videocore.framebuffer.geometry.depth == 32
