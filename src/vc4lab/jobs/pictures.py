"""Pictures of what a V3D has drawn, and how they differ from those that were captured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vc4lab.images.pixels import colours, read_png
from vc4lab.images.tiling import Tiling, detile
from vc4lab.jobs.walk import surface_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image

    from vc4lab.jobs.model import JobsFrame, Shown
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.state.frame_mode import Surface

_MODES = {
    (16, "rgb"): "BGR;16", (16, "bgr"): "BGR;16", (24, "rgb"): "RGB", (24, "bgr"): "BGR",
    (32, "rgb"): "RGBX", (32, "bgr"): "BGRX",
}  # fmt: skip
"""How Pillow calls such pixels; "BGR;16" has red in the top bits."""


def shown_picture(memory: GuestMemory, shown: Shown) -> Image:
    """Return the picture that was on the display."""
    from PIL import Image

    data = bytes(memory.view(shown.address, shown.pitch * shown.height))
    mode = _MODES[shown.bits, shown.order]
    return Image.frombytes("RGB", (shown.width, shown.height), data, "raw", mode, shown.pitch)


def surface_picture(memory: GuestMemory, surface: Surface) -> Image | None:
    """A colour surface, red in the lowest byte; None: its colours are 64 bits wide."""
    from PIL import Image

    if surface.wide:
        return None
    tiling = Tiling(min(surface.tiling, 2))
    stride = surface.pitch if tiling is Tiling.RASTER else None
    data = bytes(memory.view(surface.address, surface_bytes(surface)))
    pixels = colours(memoryview(data), surface.width, surface.height, surface.bits, tiling, stride)
    return Image.fromarray(pixels[..., :3].copy())


def surface_words(memory: GuestMemory, surface: Surface) -> NDArray[Any]:
    """The pixels of a surface as they are in memory, of shape (height, width): 16, 32 or 64 bits."""
    tiling = Tiling(min(surface.tiling, 2))
    stride = surface.pitch if tiling is Tiling.RASTER else None
    data = memory.view(surface.address, surface_bytes(surface))
    return detile(data, surface.width, surface.height, surface.bits, tiling, stride)


def surface_word(memory: GuestMemory, surface: Surface, x: int, y: int) -> int:
    """A pixel of a surface as it is in memory: 16, 32 or 64 bits."""
    return int(surface_words(memory, surface)[y, x])


def ordered(image: Image | None, frame: JobsFrame) -> Image | None:
    """The picture with red and blue exchanged, if only so it is the one that was captured."""
    if image is None or not is_blue_first(image, frame):
        return image
    return exchanged(image)


def is_blue_first(image: Image, frame: JobsFrame) -> bool:
    """Whether the picture is nearer to the captured one with red and blue exchanged."""
    if not isinstance(frame.picture, bytes):
        return False
    counts = [difference(one, frame.picture) for one in (image, exchanged(image))]
    return counts[0] is not None and counts[1] is not None and counts[1] < counts[0]


def exchanged(image: Image) -> Image:
    """The picture with red and blue exchanged."""
    from PIL import Image as Pictures

    red, green, blue = image.split()
    return Pictures.merge("RGB", (blue, green, red))


def difference(image: Image, kept: bytes) -> int | None:
    """Pixels that differ from a PNG file; None if it is none, or of another size."""
    import numpy as np

    try:
        before = read_png(kept, image.size, "RGB")
    except ValueError:
        return None
    return int((before != np.asarray(image)).any(axis=2).sum())


def difference_picture(picture: Image, mask: NDArray[Any]) -> Image:
    """A picture in dim greys, with the pixels that differ in red."""
    import numpy as np
    from PIL import Image as Pictures

    grey = np.asarray(picture.convert("L"))
    dim = np.stack([grey // 3 + 20] * 3, axis=-1).astype(np.uint8)
    dim[mask] = (255, 40, 40)
    return Pictures.fromarray(dim)
