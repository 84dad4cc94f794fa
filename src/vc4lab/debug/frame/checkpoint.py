"""A moment of a frame between two jobs, to which its memory and V3D go back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from vc4lab.debug.kept_memory import KeptMemory
from vc4lab.jobs.model import PowerCame
from vc4lab.jobs.player import FrameResult
from vc4lab.jobs.start import begin_with, start_of
from vc4lab.v3d.state.power_on import is_idle

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vc4lab.jobs.player import JobsPlayer


class Counts(NamedTuple):
    """How far a run of a frame has come: events, binning lists, their draws, jobs that were drawn."""

    events: int = 0
    binnings: int = 0
    draws: int = 0
    jobs: int = 0


@dataclass(frozen=True)
class Checkpoint:
    """Keeps the memory that the frame writes, as it was at one moment, and the state of the V3D.

    Attributes
    ----------
    counts
        What had run before.
    saved
        The memory that the frame writes.
    state
        As `start_of` has it.
    """

    counts: Counts
    saved: KeptMemory
    state: dict[str, Any]

    @classmethod
    def of(cls, player: JobsPlayer, counts: Counts, ranges: Iterable[tuple[int, int]]) -> Checkpoint | None:
        """The moment at hand; None: a list or a program is under way."""
        if not is_idle(player.v3d):
            return None
        return cls(counts, KeptMemory(player.memory).take(ranges), start_of(player.v3d))

    def restore(self, player: JobsPlayer, file: str) -> None:
        """Bring memory and V3D back."""
        self.saved.put_back()
        player.do(PowerCame(), FrameResult())
        begin_with(player.v3d, self.state, file)
