"""A moment of a frame between two jobs, to which its memory and V3D go back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

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
        Guest address and bytes.
    state
        As `start_of` has it.
    """

    counts: Counts
    saved: tuple[tuple[int, bytes], ...]
    state: dict[str, Any]

    @classmethod
    def of(cls, player: JobsPlayer, counts: Counts, ranges: Iterable[tuple[int, int]]) -> Checkpoint | None:
        """The moment at hand; None: a list or a program is under way."""
        if not is_idle(player.v3d):
            return None
        saved = tuple((address, player.memory.read(address, size)) for address, size in ranges)
        return cls(counts, saved, start_of(player.v3d))

    def restore(self, player: JobsPlayer, file: str) -> None:
        """Bring memory and V3D back."""
        for address, data in self.saved:
            player.memory.write(address, data)
        player.do(PowerCame(), FrameResult())
        begin_with(player.v3d, self.state, file)
