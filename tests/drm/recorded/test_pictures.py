"""Pictures out of surfaces in memory: every tiling, both depths, byte orders, four samples."""

import numpy
import pytest
from tests.support.texture_layouts import tile

from vc4lab.drm.kernel.rendering import ColourSurface
from vc4lab.drm.recorded.byte_order import ByteOrder
from vc4lab.drm.recorded.replay import picture, rgba
from vc4lab.images import tiling as layouts
from vc4lab.memory import GuestMemory
from vc4lab.records.codes import Tiling


@pytest.mark.parametrize("tiling", list(Tiling))
@pytest.mark.parametrize("bits", [16, 32])
def test_pictures(tiling: Tiling, bits: int) -> None:
    rng = numpy.random.default_rng(1)
    texels = rng.integers(0, 1 << bits, (20, 28), dtype=f"u{bits // 8}")
    stride = 112 if bits == 32 else 64
    layout = layouts.Tiling(tiling)
    raw = tile(texels, bits, layout, stride if tiling is Tiling.RASTER else None)
    memory = GuestMemory()
    memory.write(0x1000, raw)
    image = picture(memory, ColourSurface(0x1000, 28, 20, bits, tiling))
    assert image.size == (28, 20)
    pixel = image.getpixel((3, 2))
    value = int(texels[2, 3])
    if bits == 32:
        assert pixel == tuple(value >> s & 255 for s in (0, 8, 16))
        swapped = picture(memory, ColourSurface(0x1000, 28, 20, bits, tiling), ByteOrder.BGRA)
        assert swapped.getpixel((3, 2)) == pixel[::-1]
    else:
        assert pixel == ((value >> 11) * 33 >> 2, (value >> 5 & 63) * 65 >> 4, (value & 31) * 33 >> 2)


def test_multisample_picture() -> None:
    memory = GuestMemory()
    for sample, colour in enumerate((0, 0, 0x02, 0xFF)):
        for quad_x in (0, 5):
            x, y = 2 * quad_x + 1, 3
            offset = (x & ~1) * 32 + (y & ~1) * 512 + sample * 16 + (y & 1) * 8 + (x & 1) * 4
            memory.write(0x1000 + 16384 + offset, bytes([colour] * 4))
    pixels = rgba(memory, ColourSurface(0x1000, 40, 32, 32, Tiling.RASTER, True))
    assert pixels.shape == (32, 40, 4)
    assert pixels[3, 33].tolist() == [64] * 4
    assert pixels.astype(int).sum() == 4 * 64
