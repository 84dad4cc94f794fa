"""Input of keys and pointer movements, from a window or from Python."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from vc4lab.drm.input.devices import (
    PRESSED,
    RELEASED,
    Change,
    EvdevDevice,
    EvdevFile,
    make_keyboard,
    make_pointer,
)
from vc4lab.drm.input.ioctls import EvdevIoctls
from vc4lab.drm.supervisor.answers import Caller
from vc4lab.drm.uapi import evdev as e
from vc4lab.ranges import KEY, PLACE, STEPS

_MAX_VALUE = 0x7FFFFFFF


class Input:
    """A keyboard (event0) and a pointer (event1).

    `key`, `motion`, `button` and `wheel` may be called from any thread, before the programs start,
    too: keys that are held then are held when they open the device. Codes are Linux's (KEY_A is 30,
    BTN_LEFT 0x110); those that the devices do not have are left out. What is no code or place at
    all raises ValueError or TypeError.

    Parameters
    ----------
    wake
        Called when there is something for the supervisor's thread to do.
    screen
        Pixels of the screen: then the pointer says places on it (absolute), as a tablet does. Else
        it says how far it moved, as a mouse does: games that turn with the mouse need that.
    """

    def __init__(
        self, wake: Callable[[], None] = lambda: None, screen: tuple[int, int] | None = None
    ) -> None:
        self.keyboard = make_keyboard()
        self.pointer = make_pointer(size=screen)
        self.devices = (self.keyboard, self.pointer)
        self.ioctls = EvdevIoctls()
        self.nodes = {device.node: device for device in self.devices}
        self._absolute = screen is not None
        self._wake = wake
        self._queue: deque[tuple[EvdevDevice, list[Change], int]] = deque()
        self._place = [0, 0]

    # -- in ----------------------------------------------------------------------------------------

    def key(self, code: int, pressed: bool) -> None:
        """A key of the keyboard goes down or up."""
        code = KEY.check(code)
        self._put(self.keyboard, [(e.EV_KEY, code, PRESSED if pressed else RELEASED)])

    def motion(self, x: float, y: float) -> None:
        """The pointer is at a pixel of the picture, counted from its upper left corner.

        A mouse moves by the difference to the last place (at first 0, 0), so that places outside
        of the picture are good, too.
        """
        place = [round(PLACE.check(x)), round(PLACE.check(y))]
        if self._absolute:
            axes = self.pointer.axes
            changes = [
                (e.EV_ABS, axis, min(max(value, axes[axis].minimum), axes[axis].maximum))
                for axis, value in enumerate(place)
            ]
        else:
            changes = [(e.EV_REL, axis, value - self._place[axis]) for axis, value in enumerate(place)]
        self._place = place
        self._put(self.pointer, changes)

    def button(self, code: int, pressed: bool) -> None:
        """A button of the pointer goes down or up."""
        code = KEY.check(code)
        self._put(self.pointer, [(e.EV_KEY, code, PRESSED if pressed else RELEASED)])

    def wheel(self, steps: int) -> None:
        """The wheel turns, away from the hand for positive steps."""
        steps = STEPS.check(steps)
        self._put(
            self.pointer,
            [(e.EV_REL, e.REL_WHEEL, steps), (e.EV_REL, e.REL_WHEEL_HI_RES, steps * e.WHEEL_STEP)],
        )

    def _put(self, device: EvdevDevice, changes: list[Change]) -> None:
        changes = [(kind, code, min(max(value, -_MAX_VALUE), _MAX_VALUE)) for kind, code, value in changes]
        self._queue.append((device, changes, time.monotonic_ns()))
        self._wake()

    # -- for the device, in the supervisor's thread ------------------------------------------------

    def open(self, node: str, caller: Caller) -> EvdevFile:
        """Open a node."""
        self.flush()
        return EvdevFile(self.nodes[node], caller.process, caller.name)

    def ioctl(self, file: EvdevFile, caller: Caller, request: int, argument: int) -> int:
        """Answer an ioctl. Raises Refused."""
        self.flush()
        return self.ioctls.answer(file, caller, request, argument)

    def take_written(self, file: EvdevFile) -> bool:
        """Take what a program wrote; False when its last descriptor is gone."""
        changes = file.take_written()
        if changes is None:
            return False
        if not file.is_revoked and file.device.grab in (None, file):
            together: list[Change] = []
            for change in [*changes, e.REPORT]:
                if change == e.REPORT:
                    file.device.send(together, time.monotonic_ns())
                    together = []
                else:
                    together.append(change)
        return True

    def next_event(self) -> float | None:
        """When `tick` must be called."""
        if self._queue:
            return 0.0
        moments = [device.repeat_at for device in self.devices]
        moments += [file.retry_at for device in self.devices for file in device.files]
        return min((moment for moment in moments if moment is not None), default=None)

    def tick(self, now: float) -> None:
        """Hand on what came in, and repeat keys."""
        self.flush()
        for device in self.devices:
            device.tick(now)
            for file in device.files:
                file.retry(now)

    def flush(self) -> None:
        """Hand on what came in."""
        while self._queue:
            device, changes, moment = self._queue.popleft()
            device.send(changes, moment)
