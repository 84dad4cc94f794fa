"""A QPU that runs its user program as native code, resumed whenever it can go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.qpu.run.environment import Unsupported, left_text
from vc4lab.qpu.run.plan import plan
from vc4lab.v3d.user_programs.budget import NATIVE_BUDGET
from vc4lab.v3d.user_programs.needs import need_of
from vc4lab.v3d.user_programs.qpu import Qpu, QpuStart, RunState
from vc4lab.v3d.user_programs.state import Status

if TYPE_CHECKING:
    from vc4lab.v3d.user_programs.code import NativeRegion

SLICE = 1 << 22
"""Instructions after which a looping program lets the others run."""


class NativeQpu(Qpu):
    """Runs until the program ends, waits, or has used its slice."""

    def __init__(self, start: QpuStart, region: NativeRegion) -> None:
        super().__init__(start, NATIVE_BUDGET)
        self.region = region
        self.shared = start.shared

    @property
    def parallel(self) -> bool:
        return not self.source.waits

    def advance(self) -> bool:
        state = self.state
        before = self.instructions
        state.slice_end = min(before + SLICE, self.budget - state.dma_time)
        region = self.region
        if self.watched_qpu is not None and region.watched is not None:
            self.watched_qpu.use(region.watched)
        status = region.function(self.shared.address, state.address)
        self.instructions = state.instructions
        moved = bool(self.instructions != before)
        self.run_state, self.need = RunState.READY, None
        if status != Status.ENDED:
            self.site = state.site
        if status == Status.LOST:
            self.check_budget(state.dma_time)
            if self.alive:
                self._find_way(state.detail)
            return True
        if status == Status.BLOCKED:
            self.run_state = RunState.WAITING
            self.need = need_of(plan(self.program.words[self.site]))
        else:
            self.settle(status)
        return moved

    def _find_way(self, target: int) -> None:
        """Go on with another region."""
        limited = self.request.limited
        try:
            found = self.source.follow(self.region, self.state.resume, target, limited)
        except Unsupported as verdict:
            self.stop(verdict.code, verdict.message)
            return
        if found is None:
            self.stop("QPU-042", left_text(target))
        else:
            self.region, self.state.resume = found
            self.program = self.source.program
