"""Display timings: what of a line and a picture is blank, and how fast pixels come.

Sources: CEA-861, VESA Display Monitor Timing standard, VESA Coordinated Video Timings 1.2
(reduced blanking).
"""

from __future__ import annotations

from dataclasses import dataclass

POSITIVE_H, NEGATIVE_H, POSITIVE_V, NEGATIVE_V = 1, 2, 4, 8
"""Polarity of the sync pulses, in Linux's bits."""
BLANK_COLUMNS, COLUMNS_BEFORE, SYNC_COLUMNS = 160, 48, 32
LINES_BEFORE, LINES_AFTER = 3, 6
BLANK_MICROSECONDS = 460.0
SYNC_LINES = {(4, 3): 4, (16, 9): 5, (16, 10): 6, (5, 4): 7, (15, 9): 7}
"""By the picture's sides; others have `OTHER_SYNC_LINES`."""
OTHER_SYNC_LINES = 10


@dataclass(frozen=True)
class Timing:
    """One timing. Totals include blanking; `clock` in kHz."""

    width: int
    height: int
    refresh: int = 60
    clock: int = 0
    horizontal: tuple[int, int, int] = (0, 0, 0)
    """Start and end of the sync pulse, total."""
    vertical: tuple[int, int, int] = (0, 0, 0)
    flags: int = POSITIVE_H | POSITIVE_V

    @property
    def mode(self) -> tuple[int, int, int]:
        """Width, height, pictures a second."""
        return self.width, self.height, self.refresh


_NEGATIVE, _LOWER = NEGATIVE_H | NEGATIVE_V, NEGATIVE_H | POSITIVE_V
STANDARD = {
    timing.mode: timing
    for timing in (
        Timing(640, 480, 60, 25175, (656, 752, 800), (490, 492, 525), _NEGATIVE),
        Timing(720, 480, 60, 27000, (736, 798, 858), (489, 495, 525), _NEGATIVE),
        Timing(720, 576, 50, 27000, (732, 796, 864), (581, 586, 625), _NEGATIVE),
        Timing(800, 600, 60, 40000, (840, 968, 1056), (601, 605, 628)),
        Timing(800, 600, 75, 49500, (816, 896, 1056), (601, 604, 625)),
        Timing(1024, 768, 60, 65000, (1048, 1184, 1344), (771, 777, 806), _NEGATIVE),
        Timing(1024, 768, 75, 78750, (1040, 1136, 1312), (769, 772, 800)),
        Timing(1280, 720, 50, 74250, (1720, 1760, 1980), (725, 730, 750)),
        Timing(1280, 720, 60, 74250, (1390, 1430, 1650), (725, 730, 750)),
        Timing(1280, 800, 60, 83500, (1352, 1480, 1680), (803, 809, 831), _LOWER),
        Timing(1280, 1024, 60, 108000, (1328, 1440, 1688), (1025, 1028, 1066)),
        Timing(1366, 768, 60, 85500, (1436, 1579, 1792), (771, 774, 798)),
        Timing(1440, 900, 60, 106500, (1520, 1672, 1904), (903, 909, 934), _LOWER),
        Timing(1600, 1200, 60, 162000, (1664, 1856, 2160), (1201, 1204, 1250)),
        Timing(1680, 1050, 60, 146250, (1784, 1960, 2240), (1053, 1059, 1089), _LOWER),
        Timing(1920, 1080, 24, 74250, (2558, 2602, 2750), (1084, 1089, 1125)),
        Timing(1920, 1080, 25, 74250, (2448, 2492, 2640), (1084, 1089, 1125)),
        Timing(1920, 1080, 30, 74250, (2008, 2052, 2200), (1084, 1089, 1125)),
        Timing(1920, 1080, 50, 148500, (2448, 2492, 2640), (1084, 1089, 1125)),
        Timing(1920, 1080, 60, 148500, (2008, 2052, 2200), (1084, 1089, 1125)),
    )
}
"""Timings that a standard lists, by width, height and rate."""


def timing_of(width: int, height: int, refresh: int = 60) -> Timing:
    """The timing of a mode: that of a standard, else one with reduced blanking."""
    known = STANDARD.get((width, height, refresh))
    return known if known is not None else reduced(width, height, refresh)


def reduced(width: int, height: int, refresh: int = 60) -> Timing:
    """A timing with little blanking, for sizes that no standard lists."""
    sides = (one for one in SYNC_LINES if width * one[1] == height * one[0])
    sync = SYNC_LINES.get(next(sides, (0, 0)), OTHER_SYNC_LINES)
    line = (1e6 / refresh - BLANK_MICROSECONDS) / height
    blank = max(LINES_BEFORE + sync + LINES_AFTER, int(BLANK_MICROSECONDS / line) + 1)
    across, down = width + BLANK_COLUMNS, height + blank
    begin, top = width + COLUMNS_BEFORE, height + LINES_BEFORE
    return Timing(
        width, height, refresh, across * down * refresh // 1000,
        (begin, begin + SYNC_COLUMNS, across), (top, top + sync, down),
        POSITIVE_H | NEGATIVE_V,
    )  # fmt: skip
