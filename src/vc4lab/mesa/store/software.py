"""Resources, transfers, clears, copies and blits without a GPU. It draws nothing, and says so."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from vc4lab.mesa.protocol.codes import QueryType, Target
from vc4lab.mesa.protocol.work_commands import Clear
from vc4lab.mesa.store import blits
from vc4lab.mesa.store.blits import pairs, planes
from vc4lab.mesa.store.resources import Box, HostResource, Refused, Resource, box_in

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.mesa.protocol.messages import ResourceCreate, ResourceCreate2
    from vc4lab.mesa.protocol.work_commands import Blit, DrawVbo, ResourceCopyRegion
    from vc4lab.mesa.state.draw_run import DrawRun
    from vc4lab.mesa.state.pipe import BoundQuery, BoundSurface, Framebuffer, PipeState
    from vc4lab.mesa.store.screen import Transfer

DEPTH, STENCIL, COLOUR0 = 1, 2, 4
"""Bits of CLEAR's buffers."""
_TIMES = (QueryType.TIMESTAMP, QueryType.TIME_ELAPSED, QueryType.TIMESTAMP_DISJOINT)


class SoftwareScreen:
    """A `Screen` on the CPU.

    Attributes
    ----------
    draws
        Draws that were asked for; none was drawn.
    """

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self.draws = 0

    def create(self, asked: ResourceCreate | ResourceCreate2) -> Resource:
        return HostResource(asked)

    def destroy(self, resource: Resource) -> None:
        pass

    def upload(self, transfer: Transfer) -> None:
        transfer.resource.put(transfer.level, transfer.box, shared_part(transfer))

    def download(self, transfer: Transfer) -> None:
        shared_part(transfer)[...] = transfer.resource.get(transfer.level, transfer.box)

    def write(self, resource: Resource, level: int, box: Box, data: bytes, strides: tuple[int, int]) -> None:
        resource.check(level, box)
        resource.put(level, box, box_in(data, resource, box, 0, *tight(resource, box, strides)))

    def read(self, resource: Resource, level: int, box: Box, strides: tuple[int, int]) -> bytes:
        part = resource.get(level, box)
        stride, layer_stride = tight(resource, box, strides)
        size = (box.depth - 1) * layer_stride + part.shape[1] * stride if part.size else 0
        if size > resource.size + (1 << 20):
            raise Refused("GL-006", f"{resource}: {size} bytes of {box} are too many")
        data = bytearray(size)
        box_in(data, resource, box, 0, stride, layer_stride)[...] = part
        return bytes(data)

    def clear(self, framebuffer: Framebuffer, command: Clear) -> None:
        width, height = framebuffer.size
        for number, surface in enumerate(framebuffer.cbufs):
            if surface is not None and command.buffers & COLOUR0 << number:
                box = _whole(surface, width, height)
                blits.clear_colour(
                    *(surface.resource, surface.state.level, box),
                    *(blits.layout_as(surface.state.format, surface.resource), command.color),
                )
        surface = framebuffer.zsbuf
        if surface is not None and command.buffers & (DEPTH | STENCIL):
            for plane in planes(surface.resource):
                blits.clear_depth_stencil(
                    *(plane, surface.state.level, _whole(surface, width, height)),
                    command.depth if command.buffers & DEPTH else None,
                    command.stencil if command.buffers & STENCIL else None,
                )

    def draw(self, state: PipeState, command: DrawVbo) -> None:
        self.draws += 1
        self.reporter.report(
            "GL-010", "draws are not built yet: this and all others are left out", block="GL"
        )

    def draw_run(self, run: DrawRun) -> None:
        for state, command in run.commands():
            if isinstance(command, Clear):
                self.clear(state.framebuffer, command)
            else:
                self.draw(state, command)

    def blit(self, command: Blit, target: Resource, source: Resource) -> None:
        for to, of in pairs(target, source):
            blits.blit(command, to, of)

    def copy_region(self, command: ResourceCopyRegion, target: Resource, source: Resource) -> None:
        place = command.dstx, command.dsty, command.dstz
        size = command.width, command.height, command.depth
        box = Box(command.x, command.y, command.z, *size)
        for to, of in pairs(target, source):
            blits.copy_region(to, command.dst_level, place, of, command.src_level, box)

    def begin_query(self, query: BoundQuery) -> int:
        return time.monotonic_ns()

    def end_query(self, query: BoundQuery, begun: int | None) -> int:
        kind = query.state.type
        if kind not in _TIMES:
            self.reporter.report("GL-010", f"queries of kind {kind} count nothing yet", block="GL")
            return 0
        now = time.monotonic_ns()
        return now - (begun or now) if kind == QueryType.TIME_ELAPSED else now

    def finish(self) -> None:
        pass


def shared_part(transfer: Transfer) -> np.ndarray:
    """The box in shared memory. Raises Refused, also if the resource has no such box."""
    resource, box = transfer.resource, transfer.box
    resource.check(transfer.level, box)
    if transfer.memory is resource:
        strides = transfer.stride, transfer.layer_stride
        return resource.staging_part(transfer.level, box, transfer.offset, *strides)
    staging = transfer.memory.staging
    if staging is None:
        raise Refused("GL-005", f"{transfer.memory} shares no memory")
    strides = tight(resource, box, (transfer.stride, transfer.layer_stride))
    return box_in(staging.memory, resource, box, transfer.offset, *strides)


def bytes_for_buffer(transfer: Transfer) -> memoryview | None:
    """A buffer's bytes in shared memory; None for anything else, and where it has to be refused."""
    resource, box, offset = transfer.resource, transfer.box, transfer.offset
    staging = transfer.memory.staging
    if resource.target != Target.BUFFER or transfer.level or staging is None:
        return None
    x, y, z, width, height, depth = box
    is_row = not (y or z) and height == depth == 1 and width and resource.layout.block_bytes == 1
    if not is_row or x + width > resource.width or offset + width > staging.size:
        return None
    return staging.view[offset : offset + width]


def tight(resource: Resource, box: Box, strides: tuple[int, int]) -> tuple[int, int]:
    """Strides of rows and layers; 0 becomes those of a box without padding."""
    layout = resource.layout
    stride = strides[0] or layout.row_bytes(box.width)
    return stride, strides[1] or stride * layout.rows(box.height)


def _whole(surface: BoundSurface, width: int, height: int) -> Box:
    """All of a surface that the frame buffer has."""
    state = surface.state
    layers = max(state.last_layer - state.first_layer, 0) + 1
    return Box(0, 0, state.first_layer, width, height, layers)
