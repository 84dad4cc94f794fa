"""Display lists of the HVS: the planes in them, and the picture that they make.

Scaled planes take the nearest pixel; the HVS filters them.
Source: Linux, drivers/gpu/drm/vc4/vc4_plane.c and vc4_regs.h, whose names these are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL import Image

    from vc4lab.memory import GuestMemory

END, VALID, UNITY = 1 << 31, 1 << 30, 1 << 4
H_FLIP, V_FLIP = 1 << 16, 1 << 15
MAX_PLANES = 256
LIST_WORDS = 4096
RGB332, RGBA4444, RGB555, RGBA5551, RGB565, RGB888, RGBA6666, RGBA8888 = range(8)
BYTES = {RGB332: 1, RGBA4444: 2, RGB555: 2, RGBA5551: 2, RGB565: 2, RGB888: 3, RGBA8888: 4}
"""Bytes of a pixel, by format; the others (of brightness and colour) are not composed."""
WIDTHS = {
    RGB332: (3, 3, 2, 0), RGBA4444: (4, 4, 4, 4), RGB555: (5, 5, 5, 0), RGBA5551: (5, 5, 5, 1),
    RGB565: (5, 6, 5, 0), RGB888: (8, 8, 8, 0), RGBA8888: (8, 8, 8, 8),
}  # fmt: skip
"""Bits of red, green, blue and alpha."""
ORDERS = {0: "ABGR", 1: "ARGB", 2: "RGBA", 3: "BGRA"}
"""Channels of a pixel from its lowest bits on, of formats with alpha."""
PLAIN_ORDERS = {0: "GRB", 1: "GBR", 2: "BGR", 3: "RGB"}
"""Those of formats without."""
LINEAR, T_TILED = 0, 3
PIPELINE = 0
PREMULTIPLIED, MIXED = 1 << 29, 1 << 28
ADDRESS = 0x3FFFFFFF
TILES_AFTER = 0x7F
"""Of the pitch of T-tiles: tiles of a row from the plane's first one on. The other bits count those
before it, and say where in a tile the plane begins and in which direction its rows go."""
ROUNDED = 3
"""How channels of few bits are widened; what Linux asks for."""
TILE = 32
"""Pixels of a T-tile's side, of four bytes each."""


class Damage(ValueError):  # noqa: N818 - said to the user as it is
    """Something in a display list that makes no sense."""


@dataclass(frozen=True)
class Plane:
    """A plane: where it is shown, how large, and where its pixels are."""

    word: int
    """Where in the memory of lists it begins."""
    kind: int
    order: int
    tiling: int
    flips: int
    x: int
    y: int
    width: int
    height: int
    source_width: int
    source_height: int
    alpha: int
    """Of all its pixels; -1: each has its own."""
    premultiplied: bool
    mixed: bool
    """Whether its pixels' alpha counts, too, where all have one."""
    alpha_mode: int
    key_mode: int
    expand_mode: int
    address: int
    pitch: int


def planes_of(lists: bytearray, start: int) -> tuple[list[Plane], str]:
    """The planes of the list at a word, from back to front, and what is wrong with the list."""
    words = memoryview(lists).cast("I")
    found: list[Plane] = []
    at = start
    for _count in range(MAX_PLANES):
        if not 0 <= at < len(words):
            return found, f"leaves the memory of lists at word {at}"
        control = words[at]
        if control & END:
            return found, ""
        size = control >> 24 & 0x3F
        if not control & VALID or not size or at + size > len(words):
            return found, f"has an invalid word at {at}: 0x{control:08x}"
        try:
            found.append(_plane(at, words[at : at + size]))
        except IndexError:
            return found, f"has a plane of only {size} words at word {at}"
        at += size
    return found, f"has more than {MAX_PLANES} planes"


def _plane(word: int, words: Any) -> Plane:
    control, position = words[0], words[1]
    unity = bool(control & UNITY)
    at = 2
    scaled = 0
    if not unity:
        scaled, at = words[at], at + 1
    size = words[at]
    address, pitch = words[at + 2], words[at + 4]
    width, height = size & 0xFFF, size >> 16 & 0xFFF
    alpha_mode = size >> 30
    return Plane(
        word=word,
        kind=control & 15,
        order=control >> 13 & 3,
        tiling=control >> 20 & 3,
        flips=control & (H_FLIP | V_FLIP),
        x=position & 0xFFF,
        y=position >> 12 & 0xFFF,
        width=width if unity else scaled & 0xFFF,
        height=height if unity else scaled >> 16 & 0xFFF,
        source_width=width,
        source_height=height,
        alpha=position >> 24 if alpha_mode != PIPELINE else -1,
        premultiplied=bool(size & PREMULTIPLIED),
        mixed=bool(size & MIXED),
        alpha_mode=alpha_mode,
        key_mode=control >> 17 & 3,
        expand_mode=control >> 11 & 3,
        address=address & ADDRESS,
        pitch=pitch,
    )


def absence(memory: GuestMemory, plane: Plane) -> str:
    """Why a plane is not composed, "" if it is."""
    size = BYTES.get(plane.kind)
    if size is None:
        return f"pixel format {plane.kind} (brightness and colour, or 6666) is not read"
    if plane.tiling not in (LINEAR, T_TILED):
        return f"tiling {plane.tiling} (columns of 64 or 128 bytes) is not read"
    if plane.tiling == T_TILED:
        if size != 4:
            return f"T-tiles with pixels of {8 * size} bits are not read"
        if plane.pitch & ~TILES_AFTER:
            return "T-tiles that begin within a tile or a row of tiles are not read"
        if (plane.pitch & TILES_AFTER) * TILE < plane.source_width:
            return "a row of its T-tiles is narrower than the plane"
    if not memory.contains(plane.address, max(extent(plane), 0)):
        return "its pixels are not in RAM"
    return ""


def differences(plane: Plane) -> list[str]:
    """How a plane that is composed may look otherwise than the HVS shows it."""
    found = []
    if (plane.width, plane.height) != (plane.source_width, plane.source_height):
        found.append("it is scaled to the nearest pixel, the HVS filters")
    if plane.alpha >= 0 and plane.mixed:
        found.append("its pixels have the plane's alpha only, not multiplied by their own")
    if plane.alpha_mode > 1:
        found.append(f"alpha mode {plane.alpha_mode} (fixed for some pixels) is taken for all")
    if plane.key_mode:
        found.append(f"colour key mode {plane.key_mode} does nothing")
    if plane.expand_mode != ROUNDED and min(WIDTHS[plane.kind][:3]) < 8:
        found.append(f"narrow channels are widened by rounding, not by mode {plane.expand_mode}")
    return found


def extent(plane: Plane) -> int:
    """Bytes from the first to the last pixel of a plane whose format is read."""
    width, height = plane.source_width, plane.source_height
    if plane.tiling == T_TILED:
        return (plane.pitch & TILES_AFTER) * -(-height // TILE) * 4 * TILE * TILE
    return (plane.pitch & 0xFFFF) * (height - 1) + width * BYTES[plane.kind]


def compose(
    memory: GuestMemory, planes: list[Plane], size: tuple[int, int], background: int
) -> Image.Image:
    """The picture: planes over each other, over a colour."""
    import numpy as np
    from PIL import Image

    width, height = size
    canvas = np.empty((height, width, 3), np.uint16)
    canvas[:] = background >> 16 & 0xFF, background >> 8 & 0xFF, background & 0xFF
    for plane in planes:
        pixels = _pixels(memory, plane)
        if pixels is None:
            continue
        across, down = min(plane.width, width - plane.x), min(plane.height, height - plane.y)
        if across <= 0 or down <= 0:
            continue
        part = pixels[:down, :across]
        below = canvas[plane.y : plane.y + down, plane.x : plane.x + across]
        colour, alpha = part[..., :3].astype(np.uint16), part[..., 3:].astype(np.uint16)
        if plane.alpha >= 0:
            alpha = np.full_like(alpha, plane.alpha)
        if not plane.premultiplied:
            colour = (colour * alpha + 127) // 255
        below[:] = np.minimum(colour + (below * (255 - alpha) + 127) // 255, 255)
    return Image.fromarray(canvas.astype(np.uint8), "RGB")


def _pixels(memory: GuestMemory, plane: Plane) -> Any:
    """Red, green, blue and alpha of each pixel as it is shown; None for what is not composed."""
    import numpy as np

    texels = _texels(memory, plane)
    if texels is None:
        return None
    widths = dict(zip("RGBA", WIDTHS[plane.kind], strict=True))
    order = ORDERS[plane.order] if widths["A"] else PLAIN_ORDERS[plane.order]
    out = np.full((*texels.shape, 4), 255, np.uint8)
    shift = 0
    for channel in order:
        bits = widths[channel]
        most = (1 << bits) - 1
        value = texels >> np.uint32(shift) & np.uint32(most)
        out[..., "RGBA".index(channel)] = (value * 255 + most // 2) // most
        shift += bits
    if plane.flips & H_FLIP:
        out = out[:, ::-1]
    if plane.flips & V_FLIP:
        out = out[::-1]
    if (plane.width, plane.height) != (plane.source_width, plane.source_height):
        rows = np.arange(plane.height) * plane.source_height // max(plane.height, 1)
        columns = np.arange(plane.width) * plane.source_width // max(plane.width, 1)
        out = out[rows][:, columns]
    return out


def _texels(memory: GuestMemory, plane: Plane) -> Any:
    """The pixels of a plane as numbers, as they lie in memory."""
    import numpy as np

    if absence(memory, plane) or not plane.source_width or not plane.source_height:
        return None
    size, needed = BYTES[plane.kind], extent(plane)
    width, height = plane.source_width, plane.source_height
    if plane.tiling == T_TILED:
        from vc4lab.images.tiling import Tiling, detile

        across = (plane.pitch & TILES_AFTER) * TILE
        tiles = memory.view(plane.address, needed)
        return detile(tiles, across, height, 32, Tiling.T)[:, :width].astype(np.uint32)
    data = np.frombuffer(memory.view(plane.address, needed), np.uint8)
    rows = np.lib.stride_tricks.as_strided(data, (height, width * size), (plane.pitch & 0xFFFF, 1))
    parts = rows.reshape(height, width, size).astype(np.uint32)
    weights = np.uint32(1) << np.arange(0, 8 * size, 8, dtype=np.uint32)
    return (parts * weights).sum(axis=2, dtype=np.uint32)
