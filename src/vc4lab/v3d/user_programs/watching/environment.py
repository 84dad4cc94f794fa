"""What a user program sees in the golden interpreter while it is watched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.qpu.isa.hazards import MAX_DISTANCE
from vc4lab.v3d.user_programs.environment import UserEnvironment
from vc4lab.v3d.user_programs.state import Setups

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.unknowns import Unknowns
    from vc4lab.v3d.user_programs.state import SharedState
    from vc4lab.v3d.user_programs.watching.watch import Watch, Watched
    from vc4lab.v3d.vpm.golden import Lanes, Words
    from vc4lab.v3d.vpm.shader_rows import GenericSetup


class Halted(Exception):  # noqa: N818 - a state of the program
    """The program must not go on after what was noticed."""


class WatchedEnvironment(UserEnvironment):
    """One QPU, as `UserEnvironment`; `watch` gets everything that may be wrong."""

    def __init__(
        self,
        shared: SharedState,
        memory: GuestMemory,
        number: int,
        uniforms: int,
        length: int | None,
        unknowns: Unknowns,
        watch: Watch,
        watched: Watched,
    ) -> None:
        super().__init__(shared, memory, number, uniforms, length, unknowns)
        self.watch = watch
        self.watched = watched
        self.trail: list[int] = []  # the instructions executed last, the newest first

    def _seen(self) -> None:
        if self.watch.stopped:
            raise Halted

    def begin(self, site: int) -> None:
        super().begin(site)
        findings = self.watched.findings
        for number in self.watched.alone.get(site, ()):
            self.watch.broken(findings[number])
        for distance, before, number in self.watched.after.get(site, ()):
            if self.trail[distance - 1 : distance] == [before]:
                self.watch.broken(findings[number])
        self.trail = [site, *self.trail[: MAX_DISTANCE - 1]]
        self._seen()

    def next_uniform(self) -> int:
        self.watch.uniform(self.site, self.stream)
        self._seen()
        return super().next_uniform()

    def uniforms_address(self, value: Words, relative: bool, mask: Lanes) -> None:
        self.watch.moved |= bool(mask[0])
        super().uniforms_address(value, relative, mask)

    def reading(self, setup: GenericSetup, address: int) -> None:
        self.watch.vpm_read(self.site, int(setup), address)
        self._seen()

    def dma_start(self, side: str, value: Words) -> None:
        address, setups = int(value[0]), Setups.of(self.state)
        if side == "read":
            self.watch.loading(setups.load)
            self.watch.load_rows(self.site, setups.load, setups.pitch, address)
        else:
            self.watch.store = self.site
            self.watch.store_rows(self.site, setups.store, setups.gap, address)
        self._seen()
        super().dma_start(side, value)

    def dma_wait(self, side: str) -> None:
        self.watch.waited(side)
        super().dma_wait(side)

    def dma_busy(self, side: str) -> Words:
        self.watch.waited(side)
        return super().dma_busy(side)

    def tmu_write(self, unit: int, register: str, value: Words, mask: Lanes, site: int) -> None:
        if register == "s":
            if self.parameters[unit]:
                self.watch.texture(site, self.parameters[unit][0])
            else:
                lanes = [(lane, int(value[lane])) for lane in range(16) if mask[lane]]
                self.watch.lookup(site, lanes)
            self._seen()
        super().tmu_write(unit, register, value, mask, site)

    def program_end(self) -> None:
        self.watch.ended()
        super().program_end()
