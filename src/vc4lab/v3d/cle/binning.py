"""Thread 0: what the records of a binning list do.

State goes into the binner's state cache, primitive records shade coordinates and are binned
natively. When tile memory runs out the thread stalls at the record until BPOS is written. Source:
hardware reference 3.2, 3.4, 3.9.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from vc4lab.listeners import AnyListener
from vc4lab.memory import MEMORY_SIZE
from vc4lab.records.codes import VgPrimitive
from vc4lab.records.control import records_of
from vc4lab.records.declarations import VgCoordinateArray, VgInline
from vc4lab.records.payload import BINNING
from vc4lab.v3d.checks.draw_ranges import DrawRanges
from vc4lab.v3d.checks.hints import Lint
from vc4lab.v3d.cle import binning_context as bc
from vc4lab.v3d.cle.executor import executes
from vc4lab.v3d.cle.native_binning import BinningRequests, NativeBinning
from vc4lab.v3d.events import Use
from vc4lab.v3d.job_time import JobCounts
from vc4lab.v3d.ptb import context as pc
from vc4lab.v3d.ptb.binner import Binner
from vc4lab.v3d.services import COORDINATES
from vc4lab.v3d.state.render_state import ProgramCache, read_shader_record
from vc4lab.v3d.vertex.shading import VertexStage

if TYPE_CHECKING:
    from vc4lab.v3d.cle.executor import ControlListExecutor
    from vc4lab.v3d.cle.thread import ListThread

_OUT_OF_MEMORY = "binner memory: BPOS (overspill block)"

SMALLEST_BLOCK = 4096
"""Bytes that the binner takes from its pool at a time: BPOS must give it that many."""


_PROBLEMS = bc.FULL | bc.SHORT | bc.FEW
_DRAWS_ANEW = bc.CONFIGURED | bc.ACCEPTED
_TO_THREAD = bc.BEGUN | bc.ARMED
_CONFIGURED, _PLACED, _ACCEPTED = bc.CONFIGURED, bc.PLACED, bc.ACCEPTED
_ENDS = frozenset((bc.OTHER, bc.FLUSHED, bc.INTERRUPTED))
"""After these the executor looks whether the list goes on."""


def _shared(name: str) -> property:
    """A flag of the list, shared with native code."""

    def get(stage: BinningStage) -> bool:
        return bool(getattr(stage.native.context, name))

    def put(stage: BinningStage, value: bool) -> None:
        setattr(stage.native.context, name, int(value))

    return property(get, put)


class BinningStage:
    """Runs binning lists; ``flushed()`` is called when a flush is complete.

    ``configured``: record 112 has given a grid; ``started``: record 6 was met, no flush since;
    ``_ended``: a flush was met, neither record 6 nor 112 since (saved states have these names).
    """

    configured, started, _ended = _shared("configured"), _shared("started"), _shared("ended")
    clipping_disabled = _shared("clipping_disabled")

    def __init__(
        self, executor: ControlListExecutor, thread: ListThread, lint: Lint, flushed: Callable[[], None]
    ) -> None:
        memory, reporter, unknowns = executor.memory, executor.reporter, executor.services.unknowns
        self.executor = executor
        self.thread = thread
        self.reporter = reporter
        self.flushed = flushed
        self.lint = lint
        self._binned = executor.services.listeners.list_binned
        self._notes = executor.notes
        self._any_listener, self._recording = AnyListener(lint.addresses.used, self._binned), False
        programs = ProgramCache(memory, reporter, unknowns)
        self.ranges = DrawRanges(lint.addresses, programs, binning=True)
        self.binner = Binner(memory, reporter, unknowns)
        self.coordinates = VertexStage(executor.services, programs, COORDINATES)
        self.stops_at_bad_index = unknowns["index_error"] == "stop"
        self.index_error = False
        self.out_of_memory = False
        self.accepted = False
        """Whether a primitive record was executed since the last end of a frame."""
        self.spills_taken = 0
        self._refuses, self._refused = unknowns["bpos_small"] == "refused", 0
        self._unflushed = False
        self._flushing = False
        self._walked = 0
        self._indices = self._entries = self._instructions = 0
        self.native = NativeBinning(memory, self.binner, self.coordinates.shaders, lint.addresses)
        executor.install(0, self)
        self.requests = BinningRequests(
            executor, self.native, self.binner, self.coordinates, self.ranges, lint
        )
        self._serve = self.requests.serve

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
        """Take the counts of what was binned since the last call."""
        indices, entries = int(self.native.context.indices), self.binner.entries
        instructions = self.coordinates.instructions
        counts = JobCounts(
            indices - self._indices, entries - self._entries, instructions - self._instructions
        )
        self._indices, self._entries, self._instructions = indices, entries, instructions
        return counts

    def stopped(self) -> None:
        """The thread stopped: reports primitives without a flush. (After a halt it may go on.)"""
        thread = self.thread
        if self._unflushed and not (thread.running or thread.error or thread.halted):
            self._unflushed = False
            self.reporter.report(
                "CLE-012", "primitives were binned, but no flush ends them", address=self.thread.current
            )

    def begin(self) -> None:
        """The thread starts or goes on; after a flush, state is prefix state until record 6."""
        context = self.native.context
        if context.ended:
            self.thread.prefixing = True
        self._walked = 0
        context.indices = self._indices = context.answers = 0
        self.binner.context.kept = 0  # what lists before have overwritten
        if self.coordinates.endless:  # in a list before
            self.coordinates.endless.clear()

    def supply(self, address: int, size: int) -> None:
        """BPOS was written: the binner has an overspill block, and goes on if it waited for one."""
        self._refused = 0
        if 0 < size < SMALLEST_BLOCK and self._refuses:
            self.reporter.report(
                "CLE-040",
                f"BPOS = {size}: the binner accepts no block below {SMALLEST_BLOCK} bytes",
                address=address,
            )
            self._refused, size = size, 0
        self.binner.supply_memory(address, size)
        if size and self.out_of_memory:
            self.out_of_memory = False
            self.thread.stalled = None
            self._after(self.binner.resume())

    @executes(*records_of(native=BINNING))
    def _walk(self, address: int) -> None:
        """Executes the record at `address` and those after it, up to one of another kind."""
        thread, native, serve = self.thread, self.native, self._serve
        context, notes, result = native.context, self._notes, bc.PAUSED
        if self._any_listener.present or self._recording:
            self._choose_recording()
        thread.current = address
        while result not in _ENDS and thread.running and thread.stalled is None:
            here, result = native.run(thread.current, thread.end, notes)
            self._walked += here - thread.current & 0xFFFFFFFF
            thread.current = here
            if native.notes_uses and context.note_count:
                self.ranges.noted(native.take_notes())
            placed = self._handle_events()
            if placed or result == bc.FLUSHED:
                self._flushing = result == bc.FLUSHED
                self._after(native.settle(result))
            if result in serve:
                serve[result](context.record_at & 0xFFFFFFFF)
            if self._walked > MEMORY_SIZE:
                self._walked = 0
                self.executor.stall_endless_list(thread)

    def _choose_recording(self) -> None:
        """Note from now on what draws name and take, if there are listeners for it."""
        native = self.native
        notes_uses = bool(self.lint.addresses.used.subscriptions)
        wanted = bool(self._binned.subscriptions)
        if notes_uses is not native.notes_uses:
            native.note_uses(notes_uses)
        if wanted is not (native.binned is not None):
            native.record_draws(wanted)
        self._recording = notes_uses or wanted

    def _handle_events(self) -> bool:
        """Handles the events of native code; whether one was a primitive that may stand there."""
        context = self.native.context
        events = context.events
        if not events:
            return False
        context.events = 0
        if events & _PROBLEMS:
            if events & bc.FULL:
                self.binner.report_full()
            if events & bc.SHORT:
                self.requests.pool_is_short(context.record_at & 0xFFFFFFFF)
            if events & bc.FEW:
                self.requests.draws_nothing(context.few_at & 0xFFFFFFFF)
        if events & _CONFIGURED:
            binner = self.binner.context
            self.lint.grids.append((binner.width, binner.height))
            self._flushing = False
        if events & _TO_THREAD:
            thread = self.thread
            if events & bc.BEGUN:
                thread.prefixing = False
            if events & bc.ARMED:
                thread.increment_armed = thread.signals = True
        if events & _ACCEPTED:
            self.accepted = True
        if events & _DRAWS_ANEW:
            self.binner.drop_remaining()
        if events & _PLACED:
            self._unflushed, self._flushing = True, False
            return True
        return False

    # -- vector graphics ---------------------------------------------------------------------

    @executes(VgCoordinateArray)
    def _on_vg(self, address: int) -> None:
        record = self.executor.payload(address, VgCoordinateArray)
        self._draw_vg(address, record.type, record.address, record.length, record.continuation)

    @executes(VgInline)
    def _on_vg_inline(self, address: int) -> None:
        record = self.executor.payload(address, VgInline)
        start = self.thread.current
        length = self.executor.pass_vg_list(self.thread, address, record.type)
        if length is not None:
            self._draw_vg(address, record.type, start, length, record.continuation)

    def _draw_vg(self, address: int, kind: int, start: int, length: int, continues: int) -> None:
        if kind not in VgPrimitive._value2member_map_:
            self.requests.refuse("CLE-016", f"VG primitive type {kind}", address)
        elif self._may_draw(address, length):
            state = self.binner.state
            shader = read_shader_record(self.executor.memory, state.shader_kind, state.shader_word)
            if shader is not None and not shader.vector_graphics:
                text = "VG primitives with a GL or NV shader state"
                self.reporter.report("CLE-038", text, address=address)
            self.lint.addresses.uses(Use.ATTRIBUTES, start, 4 * length, address)
            self.accepted = True
            self._choose_recording()
            if self.native.binned is not None:
                watched = self.native.context.watched
                self.native.binned.add_vg(self.binner, address, kind, start, length, watched)
            self._after(self.binner.draw_vg(kind, start, length, bool(continues)))

    def _may_draw(self, address: int, length: int) -> bool:
        """Whether a VG primitive may stand here; if not, says why nothing is drawn."""
        context = self.native.context
        context.finding = self.native.admit_vg(length)
        if self._handle_events() and self.binner.draws_nothing:
            self.requests.window_is_empty(address)
        if context.finding:
            self.requests.left_out(address)
        return not context.finding

    def _after(self, status: int) -> None:
        """Handles the status of a native run of the binner."""
        if self.binner.context.spill_used:
            self.spills_taken += 1
            self.binner.context.spill_used = 0
        if status == pc.OUT_OF_MEMORY:
            self.out_of_memory = True
            self.thread.stalled = _OUT_OF_MEMORY
            place = self.binner.pool_address
            self.reporter.report("CLE-028", f"tile memory is used up at 0x{place:08x}, no block in BPOS")
            return
        if status == pc.BAD_INDEX:
            self.index_error = True
            if self.stops_at_bad_index:
                self.thread.stop_with_error()
        if self._flushing:
            self._flushing = self._unflushed = False
            self.native.context.started, self.native.context.ended = 0, 1
            if self.native.binned is not None:
                self._binned.emit(self.native.binned.take(self.binner))
            self.flushed()
