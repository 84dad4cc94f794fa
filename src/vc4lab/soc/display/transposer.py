"""TXP (P + 0x004000), the transposer: it writes a composed picture of the HVS to memory.

Each start takes one picture of the HVS's third channel. Linux shows it as a connector "Writeback".
Sources: Linux, drivers/gpu/drm/vc4/vc4_txp.c (registers, formats), vc4_kms.c (which channel).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

from vc4lab.registers import Register
from vc4lab.scanout.display_unknowns import DEFAULT_UNKNOWNS, Unknowns
from vc4lab.soc.address.block import Block
from vc4lab.soc.clock import NANOSECONDS, Clock, Event

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.memory import GuestMemory
    from vc4lab.soc.devices.interrupts import InterruptController
    from vc4lab.soc.display.hvs import Hvs

LINE, CHANNEL = 11, 2
GO, BUSY, INTERRUPT, ABORT = 1 << 0, 1 << 1, 1 << 2, 1 << 14
TEST, FIELD, DITHER = 1 << 4, 1 << 3, 1 << 13
TILED, TRANSPOSED, LINEAR_TILES = 1 << 5, 1 << 6, 1 << 7
ALPHA_INVERTED, ALPHA = 1 << 12, 1 << 20
PILOT = 0x54 << 24 | 1 << 22
"""The upper bits as they read."""
KEPT = 0x3FFFFC
NOT_DONE = {
    TEST: "a test picture", FIELD: "one field", DITHER: "dithering", TRANSPOSED: "a turned picture",
}  # fmt: skip
ADDRESS, OPAQUE, LARGEST = 0x3FFFFFFF, 0xFF, 4095
PICTURE_NS = NANOSECONDS // 60


class Layout(NamedTuple):
    """A pixel's channels from its highest bits on, and how many bits each has."""

    order: str
    widths: dict[str, int]

    @property
    def bits(self) -> int:
        """Bits of a pixel."""
        return sum(self.widths[name] for name in self.order)


_4444, _565, _8888 = dict.fromkeys("RGBA", 4), {"R": 5, "G": 6, "B": 5}, dict.fromkeys("RGBA", 8)
FORMATS = {
    0: Layout("ABGR", _4444), 1: Layout("ARGB", _4444), 2: Layout("BGRA", _4444),
    3: Layout("RGBA", _4444), 6: Layout("BGR", _565), 7: Layout("RGB", _565),
    8: Layout("BGR", _8888), 9: Layout("RGB", _8888), 12: Layout("ABGR", _8888),
    13: Layout("ARGB", _8888), 14: Layout("BGRA", _8888), 15: Layout("RGBA", _8888),
}  # fmt: skip


class Txp(Block):
    """The writer of composed pictures.

    Parameters
    ----------
    hertz
        Its clock.

    Attributes
    ----------
    written
        Called when memory was written.
    foreign
        What surrounds its writes: models of caches and guards set it.
    """

    NAME = "txp"
    OFFSET = 0x004000
    SIZE = 0x20
    DST_PTR = Register(0x00, doc="bus address")
    DST_PITCH = Register(0x04, doc="bytes; tiles << 7, utiles << 4")
    DIM = Register(0x08, fields="31:16 height, 15:0 width")
    DST_CTRL = Register(
        0x0C,
        fields="20 alpha, 19:16 bytes, 14 abort, 12 invert alpha, 11:8 format, 7 utiles, "
        "6 transpose, 5 tiles, 2 interrupt, 1 busy, 0 go",
    )
    PROGRESS = Register(0x10, access="r", doc="lines written")

    def __init__(
        self,
        memory: GuestMemory,
        hvs: Hvs,
        clock: Clock,
        interrupts: InterruptController,
        reporter: Reporter,
        hertz: Callable[[], float],
        unknowns: Unknowns = DEFAULT_UNKNOWNS,
    ) -> None:
        super().__init__()
        self._memory, self._hvs, self._clock = memory, hvs, clock
        self._interrupts, self._reporter = interrupts, reporter
        self._hertz, self._unknowns = hertz, unknowns
        self._event: Event | None = None
        self._began = 0
        self._told: set[str] = set()
        self.written: Callable[[], None] = lambda: None
        self.foreign: Callable[[], AbstractContextManager[None]] = nullcontext

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture, as `DIM` has them."""
        return self.DIM & 0xFFFF, self.DIM >> 16

    def on_read_DST_CTRL(self) -> int:
        return PILOT | self.DST_CTRL & (KEPT | BUSY)

    def on_write_DST_CTRL(self, value: int) -> None:
        busy = self.DST_CTRL & BUSY
        if value & ABORT and self._event is not None:
            self._event.cancel()
            self._event = None
        if value & ABORT:
            busy = 0
        self.DST_CTRL = value & KEPT & ~(ABORT | BUSY) | busy
        if value & GO and not value & ABORT and not busy:
            self.DST_CTRL |= BUSY
            self._began = self._clock.now
            self._hvs.take_list(CHANNEL)
            self._schedule(self._duration)
        self._raise()

    def on_read_PROGRESS(self) -> int:
        """While it writes, the lines that it may have come to."""
        height = self.size[1]
        if not self.DST_CTRL & BUSY:
            return height
        passed = self._clock.now - self._began
        return min(height * passed // max(self._duration, 1), height)

    @property
    def _duration(self) -> int:
        """Nanoseconds of a picture."""
        width, height = (min(side, LARGEST) for side in self.size)
        if self._unknowns["txp_pace"] == "display":
            return PICTURE_NS
        return max(int(width * height * NANOSECONDS / self._hertz()), 1)

    def _schedule(self, delay: int) -> None:
        self._event = self._clock.after(delay, self.finish, lambda: not self._hvs.is_on(CHANNEL))

    def _raise(self) -> None:
        """The interrupt's line is up whenever it is idle."""
        idle = not self.DST_CTRL & BUSY
        self._interrupts.set_line(LINE, bool(idle and self.DST_CTRL & INTERRUPT))

    def finish(self) -> None:
        """The last line of the picture comes, if the channel composes one."""
        self._event = None
        if not self._hvs.is_on(CHANNEL):
            self._report("it waits for a picture of the HVS's channel 2, which is off")
            self._schedule(PICTURE_NS)
            return
        self._write()
        self.DST_CTRL &= ~BUSY
        self._raise()

    def _report(self, text: str, code: str = "SOC-097", address: int | None = None) -> None:
        if text not in self._told:
            self._told.add(text)
            self._reporter.report(code, text, address=address, block="txp")

    def _write(self) -> None:
        """Write the channel's picture as the registers say."""
        control = self.DST_CTRL
        for bit, name in NOT_DONE.items():
            if control & bit:
                self._report(f"{name} is asked for and not done; the plain picture", "SOC-096")
        layout = FORMATS.get(control >> 8 & 15)
        if layout is None:
            self._report(f"format {control >> 8 & 15} is none; nothing is written")
            return
        composed = self._hvs.size(CHANNEL)
        if self.size != composed:
            sizes = ("{}x{}".format(*size) for size in (self.size, composed))
            self._report("{} pixels are to be written of a picture of {}".format(*sizes))
        width, height = (min(pair) for pair in zip(self.size, composed, strict=True))
        if not width or not height:
            return
        from vc4lab.soc.display import written_picture

        tiling = written_picture.RASTER
        if control & TILED:
            tiling = written_picture.LT if control & LINEAR_TILES else written_picture.T
        place = written_picture.Place(
            self.DST_PTR & ADDRESS, self.DST_PITCH, width, height, layout.bits, tiling
        )
        problem = place.problem(self._memory)
        if problem:
            self._report(f"{problem}; nothing is written", address=place.address)
            return
        pixels = written_picture.packed(
            self._hvs.pixels(CHANNEL)[:height, :width], layout.order, layout.widths, self._alpha
        )
        with self.foreign():
            place.store(self._memory, pixels, control >> 16 & 15)
        self.written()

    @property
    def _alpha(self) -> int:
        """Alpha of every pixel that is written."""
        control = self.DST_CTRL
        stored = control & ALPHA and self._unknowns["txp_alpha"] == "opaque"
        return (OPAQUE if stored else 0) ^ (OPAQUE if control & ALPHA_INVERTED else 0)
