"""A user program's environment: uniforms, VPM, DMA, TMU, mutex and more.

It is compiled into programs, and the interpreter runs it eagerly. State that changes lives in the
QPU's `QpuState` and the `SharedState`, except the uniform pointer and the instruction count, which
are cells.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from vc4lab.memory.native import host
from vc4lab.qpu.isa.registers import TMU_WRITES
from vc4lab.qpu.jit.resumable import ResumableEnvironment
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.run.plan import Plan
from vc4lab.simd import (
    Value,
    any_,
    call,
    const,
    i32,
    i32x16,
    i64,
    iota,
    load,
    select,
    splat,
    staged,
    store,
    var,
)
from vc4lab.v3d.unknowns import Unknowns
from vc4lab.v3d.user_programs import state as st
from vc4lab.v3d.user_programs.native import dma as native_dma
from vc4lab.v3d.user_programs.native import tmu as native_tmu
from vc4lab.v3d.user_programs.native import vpm as native_vpm
from vc4lab.v3d.user_programs.needs import SEMAPHORE_LIMIT, need_of
from vc4lab.v3d.user_programs.state import QpuState, SharedState, Status, Unit
from vc4lab.v3d.vpm.access import next_address, one_was_read, reader
from vc4lab.v3d.vpm.shader_rows import ROW_BYTES

if TYPE_CHECKING:
    from vc4lab.v3d.user_programs.watching.watch import Watched

REFUSALS = (
    "a varying read",
    "a TLB Z write",
    "a TLB colour write",
    "a TLB colour load",
    "a TLB stencil setup",
    "a TLB alpha mask write",
    "a TLB alpha mask load",
    "a TLB coverage load",
    "a write of the quad coordinates",
    "a breakpoint",
)
"""Things that a user program may not use, by number: `QpuState.detail` of Status.REFUSED."""


class UserEnvironment(ResumableEnvironment):
    """shared, qpu: addresses of the two states; limited: whether SRQUL limits the uniforms.

    watched: what a watch looks for, if the program is watched; stops: and a mistake ends it.
    """

    def __init__(
        self,
        shared: Value,
        qpu: Value,
        program: Program,
        unknowns: Unknowns,
        limited: bool,
        watched: Watched | None = None,
        stops: bool = False,
    ) -> None:
        self.shared_address, self.qpu_address = shared, qpu
        self.shared = SharedState.at(shared)
        self.qpu = QpuState.at(qpu)
        self.unknowns = unknowns
        self.limited = limited
        self.memory = self.shared.memory
        self.vpm = self.shared.vpm
        self.stream = var(i32, self.qpu.uniforms)
        self.instructions = var(i64, self.qpu.instructions)
        self.status = var(i32, int(Status.ENDED))
        self.number = self.qpu.number
        self.program = program
        self.watched, self.stops = watched, stops

    @cached_property
    def textured(self) -> frozenset[int]:
        """TMUs that the program writes more than S of."""
        found = set()
        for instruction in self.program.instructions:
            for _, address in instruction.write_addresses():
                unit, register = TMU_WRITES.get(address, (0, "s"))
                if register != "s":
                    found.add(unit)
        return frozenset(found)

    def leave(self) -> None:
        """Write back what lives in cells."""
        self.qpu.uniforms = self.stream.get()
        self.qpu.instructions = self.instructions.get()

    # -- waiting and ending --------------------------------------------------------------------

    def waits(self, p: Plan) -> bool:
        return need_of(p) is not None

    def may_execute(self, p: Plan) -> Value:
        need = need_of(p)
        assert need is not None
        if need.kind == "mutex":
            return self.shared.mutex == 0
        value = load(i32, self._semaphore(need.number))
        return value > 0 if need.kind == "lower" else value < SEMAPHORE_LIMIT

    def _semaphore(self, number: int) -> Value:
        return self.shared.semaphores + 4 * number

    def may_continue(self) -> Value:
        return self.instructions.get() < self.qpu.slice_end

    def suspended(self, site: int, waiting: bool) -> None:
        self.qpu.site = site
        self.status.set(int(Status.BLOCKED if waiting else Status.YIELDED))

    def lost(self, target: Value) -> None:
        self.status.set(int(Status.LOST))
        self.qpu.detail = target

    def blame(self, site: int) -> None:
        self.qpu.site = site

    def stop(self, status: Status, detail: int = 0) -> None:
        """The program ends here, without having ended."""
        self.status.set(int(status))
        self.qpu.site = self.site
        self.qpu.detail = detail
        self.finish()

    @staged
    def stop_unless(self, condition: Value, status: Status, detail: int) -> None:
        """Stop if an i1 is false."""
        if ~condition:
            self.stop(status, detail)

    def refuse(self, what: str) -> Any:
        self.stop(Status.REFUSED, REFUSALS.index(what))
        return const(i32x16, 0)

    def varying(self) -> tuple[Value, Value]:
        nothing = self.refuse("a varying read")
        return nothing, nothing

    def tlb_colour_load(self) -> Value:
        nothing: Value = self.refuse("a TLB colour load")
        return nothing

    def tlb_alpha_load(self) -> Value:
        nothing: Value = self.refuse("a TLB alpha mask load")
        return nothing

    def tlb_coverage_load(self) -> Value:
        nothing: Value = self.refuse("a TLB coverage load")
        return nothing

    def zeroed(self) -> None:
        self.stop(Status.ZEROED)

    # -- mutex, semaphores, interrupts: `may_execute` has said yes -------------------------------

    def mutex_acquire(self) -> Value:
        self.shared.mutex = self.number + 1
        return iota()

    def mutex_release(self) -> None:
        self.shared.mutex = 0

    def semaphore(self, number: int, decrement: bool) -> None:
        place = self._semaphore(number)
        store(place, load(i32, place) + (-1 if decrement else 1))

    def host_interrupt(self, value: Value, mask: Value) -> None:
        place = self.shared.interrupts + (self.number << 2)
        store(place, select(any_((value != 0) & mask), 1, load(i32, place)))

    # -- uniforms and numbers ----------------------------------------------------------------------

    def uniform(self) -> Value:
        return splat(self.next_uniform())

    def next_uniform(self) -> Value:
        """The next word of the stream (i32)."""
        at = self.stream.get()
        word = load(i32, host(self.memory, at))
        if not self.limited:
            self.stream.set(at + 4)
            return word
        left = self.qpu.uniforms_left  # negative: no limit any more
        over = left == 0
        self.qpu.uniforms_left = select(left > 0, left - 1, left)
        found = select(over, st.FINDING_UNIFORMS, 0)
        self.qpu.findings = self.qpu.findings | found
        if self.unknowns["uniforms_length"] != "limit":
            self.stream.set(at + 4)
            return word
        self.stream.set(select(over, at, at + 4))
        return select(over, 0, word)

    def uniforms_address(self, value: Value, relative: bool, mask: Value) -> None:
        here, written = self.stream.get(), mask[0]
        self.stream.set(select(written, value[0] + here if relative else value[0], here))
        if self.limited:
            self.qpu.uniforms_left = select(written, const(i32, -1), self.qpu.uniforms_left)

    def element_number(self) -> Value:
        return iota()

    def qpu_number(self) -> Value:
        return splat(self.number)

    def x_coord(self) -> Value:
        return iota() & 1

    def y_coord(self) -> Value:
        return iota().shr(1) & 1

    def ms_flags(self) -> Value:
        return self.qpu.ms_flags

    def rev_flag(self) -> Value:
        return splat(self.qpu.rev_flag)

    def set_ms_flags(self, value: Value, mask: Value) -> None:
        self.qpu.ms_flags = select(mask, value & 15, self.qpu.ms_flags)

    def set_rev_flag(self, value: Value, mask: Value) -> None:
        self.qpu.rev_flag = select(mask[0], value[0] & 1, self.qpu.rev_flag)

    # -- VPM ---------------------------------------------------------------------------------------

    def vpm_setup(self, side: str, value: Value) -> None:
        function = native_vpm.setup_read if side == "read" else native_vpm.setup_write
        call(function, self.qpu_address, value[0])

    @staged
    def vpm_read(self) -> Value:
        reads = self.qpu.reads
        self.stop_unless(reads.left != 0, Status.STUCK, st.NO_VPM_DATA)
        setup, at = reads.setup, reads.vector
        self.reading(setup, at)
        if native_vpm.is_rows(setup):
            words = load(i32x16, self.vpm + at * ROW_BYTES, 64)
        else:
            words = call(reader(self.unknowns["vpm_read_extension"]), self.vpm, setup, at)
        one_was_read(reads)
        return words

    def reading(self, setup: Value, address: Value) -> None:
        """A vector of the VPM is about to be read."""

    @staged
    def vpm_write(self, value: Value, mask: Value) -> None:
        qpu = self.qpu
        setup, at = qpu.write_setup, qpu.write_address
        if native_vpm.is_rows(setup) & (at < self.shared.rows):
            place = self.vpm + at * ROW_BYTES
            store(place, select(mask, value, load(i32x16, place, 64)), 64)
        else:
            call(
                native_vpm.write_general,
                self.shared_address, self.qpu_address, setup, at, value, mask,
            )  # fmt: skip
        qpu.write_address = next_address(setup, at)

    def dma_start(self, side: str, value: Value) -> None:
        function = native_dma.transfer(side, self.unknowns)
        call(function, self.shared_address, self.qpu_address, value[0])

    def dma_wait(self, side: str) -> None:
        """A transfer is complete when the write that starts it is."""

    def dma_busy(self, side: str) -> Value:
        return const(i32x16, 0)

    # -- texture unit ----------------------------------------------------------------------------

    def _unit(self, number: int) -> Unit:
        return Unit.at(self.qpu.units + number * Unit.size)

    @staged
    def tmu_write(self, unit: int, register: str, value: Value, mask: Value, site: int) -> None:
        state = self._unit(unit)
        if register != "s":
            self._parameter(state)
            store(state.coordinates + 64 * "strb".index(register), value, 64)
        else:
            self.stop_unless(state.count < st.LOOKUPS, Status.STUCK, st.NO_ROOM + unit)
            self.qpu.lookups = self.qpu.lookups + 1
            if unit not in self.textured or state.written == 0:
                self._look_up(unit, value)
            else:
                self._parameter(state)
                self._sample(unit, value)

    def _look_up(self, unit: int, value: Value) -> None:
        native_tmu.push(self._unit(unit), native_tmu.lookup(self.memory, value))

    def _sample(self, unit: int, value: Value) -> None:
        call(native_tmu.sample, self.shared_address, self.qpu_address, unit, value)

    def _parameter(self, state: Unit) -> None:
        """Take the uniform that goes with a write of a texture request."""
        word = self.next_uniform()
        number = state.written
        kept = select(number < 4, number, 4)  # a fifth place, never read
        store(state.parameters + (kept << 2), word)
        state.written = select(number < 4, number + 1, 4)

    def tmu_load(self, unit: int) -> Value:
        state = self._unit(unit)
        self.stop_unless(state.count > 0, Status.STUCK, st.NO_RESULT + unit)
        return native_tmu.pop(state)

    # -- without effect here -----------------------------------------------------------------------

    def scoreboard_wait(self) -> None:
        """No other QPU holds the scoreboard."""

    def scoreboard_unlock(self) -> None:
        pass
