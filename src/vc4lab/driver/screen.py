"""The hardware layer below Mesa: resources in GPU memory, work through the command queue.

Commands are written to the queue in GPU memory as they come, with their state and data beside
them; the command processor executes them when a client waits for the result, or when the memory
for one frame is used up.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.driver.gpu.memory import GpuMemory, OutOfMemory
from vc4lab.driver.gpu.resource import GpuResource
from vc4lab.driver.gpu.runner import Runner
from vc4lab.driver.queue import commands as c
from vc4lab.driver.queue.block_writer import BlockWriter, resources_of
from vc4lab.driver.queue.draw_runs import DrawRuns
from vc4lab.driver.queue.events import QueueListeners
from vc4lab.driver.queue.processor import Processor
from vc4lab.mesa.protocol.codes import QueryType
from vc4lab.mesa.protocol.fields import Malformed
from vc4lab.mesa.store.resources import Box, Refused, Resource, box_in
from vc4lab.mesa.store.software import bytes_for_buffer, shared_part, tight
from vc4lab.options import GpuOptions

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.driver.draws.programs import Compiler
    from vc4lab.mesa.protocol.messages import ResourceCreate, ResourceCreate2
    from vc4lab.mesa.protocol.work_commands import Blit, Clear, DrawVbo, ResourceCopyRegion
    from vc4lab.mesa.state.draw_run import DrawRun
    from vc4lab.mesa.state.pipe import BoundQuery, Framebuffer, PipeState
    from vc4lab.mesa.store.screen import Transfer

QUEUE_BYTES = 1 << 20
"""Of commands between two runs of the processor."""
RESERVE = 48 << 20
"""Bytes of the arena that stay for lists and data which the processor makes of the commands."""
MOST_GONE = 64 << 20
MOST_HEADS = 1 << 12
MOST_TURNS = 1 << 30
_HALT = c.Halt().encode_command()
_TIMES = (QueryType.TIMESTAMP, QueryType.TIME_ELAPSED, QueryType.TIMESTAMP_DISJOINT)


class VideoCoreScreen:
    """A `Screen` (`mesa/store/screen.py`) on a V3D.

    Attributes
    ----------
    memory, runner, processor
        GPU memory, the V3D, the command processor.
    writer
        Puts blocks of state beside the queue.
    listeners
        For what may be observed (`queue/events.py`).
    """

    def __init__(
        self, reporter: Reporter, compiler: Compiler, options: GpuOptions | None = None
    ) -> None:
        self.reporter = reporter
        self.memory = GpuMemory()
        self.runner = Runner(self.memory.guest, reporter, options or GpuOptions())
        self.listeners = QueueListeners()
        self._resources: weakref.WeakValueDictionary[int, GpuResource] = (
            weakref.WeakValueDictionary()
        )
        self._numbers = 0
        self.processor = Processor(
            self.memory, self.runner, compiler, self._resource, self.listeners
        )
        self.writer = BlockWriter(self.memory)
        self._runs = DrawRuns(self.memory, self.writer)
        self._turn = 1
        """Of the queue."""
        self._queue = bytearray()
        self._gone = 0
        """Bytes of buffers that clients need no longer, since state was forgotten."""
        self._used: dict[int, GpuResource] = {}
        """Resources that waiting commands name."""
        self._states: list[PipeState] = []
        """States of waiting draws, which keep their resources."""
        self._named: set[int] = set()
        """Pipe states whose resources are among them."""
        self._heads: dict[int, tuple[DrawVbo, bytes]] = {}
        """Draws of the queue without their addresses, by the ids of Gallium's."""

    def _resource(self, number: int) -> GpuResource:
        found = self._resources.get(number)
        if found is None:
            raise Malformed(f"there is no resource {number}")
        return found

    def create(self, asked: ResourceCreate | ResourceCreate2) -> Resource:
        self._numbers += 1
        return self.create_numbered(asked, self._numbers)

    def create_numbered(self, asked: ResourceCreate | ResourceCreate2, number: int) -> GpuResource:
        """A resource with the driver's number for it. Raises Refused."""
        made = GpuResource(asked, self.memory, number)
        self._resources[made.number] = made
        return made

    def destroy(self, resource: Resource) -> None:
        """Its memory is free when nothing refers to it."""
        if not isinstance(resource, GpuResource):
            return
        if resource.is_buffer:
            # State that is kept may name it. Streams of vertices come and go all the time.
            self._gone += resource.size
            if self._gone <= MOST_GONE:
                return
        self.finish()
        self._gone = 0
        self.writer.forget()
        self.processor.forget(resource)

    def _add(self, command: c.QueueCommand, *resources: Resource) -> None:
        self._queue += command.encode_command()
        for one in resources:
            self._used[one.number] = one  # type: ignore[attr-defined,assignment]

    def _make_room(self, size: int = 0) -> None:
        """Let what waits be done if the memory for it is used up."""
        if len(self._queue) > QUEUE_BYTES or self.memory.arena.left < RESERVE + size:
            self.finish()

    def finish(self) -> None:
        if not self._queue:
            return
        data = bytes(self._queue) + _HALT
        self._queue.clear()
        try:
            self.processor.run(self.memory.keep(data), len(data))
        except OutOfMemory as reason:
            self.reporter.report("GL-006", str(reason), block="GL")
        finally:
            self._used.clear()
            self._states.clear()
            self._reset()

    def _reset(self) -> None:
        """What lay beside the queue is not needed any more."""
        self._named.clear()
        self._turn = self._turn % MOST_TURNS + 1
        self.memory.arena.reset()
        self.writer.reset()

    def execute(self, commands: Iterable[c.QueueCommand]) -> None:
        """Execute a queue of these commands, whose blocks and data the caller puts into the arena
        meanwhile. Raises OutOfMemory.
        """
        try:
            data = b"".join(one.encode_command() for one in commands) + _HALT
            self.processor.run(self.memory.keep(data), len(data))
        finally:
            self._reset()

    # -- transfers ---------------------------------------------------------------------------------

    def upload(self, transfer: Transfer) -> None:
        if not self._queue and not self.listeners.see_commands:
            data = bytes_for_buffer(transfer)
            if data is not None:  # streams of vertices are many of them
                transfer.resource.put_bytes(transfer.box.x, data)  # type: ignore[attr-defined]
                return
        self._put(transfer.resource, transfer.level, transfer.box, shared_part(transfer))

    def write(
        self, resource: Resource, level: int, box: Box, data: bytes, strides: tuple[int, int]
    ) -> None:
        resource.check(level, box)
        rows = box_in(data, resource, box, 0, *tight(resource, box, strides))
        self._put(resource, level, box, rows)

    def _put(self, resource: Resource, level: int, box: Box, rows: np.ndarray[Any, Any]) -> None:
        if not rows.size:
            return
        if not self._queue and not self.listeners.see_commands:
            resource.put(level, box, rows)  # before all that comes, without a copy beside the queue
            return
        self._make_room(rows.nbytes)
        try:
            address = self.memory.arena.allocate(rows.nbytes, 64)
        except OutOfMemory:
            # More than the arena at once: done before what comes next, without the queue.
            self.finish()
            resource.put(level, box, rows)
            return
        self.memory.guest.array(address, rows.nbytes).reshape(rows.shape)[...] = rows
        number = resource.number  # type: ignore[attr-defined]
        self._add(c.Upload(number, level, tuple(box), address), resource)

    def download(self, transfer: Transfer) -> None:
        resource, level, box = transfer.resource, transfer.level, transfer.box
        shared = shared_part(transfer)
        shared[...] = self._get(resource, level, box)

    def read(
        self, resource: Resource, level: int, box: Box, strides: tuple[int, int]
    ) -> memoryview:
        resource.check(level, box)
        stride, layer_stride = tight(resource, box, strides)
        rows = self._get(resource, level, box)
        size = (box.depth - 1) * layer_stride + rows.shape[1] * stride if rows.size else 0
        if size > resource.size + (1 << 20):
            raise Refused("GL-006", f"{resource}: {size} bytes of {box} are too many")
        data = np.zeros(size, np.uint8)
        box_in(data, resource, box, 0, stride, layer_stride)[...] = rows
        return data.data

    def _get(self, resource: Resource, level: int, box: Box) -> np.ndarray[Any, Any]:
        """A box after all work on it, until the next work; of a window as a whole it ends a
        frame.
        """
        resource.check(level, box)
        number = resource.number  # type: ignore[attr-defined]
        if resource.is_window and (box.width, box.height) == (resource.width, resource.height):
            self._add(c.Dump(number), resource)
        if not self.listeners.see_commands:
            self.finish()
            result: np.ndarray[Any, Any] = resource.in_place(level, box)  # type: ignore[attr-defined]
            return result
        layout = resource.layout
        shape = box.depth, layout.rows(box.height), layout.row_bytes(box.width)
        size = shape[0] * shape[1] * shape[2]
        self._make_room(size)
        try:
            address = self.memory.arena.allocate(size, 64)
        except OutOfMemory:
            self.finish()
            return resource.get(level, box)
        self._add(c.ReadBack(number, level, tuple(box), address), resource)
        self.finish()
        found: np.ndarray[Any, Any] = self.memory.guest.array(address, size).reshape(shape)
        return found

    # -- work --------------------------------------------------------------------------------------

    def clear(self, framebuffer: Framebuffer, command: Clear) -> None:
        self._make_room()
        self._keep(framebuffer)
        place = self.writer.framebuffer(framebuffer)
        self._add(c.Clear(place, command.buffers, command.color, command.depth, command.stencil))

    def _keep(self, framebuffer: Framebuffer) -> None:
        for surface in (*framebuffer.cbufs, framebuffer.zsbuf):
            if surface is not None:
                self._used[surface.resource.number] = surface.resource  # type: ignore[attr-defined,assignment]

    def draw(self, state: PipeState, command: DrawVbo) -> None:
        self._make_room()
        pipe_state = self.writer.pipe_state(state)
        textures = state.vertex.views, state.fragment.views
        if pipe_state not in self._named or any(textures):
            # Until the queue is done, a block has one place: draws of it name the same resources.
            self._named.add(pipe_state)
            self._keep(state.framebuffer)
            for bound in resources_of(state):
                self._used[bound.number] = bound
        places = c.DRAW_PLACES.pack(pipe_state, self.writer.shader_state(state))
        self._queue += self._draw_head(command) + places

    def draw_run(self, run: DrawRun) -> None:
        self._make_room(self._runs.room(run))
        data, states = self._runs.write(run, self._turn)
        self._states += states
        self._queue += data

    def _draw_head(self, command: DrawVbo) -> bytes:
        """A draw's bytes before its addresses. Equal draws are mostly one object."""
        known = self._heads.get(id(command))
        if known is None:
            if len(self._heads) >= MOST_HEADS:
                self._heads.clear()
            made = c.Draw(
                mode=command.mode,
                start=command.start,
                count=command.count,
                instances=command.instance_count,
                start_instance=command.start_instance,
                index_bias=command.index_bias,
                restart_index=command.restart_index,
                min_index=command.min_index,
                max_index=command.max_index,
                indexed=bool(command.indexed),
                primitive_restart=bool(command.primitive_restart),
                vertices=0,
                pipe_state=0,
                shader_state=0,
            )
            head = made.encode_command()[: -c.DRAW_PLACES.size]
            # The command is kept: its id stays its own.
            known = self._heads[id(command)] = command, head
        return known[1]

    def blit(self, command: Blit, target: Resource, source: Resource) -> None:
        self._make_room()
        numbers = target.number, source.number  # type: ignore[attr-defined]
        self._add(
            c.Blit(
                command.mask, command.filter, command.scissor_enable,
                command.render_condition_enable, command.alpha_blend, command.scissor,
                numbers[0], command.dst_level, command.dst_format, command.dst_box,
                numbers[1], command.src_level, command.src_format, command.src_box,
            ),
            *(target, source),
        )  # fmt: skip

    def copy_region(self, command: ResourceCopyRegion, target: Resource, source: Resource) -> None:
        self._make_room()
        numbers = target.number, source.number  # type: ignore[attr-defined]
        box = command.x, command.y, command.z, command.width, command.height, command.depth
        place = command.dstx, command.dsty, command.dstz
        self._add(
            c.Copy(numbers[0], command.dst_level, place, numbers[1], command.src_level, box),
            *(target, source),
        )

    def begin_query(self, query: BoundQuery) -> int:
        return time.monotonic_ns()

    def end_query(self, query: BoundQuery, begun: int | None) -> int:
        kind = query.state.type
        if kind not in _TIMES:
            self.reporter.report("GL-018", f"queries of kind {kind} count nothing", block="GL")
            return 0
        self.finish()
        now = time.monotonic_ns()
        return now - (begun or now) if kind == QueryType.TIME_ELAPSED else now
