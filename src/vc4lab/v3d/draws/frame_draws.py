"""The draws of a frame as native arrays, and the interface that serves their requests."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, overload

from vc4lab.records.states import NvShaderState
from vc4lab.simd import Function, NativeFunction, Value, build, i32, ptr
from vc4lab.v3d.draws.pipeline_table import (
    PIPELINE,
    PREPARED,
    ROOM,
    VERTICES,
    MadePipeline,
    PipelineTable,
    PrepareContext,
)
from vc4lab.v3d.state.tile_context import DrawParams
from vc4lab.v3d.tiles.job import Draw
from vc4lab.v3d.vertex.context import NvContext
from vc4lab.v3d.vertex.fetch import copy_function

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.checks.addresses import AddressCheck
    from vc4lab.v3d.fragment.pipeline import Pipeline
    from vc4lab.v3d.tile_lists.scan_context import DrawUse, ScanResult
    from vc4lab.v3d.vertex.shading import VertexStage

_ALIGNMENT = 64

EMPTY_DRAW = Draw(0, 0)
"""A draw that draws nothing, for states that cannot be drawn."""


@cache
def _native() -> NativeFunction:
    def body(context: Value) -> Value:
        from vc4lab.v3d.draws.kernel import prepare  # only when it is compiled

        return prepare(context)

    functions = {"prepare": Function(args=(ptr,), returns=i32, body=body)}
    return build("draws", functions, float_mode="default", key="draws")["prepare"]


class Found(NamedTuple):
    """The reply to a request for a pipeline.

    `entry` is a PipelineEntry, in the table or of this draw alone; `record` the shader record.
    """

    entry: Any
    made: MadePipeline
    record: bytes


class DrawServer(Protocol):
    """Serves requests of native code; a draw without a reply is left out."""

    def find(self, use: DrawUse) -> Found | None:
        """The pipeline of a draw, after reporting whatever there is to report about it."""

    def shade(self, use: DrawUse, rows: int, output: int) -> bool:
        """Shades the vertices of a draw, of `rows` words each, to a host address."""

    def reached(self, use: DrawUse, target: int, before: Draw) -> bool:
        """Whether a program was extended, now that it went on at an address."""

    def draw(self, function: int, params: int, made: MadePipeline) -> Draw:
        """The Python side of a draw."""


class FrameDraws(Sequence[Draw]):
    """The draws of the frame at hand; made once, filled again for each frame.

    `table` has two u64 a draw, the host addresses of its function and parameters. Items are made
    when they are asked for.
    """

    def __init__(
        self,
        memory: GuestMemory,
        vertices: VertexStage,
        addresses: AddressCheck,
        server: DrawServer,
        *,
        empty_windows: int,
        rht_moved: int,
    ) -> None:
        self.pipelines = PipelineTable()
        self.table: Any = None
        self._arena = vertices.arena
        self._server = server
        self._scan: ScanResult | None = None
        self._count = self._capacity = 0
        self._replies: dict[int, Found] = {}
        """Replies to this frame's requests, by the address of the entry."""
        self._requested: set[int] = set()
        self._prepare: Callable[[int], int] | None = None
        self._nv = NvContext()
        self._nv.memory = memory.base
        context = PrepareContext()
        self._context, self._address = context, context.address
        vertices.shaders.attach(context, memory.base, addresses)
        self.pipelines.attach(context)
        context.nv = self._nv.address
        context.empty_windows, context.rht_moved = empty_windows, rht_moved
        self._grow(64)

    def _grow(self, capacity: int) -> None:
        self._capacity = capacity
        self.table = (ctypes.c_uint64 * (2 * capacity))()
        self._found = (ctypes.c_uint64 * capacity)()
        self._params = (ctypes.c_char * (capacity * DrawParams.size + _ALIGNMENT))()
        context = self._context
        context.results = ctypes.addressof(self.table)
        context.found = ctypes.addressof(self._found)
        context.params = -(-ctypes.addressof(self._params) // _ALIGNMENT) * _ALIGNMENT

    def forget(self) -> None:
        """Gives the last frame's draws and all that is known up; between two frames."""
        self._scan, self._count = None, 0
        self._replies.clear()
        self._requested.clear()
        self.pipelines.renew()

    def without_request(self) -> list[int]:
        """The draws of the scan at hand whose pipelines were not requested."""
        return [number for number in range(self._count) if number not in self._requested]

    def drawn_with(self) -> list[Pipeline]:
        """The pipelines of the frame at hand."""
        made = [self._made(place) for place in self._found[: self._count]]
        return [found.pipeline for found in made if found is not None]

    def _made(self, place: int) -> MadePipeline | None:
        reply = self._replies.get(place)
        return self.pipelines.made.get(place) if reply is None else reply.made

    def fill(self, scan: ScanResult, *, mode: int) -> None:
        """Prepares all draws of a scan.

        `mode` numbers the modes of a frame that pipelines depend on (8 bits).
        """
        self._scan = scan
        context, count = self._context, scan.draw_count
        if self.pipelines.stale:
            self.pipelines.renew()
        if self._requested:
            self._replies.clear()
            self._requested.clear()
        self._count = count
        if not count:
            return
        if count > self._capacity:
            self._grow(2 * count)
        context.draws, context.draw_count, context.draw = scan.draw_entries, count, 0
        context.mode, context.expanded = mode, scan.context.expanded
        context.entry = context.record_copy = context.shaded = 0
        self._run()

    def _run(self) -> None:
        """Prepares the draws from `draw` on."""
        context, arena, prepare = self._context, self._arena, self._prepare
        if prepare is None:  # it is compiled, or loaded, when it is first used
            prepare = self._prepare = _native().call
        while True:
            context.room, context.room_end = arena.window
            status: int = prepare(self._address)
            arena.take_up_to(context.room)
            if status == PREPARED:
                return
            if status == ROOM:
                arena.reserve(context.needed)
            else:
                self._serve(status)

    def _serve(self, request: int) -> None:
        """Serves a request for the draw at hand, or leaves it out."""
        assert self._scan is not None
        context, server, number = self._context, self._server, self._context.draw
        use = self._scan.draw(number)
        if request == VERTICES:
            if server.shade(use, context.rows, context.output):
                context.shaded = 1
                return
        else:
            self._requested.add(number)
            found = server.find(use)
            if found is not None:
                self._record = ctypes.create_string_buffer(found.record, len(found.record))
                context.entry = found.entry.address
                context.record_copy = ctypes.addressof(self._record)
                self._replies[found.entry.address] = found
                if use.state.shader_kind == NvShaderState.id:
                    context.copy_nv = copy_function().address
                return
        self.table[2 * number] = self.table[2 * number + 1] = self._found[number] = 0
        context.entry = context.record_copy = 0
        context.draw = number + 1

    def reached(self, number: int, target: int) -> Draw | None:
        """A draw prepared again after its program went on at `target`; None if it cannot be."""
        assert self._scan is not None
        context = self._context
        if not self._server.reached(self._scan.draw(number), target, self[number]):
            return None
        context.draw, context.draw_count = number, number + 1
        self._serve(PIPELINE)
        self._run()
        return self[number]

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, number: int) -> Draw: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Draw]: ...
    def __getitem__(self, number: int | slice) -> Draw | Sequence[Draw]:
        if isinstance(number, slice):
            return [self[k] for k in range(*number.indices(self._count))]
        if not 0 <= number < self._count:
            raise IndexError(number)
        place = self._found[number]
        if not place:
            return EMPTY_DRAW
        made = self._made(place)
        assert made is not None
        return self._server.draw(self.table[2 * number], self.table[2 * number + 1], made)
