"""The HDMI connector: a monitor is plugged in, another one, or none.

A program sees that at a pin (of the GPIOs or the firmware's expander, by board), in the transmitter
and on the monitor's I2C bus.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from vc4lab.soc.display.hdmi import CONNECTED, Hdmi
from vc4lab.soc.videocore.edid import edid_of

if TYPE_CHECKING:
    from vc4lab.soc.board import Board
    from vc4lab.soc.devices.buses.i2c import Monitor
    from vc4lab.soc.devices.gpio import Gpio
    from vc4lab.soc.videocore.videocore import VideoCore

HOTPLUG_PIN = 4
"""The expander's pin; low while a monitor is connected, as that of the GPIOs."""


def hotplug_pin(board: Board, gpio: Gpio, videocore: VideoCore) -> Callable[[int], None]:
    """Give the function that sets the level of a board's pin that reports a monitor."""

    def drive(level: int) -> None:
        if board.hotplug_gpio is None:
            videocore.expander[HOTPLUG_PIN] = level
        else:
            gpio.drive(board.hotplug_gpio, level)

    return drive


class Connector:
    """Knows what is plugged in.

    Parameters
    ----------
    drive
        Sets the level of the pin.
    """

    def __init__(self, monitor: Monitor, hdmi: Hdmi, drive: Callable[[int], None]) -> None:
        self.monitor = monitor
        self._hdmi = hdmi
        self._drive = drive
        self._drive(0)

    def plug(self, modes: Sequence[tuple[int, int, int]]) -> None:
        """A monitor with these modes: width, height, pictures a second. Raises ValueError."""
        self.monitor.edid = edid_of(modes)
        self._set(True)

    def unplug(self) -> None:
        """No monitor; what programs have set up goes on."""
        self._set(False)

    def _set(self, connected: bool) -> None:
        self.monitor.connected = connected
        self._hdmi.HOTPLUG = CONNECTED if connected else 0
        self._drive(0 if connected else 1)
