"""The examples as `vc4lab boot` shows them: pictures, engines, words on the UART."""

from collections.abc import Callable

import pytest
from PIL import Image, ImageChops, ImageStat

Boot = Callable[..., tuple[Image.Image, str]]


def same(a: Image.Image, b: Image.Image) -> bool:
    return ImageChops.difference(a, b).getbbox() is None


def test_framebuffer(boot: Boot) -> None:
    picture, words = boot("framebuffer")
    assert "done" in words
    assert picture.size == (640, 480)
    # Byte 0 of a channel-1 framebuffer's pixel is blue: the pattern x XOR y is byte 2.
    assert picture.getpixel((0, 0)) == (0, 0, 0)
    assert picture.getpixel((200, 77)) == (200 ^ 77, 200 * 255 // 640, 77 * 255 // 480)


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_both_triangles_are_the_same_on_both_engines(boot: Boot, engine: str) -> None:
    picture, words = boot("triangle", "--engine", engine)
    assert "done" in words
    background = (0x10, 0x1A, 0x40)
    assert picture.getpixel((0, 0)) == background
    assert picture.getpixel((100, 420)) == background
    assert picture.getpixel((320, 60 - 1)) == background
    corners = [((320, 64), 0), ((128, 417), 1), ((511, 417), 2)]
    for place, channel in corners:
        pixel = picture.getpixel(place)
        assert pixel[channel] > 240
        assert sum(pixel) in range(250, 260)  # barycentric weights add up to 1
    again, _ = boot("vertex_shader", "--engine", engine)
    assert same(picture, again)


def test_naan(boot: Boot) -> None:
    picture, words = boot("naan", "--frames", "2")
    assert "baked in" in words
    assert "no vertical sync" not in words
    later, _ = boot("naan", "--frames", "30")
    assert not same(picture, later)
    # Bread, not only sky: many bright pixels that are more red than blue.
    red, _, blue = later.split()
    bread = ImageChops.subtract(red, blue).point(lambda v: 255 if v > 60 else 0)
    assert ImageStat.Stat(bread).mean[0] > 255 * 0.15
    assert ImageStat.Stat(bread).mean[0] < 255 * 0.85
