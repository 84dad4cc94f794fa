"""A user program's environment while its way is recorded; which environment a program has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vc4lab.simd import Value, call, const, i32, i64, load, store
from vc4lab.v3d.user_programs.environment import UserEnvironment
from vc4lab.v3d.user_programs.native import tmu as native_tmu
from vc4lab.v3d.user_programs.recording.format import MAX_LINES, Kind, header
from vc4lab.v3d.user_programs.watching.environment import WatchedEnvironment

if TYPE_CHECKING:
    from vc4lab.qpu.program.program import Program
    from vc4lab.simd.operators import Operand
    from vc4lab.v3d.unknowns import Unknowns
    from vc4lab.v3d.user_programs.watching.watch import Watched


class RecordedEnvironment(UserEnvironment):
    """As `UserEnvironment`; writes the record at `QpuState.record`."""

    records_branches = True

    def may_continue(self) -> Value:
        return super().may_continue() & (self.qpu.recorded < self.qpu.record_room)

    def _note(self, kind: Kind, *words: Operand, unit: int = 0, site: int | None = None) -> None:
        at = self.qpu.recorded
        place = self.qpu.record + at
        store(place, header(self.site if site is None else site, kind, unit))
        size = 4
        for word in words:
            store(place + size, word)
            size += word.type.size if isinstance(word, Value) else 4
        self.qpu.recorded = at + size

    def branched(self, site: int, target: Any) -> None:
        if target is None:
            self._note(Kind.STRAIGHT, site=site)
        else:
            self._note(Kind.TAKEN, target, site=site)

    def uniforms_address(self, value: Value, relative: bool, mask: Value) -> None:
        super().uniforms_address(value, relative, mask)
        self._note(Kind.UNIFORMS, self.stream.get())

    def vpm_setup(self, side: str, value: Value) -> None:
        if side == "read":
            self._note(Kind.READ_SETUP, value[0])
        super().vpm_setup(side, value)

    def dma_start(self, side: str, value: Value) -> None:
        qpu = self.qpu
        if side == "read":
            self._note(Kind.LOAD, value[0], qpu.load_setup, qpu.load_stride)
        else:
            self._note(Kind.STORE, value[0], qpu.store_setup, qpu.store_stride)
        super().dma_start(side, value)

    def tmu_noswap(self, value: Value) -> None:
        self._note(Kind.NOSWAP, value[0])
        super().tmu_noswap(value)

    def _look_up(self, unit: int, value: Value) -> None:
        self._note(Kind.LOOKUP, value, unit=unit)
        super()._look_up(unit, value)

    def _sample(self, unit: int, value: Value) -> None:
        self._note(Kind.TEXTURE, load(i32, self._unit(unit).parameters), 0, unit=unit)
        end = self.qpu.recorded
        lines = self.qpu.lines
        place = self.qpu.record + end
        lines.base, lines.used, lines.room = place, const(i64, 0), const(i64, 4 * MAX_LINES)
        call(native_tmu.sample_recorded, self.shared_address, self.qpu_address, unit, value)
        used = lines.used.trunc(i32)
        store(place - 4, used.shr(2))
        self.qpu.recorded = end + used


class RecordedWatchedEnvironment(RecordedEnvironment, WatchedEnvironment):
    """Both recorded and watched."""


def environment_of(
    shared: Value, qpu: Value, program: Program, unknowns: Unknowns, limited: bool,
    watched: Watched | None, stops: bool, recorded: bool, layer: type[UserEnvironment] | None = None,
) -> UserEnvironment:  # fmt: skip
    """The environment of a program that is watched, recorded, both or neither.

    layer: a class to lie over that one, for what looks into the interpreter.
    """
    kind: type[UserEnvironment] = UserEnvironment
    if recorded and watched is not None:
        kind = RecordedWatchedEnvironment
    elif recorded:
        kind = RecordedEnvironment
    elif watched is not None:
        kind = WatchedEnvironment
    if layer is not None:
        kind = type(layer.__name__, (layer, kind), {})
    return kind(shared, qpu, program, unknowns, limited, watched, stops)
