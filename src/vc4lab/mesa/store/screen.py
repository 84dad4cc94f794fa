"""Declares what commands need from the layer below: the hardware, or a store in software."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from vc4lab.mesa.protocol.messages import ResourceCreate, ResourceCreate2
    from vc4lab.mesa.protocol.work_commands import Blit, Clear, DrawVbo, ResourceCopyRegion
    from vc4lab.mesa.state.draw_run import DrawRun
    from vc4lab.mesa.state.pipe import BoundQuery, Framebuffer, PipeState
    from vc4lab.mesa.store.resources import Box, Resource


class Transfer(NamedTuple):
    """A box of a level, and where it is in memory that is shared with the client.

    `memory` is the resource whose staging it is: the same one, except in copy transfers. A stride
    of 0 is that of the level.
    """

    resource: Resource
    level: int
    box: Box
    memory: Resource
    offset: int
    stride: int = 0
    layer_stride: int = 0


class Screen(Protocol):
    """One GPU for all clients. Every method raises `Refused` for what it cannot do."""

    def create(self, asked: ResourceCreate | ResourceCreate2) -> Resource:
        """A new resource."""

    def destroy(self, resource: Resource) -> None:
        """The client needs it no longer; objects may still refer to it."""

    def upload(self, transfer: Transfer) -> None:
        """Staging → resource."""

    def download(self, transfer: Transfer) -> None:
        """Resource → staging, after all work on it."""

    def write(self, resource: Resource, level: int, box: Box, data: bytes, strides: tuple[int, int]) -> None:
        """Bytes of the client → resource; strides of rows and layers, 0: without padding."""

    def read(self, resource: Resource, level: int, box: Box, strides: tuple[int, int]) -> bytes | memoryview:
        """Resource → bytes for the client, after all work on it."""

    def clear(self, framebuffer: Framebuffer, command: Clear) -> None:
        """Fill surfaces."""

    def draw(self, state: PipeState, command: DrawVbo) -> None:
        """Draw primitives."""

    def draw_run(self, run: DrawRun) -> None:
        """Draw and clear what a stream has in a row."""

    def blit(self, command: Blit, target: Resource, source: Resource) -> None:
        """Copy a box, scaled and converted."""

    def copy_region(self, command: ResourceCopyRegion, target: Resource, source: Resource) -> None:
        """Copy a box as it is."""

    def begin_query(self, query: BoundQuery) -> int:
        """Counting begins: what `end_query` gets."""

    def end_query(self, query: BoundQuery, begun: int | None) -> int:
        """Counting ends: the result."""

    def finish(self) -> None:
        """Do all work that waits."""
