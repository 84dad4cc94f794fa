"""Polls as Python sees them: kept while other cores have their turns, saved, checked."""

from __future__ import annotations

from vc4lab.soc.address.polling import (
    COUNTS,
    FAR_POLL,
    NO_REGISTER,
    PATIENCE,
    POLLED_TOGETHER,
    POLLS_BEFORE_SKIP,
    PollState,
)
from vc4lab.soc.clock import Clock
from vc4lab.soc.native import words_of

POLLS, PATIENT, KNOWN, SLOT = (
    getattr(PollState, name).offset // 8 for name in ("polls", "patience", "known", "slot")
)
LAST_COUNT, TIMER_COUNT = PollState.last_count.offset // 8, PollState.timer_count.offset // 8
TIMER, SEEN = PollState.timer.offset // 8, PollState.seen.offset // 8
LOOKED = PollState.looked.offset // 8
"""Members of the state, as `words_of` numbers them."""

LARGEST = 1 << 61
"""Counts of instructions in a saved state are below this."""


def _nothing(patience: int) -> PollState:
    state = PollState(patience=patience, timer=NO_REGISTER)
    state.seen = [NO_REGISTER] * POLLED_TOGETHER
    return state


class Polls:
    """The polls of the core whose turn it is, on all its buses.

    Attributes
    ----------
    address
        The host's address of the `PollState`.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._state = _nothing(patience=0)
        self._words = words_of(self._state)
        self._bytes = memoryview(self._state).cast("B")
        self.fresh = bytes(_nothing(POLLS_BEFORE_SKIP))
        """The words of a core that polls nothing."""
        self.address: int = self._state.address

    def exchange(self, kept: bytes | None) -> bytes:
        """Another core's turn: take up what it polls (None: nothing yet), give back the old."""
        words, count = self._words, self._clock.counter.count
        words[LAST_COUNT] -= count
        words[TIMER_COUNT] -= count
        old = bytes(self._bytes)
        self._bytes[:] = kept or self.fresh
        words[LAST_COUNT] += count
        words[TIMER_COUNT] += count
        return old

    def forget(self) -> None:
        """The core sleeps, so that it does not poll."""
        self._bytes[:] = self.fresh

    @property
    def waits(self) -> bool:
        """Whether the core does nothing but poll."""
        words = self._words
        recent = self._clock.counter.count - words[LAST_COUNT] < 2 * FAR_POLL
        return words[POLLS] > PATIENCE and recent

    @property
    def measures_time(self) -> bool:
        """Whether a timer is among what is polled, or the program counts its looks."""
        words = self._words
        return words[TIMER] != NO_REGISTER or words[LOOKED] == COUNTS

    def polls(self, address: int) -> bool:
        """Whether a register is among what is polled."""
        return address in self._words[SEEN : SEEN + self._words[KNOWN]]

    @property
    def kept(self) -> bytes:
        """The state as it is saved and restored."""
        return bytes(self._bytes)

    @kept.setter
    def kept(self, saved: bytes) -> None:
        self._bytes[:] = saved


def checked(saved: bytes) -> bytes:
    """A saved `PollState` whose registers stay inside of it. Raises ValueError."""
    if len(saved) != PollState.size:
        raise ValueError("no poll state")
    words = memoryview(saved).cast("q")
    counts = words[LAST_COUNT], words[TIMER_COUNT], words[POLLS]
    inside = 0 <= words[KNOWN] <= POLLED_TOGETHER and 0 <= words[SLOT] < POLLED_TOGETHER
    if not inside or not COUNTS <= words[LOOKED] <= POLLED_TOGETHER:
        raise ValueError("no poll state")
    if not 0 <= words[PATIENT] <= PATIENCE:
        raise ValueError("no poll state")
    if any(abs(count) > LARGEST for count in counts):
        raise ValueError("no poll state")
    return saved


def polled_last(kept: bytes | None) -> int | None:
    """The register that a core began to poll last, given what `Polls.exchange` has kept of it."""
    if kept is None:
        return None
    words = memoryview(kept).cast("q")
    if words[POLLS] <= PATIENCE or not words[KNOWN]:
        return None
    found: int | None = words[SEEN + words[KNOWN] - 1]
    return found
