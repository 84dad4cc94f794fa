"""The hardware layer below Mesa: resources in GPU memory, work through the command queue.

The command processor executes commands as they come. Where something listens to them, they are
written to the queue in GPU memory, with their state and data beside them, and are executed when a
client waits for the result, or when the memory for one frame is used up.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.driver.commands import commands as c
from vc4lab.driver.commands.stored_blocks import BlockWriter, resources_of
from vc4lab.driver.gpu.memory import GpuMemory, GpuResource, OutOfMemory
from vc4lab.driver.gpu.runner import Runner
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
"""Bytes of commands between two runs of the processor."""
RESERVE = 48 << 20
"""Bytes of the arena that stay for lists and data which the processor makes of the commands."""
LEAST_LEFT = RESERVE // 2
"""Those that a run of draws leaves."""
MOST_GONE = 64 << 20
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

    def __init__(self, reporter: Reporter, compiler: Compiler, options: GpuOptions | None = None) -> None:
        self.reporter = reporter
        self.memory = GpuMemory()
        self.runner = Runner(self.memory.guest, reporter, options or GpuOptions())
        self.listeners = QueueListeners()
        self._resources: weakref.WeakValueDictionary[int, GpuResource] = weakref.WeakValueDictionary()
        self._numbers = 0
        self.writer = BlockWriter(self.memory)
        self.processor = Processor(
            self.memory, self.runner, compiler, self._resource, self.writer, self.listeners
        )
        self._begun = 0.0
        """When the first command came that is executed and not done; 0: there is none."""
        self._queue = bytearray()
        self._gone = 0
        """Bytes of buffers that clients need no longer, since state was forgotten."""
        self._used: dict[int, GpuResource] = {}
        """Resources that waiting commands name."""

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

    @property
    def _is_queued(self) -> bool:
        """Whether commands go to the queue, and are not executed at once."""
        return bool(self._queue) or self.listeners.see_commands

    def _begin(self) -> None:
        """A command is executed next."""
        if not self._begun:
            self._begun = time.monotonic()
            self.processor.begin()

    def _do(self, command: c.QueueCommand, *resources: Resource) -> None:
        """Execute a command that names these, now or with the queue."""
        if not self._is_queued:
            self._begin()
            self.processor.execute(command)
            return
        self._queue += command.encode_command()
        for one in resources:
            self._used[one.number] = one  # type: ignore[attr-defined,assignment]

    def _make_room(self, size: int = 0) -> bool:
        """Let what waits be done if the memory for it is used up; whether it was."""
        is_full = len(self._queue) > QUEUE_BYTES or self.memory.arena.left < RESERVE + size
        if is_full:
            self.finish()
        return is_full

    def finish(self) -> None:
        begun, self._begun = self._begun, 0.0
        if not self._queue and not begun:
            return
        try:
            if self._queue:
                data = bytes(self._queue) + _HALT
                self._queue.clear()
                self.processor.run(self.memory.keep(data), len(data))
            else:
                self.processor.finish(begun)
        except OutOfMemory as reason:
            self.reporter.report("GL-006", str(reason), block="GL")
        finally:
            self._used.clear()
            self._reset()

    def _reset(self) -> None:
        """Give back what lay beside the queue, which is not needed any more."""
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
        if not self._is_queued:
            data = bytes_for_buffer(transfer)
            if data is not None:  # streams of vertices are many of them
                resource: Any = transfer.resource
                if self._begun:
                    self.processor.will_put(resource, transfer.box)
                resource.put_bytes(transfer.box.x, data)
                return
        self._put(transfer.resource, transfer.level, transfer.box, shared_part(transfer))

    def write(self, resource: Resource, level: int, box: Box, data: bytes, strides: tuple[int, int]) -> None:
        resource.check(level, box)
        rows = box_in(data, resource, box, 0, *tight(resource, box, strides))
        self._put(resource, level, box, rows)

    def _put(self, resource: Resource, level: int, box: Box, rows: np.ndarray[Any, Any]) -> None:
        if not rows.size:
            return
        if not self._is_queued:
            if self._begun:
                self.processor.will_put(resource, box)  # type: ignore[arg-type]
            resource.put(level, box, rows)
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
        self._do(c.Upload(number, level, tuple(box), address), resource)

    def download(self, transfer: Transfer) -> None:
        resource, level, box = transfer.resource, transfer.level, transfer.box
        shared = shared_part(transfer)
        shared[...] = self._get(resource, level, box)

    def read(self, resource: Resource, level: int, box: Box, strides: tuple[int, int]) -> memoryview:
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
            self._do(c.Dump(number), resource)
        if not self._is_queued:
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
        self._do(c.ReadBack(number, level, tuple(box), address), resource)
        self.finish()
        found: np.ndarray[Any, Any] = self.memory.guest.array(address, size).reshape(shape)
        return found

    # -- work --------------------------------------------------------------------------------------

    def clear(self, framebuffer: Framebuffer, command: Clear) -> None:
        self._make_room()
        surfaces = (*framebuffer.cbufs, framebuffer.zsbuf)
        place = self.writer.framebuffer(framebuffer)
        self._do(
            c.Clear(place, command.buffers, command.color, command.depth, command.stencil),
            *[one.resource for one in surfaces if one is not None],
        )

    def draw(self, state: PipeState, command: DrawVbo) -> None:
        self._make_room()
        pipe_state, shader_state = self.writer.pipe_state(state), self.writer.shader_state(state)
        self._do(c.draw(command, 0, pipe_state, shader_state), *self._resources_of(state))

    @staticmethod
    def _resources_of(state: PipeState) -> list[Any]:
        """Those that a draw reads and writes."""
        surfaces = (*state.framebuffer.cbufs, state.framebuffer.zsbuf)
        written = [one.resource for one in surfaces if one is not None]
        return written + resources_of(state)

    def draw_run(self, run: DrawRun) -> None:
        self._make_room()
        if not self._is_queued:
            self._begin()
            self.processor.draw_run(run, LEAST_LEFT, self._make_room_and_begin)
            return
        for state in run.states:
            for one in self._resources_of(state):
                self._used[one.number] = one
        rows = self.processor.rows
        rows.begin(run)
        while rows.left:
            self._make_room()
            command = rows.command()
            self._queue += command if isinstance(command, bytes) else command.encode_command()
        rows.end()

    def _make_room_and_begin(self) -> bool:
        """In a run: what waits is done if the memory for it is used up; whether it was."""
        is_full = self._make_room()
        self._begin()
        return is_full

    def blit(self, command: Blit, target: Resource, source: Resource) -> None:
        self._make_room()
        numbers = target.number, source.number  # type: ignore[attr-defined]
        self._do(
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
        self._do(
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
