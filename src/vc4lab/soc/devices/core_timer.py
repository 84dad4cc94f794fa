"""The 64-bit core timer of the local block: it clocks the generic timers of all cores.

Its source is the crystal or the APB clock, half of the ARM's; the prescaler takes `prescaler` of
2**31 of its ticks, and each counts once or twice. Source: BCM2836 ARM-local peripherals (QA7),
3.1 and 4.1 to 4.3; bits 9 and 8 of the control register are those of Linux's irq-bcm2836.c, too.
"""

from __future__ import annotations

from vc4lab.soc.cores.generic_timer import FREQUENCY, GenericTimer

BY_TWO, APB = 1 << 9, 1 << 8


class CoreTimer:
    """The counter that all generic timers show.

    Parameters
    ----------
    timers
        Those of the cores.
    arm_clock
        Hz.
    """

    def __init__(self, timers: list[GenericTimer], arm_clock: int) -> None:
        self._timers = timers
        self._apb_clock = arm_clock // 2

    @property
    def count(self) -> int:
        """The count now."""
        return self._timers[0].count

    def write(self, count: int) -> None:
        """Go on from another count."""
        for timer in self._timers:
            timer.write_count(count)

    def clock(self, control: int, prescaler: int) -> None:
        """Count from now on as the registers CONTROL and PRESCALER say."""
        source = self._apb_clock if control & APB else FREQUENCY
        step = 2 if control & BY_TWO else 1
        for timer in self._timers:
            timer.write_prescaler(prescaler * source * step // FREQUENCY)
