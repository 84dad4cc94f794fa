"""The screen's contents: the state of its planes, as the composer takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.drm.kms import objects as o
from vc4lab.scanout.composer import Plane, Shown
from vc4lab.scanout.formats import T_TILED

if TYPE_CHECKING:
    from vc4lab.drm.kms.screen import FrameBuffer, Screen

REFLECT_X, REFLECT_Y, ROTATE_180 = 16, 32, 4


def shown_by(screen: Screen) -> Shown | None:
    """Give what the screen shows now; None while it is off."""
    mode = screen.mode
    if mode is None or not screen.crtc.state["ACTIVE"]:
        return None
    planes = []
    for plane in sorted(screen.planes, key=lambda plane: (plane.state["zpos"], plane.id)):
        frame = screen.frame_buffer_of(plane)
        if frame is not None:
            planes.append(_plane(frame, plane.state))
    colours = screen.colours
    return Shown(mode.hdisplay, mode.vdisplay, tuple(planes), colours.gamma, matrix=colours.matrix)


def _plane(frame: FrameBuffer, state: dict[str, int]) -> Plane:
    rotation = state["rotation"]
    turned = bool(rotation & ROTATE_180)
    return Plane(
        frame.buffer.address + frame.offset,
        frame.pitch,
        frame.width,
        frame.height,
        frame.format,
        frame.modifier == T_TILED,
        (state["SRC_X"], state["SRC_Y"], state["SRC_W"], state["SRC_H"]),
        (o.signed(state["CRTC_X"]), o.signed(state["CRTC_Y"]), state["CRTC_W"], state["CRTC_H"]),
        state["alpha"] >> 8,
        state["pixel blend mode"],
        (turned != bool(rotation & REFLECT_X), turned != bool(rotation & REFLECT_Y)),
    )
