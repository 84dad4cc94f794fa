"""Property tags of the display: framebuffer, palette, overscan, cursor, vsync."""

from __future__ import annotations

import struct
from dataclasses import replace

from vc4lab.soc.videocore.properties import tag
from vc4lab.soc.videocore.videocore import VideoCore

HDMI = 2
"""The firmware's id of the first HDMI connector (dispmanx, DISPMANX_ID_HDMI)."""


def _geometry_tags(get: int, name: str, names: tuple[str, ...]) -> None:
    """Declare the get, test and set tags of one part of the geometry."""
    words = ", ".join(f"u32 {part}" for part in names)

    def current(vc: VideoCore, *_wanted: int) -> tuple[int, ...]:
        return tuple(getattr(vc.framebuffer.geometry, part) for part in names)

    def test(vc: VideoCore, *wanted: int) -> tuple[int, ...]:
        asked = dict(zip(names, wanted, strict=True))
        possible = replace(vc.framebuffer.geometry, **asked).sane()
        return tuple(getattr(possible, part) for part in names)

    tag(get, f"get {name}", "", words, display=True)(current)
    tag(get + 0x4000, f"test {name}", words, words, display=True)(test)
    tag(get + 0x8000, f"set {name}", words, words, display=True)(current)


_geometry_tags(0x00040003, "physical size", ("width", "height"))
_geometry_tags(0x00040004, "virtual size", ("virtual_width", "virtual_height"))
_geometry_tags(0x00040005, "depth", ("depth",))
_geometry_tags(0x00040006, "pixel order", ("order",))
_geometry_tags(0x00040007, "alpha mode", ("alpha_mode",))
_geometry_tags(0x00040009, "virtual offset", ("x", "y"))
tag(0x00040008, "get pitch", "", "u32 bytes", display=True)(lambda vc: vc.framebuffer.geometry.pitch)
tag(0x00040013, "number of displays", "", "u32 displays", display=True)(lambda vc: 1)


@tag(
    0x00040014,
    "display settings",
    "u32 display",
    "u32 display, u32 width, u32 height, u32 depth, u32 pitch, u32 virtual_width, "
    "u32 virtual_height, u32 x, u32 y, u32 base",
    display=True,
)
def display_settings(vc: VideoCore, _display: int) -> tuple[int, ...]:
    """As Linux's bcm2708_fb.c asks for them; there is one display, number 0."""
    g, base = vc.framebuffer.geometry, vc.framebuffer.bus_address
    sizes = g.width, g.height, g.depth, g.pitch, g.virtual_width, g.virtual_height
    return 0, *sizes, g.x, g.y, base


tag(0x00040016, "display id", "u32 display", "u32 id", display=True)(lambda vc, display: HDMI)
tag(0x00048013, "select display", "u32 display", "u32 display", display=True)(lambda vc, display: 0)
tag(0x0004400E, "test vsync", "u32 value", "u32 value", display=True)(lambda vc, value: value)
tag(0x0004800F, "set backlight", "u32 value", "u32 value", display=True)(lambda vc, value: value)


@tag(0x00040001, "allocate framebuffer", "u32 alignment", "u32 base, u32 size", display=True)
def allocate(vc: VideoCore, alignment: int) -> tuple[int, int]:
    framebuffer = vc.framebuffer
    if framebuffer.allocation is None and not framebuffer.allocate(alignment):
        return 0, 0
    return framebuffer.bus_address, framebuffer.allocated_size


@tag(0x00048001, "release framebuffer", display=True)
def release(vc: VideoCore) -> tuple[()]:
    vc.framebuffer.release()
    return ()


@tag(0x00040002, "blank screen", "u32 state", "u32 state", display=True)
def blank(vc: VideoCore, state: int) -> int:
    vc.framebuffer.blank = bool(state & 1)
    return state & 1


_OVERSCAN = "u32 top, u32 bottom, u32 left, u32 right"


tag(0x0004000A, "get overscan", "", _OVERSCAN, display=True)(lambda vc: vc.overscan)
tag(0x0004400A, "test overscan", _OVERSCAN, _OVERSCAN, display=True)(
    lambda vc, *wanted: vc.possible_overscan(wanted)
)


@tag(0x0004800A, "set overscan", _OVERSCAN, _OVERSCAN, display=True)
def set_overscan(vc: VideoCore, *wanted: int) -> list[int]:
    vc.overscan[:] = vc.possible_overscan(wanted)
    return vc.overscan


tag(0x0004000B, "get palette", "", "bytes entries", display=True)(
    lambda vc: struct.pack("<256I", *vc.framebuffer.palette)
)


def _palette_words(first: int, count: int, values: bytes) -> list[int] | None:
    if first > 255 or not 1 <= count <= 256 - first or len(values) < 4 * count:
        return None
    return list(struct.unpack(f"<{count}I", values[: 4 * count]))


@tag(0x0004400B, "test palette", "u32 first, u32 count, bytes values", "u32 valid", display=True)
def test_palette(vc: VideoCore, first: int, count: int, values: bytes) -> int:
    return int(_palette_words(first, count, values) is None)


@tag(0x0004800B, "set palette", "u32 first, u32 count, bytes values", "u32 valid", display=True)
def set_palette(vc: VideoCore, first: int, count: int, values: bytes) -> int:
    words = _palette_words(first, count, values)
    if words is None:
        return 1
    vc.framebuffer.palette[first : first + count] = words
    return 0


@tag(0x0004800E, "wait for vsync", "u32 value", "u32 value", display=True)
def wait_for_vsync(vc: VideoCore, value: int) -> int:
    vc.clock.skip(max(vc.next_vsync() - vc.clock.now, 0))
    return value


_CURSOR = "u32 width, u32 height, u32 unused, u32 pixels, u32 hot_x, u32 hot_y"


@tag(0x00008010, "set cursor picture", _CURSOR, "u32 invalid", display=True)
def cursor_picture(
    vc: VideoCore, width: int, height: int, _unused: int, pixels: int, hot_x: int, hot_y: int
) -> int:
    if vc.framebuffer.cursor.set_picture(vc.memory, width, height, pixels, hot_x, hot_y):
        return 0
    vc.reporter.report(
        "SOC-022",
        f"a mouse cursor of {width} x {height} pixels at 0x{pixels:08x}, hot spot {hot_x}, {hot_y}",
        address=pixels,
        block="mailbox",
    )
    return 1


@tag(0x00008011, "set cursor state", "u32 on, u32 x, u32 y, u32 flags", "u32 invalid", display=True)
def cursor_state(vc: VideoCore, on: int, x: int, y: int, _flags: int) -> int:
    return 0 if vc.framebuffer.cursor.place(on, x, y) else 1
