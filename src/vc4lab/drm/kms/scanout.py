"""What the screen shows: the planes over each other, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from vc4lab.drm.kms.formats import T_TILED
from vc4lab.drm.kms.objects import DisplayObject
from vc4lab.v3d.fragment import tiling as layouts

if TYPE_CHECKING:
    from PIL.Image import Image

    from vc4lab.drm.kms.screen import FrameBuffer, Screen
    from vc4lab.memory import GuestMemory

Pixels = numpy.ndarray[Any, Any]


def compose(screen: Screen, memory: GuestMemory) -> Image | None:
    """The screen as an RGB picture; None while it is off."""
    from PIL import Image

    mode = screen.mode
    if mode is None or not screen.crtc.state["ACTIVE"]:
        return None
    out = numpy.zeros((mode.vdisplay, mode.hdisplay, 3), numpy.uint8)
    for plane in sorted(screen.planes, key=lambda plane: plane.state["zpos"]):
        frame = screen.frame_buffer_of(plane)
        if frame is not None:
            _lay_over(out, plane, pixels(frame, memory), frame.format.alpha)
    return Image.fromarray(out)


def pixels(frame: FrameBuffer, memory: GuestMemory) -> Pixels:
    """A frame buffer as bytes R, G, B, A of shape (height, width, 4)."""
    bits = frame.format.bits
    row = frame.pitch * 8 // bits
    tiled = frame.modifier == T_TILED
    rows = layouts.round_up(frame.height, 32) if tiled else frame.height
    place = frame.buffer.address + frame.offset
    room = frame.buffer.size - frame.offset
    data = memory.array(place, min(frame.pitch * rows, room))
    if len(data) < frame.pitch * rows:
        data = numpy.pad(data, (0, frame.pitch * rows - len(data)))
    if tiled:
        kind = layouts.Tiling.T
        texels = layouts.detile(data.data, row, rows, bits, kind, None)
        texels = numpy.ascontiguousarray(texels[: frame.height, : frame.width])
    else:
        lines = data.reshape(rows, frame.pitch)[:, : frame.width * bits // 8]
        texels = numpy.ascontiguousarray(lines).view(f"<u{bits // 8}")
    if bits == 32:
        parts = texels.view(numpy.uint8).reshape(frame.height, frame.width, 4)
        return parts[..., list(frame.format.order)]
    red, green, blue = texels >> 11, texels >> 5 & 63, texels & 31
    full = numpy.full_like(red, 255)
    wide = [red << 3 | red >> 2, green << 2 | green >> 4, blue << 3 | blue >> 2, full]
    return numpy.stack(wide, axis=-1).astype(numpy.uint8)


def _lay_over(out: Pixels, plane: DisplayObject, source: Pixels, has_alpha: bool) -> None:
    """One plane: cut out, scaled to its place, blended."""
    state = plane.state
    left, top = (_signed(state[name]) for name in ("CRTC_X", "CRTC_Y"))
    width, height = state["CRTC_W"], state["CRTC_H"]
    first_x, first_y = max(left, 0), max(top, 0)
    last_x, last_y = min(left + width, out.shape[1]), min(top + height, out.shape[0])
    if first_x >= last_x or first_y >= last_y:
        return
    columns = _samples(first_x - left, last_x - left, width, state["SRC_X"], state["SRC_W"])
    rows = _samples(first_y - top, last_y - top, height, state["SRC_Y"], state["SRC_H"])
    columns = numpy.minimum(columns, source.shape[1] - 1)
    rows = numpy.minimum(rows, source.shape[0] - 1)
    part = source[rows][:, columns]
    target = out[first_y:last_y, first_x:last_x]
    opaque = not has_alpha or state["pixel blend mode"] == 0 or state["zpos"] == 0
    if opaque and state["alpha"] == 0xFFFF:
        target[:] = part[..., :3]
        return
    alpha = part[..., 3:].astype(numpy.uint32) if not opaque else numpy.uint32(255)
    alpha = alpha * state["alpha"] // 0xFFFF
    colour = part[..., :3].astype(numpy.uint32)
    if state["pixel blend mode"] == 1 and not opaque:
        colour = colour * state["alpha"] // 0xFFFF
    else:
        colour = colour * alpha // 255
    mixed = colour + (255 - alpha) * target.astype(numpy.uint32) // 255
    target[:] = numpy.minimum(mixed, 255).astype(numpy.uint8)


def _samples(start: int, end: int, size: int, source: int, source_size: int) -> Pixels:
    """Which source pixel each pixel shows; source in 16.16 fixed point."""
    places = numpy.arange(start, end, dtype=numpy.uint64)
    step = (2 * places + 1) * numpy.uint64(source_size) // numpy.uint64(2 * size)
    return ((step + numpy.uint64(source)) >> numpy.uint64(16)).astype(numpy.int64)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
