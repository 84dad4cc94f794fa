"""What a user program sees in the golden interpreter while its way is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vc4lab.memory.streams import Stream, StreamMemory
from vc4lab.v3d.user_programs.environment import UserEnvironment
from vc4lab.v3d.user_programs.recording.format import MAX_LINES, Kind, header
from vc4lab.v3d.user_programs.state import Setups
from vc4lab.v3d.user_programs.watching.environment import WatchedEnvironment

if TYPE_CHECKING:
    from vc4lab.v3d.tmu.state import TextureDescriptor, TextureKind
    from vc4lab.v3d.vpm.golden import Lanes, Words


class RecordedEnvironment(UserEnvironment):
    """As `UserEnvironment`; `record` has what `format.py` describes."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.record: list[int] = []
        self._lines: StreamMemory | None = None

    def _note(self, kind: Kind, *words: int, unit: int = 0, site: int | None = None) -> None:
        self.record.append(header(self.site if site is None else site, kind, unit))
        self.record += words

    def branched(self, site: int, target: Any) -> None:
        if target is None:
            self._note(Kind.STRAIGHT, site=site)
        else:
            self._note(Kind.TAKEN, int(target) & 0xFFFFFFFF, site=site)

    def uniforms_address(self, value: Words, relative: bool, mask: Lanes) -> None:
        super().uniforms_address(value, relative, mask)
        self._note(Kind.UNIFORMS, self.stream)

    def vpm_setup(self, side: str, value: Words) -> None:
        if side == "read":
            self._note(Kind.READ_SETUP, int(value[0]))
        super().vpm_setup(side, value)

    def dma_start(self, side: str, value: Words) -> None:
        setups = Setups.of(self.state)
        if side == "read":
            self._note(Kind.LOAD, int(value[0]), setups.load, setups.pitch)
        else:
            self._note(Kind.STORE, int(value[0]), setups.store, setups.gap)
        super().dma_start(side, value)

    def tmu_noswap(self, value: Words) -> None:
        self._note(Kind.NOSWAP, int(value[0]))
        super().tmu_noswap(value)

    def _look_up(self, unit: int, value: Words) -> None:
        self._note(Kind.LOOKUP, *(int(word) for word in value), unit=unit)
        super()._look_up(unit, value)

    def _texels(
        self,
        unit: int,
        kind: TextureKind,
        descriptor: TextureDescriptor,
        coordinates: list[Words],
    ) -> Words:
        from vc4lab.v3d.tmu.kernels import sample_recorded

        if self._lines is None:
            self._lines = StreamMemory(Stream(), 4 * MAX_LINES)
        self._lines.clear()
        found = sample_recorded(kind, descriptor, self.memory, coordinates, self._lines)
        lines = memoryview(self._lines.content).cast("I")
        self._note(Kind.TEXTURE, self.parameters[unit][0], len(lines), *lines, unit=unit)
        return found


class RecordedWatchedEnvironment(RecordedEnvironment, WatchedEnvironment):
    """Both recorded and watched."""
