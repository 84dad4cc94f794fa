"""Pixel valves (P + 0x206000, 0x207000, 0x807000): a display's timing, and its vertical blank.

Sources: Linux, drivers/gpu/drm/vc4/vc4_regs.h and vc4_crtc.c, whose names these are.
"""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.registers import Register
from vc4lab.soc.address.block import Block
from vc4lab.soc.clock import NANOSECONDS, Clock, Event
from vc4lab.soc.devices.interrupts import InterruptController

ENABLE, VIDEO_ENABLE, INTERLACE = 1 << 0, 1 << 0, 1 << 4
VEC_CLOCK = 2
"""CONTROL's choice of a clock, for the encoder of analogue video."""
VERTICAL = 0x1F0
"""Interrupts that come once a picture: sync, back porch, active, front porch and its end."""
USUAL_RATE = 60
LONGEST_NS, SHORTEST_NS = NANOSECONDS, NANOSECONDS // 500
"""No register makes pictures come more seldom or more often."""


def _halves(value: int) -> tuple[int, int]:
    return value >> 16, value & 0xFFFF


class PixelValve(Block):
    """Takes pixels out of a channel of the HVS, at the clock of its display.

    Parameters
    ----------
    hertz
        The pixel clock; 0 where it is not known.
    picture
        Called at the end of each picture's active lines.
    """

    LINE = 0
    CONTROL = Register(0x00, fields="3:2 clock, 1 clear, 0 enable", then="_update")
    V_CONTROL = Register(0x04, fields="4 interlace, 1 continuous, 0 enable", then="_update")
    VSYNCD_EVEN = Register(0x08)
    HORZA = Register(0x0C, fields="31:16 back porch, 15:0 sync")
    HORZB = Register(0x10, fields="31:16 front porch, 15:0 active")
    VERTA = Register(0x14, fields="31:16 back porch, 15:0 sync")
    VERTB = Register(0x18, fields="31:16 front porch, 15:0 active")
    VERTA_EVEN = Register(0x1C)
    VERTB_EVEN = Register(0x20)
    INTEN = Register(0x24, bits=0x3FF, then="_raise")
    INTSTAT = Register(0x28, access="w1c", bits=0x3FF, then="_raise")
    STAT = Register(0x2C, access="r")
    HACT_ACT = Register(0x30)

    def __init__(
        self,
        clock: Clock,
        interrupts: InterruptController,
        hertz: Callable[[], float],
        picture: Callable[[], None],
    ) -> None:
        super().__init__()
        self._clock = clock
        self._interrupts = interrupts
        self._hertz = hertz
        self._picture = picture
        self._event: Event | None = None
        self._began = 0
        """When the last vertical blank began (ns)."""
        self._even = False
        """Whether the even field of an interlaced picture is sent."""

    @property
    def runs(self) -> bool:
        """Whether it sends pictures."""
        return bool(self.CONTROL & ENABLE and self.V_CONTROL & VIDEO_ENABLE)

    @property
    def is_analogue(self) -> bool:
        """Whether it goes by the clock of VEC."""
        return self.CONTROL >> 2 & 3 == VEC_CLOCK

    @property
    def lines(self) -> tuple[int, int]:
        """Lines of the blank and of the picture, or of the field that is sent."""
        first, second = self.VERTA, self.VERTB
        if self._even:
            first, second = self.VERTA_EVEN, self.VERTB_EVEN
        (back, sync), (front, active) = _halves(first), _halves(second)
        return front + sync + back, active

    @property
    def period(self) -> int:
        """Nanoseconds of a picture."""
        (back, sync), (front, active) = _halves(self.HORZA), _halves(self.HORZB)
        pixels = (back + sync + front + active) * sum(self.lines)
        hertz = self._hertz()
        time = pixels * NANOSECONDS / hertz if hertz else NANOSECONDS / USUAL_RATE
        return max(SHORTEST_NS, min(int(time), LONGEST_NS))

    @property
    def line(self) -> int:
        """The line that is sent now, 0 in the blank."""
        blank, active = self.lines
        passed = (self._clock.now - self._began) * (blank + active) // self.period
        return max(0, min(passed - blank + 1, active)) if self.runs else 0

    def _update(self) -> None:
        if self.runs and self._event is None:
            self._began = self._clock.now
            self._schedule()
        elif not self.runs and self._event is not None:
            self._event.cancel()
            self._event = None

    def _schedule(self) -> None:
        self._event = self._clock.after(self.period, self.blank, lambda: not self.INTEN)

    def blank(self) -> None:
        """The vertical blank begins."""
        self._began = self._clock.now
        self._even = bool(self.V_CONTROL & INTERLACE) and not self._even
        self.INTSTAT |= VERTICAL
        self._schedule()
        self._picture()
        self._raise()

    def _raise(self) -> None:
        self._interrupts.set_line(self.LINE, bool(self.INTSTAT & self.INTEN))


class PixelValve0(PixelValve):
    """The valve of DSI 0 and DPI."""

    NAME, OFFSET, LINE = "pv0", 0x206000, 45


class PixelValve1(PixelValve):
    """The valve of DSI 1 and SMI."""

    NAME, OFFSET, LINE = "pv1", 0x207000, 46


class PixelValve2(PixelValve):
    """The valve of HDMI, and of VEC."""

    NAME, OFFSET, LINE = "pv2", 0x807000, 42


CHANNELS = {PixelValve0: 0, PixelValve1: 2, PixelValve2: 1}
"""Which channel of the HVS a pixel valve takes its pixels from."""
