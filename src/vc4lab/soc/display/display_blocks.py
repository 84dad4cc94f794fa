"""The blocks of the display, connected: HVS, pixel valves, TXP and the outputs.

The HVS composes a picture for each channel that a pixel valve takes; TXP takes one, too, and writes
it to memory.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from vc4lab.soc.devices.clock_manager import GENERATORS, ClockManager, Plls
from vc4lab.soc.display.analogue import CLOCKS_PER_PIXEL, Vec
from vc4lab.soc.display.hdmi import Hd, Hdmi
from vc4lab.soc.display.hvs import Hvs
from vc4lab.soc.display.pixel_valve import CHANNELS, PixelValve, PixelValve2
from vc4lab.soc.display.transposer import Txp

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.diagnostics.unknown import Unknowns
    from vc4lab.memory import GuestMemory
    from vc4lab.soc.address.block import Block
    from vc4lab.soc.clock import Clock
    from vc4lab.soc.devices.interrupts import InterruptController


class DisplayBlocks:
    """The blocks that programs drive that do not leave the display to the firmware.

    Parameters
    ----------
    base
        The address of the peripherals.
    core_clock
        In Hz: TXP's clock.

    Attributes
    ----------
    valves
        Pixel valves by their channels of the HVS.
    blocks
        All of them, for the bus.
    """

    def __init__(
        self,
        memory: GuestMemory,
        reporter: Reporter,
        clock: Clock,
        interrupts: InterruptController,
        plls: Plls,
        clocks: ClockManager,
        base: int,
        core_clock: int,
        unknowns: Unknowns,
    ) -> None:
        self._plls, self._clocks = plls, clocks
        self.hvs = Hvs(memory, reporter, base + Hvs.OFFSET, unknowns)
        self.valves: dict[int, PixelValve] = {
            channel: kind(
                clock,
                interrupts,
                self._hertz if kind is PixelValve2 else lambda: 0.0,
                partial(self.hvs.picture, channel),
            )
            for kind, channel in CHANNELS.items()
        }
        self.hvs.line = lambda channel: self.valves[channel].line
        self.txp = Txp(memory, self.hvs, clock, interrupts, reporter, lambda: float(core_clock), unknowns)
        self.hdmi = Hdmi()
        self.blocks: tuple[Block, ...] = (
            self.hvs,
            *self.valves.values(),
            self.hdmi,
            Hd(),
            Vec(reporter),
            self.txp,
        )

    def _hertz(self) -> float:
        """The clock of pixel valve 2: VEC's or HDMI's."""
        if self.valves[CHANNELS[PixelValve2]].is_analogue:
            return self._clocks.frequency(GENERATORS["VEC"]) / CLOCKS_PER_PIXEL
        return self._plls.channel("PLLH", "PIX")
