"""Pictures of resources, for files and tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vc4lab.mesa.store import pixels
from vc4lab.mesa.store.resources import Box

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image

    from vc4lab.mesa.store.resources import Resource


class Snapshot:
    """A level of a texture as it is now; what its colours are is found when they are wanted."""

    def __init__(self, resource: Resource, level: int = 0, layer: int = 0) -> None:
        size = resource.level(level)
        box = Box(0, 0, layer, size.width, size.height, 1)
        self._blocks = resource.get(level, box).copy()
        self._layout = resource.layout

    def rgba(self) -> NDArray[np.uint8]:
        """Bytes of shape (height, width, 4), first row in memory on top.

        Raises Refused for formats that are no colours.
        """
        colours = pixels.unpack(self._blocks, self._layout)[0]
        found: NDArray[np.uint8] = np.rint(colours * 255).astype(np.uint8)
        return found

    def image(self) -> Image:
        """An RGB picture: windows do not have the alpha that shaders write. Raises Refused."""
        from PIL import Image

        letters = [letter for letter, _bits in self._layout.channels]
        is_bytes = self._layout.kind == "UNORM" and {bits for _, bits in self._layout.channels} == {8}
        if is_bytes and set("RGB") <= set(letters):  # nearly all windows
            _layers, rows, _bytes = self._blocks.shape
            texels = self._blocks.reshape(rows, -1, len(letters))
            return Image.fromarray(texels[..., [letters.index(one) for one in "RGB"]])
        return Image.fromarray(self.rgba()[..., :3].copy())
