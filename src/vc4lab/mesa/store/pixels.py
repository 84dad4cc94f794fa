"""Texels as numbers: unpacked to red, green, blue and alpha, and packed again (numpy).

For clears and blits of the software store; drawing is the GPU's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.mesa.store.resources import Refused

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vc4lab.mesa.protocol.formats import Layout

_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_CHANNELS = {"R": (0,), "G": (1,), "B": (2,), "A": (3,), "L": (0, 1, 2), "I": (0, 1, 2, 3)}


def words_of(blocks: NDArray[np.uint8], layout: Layout) -> NDArray[Any]:
    """Texels of (layer, row, byte) as one integer each. Raises Refused for other sizes."""
    kind = _WORDS.get(layout.block_bytes)
    if kind is None or layout.block_width > 1:
        raise Refused("GL-012", f"texels of {layout.block_bytes} bytes cannot be converted")
    return np.ascontiguousarray(blocks).view(kind)


def unpack(blocks: NDArray[np.uint8], layout: Layout) -> NDArray[np.float32]:
    """Colours as (layer, row, column, RGBA). Raises Refused for what is no UNORM."""
    if layout.kind not in ("UNORM", "SRGB") or layout.has_depth:
        raise Refused("GL-012", f"colours of kind {layout.kind} cannot be converted")
    words = words_of(blocks, layout)
    colours = np.zeros((*words.shape, 4), np.float32)
    colours[..., 3] = 1
    names = [letter for letter, _ in layout.channels]
    if names == ["A"]:
        colours[..., :3] = 0
    shift = 0
    for letter, width in layout.channels:
        if letter != "X":
            most = (1 << width) - 1
            value = (words >> words.dtype.type(shift) & words.dtype.type(most)) / np.float32(most)
            for channel in _CHANNELS[letter]:
                colours[..., channel] = value
        shift += width
    return colours


def pack(colours: NDArray[np.float32], layout: Layout) -> NDArray[Any]:
    """Colours (…, RGBA) as one integer each. Raises Refused for what is no UNORM."""
    if layout.kind not in ("UNORM", "SRGB") or layout.has_depth or layout.block_width > 1:
        raise Refused("GL-012", f"colours cannot be converted to the kind {layout.kind}")
    kind: Any = _WORDS.get(layout.block_bytes)
    if kind is None:
        raise Refused("GL-012", f"texels of {layout.block_bytes} bytes cannot be converted")
    words = np.zeros(colours.shape[:-1], kind)
    clamped = np.clip(np.nan_to_num(colours), 0, 1)
    shift = 0
    for letter, width in layout.channels:
        most = (1 << width) - 1
        if letter == "X":
            value = np.full(words.shape, most, np.float64)
        else:
            value = np.rint(clamped[..., _CHANNELS[letter][0]].astype(np.float64) * most)
        words |= value.astype(kind) << kind(shift)
        shift += width
    return words


def depth_stencil(layout: Layout, depth: float | None, stencil: int | None) -> tuple[int, int] | None:
    """A cleared texel as an integer, and the bits that it has; None if they are none.

    Raises Refused for depth that is no UNORM.
    """
    word = mask = shift = 0
    for letter, width in layout.channels:
        most = (1 << width) - 1
        if letter == "Z" and depth is not None:
            if layout.kind != "UNORM":
                raise Refused("GL-012", f"depth of kind {layout.kind} cannot be cleared")
            inside = min(max(depth, 0.0), 1.0) if depth == depth else 0.0
            word |= round(inside * most) << shift
            mask |= most << shift
        if letter == "S" and stencil is not None:
            word |= (stencil & most) << shift
            mask |= most << shift
        shift += width
    return (word, mask) if mask else None
