"""The command processor: does what commands say, one after the other or a queue in GPU memory.

What clears and draws are collected in until they are drawn: `open_frames.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.bounded import Bounded
from vc4lab.driver.commands import commands as c
from vc4lab.driver.commands.stored_blocks import BlockReader
from vc4lab.driver.draws.blit import BlitDraws, is_drawn
from vc4lab.driver.draws.frame_draws import FrameDraws
from vc4lab.driver.draws.lowering import DrawAdder
from vc4lab.driver.draws.programs import CompileError
from vc4lab.driver.frames.job import COLOUR0, DEPTH, STENCIL, ZS, FrameJob
from vc4lab.driver.frames.sample_copies import SampleCopy, is_tile_copy
from vc4lab.driver.gpu.memory import OutOfMemory
from vc4lab.driver.queue.draw_rows import DrawRows
from vc4lab.driver.queue.events import CommandExecuted, DrawAdded, FrameShown, QueueBegun, QueueDone
from vc4lab.driver.queue.open_frames import FrameCounts, OpenFrames
from vc4lab.images import srgb
from vc4lab.mesa.protocol.fields import Malformed
from vc4lab.mesa.protocol.work_commands import Blit as PipeBlit
from vc4lab.mesa.store import blits
from vc4lab.mesa.store.blits import pairs, planes
from vc4lab.mesa.store.resources import Box, Refused

if TYPE_CHECKING:
    from vc4lab.driver.commands.stored_blocks import BlockWriter, SharedState
    from vc4lab.driver.draws.prepared import PreparedDraw
    from vc4lab.driver.draws.programs import Compiler
    from vc4lab.driver.gpu.memory import GpuMemory, GpuResource
    from vc4lab.driver.gpu.runner import Runner
    from vc4lab.driver.pictures import Snapshot
    from vc4lab.driver.queue.events import QueueListeners
    from vc4lab.mesa.state.draw_run import DrawRun
    from vc4lab.mesa.state.pipe import Framebuffer, PipeState

_FULL_DEPTH = 0xFFFFFF
_COMPONENTS = "rgba"


class Processor:
    """Executes queues.

    Attributes
    ----------
    counts
        Frames, draws, and draws that were left out.
    """

    def __init__(
        self,
        memory: GpuMemory,
        runner: Runner,
        compiler: Compiler,
        resources: Callable[[int], GpuResource],
        writer: BlockWriter,
        listeners: QueueListeners,
    ) -> None:
        self.memory = memory
        self.runner = runner
        self.resources = resources
        self.listeners = listeners
        self.blocks = BlockReader(memory, resources)
        self.frame_draws = FrameDraws(memory)
        self.rows = DrawRows(memory, writer, self.frame_draws)
        self.draws = DrawAdder(memory, compiler, self.report)
        self.counts = FrameCounts()
        self.blits = BlitDraws(memory)
        self._frames = OpenFrames(memory, runner, self.frame_draws, listeners, self.counts)
        self._openings: Bounded[bytes, FrameJob] = Bounded(MOST_OPENINGS)
        """Frames as clears begin them, by the clears' bytes."""
        self._states: dict[int, SharedState] = {}
        """State of waiting draws, which keep their resources, by their ids."""

    def begin(self) -> None:
        """Commands come, after all of before are done."""
        if self.blocks.reset():
            self._openings.clear()

    def run(self, address: int, size: int) -> None:
        """Execute the queue at an address, up to its halt. Raises what `--strict` raises."""
        begun = time.monotonic()
        data = self.memory.guest.read(address, size)
        self.begin()
        if self.listeners.queue.subscriptions:
            self.listeners.queue.emit(QueueBegun(address, size))
        place = 0
        while True:
            try:
                command, after = c.command_at(data, place)
            except Malformed as reason:
                self.report("GL-017", f"{reason}; the rest of the queue is left out")
                break
            if self.listeners.command.subscriptions:
                self.listeners.command.emit(CommandExecuted(address + place, command))
            place = after
            if isinstance(command, c.Halt):
                break
            self.execute(command)
        self.finish(begun)

    def finish(self, begun: float) -> None:
        """Draw all that waits. `begun`: before its first command (time.monotonic)."""
        self._frames.finish()
        self._states.clear()
        if self.listeners.done.subscriptions:
            self.listeners.done.emit(QueueDone(begun))

    def draw_run(self, run: DrawRun, reserve: int, make_room: Callable[[], bool]) -> None:
        """Draw and clear as a run says. `make_room`: has all done if the arena has less left than
        some bytes, more than `reserve`; whether it had to.
        """
        rows = self.rows
        rows.begin(run)
        while True:
            self._add_known(*rows.add(reserve))
            if not rows.left:
                break
            if make_room():
                continue
            command = rows.command()
            if isinstance(command, c.Draw):
                self.execute(command)
            elif not self._open(command):
                self.execute(c.command_at(command, 0)[0])
        rows.end()

    def _open(self, data: bytes) -> bool:
        """Begin a frame as a clear does, by its bytes, if that is known; whether it is."""
        opening = self._openings.get(data) if self._frames.is_empty else None
        if opening is None or not opening.begins_the_same:
            return False
        self._frames.begin_with(opening.again())
        return True

    def _add_known(self, draws: int, fresh: list[tuple[PreparedDraw, SharedState]]) -> None:
        """Known draws are in the frame at hand."""
        counts, job = self.counts, self._frames.job
        if draws and job is not None:
            first = counts.draw_of_frame + 1
            counts.draws += draws
            counts.draw_of_frame += draws
            job.drawn += range(first, first + draws)
            for made, shared in fresh:
                self._states[id(shared)] = shared
                job.reads.update(shared.textures if made.moving else shared.reads)
                job.depth(made)

    def execute(self, command: c.QueueCommand) -> None:
        """Do what a command says. Raises what `--strict` raises."""
        try:
            _HANDLERS[type(command)](self, command)
        except Refused as reason:
            self.report(reason.code, f"{command.name}: {reason.text}")
        except Malformed as reason:
            self.report("GL-017", f"{command.name}: {reason}")
        except OutOfMemory as reason:
            self.report("GL-006", f"{command.name}: {reason}")

    @property
    def last_picture(self) -> Snapshot | None:
        """The picture that was drawn to last."""
        return self._frames.last_picture

    def forget(self, resource: GpuResource) -> None:
        """A resource goes: nothing may keep it alive."""
        self._frames.forget(resource)
        self._openings.clear()
        self.blocks.forget()
        self.draws.lowering.forget()
        self.rows.forget()
        self.blits.forget()

    def report(self, code: str, text: str) -> None:
        """A message that names the frame."""
        self.runner.reports.doing = f"frame {self.counts.frame}"
        self.runner.reports.report(code, text, block="GL")

    # -- commands ----------------------------------------------------------------------------------

    def draw(self, command: c.Draw) -> None:
        """Draw primitives."""
        self.counts.draws += 1
        number = self.counts.draw_of_frame = self.counts.draw_of_frame + 1
        try:
            self._draw(command, number)
        except (Refused, Malformed, CompileError, OutOfMemory) as reason:
            self.counts.left_out += 1
            code = reason.code if isinstance(reason, Refused) else _CODES[type(reason)]
            text = reason.text if isinstance(reason, Refused) else str(reason)
            self.runner.reports.doing = f"frame {self.counts.frame}, draw {number}"
            self.runner.reports.report(code, f"left out: {text}", block="GL")

    def _draw(self, command: c.Draw, number: int) -> None:
        if not command.count or not command.instances:
            return
        shared, uniforms = self.blocks.shared(command.pipe_state, command.shader_state)
        reads = shared.reads
        self._frames.will_read(reads)
        place = command.vertices

        def whole() -> PipeState:
            return self.blocks.moved(self.blocks.whole(shared, uniforms), place)

        moved = self.blocks.moved(shared.state, place) if place else None
        is_drawn = False
        for job in self._frames.parts(shared.state.framebuffer):
            if not self.draws.add_shared(job, shared, uniforms, command, whole, moved):
                continue
            is_drawn = True
            self._states[id(shared)] = shared
            job.reads.update(shared.textures if self.draws.is_moved else reads)
            job.drawn.append(number)
            repeats = self.draws.repeats
            if repeats is not None and shared.lasts and job.writes.keys().isdisjoint(reads):
                self.rows.learn(repeats, shared, moves=self.draws.is_moved)
        if is_drawn and self.listeners.draw.subscriptions and self.draws.pipeline is not None:
            self.listeners.draw.emit(DrawAdded(number, command, whole(), self.draws.pipeline))

    def clear(self, command: c.Clear) -> None:
        """Fill surfaces, as the first thing of a frame or later."""
        framebuffer = self.blocks.framebuffer(command.framebuffer)
        buffers = command.buffers
        if framebuffer.zsbuf is None:
            buffers &= ~ZS
        if not any(one is not None for one in framebuffer.cbufs):
            buffers &= ZS
        if not buffers & (ZS | COLOUR0):
            return
        begins = self._frames.is_empty and self.blocks.lasts(command.framebuffer)
        job = self._frames.begin(framebuffer)
        if not job.can_clear(buffers):
            self._frames.flush()
            job = self._frames.begin(framebuffer)
        if not job.can_clear(buffers):
            self._clear_in_memory(framebuffer, command)
            buffers &= ~ZS
            begins = False
        if buffers:
            order = job.target.order
            depth = min(max(command.depth, 0.0), 1.0) if command.depth == command.depth else 0.0
            # As the chip quantises depth: times 2^24, saturated.
            bits = min(int(depth * (1 << 24)), _FULL_DEPTH)
            color = command.color
            if job.target.is_srgb:
                color = (*srgb.stored(color[:3]).tolist(), color[3])
            job.clear(buffers, colour_word(color, order), bits, command.stencil & 0xFF)
        if begins:
            self._openings[command.encode_command()] = job.again()

    def _clear_in_memory(self, framebuffer: Framebuffer, command: c.Clear) -> None:
        """Depth without stencil, or the other way round: the tile buffer clears both."""
        surface = framebuffer.zsbuf
        assert surface is not None
        width, height = framebuffer.size
        state = surface.state
        box = Box(0, 0, state.first_layer, width, height, 1)
        for plane in planes(surface.resource):
            blits.clear_depth_stencil(
                plane, state.level, box,
                command.depth if command.buffers & DEPTH else None,
                command.stencil if command.buffers & STENCIL else None,
            )  # fmt: skip

    def copy(self, command: c.Copy) -> None:
        """Copy texels as they are."""
        target, source = self._used(command.target), self._used(command.source)
        box = Box(*command.box)
        place = command.place[0], command.place[1], command.place[2]
        levels = command.target_level, command.source_level
        for to, of in pairs(target, source):
            blits.copy_region(to, levels[0], place, of, levels[1], box)

    def blit(self, command: c.Blit) -> None:
        """Copy texels, scaled and converted."""
        target, source = self.resources(command.target), self.resources(command.source)
        if is_tile_copy(command, target, source):
            self._used(command.source)
            self._used(command.target)
            self._frames.run(SampleCopy(command, target, source, self.frame_draws))
            return
        if is_drawn(command, target, source):
            self._draw_blit(command, target, source)
            return
        self._used(command.target)
        self._used(command.source)
        asked = PipeBlit(
            command.mask, command.filter, command.scissor_enable, command.render_condition_enable,
            command.alpha_blend, command.scissor, 0, command.target_level, command.target_format,
            command.target_box, 0, command.source_level, command.source_format, command.source_box,
        )  # fmt: skip
        for to, of in pairs(target, source):
            blits.blit(asked, to, of)

    def _draw_blit(self, command: c.Blit, target: GpuResource, source: GpuResource) -> None:
        self._used(command.source)
        if self.blits.is_full:
            self._frames.finish()
            self.blits.forget()
        blit = self.blits.of(command, target, source)
        for job in self._frames.parts(blit.state.framebuffer):
            if blit.covers_target and not job.has_work:
                job.clear(COLOUR0, 0, 0, 0)  # nothing has to be loaded
            try:
                blit.prepared = self.draws.add(job, blit.state, blit.draw, blit.prepared)
            except CompileError as reason:
                raise Refused("GL-016", str(reason)) from None
            job.reads[source.number] = source

    def upload(self, command: c.Upload) -> None:
        """Memory → resource."""
        resource, box = self.resources(command.resource), Box(*command.box)
        self.will_put(resource, box)
        resource.put(command.level, box, self._rows(resource, box, command.address))

    def will_put(self, resource: GpuResource, box: Box) -> None:
        """A box is written: what waits and needs its texels as they are comes before."""
        if resource.is_buffer:
            self._frames.will_write(resource, box.x, box.x + box.width)
        else:
            self._frames.will_use(resource)

    def read_back(self, command: c.ReadBack) -> None:
        """Resource → memory."""
        resource, box = self._used(command.resource), Box(*command.box)
        self._rows(resource, box, command.address)[...] = resource.get(command.level, box)

    def sync(self, _command: c.Sync) -> None:
        """Wait until all blocks are done."""
        self._frames.finish()

    def dump(self, command: c.Dump) -> None:
        """Show a picture."""
        resource = self.resources(command.resource)
        self._frames.finish()
        self.counts.end_frame()
        if self.listeners.frame.subscriptions:
            self.listeners.frame.emit(FrameShown(self.counts.frame - 1, resource))

    def _used(self, number: int) -> GpuResource:
        """A resource that is read or written outside of frames: what waits comes before."""
        resource = self.resources(number)
        self._frames.will_use(resource)
        return resource

    def _rows(self, resource: GpuResource, box: Box, address: int) -> np.ndarray[Any, Any]:
        """A box's rows in memory, without padding. Raises Refused."""
        layout = resource.layout
        shape = box.depth, layout.rows(box.height), layout.row_bytes(box.width)
        size = shape[0] * shape[1] * shape[2]
        if size > resource.size:
            raise Refused("GL-005", f"{resource} does not hold {box}")
        found: np.ndarray[Any, Any] = self.memory.guest.array(address, size).reshape(shape)
        return found


MOST_OPENINGS = 64


@lru_cache(maxsize=64)
def colour_word(colour: tuple[float, ...], order: str) -> int:
    """A colour as the tile buffer has it."""
    word = 0
    for byte, name in enumerate(order):
        value = 1.0 if name == "x" else colour[_COMPONENTS.index(name)]
        value = min(max(value, 0.0), 1.0) if value == value else 0.0
        # As singles: 0.3 becomes 76, as other drivers have it.
        word |= round(float(np.float32(value) * np.float32(255))) << 8 * byte
    return word


_CODES = {CompileError: "GL-016", Malformed: "GL-017", OutOfMemory: "GL-006"}
_HANDLERS: dict[type[c.QueueCommand], Callable[[Processor, Any], None]] = {
    c.Draw: Processor.draw,
    c.Clear: Processor.clear,
    c.Copy: Processor.copy,
    c.Blit: Processor.blit,
    c.Upload: Processor.upload,
    c.ReadBack: Processor.read_back,
    c.Sync: Processor.sync,
    c.Dump: Processor.dump,
}
"""Methods for each command; a halt ends the queue."""
