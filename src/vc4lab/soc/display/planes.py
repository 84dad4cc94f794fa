"""Display lists of the HVS: the planes in them, as the composer (`scanout/`) takes them.

Source: Linux, drivers/gpu/drm/vc4/vc4_plane.c and vc4_regs.h, whose names these are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from vc4lab.scanout.display_unknowns import DEFAULT_UNKNOWNS, Unknowns
from vc4lab.scanout.formats import TILE_PITCH, Format
from vc4lab.soc.display.tiled_planes import PITCH, window_of

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory
    from vc4lab.scanout.composer import Plane as ComposedPlane
    from vc4lab.scanout.composer import Shown

END, VALID, UNITY = 1 << 31, 1 << 30, 1 << 4
H_FLIP, V_FLIP = 1 << 16, 1 << 15
MAX_PLANES = 256
LIST_WORDS = 4096
RGB332, RGBA4444, RGB555, RGBA5551, RGB565, RGB888, RGBA6666, RGBA8888 = range(8)
BYTES = {RGB332: 1, RGBA4444: 2, RGB555: 2, RGBA5551: 2, RGB565: 2, RGB888: 3, RGBA8888: 4}
"""Bytes of a pixel, by format; those of brightness and colour are in `yuv_planes.py`."""
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
OPAQUE = 255
PREMULTIPLIED, MIXED = 1 << 29, 1 << 28
ADDRESS = 0x3FFFFFFF
PARTS = {8: 3, 9: 2, 10: 3, 11: 2, 12: 2}
"""Addresses of the formats of brightness and colour: 4:2:0 in three and two planes, 4:2:2, and
4:2:0 in columns (H264)."""
ROUNDED = 3
"""How channels of few bits are widened; what Linux asks for."""


class Damage(ValueError):  # noqa: N818 - said to the user as it is
    """Something in a display list that makes no sense."""


@dataclass(frozen=True)
class Plane:
    """A plane: where it is shown, how large, and where its pixels are."""

    word: int
    """Its first word in the memory of lists."""
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
    """Alpha of all its pixels."""
    premultiplied: bool
    mixed: bool
    """Whether both that and each pixel's own count."""
    alpha_mode: int
    key_mode: int
    expand_mode: int
    address: int
    pitch: int
    more: tuple[tuple[int, int], ...] = ()
    """Address and pitch of the planes of colour."""
    matrix: tuple[int, int, int] = (0, 0, 0)
    """The words of the colour space."""

    @property
    def upward(self) -> bool:
        """Whether lines are read from the last one upwards."""
        return bool(self.flips & V_FLIP)

    @property
    def first_line(self) -> int:
        """Address of the uppermost line in memory. A list names that which is shown first: where
        lines are read upwards, the last one."""
        up = (self.source_height - 1) * (self.pitch & PITCH) if self.upward else 0
        return self.address - up


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
    count = PARTS.get(control & 15, 1)
    places, pitches = at + 2, at + 2 + 2 * count
    address, pitch = words[places], words[pitches]
    more = tuple((words[places + n] & ADDRESS, words[pitches + n]) for n in range(1, count))
    csc = pitches + count
    matrix = (words[csc], words[csc + 1], words[csc + 2]) if count > 1 else (0, 0, 0)
    width, height = size & 0xFFF, size >> 16 & 0xFFF
    alpha_mode = size >> 30
    mixed = bool(size & MIXED)
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
        alpha=position >> 24 if alpha_mode != PIPELINE or mixed else OPAQUE,
        premultiplied=bool(size & PREMULTIPLIED),
        mixed=mixed,
        alpha_mode=alpha_mode,
        key_mode=control >> 17 & 3,
        expand_mode=control >> 11 & 3,
        address=address & ADDRESS,
        pitch=pitch,
        more=more,
        matrix=matrix,
    )


def absence(memory: GuestMemory, plane: Plane) -> str:
    """Why a plane is not composed, "" if it is."""
    if plane.kind in PARTS:
        return _absence_of_yuv(memory, plane)
    size = BYTES.get(plane.kind)
    if size is None:
        return f"pixel format {plane.kind} (palettes, 4:4:4 or 6666) is not read"
    if plane.tiling not in (LINEAR, T_TILED):
        return f"tiling {plane.tiling} (columns of 64 or 128 bytes) is not read"
    if plane.tiling == T_TILED:
        if size not in (2, 4):
            return f"T-tiles with pixels of {8 * size} bits are not read"
        window = window_of(plane.address, plane.pitch, size, plane.source_height)
        if window.tiles * TILE_PITCH < (window.x + plane.source_width) * size:
            return "a row of its T-tiles is narrower than the plane"
    return _bad_size(plane) or _not_in_ram(memory, plane)


def _bad_size(plane: Plane) -> str:
    if not (plane.source_width and plane.source_height and plane.width and plane.height):
        return "it has no pixels"
    if plane.source_width > plane.width << 8 or plane.source_height > plane.height << 8:
        return "it is shrunk more than 256 times"
    return ""


def _absence_of_yuv(memory: GuestMemory, plane: Plane) -> str:
    from vc4lab.soc.display.yuv_planes import absence_of_layout

    return absence_of_layout(plane) or _bad_size(plane) or _not_in_ram(memory, plane)


def _not_in_ram(memory: GuestMemory, plane: Plane) -> str:
    inside = all(at >= 0 and memory.contains(at, size) for at, size in places_of(plane))
    return "" if inside else "its pixels are not in RAM"


def differences(plane: Plane) -> list[str]:
    """How a plane that is composed may look otherwise than the HVS shows it."""
    found = []
    if plane.alpha_mode > 1:
        found.append(f"alpha mode {plane.alpha_mode} (fixed for some pixels) is taken for all")
    if plane.key_mode:
        found.append(f"colour key mode {plane.key_mode} does nothing")
    if plane.kind in PARTS:
        return found
    if plane.expand_mode != ROUNDED and min(WIDTHS[plane.kind][:3]) < 8:
        found.append(f"narrow channels are widened as by mode {ROUNDED}, not {plane.expand_mode}")
    return found


def places_of(plane: Plane) -> list[tuple[int, int]]:
    """List addresses and sizes of the pixels of a plane whose format is read."""
    if plane.kind in PARTS:
        from vc4lab.soc.display.yuv_planes import yuv_of

        return [(part.start, part.extent) for part in yuv_of(plane).components]
    size, height = BYTES[plane.kind], plane.source_height
    if plane.tiling == T_TILED:
        window = window_of(plane.address, plane.pitch, size, height)
        return [(window.address, max(window.size, 0))]
    lines = (plane.pitch & PITCH) * (height - 1)
    return [(plane.first_line, max(lines + plane.source_width * size, 0))]


def shown(
    memory: GuestMemory,
    planes: list[Plane],
    size: tuple[int, int],
    background: int,
    unknowns: Unknowns = DEFAULT_UNKNOWNS,
) -> Shown:
    """The planes that are composed, as the composer takes them; a colour 0xRRGGBB below them."""
    from vc4lab.scanout.composer import Shown

    taken = [_composed(plane, unknowns) for plane in planes if not absence(memory, plane)]
    return Shown(*size, tuple(taken), None, background)


def _composed(plane: Plane, unknowns: Unknowns) -> ComposedPlane:
    from vc4lab.scanout import composer

    by_pixel = plane.alpha_mode == PIPELINE
    if plane.mixed and unknowns["hvs_fixed_mix"] == "product":
        by_pixel = True
    blend = composer.BLEND_NONE
    if by_pixel:
        blend = composer.BLEND_PREMULTIPLIED if plane.premultiplied else composer.BLEND_COVERAGE
    width, height = plane.source_width, plane.source_height
    yuv = None
    address, pitch, x, y = plane.first_line, plane.pitch & PITCH, 0, 0
    if plane.kind in PARTS:
        from vc4lab.soc.display.yuv_planes import PIXELS, yuv_of

        yuv = yuv_of(plane)
    elif plane.tiling == T_TILED:
        window = window_of(plane.address, plane.pitch, BYTES[plane.kind], height)
        address, pitch, x, y = window.address, window.tiles * TILE_PITCH, window.x, window.y
    return composer.Plane(
        address,
        pitch,
        x + width,
        y + height,
        _format(plane.kind, plane.order) if yuv is None else PIXELS,
        plane.tiling == T_TILED and yuv is None,
        (x << 16, y << 16, width << 16, height << 16),
        (plane.x, plane.y, plane.width, plane.height),
        plane.alpha,
        blend,
        (bool(plane.flips & H_FLIP), plane.upward),
        yuv,
    )


@cache
def _format(kind: int, order: int) -> Format:
    """The places of a pixel's channels."""
    widths = dict(zip("RGBA", WIDTHS[kind], strict=True))
    names = ORDERS[order] if widths["A"] else PLAIN_ORDERS[order]
    places, low = {"A": (0, 0)}, 0
    for name in names:
        places[name] = low, widths[name]
        low += widths[name]
    name = f"{'ARGB' if widths['A'] else 'RGB'}, HVS format {kind}, order {order}"
    return Format(name, 8 * BYTES[kind], low, places["R"], places["G"], places["B"], places["A"])
