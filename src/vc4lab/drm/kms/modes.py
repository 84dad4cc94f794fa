"""Display modes: struct drm_mode_modeinfo."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from vc4lab.drm.uapi.structures import Structure
from vc4lab.scanout.timings import Timing, timing_of

MODE_FIELDS = (
    "u32 clock, u16 hdisplay, u16 hsync_start, u16 hsync_end, u16 htotal, u16 hskew, "
    "u16 vdisplay, u16 vsync_start, u16 vsync_end, u16 vtotal, u16 vscan, u32 vrefresh, "
    "u32 mflags, u32 mtype, char[32] mname"
)
CRTC_FIELDS = (
    "u64 set_connectors_ptr, u32 count_connectors, u32 crtc_id, u32 fb_id, u32 x, u32 y, "
    "u32 gamma_size, u32 mode_valid, " + MODE_FIELDS
)
"""The structure of GETCRTC and SETCRTC."""
MODE = Structure("drm_mode_modeinfo", MODE_FIELDS)
PREFERRED, DRIVER = 1 << 3, 1 << 6
MAX_SIDE = 2048
"""Largest size of what the display shows and of frame buffers: Linux's limit for a Pi 1 to 3's HVS."""

_SIZE = re.compile(r"(\d+)x(\d+)(?:@(\d+))?")


class Mode(Timing):
    """A timing as programs read it."""

    def values(self, *, preferred: bool = False) -> Any:
        """A struct drm_mode_modeinfo."""
        return MODE.make(
            clock=self.clock, hdisplay=self.width, hsync_start=self.horizontal[0],
            hsync_end=self.horizontal[1], htotal=self.horizontal[2], vdisplay=self.height,
            vsync_start=self.vertical[0], vsync_end=self.vertical[1], vtotal=self.vertical[2],
            vrefresh=self.refresh, mflags=self.flags,
            mtype=DRIVER | (PREFERRED if preferred else 0),
            mname=f"{self.width}x{self.height}".encode(),
        )  # fmt: skip


def mode_of(width: int, height: int, refresh: int = 60) -> Mode:
    """The mode with the timing of a standard, or with reduced blanking."""
    return Mode(**vars(timing_of(width, height, refresh)))


STANDARD = tuple(
    mode_of(width, height)
    for width, height in ((1280, 720), (1920, 1080), (1024, 768), (800, 600), (640, 480))
)
"""Modes that the connector offers; the first one is preferred."""


def parse_modes(text: str) -> tuple[Mode, ...]:
    """Modes from `1280x720,800x600@75`. Raises ValueError."""
    modes = []
    for part in text.split(","):
        match = _SIZE.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{part[:40]!r} is not a mode such as 1280x720 or 800x600@75")
        width, height, refresh = int(match[1]), int(match[2]), int(match[3] or 60)
        if not (64 <= width <= MAX_SIDE and 64 <= height <= MAX_SIDE and 1 <= refresh <= 240):
            raise ValueError(f"{part}: modes have sides of 64 to {MAX_SIDE} pixels, 1 to 240 Hz")
        modes.append(mode_of(width, height, refresh))
    return tuple(modes)


def modes_of(modes: Sequence[Mode] | str) -> tuple[Mode, ...]:
    """Modes given as text or one by one; none is no screen. Raises ValueError, TypeError."""
    made = parse_modes(modes) if isinstance(modes, str) else tuple(modes)
    for mode in made:
        if not isinstance(mode, Mode):
            raise TypeError(f"modes are a text such as 800x600@75 or Mode objects, not {mode!r:.60}")
    return made


def refresh_of(mode: Any) -> float:
    """Pictures a second of a mode, as exactly as its clock says."""
    pixels = mode.htotal * mode.vtotal
    return mode.clock * 1000.0 / pixels if pixels and mode.clock else mode.vrefresh or 60.0


def problem_of(mode: Any) -> str | None:
    """Why a program's mode cannot be shown; None if it can."""
    if not (0 < mode.hdisplay <= MAX_SIDE and 0 < mode.vdisplay <= MAX_SIDE):
        return f"a mode of {mode.hdisplay}x{mode.vdisplay}"
    if not mode.clock:
        return "a mode without a clock"
    across = mode.hdisplay <= mode.hsync_start <= mode.hsync_end <= mode.htotal
    down = mode.vdisplay <= mode.vsync_start <= mode.vsync_end <= mode.vtotal
    if not (across and down and 1.0 <= refresh_of(mode) <= 1000.0):
        return "the mode's timing is invalid"
    return None


def same_picture(first: bytes | None, second: bytes | None) -> bool:
    """Whether two modes, as bytes, need no other timing: whatever they are called. Source: Linux
    drm_modes.c, drm_mode_equal, which compares clocks as picoseconds."""
    if first == second or first is None or second is None:
        return first == second
    one, other = MODE.parse(first), MODE.parse(second)
    for name in MODE.names:
        if name not in ("clock", "vrefresh", "mtype", "mname") and getattr(one, name) != getattr(other, name):
            return False
    return bool(10**9 // (one.clock or 1) == 10**9 // (other.clock or 1))
