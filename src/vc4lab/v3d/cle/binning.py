"""Thread 0: what the records of a binning list do.

State goes into the binner's state cache, primitive records shade coordinates and are binned
natively. When tile memory runs out the thread stalls at the record until BPOS is written. Source:
hardware reference 3.2, 3.4, 3.9.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from vc4lab.memory import MEMORY_SIZE
from vc4lab.qpu.run.environment import Unsupported
from vc4lab.records.codes import IndexType, PrimitiveMode, VgPrimitive
from vc4lab.records.control import RECORD_SIZES, RECORDS
from vc4lab.records.declarations import (
    Flush,
    FlushAllState,
    IndexedPrimitives,
    StartTileBinning,
    TileBinningMode,
    VertexArrayPrimitives,
    VgCoordinateArray,
    VgInline,
)
from vc4lab.records.payload import BINNING, BinnerState, State
from vc4lab.records.use import foreign_to, records_of
from vc4lab.v3d.checks.draw_ranges import DrawRanges
from vc4lab.v3d.checks.hints import Lint
from vc4lab.v3d.checks.noted_ranges import name_noted
from vc4lab.v3d.cle.handlers import executes
from vc4lab.v3d.cle.walk import ListWalker
from vc4lab.v3d.cle.walk_context import (
    ARMED,
    BEGUN,
    CONFIGURED,
    FLUSHED,
    MOST_NOTES,
    OTHER,
    WALKED,
)
from vc4lab.v3d.job_time import JobCounts
from vc4lab.v3d.memory_uses import Use
from vc4lab.v3d.ptb import context as pc
from vc4lab.v3d.ptb.binner import Binner
from vc4lab.v3d.state.draw_input import MAX_LENGTH, IndexSource
from vc4lab.v3d.state.shader_state import ProgramCache, read_shader_state
from vc4lab.v3d.tile_lists.vg_list import inline_length
from vc4lab.v3d.vertex.shading import CoordinateStage

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.options import GpuOptions
    from vc4lab.simd.team import Team
    from vc4lab.v3d.cle.executor import ControlListExecutor
    from vc4lab.v3d.cle.thread import ListThread
    from vc4lab.v3d.shader_interrupts import ShaderInterrupts

_OUT_OF_MEMORY = "binner memory: BPOS (overspill block)"

SMALLEST_BLOCK = 4096
"""Bytes that the binner takes from its pool at a time: BPOS must give it that many."""


@lru_cache(maxsize=256)
def _binning_mode(payload: bytes) -> TileBinningMode:
    """Frame after frame has the same few modes."""
    return TileBinningMode.from_bytes(payload)


def _shared(name: str) -> property:
    """A truth about the list that the native walker sets and reads, too."""

    def get(stage: BinningStage) -> bool:
        return bool(getattr(stage._walker.context, name))

    def put(stage: BinningStage, value: bool) -> None:
        setattr(stage._walker.context, name, int(value))

    return property(get, put)


class BinningStage:
    """Runs binning lists; ``flushed()`` is called when a flush is complete.

    ``configured``: record 112 has given a grid; ``started``: record 6 was met, no flush since;
    ``_ended``: a flush was met, neither record 6 nor 112 since.
    """

    configured, started, _ended = _shared("configured"), _shared("started"), _shared("ended")

    def __init__(
        self,
        executor: ControlListExecutor,
        thread: ListThread,
        reporter: Reporter,
        options: GpuOptions,
        *,
        team: Team,
        flushed: Callable[[], None],
        lint: Lint | None = None,
        interrupts: ShaderInterrupts | None = None,
    ) -> None:
        unknowns = options.unknowns
        self.executor = executor
        self.thread = thread
        self.reporter = reporter
        self.flushed = flushed
        self.lint = lint or Lint(reporter)
        self.ranges = DrawRanges(self.lint.addresses)
        self.binner = Binner(executor.memory, reporter, unknowns)
        self.coordinates = CoordinateStage(
            executor.memory,
            reporter,
            ProgramCache(executor.memory, reporter, unknowns),
            options,
            team=team,
            interrupts=interrupts,
        )
        self.stops_at_bad_index = unknowns["index_error"] == "stop"
        self.index_error = False
        self.clipping_disabled = False
        self.out_of_memory = False
        self.refused, self.accepted = 0, False
        """Primitive records that were left out since the last end of a frame, and whether others
        were not."""
        self.spills_taken = 0
        self._refuses, self._refused = unknowns["bpos_small"] == "refused", 0
        self._unflushed = False
        self._flushing = False
        self._walked = 0
        self._walks = False
        self._indices = self._entries = self._instructions = 0
        self._walker = ListWalker(
            executor.memory, self.binner, self.coordinates.shaders, self.lint.addresses
        )
        executor.install(0, self)
        executor.accelerate(0, self._walk, WALKED)

    @property
    def overspill_size(self) -> int:
        """BPOS: 0 once the binner took the block."""
        return self._refused or self.binner.overspill[1]

    @property
    def remaining(self) -> int:
        """CT0PC: primitives (vertices of a VG list) left of the record that waits for memory."""
        c = self.binner.context
        if not self.out_of_memory or self._flushing:
            return 0
        return max(0, int(c.primitive_count - c.primitive))

    def take_counts(self) -> JobCounts:
        """What was binned since the last call."""
        indices, entries = int(self._walker.context.indices), self.binner.entries
        instructions = self.coordinates.instructions
        counts = JobCounts(
            indices - self._indices, entries - self._entries, instructions - self._instructions
        )
        self._indices, self._entries, self._instructions = indices, entries, instructions
        return counts

    def stopped(self) -> None:
        """The thread stopped: were the primitives flushed? (After a halt it may go on.)"""
        thread = self.thread
        if self._unflushed and not (thread.running or thread.error or thread.halted):
            self._unflushed = False
            self.reporter.report(
                "CLE-012",
                "primitives were binned, but no flush ends them",
                address=self.thread.current,
            )

    def begin(self) -> None:
        """The thread starts or goes on; after a flush, state is prefix state until record 6."""
        context = self._walker.context
        if context.ended:
            self.thread.prefixing = True
        self._walked = 0
        context.indices = self._indices = 0
        if self.coordinates.endless:  # in a list before
            self.coordinates.endless.clear()
        self._walks = self._walker.patience.over()

    def supply(self, address: int, size: int) -> None:
        """BPOS was written: the binner has an overspill block, and goes on if it waited for one."""
        self._refused = 0
        if 0 < size < SMALLEST_BLOCK and self._refuses:
            self.reporter.report(
                "CLE-040",
                f"BPOS = {size}: the binner takes no block below {SMALLEST_BLOCK} bytes",
                address=address,
            )
            self._refused, size = size, 0
        self.binner.supply_memory(address, size)
        if size and self.out_of_memory:
            self.out_of_memory = False
            self.thread.stalled = None
            self._after(self.binner.resume())

    def _walk(self) -> None:
        """Executes the records that come next natively, as far as that is possible."""
        if not self._walks:
            return
        thread, walker = self.thread, self._walker
        context = walker.context
        context.clipping_disabled = self.clipping_disabled
        heard = bool(self.lint.addresses.used.subscriptions)
        if heard or context.note_room:
            walker.listen(heard)
        goes_on = True
        while goes_on:
            here, result = walker.run(thread.current, thread.end)
            self._walked += here - thread.current & 0xFFFFFFFF
            thread.current = here
            goes_on = context.note_count == MOST_NOTES and result == OTHER
            if context.note_count:
                name_noted(walker.take_notes(), self.ranges, self.coordinates.programs)
            if context.events:
                self._catch_up(context.events)
                context.events = 0
            if context.drawn:
                self._unflushed, self._flushing = True, False
                self.accepted = True
            if result == FLUSHED:
                self._flushing = True
            if context.drawn or result == FLUSHED:
                context.drawn = 0
                self._after(walker.settle(result))
            if self._walked > MEMORY_SIZE:
                self._walked = 0
                goes_on = False
                self.executor.runs_in_a_circle(thread)

    def _catch_up(self, events: int) -> None:
        """What the walker did concerns others, too."""
        if events & CONFIGURED:
            context = self.binner.context
            self.lint.grids.append((context.width, context.height))
            self.binner.forget_rest()
            self._flushing = False
        if events & BEGUN:
            self.thread.prefixing = False
        if events & ARMED:
            self.thread.increment_armed = self.thread.signals = True

    # -- handlers ----------------------------------------------------------------------------

    @executes(*foreign_to(BINNING))
    def _on_foreign(self, address: int) -> None:
        identity = self.executor.byte(address)
        self.reporter.report(
            "CLE-008",
            f"{RECORDS[identity].title} ({identity}) does nothing in the binning list",
            address=address,
        )

    @executes(*records_of(State, BinnerState))
    def _on_state(self, address: int) -> None:
        identity = self.executor.byte(address)
        record = self.executor.memory.read(address, RECORD_SIZES[identity])
        self.binner.set_state(identity, record)

    @executes(TileBinningMode)
    def _on_mode(self, address: int) -> None:
        mode = _binning_mode(self.executor.memory.read(address + 1, TileBinningMode.size - 1))
        self.configured = bool(mode.tiles_x and mode.tiles_y)
        if not self.configured:
            self.reporter.report("CLE-032", "a grid of no tiles", address=address)
        self.lint.binning_mode(address, mode)
        self._ended = self._flushing = False
        self.binner.configure(mode)
        self._walker.provide_frame()

    @executes(StartTileBinning)
    def _on_start(self, address: int) -> None:
        if not self.configured:
            text = "binning starts (6) before any binning mode (112) has told where to"
            self.reporter.report("CLE-010", text, address=address)
        self.started, self._ended = True, False
        self.thread.prefixing = False
        self.binner.start()

    @executes(Flush)
    def _on_flush(self, _address: int) -> None:
        self._flush(all_state=False)

    @executes(FlushAllState)
    def _on_flush_all(self, _address: int) -> None:
        self._flush(all_state=True)

    def _flush(self, *, all_state: bool) -> None:
        self._flushing = True
        self._after(self.binner.flush(all_state))

    @executes(VgCoordinateArray)
    def _on_vg(self, address: int) -> None:
        record = self.executor.payload(address, VgCoordinateArray)
        self._draw_vg(address, record.type, record.address, record.length, record.continuation)

    @executes(VgInline)
    def _on_vg_inline(self, address: int) -> None:
        record = self.executor.payload(address, VgInline)
        start = self.thread.current
        length = inline_length(self.executor.memory, start, record.type)
        if length is None:
            self.reporter.report("CLE-039", "no end code in a VG list", address=address)
            self.thread.stop_with_error()
            return
        self.executor.jump(self.thread, address, (start + 4 * length) & 0xFFFFFFFF)
        self._draw_vg(address, record.type, start, length, record.continuation)

    def _refuse(self, code: str, text: str, address: int) -> None:
        """A primitive record that is left out."""
        self.refused += 1
        self.reporter.report(code, text, address=address)

    def _draw_vg(self, address: int, kind: int, start: int, length: int, continues: int) -> None:
        if kind not in VgPrimitive._value2member_map_:
            self._refuse("CLE-016", f"VG primitive type {kind}", address)
        elif self._may_draw(address) and not self._is_too_much(address, length):
            state = self.binner.state
            shader = read_shader_state(self.executor.memory, state.shader_kind, state.shader_word)
            if shader is not None and not shader.vector_graphics:
                text = "VG primitives with a GL or NV shader state"
                self.reporter.report("CLE-038", text, address=address)
            self.lint.addresses.uses(Use.ATTRIBUTES, start, 4 * length, address)
            self.accepted = True
            self._after(self.binner.draw_vg(kind, start, length, bool(continues)))

    @executes(IndexedPrimitives)
    def _on_indexed(self, address: int) -> None:
        record = self.executor.payload(address, IndexedPrimitives)
        if not isinstance(record.index_type, IndexType):
            self._refuse("CLE-016", f"index type {record.index_type}", address)
            return
        source = IndexSource(
            record.length,
            address=record.address,
            bits=record.index_type.bits,
            maximum=record.maximum_index,
        )
        self._draw(address, record.mode, source)

    @executes(VertexArrayPrimitives)
    def _on_array(self, address: int) -> None:
        record = self.executor.payload(address, VertexArrayPrimitives)
        if record.first + record.length > 0xFFFF:
            self.reporter.report(
                "CLE-015",
                f"vertices {record.first} to {record.first + record.length - 1} of an array",
                address=address,
            )
        self._draw(address, record.mode, IndexSource(record.length, first=record.first))

    def _draw(self, address: int, mode: int, source: IndexSource) -> None:
        if mode not in PrimitiveMode._value2member_map_:
            self._refuse("CLE-016", f"primitive mode {mode}", address)
            return
        if not self._may_draw(address):
            return
        state = self.binner.state
        shader = read_shader_state(self.executor.memory, state.shader_kind, state.shader_word)
        if shader is None:
            return
        if shader.vector_graphics:
            text = "records 32 and 33 name vertices, but a VG shader state has none"
            self._refuse("CLE-038", text, address)
            return
        if self._is_too_much(address, source.length):
            return
        try:
            coordinates = self.coordinates.coordinates(shader, source)
        except Unsupported as refusal:
            place = address if refusal.address is None else refusal.address
            self._refuse(refusal.code, refusal.message, place)
            return
        if coordinates is not None:
            if source.address is not None:
                size = source.length * source.bits // 8
                self.lint.addresses.uses(Use.INDICES, source.address, size, address)
            first, last = coordinates.first, coordinates.last
            kind, programs = state.shader_kind, self.coordinates.programs
            self.ranges.draw(shader, kind, programs, first, last, binning=True)
            clip = shader.clipping and not self.clipping_disabled
            self.accepted = True
            status = self.binner.draw(mode, source, coordinates, clip=clip)
            self._walker.provide(mode, source, nv=shader.nv is not None)
            self._after(status)

    def _is_too_much(self, address: int, length: int) -> bool:
        """Whether the draws of this list together are beyond measure; the first may be alone."""
        context = self._walker.context
        before = context.indices
        context.indices += length
        if not before or context.indices <= MAX_LENGTH:
            return False
        text = f"draws of {context.indices} vertices in one binning list; this one is left out"
        self._refuse("VTX-001", text, address)
        return True

    def _may_draw(self, address: int) -> bool:
        """Whether a primitive may stand here; if not, says why nothing is drawn."""
        text = "a primitive comes before any shader state"
        code = "CLE-013"
        if self._ended:
            code, text = "CLE-021", "a primitive comes after the flush; nothing is drawn"
        elif not self.started:
            code, text = "CLE-011", "a primitive comes before record 6; nothing is drawn"
        elif not (self.configured and self.binner.has_tiles):
            code, text = "CLE-010", "a primitive comes before any binning mode (112)"
        elif self.binner.state.shader_kind:
            self._unflushed, self._flushing = True, False
            if self.binner.draws_nothing:  # else the rendering thread has it, and says so
                choice = self.binner.context.empty_windows
                self.lint.clip_window(self.binner.state, choice, address)
            return True
        self._refuse(code, text, address)
        return False

    def _after(self, status: int) -> None:
        """What a native run of the binner ended with."""
        if self.binner.context.spill_used:
            self.spills_taken += 1
            self.binner.context.spill_used = 0
        if status == pc.BAD_INDEX:
            self.index_error = True
            if self.stops_at_bad_index:
                self.thread.stop_with_error()
        if status == pc.OUT_OF_MEMORY:
            self.out_of_memory = True
            self.thread.stalled = _OUT_OF_MEMORY
            place = self.binner.pool_address
            self.reporter.report(
                "CLE-028", f"tile memory is used up at 0x{place:08x}, no block in BPOS"
            )
        elif self._flushing:
            self._flushing = self._unflushed = False
            self._walker.context.started, self._walker.context.ended = 0, 1
            self.flushed()
