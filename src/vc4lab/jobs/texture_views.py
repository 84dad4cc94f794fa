"""Textures of jobs as pictures, and edited pictures as texels: formats whose channels are bits."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

from vc4lab.images.pixels import read_png
from vc4lab.images.tiling import mip_chain, power_of_two, texel_bit_addresses
from vc4lab.records.texture import TextureType
from vc4lab.v3d.tmu.formats import FORMATS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vc4lab.records.control import Reader
    from vc4lab.records.texture import TextureConfig

CHANNELS: dict[int, tuple[tuple[int, int], ...]] = {
    TextureType.RGBA8888: ((0, 8), (8, 8), (16, 8), (24, 8)),
    TextureType.RGBX8888: ((0, 8), (8, 8), (16, 8)),
    TextureType.RGBA32R: ((0, 8), (8, 8), (16, 8), (24, 8)),
    TextureType.RGBA4444: ((12, 4), (8, 4), (4, 4), (0, 4)),
    TextureType.RGBA5551: ((11, 5), (6, 5), (1, 5), (0, 1)),
    TextureType.RGB565: ((11, 5), (5, 6), (0, 5)),
    TextureType.LUMINANCE: ((0, 8),),
    TextureType.ALPHA: ((0, 8),),
    TextureType.S8: ((0, 8),),
    TextureType.LUMALPHA: ((0, 8), (8, 8)),
}
"""Lowest bit and bits of each channel of a texel, as they stand in a picture, by texture type."""
LONGEST = 1024
"""Bytes that an edit sets at once."""
MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


@dataclass(frozen=True)
class TextureView:
    """A level of a texture.

    Attributes
    ----------
    address
        Of its first byte.
    places
        Byte offset of each texel, rows and columns.
    texels
        Their words.
    """

    address: int
    type: int
    bits: int
    places: NDArray[Any]
    texels: NDArray[Any]

    @property
    def channels(self) -> tuple[tuple[int, int], ...]:
        """Return the lowest bit and the bits of each channel of a texel."""
        return CHANNELS[self.type]

    def png(self) -> bytes:
        """The picture."""
        import numpy as np
        from PIL import Image

        parts = []
        for low, bits in self.channels:
            value = self.texels.astype(np.uint32) >> low & (1 << bits) - 1
            parts.append((value * 255 // ((1 << bits) - 1)).astype(np.uint8))
        pixels = parts[0] if len(parts) == 1 else np.stack(parts, axis=-1)
        file = BytesIO()
        Image.fromarray(np.ascontiguousarray(pixels), MODES[len(parts)]).save(file, "PNG")
        return file.getvalue()

    def edits(self, png: bytes) -> list[tuple[int, bytes]]:
        """Address and bytes of the texels that an edited picture has otherwise.

        Raises ValueError for what is no picture of this size.
        """
        import numpy as np

        height, width = self.texels.shape
        mode = MODES[len(self.channels)]
        new, old = (
            read_png(one, (width, height), mode).reshape(height, width, -1) for one in (png, self.png())
        )
        words = self.texels.astype(np.uint32)
        for number, (low, bits) in enumerate(self.channels):
            most = (1 << bits) - 1
            value = (new[..., number].astype(np.uint32) * most + 127) // 255
            changed = new[..., number] != old[..., number]
            words = np.where(changed, words & ~np.uint32(most << low) | value << low, words)
        different = words != self.texels
        size = self.bits // 8
        texels = sorted(zip(self.places[different].tolist(), words[different].tolist(), strict=True))
        runs: list[tuple[int, bytes]] = []
        for place, word in texels:
            address, data = self.address + place, word.to_bytes(size, "little")
            if runs and runs[-1][0] + len(runs[-1][1]) == address and len(runs[-1][1]) < LONGEST:
                runs[-1] = runs[-1][0], runs[-1][1] + data
            else:
                runs.append((address, data))
        return runs


def texture_view(read: Reader, config: TextureConfig, level: int = 0) -> TextureView | None:
    """A level of a texture, 0 the largest; None if it is no picture that can be made again."""
    import numpy as np

    row = FORMATS.get(config.type)
    if row is None or config.type not in CHANNELS or not config.width or not config.height:
        return None
    bits = row.unit_bits
    chain = mip_chain(config.width, config.height, bits, level + 1, raster=row.type.raster)
    found = chain[level]
    room = config.width, config.height
    if level:  # which lie in the room of the next power of two
        room = (max(power_of_two(room[0]) >> level, 1), max(power_of_two(room[1]) >> level, 1))
    places = texel_bit_addresses(*room, bits, found.tiling)[: found.height, : found.width] // 8
    address = config.base + found.offset & 0xFFFFFFFF
    data = np.frombuffer(read(address, int(places.max()) + bits // 8), np.uint8)
    if int(places.max()) + bits // 8 > len(data):
        return None
    texels = np.zeros(places.shape, np.uint32)
    for byte in range(bits // 8):
        texels |= data[places + byte].astype(np.uint32) << 8 * byte
    return TextureView(address, config.type, bits, places, texels)
