"""A QPU that runs its user program as native code, resumed whenever it can go on."""

from __future__ import annotations

import ctypes
import mmap
from array import array
from typing import TYPE_CHECKING

from vc4lab.bits import signed32
from vc4lab.qpu.run.environment import Unsupported, left_text
from vc4lab.qpu.run.plan import plan
from vc4lab.v3d.user_programs.budget import NATIVE_BUDGET
from vc4lab.v3d.user_programs.native.environment import REFUSALS
from vc4lab.v3d.user_programs.needs import need_of
from vc4lab.v3d.user_programs.qpu import Qpu, QpuStart, RunState
from vc4lab.v3d.user_programs.recording.format import RESERVE, ROOM
from vc4lab.v3d.user_programs.state import STALLS, QpuState, Status

if TYPE_CHECKING:
    from vc4lab.v3d.user_programs.code import NativeRegion
    from vc4lab.v3d.user_programs.watching.native import NativeWatch

SLICE = 1 << 22
"""Instructions after which a looping program lets the others run."""


class NativeQpu(Qpu):
    """Runs until the program ends, waits, or has used its slice."""

    def __init__(self, start: QpuStart, region: NativeRegion) -> None:
        super().__init__(start, NATIVE_BUDGET)
        request = start.request
        self.region = region
        self.shared = start.shared
        self.state = QpuState(
            number=start.number,
            uniforms=signed32(request.uniforms),
            uniforms_left=request.length if request.limited else -1,
        )
        self.recorded = region.recorded
        if self.recorded:
            room = mmap.mmap(-1, ROOM + RESERVE)  # costs nothing until it is written
            self._record = memoryview(room)
            self.state.record = ctypes.addressof(ctypes.c_char.from_buffer(room))
            self.state.record_room = ROOM
        self.watch = start.watch
        self._native_watch: NativeWatch | None = None
        if start.watch is not None:
            from vc4lab.v3d.user_programs.watching.native import NativeWatch

            self._native_watch = NativeWatch(start.watch, self.state)

    @property
    def parallel(self) -> bool:
        return not self.source.waits

    def record_words(self) -> int:
        return int(self.state.recorded) // 4

    def take_record(self) -> array[int]:
        record = array("I")
        if self.state.recorded:
            record.frombytes(self._record[: self.state.recorded])
            self.state.recorded = 0
        return record

    def advance(self) -> bool:
        state = self.state
        before = self.instructions
        state.slice_end = min(before + SLICE, self.budget - state.dma_time)
        region = self.region
        if self._native_watch is not None and region.watched is not None:
            self._native_watch.use(region.watched)
        status = region.function(self.shared.address, state.address)
        self.instructions = state.instructions
        moved = bool(self.instructions != before)
        self.run_state, self.need = RunState.READY, None
        if status == Status.ENDED:
            self.run_state = RunState.ENDED
            return moved
        self.site = state.site
        if status == Status.LOST:
            self.check_budget(state.dma_time)
            if self.alive:
                self._find_way(state.detail)
            return True
        if status == Status.BLOCKED:
            self.run_state = RunState.WAITING
            self.need = need_of(plan(self.program.words[self.site]))
        elif status == Status.STUCK:
            self.run_state, self.reason = RunState.STUCK, STALLS[state.detail]
        elif status == Status.REFUSED:
            what = REFUSALS[state.detail]
            self.stop("QPU-040", f"{what} is not available to this program")
        elif status == Status.HALTED:
            self.halt()
        elif status == Status.ZEROED:
            self.stop("QPU-047", self.program.zeroed(self.site))
        else:
            self.check_budget(state.dma_time)
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
