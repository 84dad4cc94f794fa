"""Guest time for the V3D: how fast it runs, and the event at which its work becomes visible."""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.soc.clock import LATEST, Clock, Event
from vc4lab.v3d.progress import Progress


class V3DTime:
    """Keeps a V3D's `Progress` on the clock of a machine.

    Parameters
    ----------
    hertz
        Says how fast the V3D runs now.
    changed
        Called when something has become visible.
    """

    def __init__(self, clock: Clock, hertz: Callable[[], int], changed: Callable[[], None]) -> None:
        self._clock = clock
        self._hertz = hertz
        self._changed = changed
        self._event: Event | None = None
        self.progress = Progress(self)

    def now(self) -> int:
        return self._clock.now

    def clock(self) -> int:
        return self._hertz()

    def wake(self, moment: int | None) -> None:
        if self._event is not None:
            self._event.cancel()
            self._event = None
        if moment is not None:
            self._event = self._clock.at(min(moment, LATEST), self._due)

    def skip(self, nanoseconds: int) -> None:
        self._clock.skip(min(nanoseconds, LATEST - self._clock.now))

    def restored(self) -> None:
        """A state is restored, with what was to become visible, but without events."""
        self._event = None
        self.progress.restored()

    def _due(self) -> None:
        self._event = None
        self.progress.show_due()
        self._changed()
