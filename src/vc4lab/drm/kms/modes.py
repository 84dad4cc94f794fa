"""Display modes: struct drm_mode_modeinfo."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vc4lab.drm.uapi.structures import Structure

MODE_FIELDS = (
    "u32 clock, u16 hdisplay, u16 hsync_start, u16 hsync_end, u16 htotal, u16 hskew, "
    "u16 vdisplay, u16 vsync_start, u16 vsync_end, u16 vtotal, u16 vscan, u32 vrefresh, "
    "u32 mflags, u32 mtype, char[32] mname"
)
CRTC_FIELDS = (
    "u64 set_connectors_ptr, u32 count_connectors, u32 crtc_id, u32 fb_id, u32 x, u32 y, "
    "u32 gamma_size, u32 mode_valid, " + MODE_FIELDS
)
"""Of GETCRTC and SETCRTC."""
MODE = Structure("drm_mode_modeinfo", MODE_FIELDS)
PREFERRED, DRIVER = 1 << 3, 1 << 6
POSITIVE_H, NEGATIVE_H, POSITIVE_V, NEGATIVE_V = 1, 2, 4, 8
MAX_SIDE = 2048
"""Of what the display shows and of frame buffers: Linux's limit for the HVS of a Pi 1 to 3."""

_SIZE = re.compile(r"(\d+)x(\d+)(?:@(\d+))?")


@dataclass(frozen=True)
class Mode:
    """One timing. Totals include blanking; `clock` in kHz."""

    width: int
    height: int
    refresh: int = 60
    clock: int = 0
    horizontal: tuple[int, int, int] = (0, 0, 0)
    """Start and end of the sync pulse, total."""
    vertical: tuple[int, int, int] = (0, 0, 0)
    flags: int = POSITIVE_H | POSITIVE_V

    def values(self, *, preferred: bool = False) -> Any:
        """As programs read it."""
        return MODE.make(
            clock=self.clock, hdisplay=self.width, hsync_start=self.horizontal[0],
            hsync_end=self.horizontal[1], htotal=self.horizontal[2], vdisplay=self.height,
            vsync_start=self.vertical[0], vsync_end=self.vertical[1], vtotal=self.vertical[2],
            vrefresh=self.refresh, mflags=self.flags,
            mtype=DRIVER | (PREFERRED if preferred else 0),
            mname=f"{self.width}x{self.height}".encode(),
        )  # fmt: skip


def reduced(width: int, height: int, refresh: int = 60) -> Mode:
    """A timing with little blanking, for sizes that no standard lists."""
    across, down = width + 160, height + max(3 + 4 + 6, height // 40)
    return Mode(
        width, height, refresh, across * down * refresh // 1000,
        (width + 48, width + 80, across), (height + 3, height + 7, down),
        POSITIVE_H | NEGATIVE_V,
    )  # fmt: skip


STANDARD = (
    Mode(1280, 720, 60, 74250, (1390, 1430, 1650), (725, 730, 750)),
    Mode(1920, 1080, 60, 148500, (2008, 2052, 2200), (1084, 1089, 1125)),
    Mode(1024, 768, 60, 65000, (1048, 1184, 1344), (771, 777, 806), NEGATIVE_H | NEGATIVE_V),
    Mode(800, 600, 60, 40000, (840, 968, 1056), (601, 605, 628)),
    Mode(640, 480, 60, 25175, (656, 752, 800), (490, 492, 525), NEGATIVE_H | NEGATIVE_V),
)
"""What the connector offers; the first one is preferred. CEA-861 and VESA timings."""


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
        known = (m for m in STANDARD if (m.width, m.height, m.refresh) == (width, height, refresh))
        modes.append(next(known, None) or reduced(width, height, refresh))
    return tuple(modes)


def modes_of(modes: Sequence[Mode] | str) -> tuple[Mode, ...]:
    """Modes given as text or one by one; none is no screen. Raises ValueError, TypeError."""
    made = parse_modes(modes) if isinstance(modes, str) else tuple(modes)
    for mode in made:
        if not isinstance(mode, Mode):
            raise TypeError(
                f"modes are a text such as 800x600@75 or Mode objects, not {mode!r:.60}"
            )
    return made


def refresh_of(mode: Any) -> float:
    """Pictures a second of a mode, as exactly as its clock says."""
    pixels = mode.htotal * mode.vtotal
    return mode.clock * 1000.0 / pixels if pixels and mode.clock else mode.vrefresh or 60.0


def problem_of(mode: Any) -> str | None:
    """Why a program's mode cannot be shown; None if it can."""
    if not (0 < mode.hdisplay <= MAX_SIDE and 0 < mode.vdisplay <= MAX_SIDE):
        return f"a mode of {mode.hdisplay}x{mode.vdisplay}"
    across = mode.hdisplay <= mode.hsync_start <= mode.hsync_end <= mode.htotal
    down = mode.vdisplay <= mode.vsync_start <= mode.vsync_end <= mode.vtotal
    if not (across and down and 1.0 <= refresh_of(mode) <= 1000.0):
        return "the mode's timing is invalid"
    return None
