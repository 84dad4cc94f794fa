"""Records blocks of pixels and their texture requests, in pipelines compiled to record.

See `../state/tile_context.py`. What a pipeline draws does not depend on it.
"""

from __future__ import annotations

from vc4lab.memory import MEMORY_MASK
from vc4lab.memory.native import TouchedLines, append
from vc4lab.simd import Cell, Value, const, i1, i16, i32, mask_bits, ptr, var
from vc4lab.v3d.fragment.counting import CountingEnvironment
from vc4lab.v3d.fragment.shader import BlockInputs, DrawConstants
from vc4lab.v3d.pse.coverage import PixelBlock
from vc4lab.v3d.state.tile_context import DIRECT_LOOKUP, BlockWork, RequestWork, TileContext, TileWork
from vc4lab.v3d.tmu.sampler import direct_lookup

NO_LANE = -1


class WorkRecorder:
    """Appends the blocks of one list in a tile to the streams of the thread."""

    def __init__(self, context: TileContext) -> None:
        self.context = context
        self.pointer = context.work
        self.work = TileWork.at(self.pointer)
        self._primitive = var(i32, -1)
        self._position = var(i32, -1)
        self._fresh = var(i1, True)
        self._lane = var(i32, NO_LANE)
        self._place = self._requests = const(ptr, 0)

    @property
    def lines(self) -> Value:
        """Host address of the stream of lines."""
        return self.pointer + TileWork.lines.offset

    def next_primitive(self) -> None:
        """The blocks that follow are of the next primitive of the list."""
        self._fresh.set(True)
        self._position.set(self._position.get() + 1)

    def next_batch(self) -> None:
        """The blocks that follow are of other triangles, whatever their lanes."""
        self._lane.set(NO_LANE)

    def of_lane(self, lane: Value, position: Value) -> None:
        """The next block is of the triangle in a lane of the batch, and at a place of the list."""
        self._position.set(position)
        self._fresh.set(self._fresh.get() | (lane != self._lane.get()))
        self._lane.set(lane)

    def open(self, block: PixelBlock, reverse: Value, flags: Value, passed: Value) -> None:
        """A block is drawn; `flags` and `passed`: lanes as in `BlockWork`."""
        number = self._primitive.get() + self._fresh.get().zext(i32)
        self._primitive.set(number)
        self._fresh.set(False)
        self._place = append(self.work.blocks, BlockWork.size)
        record = BlockWork.at(self._place)
        record.primitive = number
        record.position = self._position.get()
        record.place = block.x | (block.y << 8) | (reverse.zext(i32) << 16)
        record.covered = block.bits.trunc(i16)
        record.flags = mask_bits(flags).trunc(i16)
        record.passed = mask_bits(passed).trunc(i16)
        record.reserved = 0
        record.requests = 0
        record.instructions = 0
        self._requests = self.work.requests.used

    def environment(
        self, constants: DrawConstants, inputs: BlockInputs, status: Cell
    ) -> RecordingEnvironment:
        """The program's view of the open block."""
        return RecordingEnvironment(constants, inputs, status, self.context, self)

    def close(self, instructions: Value) -> None:
        """The program of the open block has ended, after so many instructions."""
        record = BlockWork.at(self._place)
        used = self.work.requests.used - self._requests
        record.requests = used.trunc(i32).udiv(RequestWork.size)
        record.instructions = instructions


class RecordingEnvironment(CountingEnvironment):
    """The environment of one block that records its texture requests and counts instructions."""

    def __init__(
        self,
        constants: DrawConstants,
        inputs: BlockInputs,
        status: Cell,
        context: TileContext,
        recorder: WorkRecorder,
    ) -> None:
        super().__init__(constants, inputs, status, context)
        self.recorder = recorder
        self.instructions = var(i32, 0)
        self.touched_lines = TouchedLines(recorder.lines, self.valid)
        self.requests.lookup = self._look_up

    def begin(self, site: int) -> None:
        """An instruction is emitted: it counts where it runs."""
        super().begin(site)
        self.instructions.set(self.instructions.get() + 1)

    def _sample(self, number: int, coordinates: list[Value], parameters: list[Value]) -> tuple[Value, ...]:
        before = self.recorder.work.lines.used
        result = super()._sample(number, coordinates, parameters)
        self._record(number, before)
        return result

    def _look_up(self, addresses: Value) -> Value:
        before = self.recorder.work.lines.used
        assert self.touched_lines is not None
        self.touched_lines.take([addresses & MEMORY_MASK], [None])
        self._record(DIRECT_LOOKUP, before)
        return direct_lookup(self.constants.memory, addresses)

    def _record(self, number: int, before: Value) -> None:
        """A request, since which the stream of lines has grown from `before` bytes."""
        streams = self.recorder.work
        lines = (streams.lines.used - before).trunc(i32).shr(2)
        record = RequestWork.at(append(streams.requests, RequestWork.size))
        record.number, record.lines = const(i32, number), lines
