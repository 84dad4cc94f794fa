"""A client's resources by its handles, and its fences, which are seldom more than a handle.

A fence is a buffer that Mesa makes when commands are sent, and waits for; nothing reads it or
writes to it. So it has only its shared memory, until a command or a transfer names it: then it
becomes the resource that was asked for.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from vc4lab.mesa.protocol import limits
from vc4lab.mesa.protocol.codes import Bind, Target
from vc4lab.mesa.protocol.fields import WORD
from vc4lab.mesa.protocol.formats import Format
from vc4lab.mesa.protocol.messages import ResourceCreate, ResourceCreate2
from vc4lab.mesa.store.resources import Refused, SpareStagings, Staging

if TYPE_CHECKING:
    from vc4lab.mesa.store.resources import Resource
    from vc4lab.mesa.store.screen import Screen

FENCE_BYTES = 8
FENCE = ResourceCreate2(
    *(0, Target.BUFFER, Format.R8_UNORM, Bind.CUSTOM, FENCE_BYTES, 1, 1, 0, 0, 0, FENCE_BYTES)
)
FENCE_WORDS = FENCE.encode()[WORD:]
"""The words after the handle in the message that asks for a fence."""
_READ = Bind.VERTEX_BUFFER | Bind.INDEX_BUFFER | Bind.CONSTANT_BUFFER
_HANDLE = struct.Struct("<I")


class Handles:
    """A client's resources and fences, by handle. Raises Refused for what it cannot have.

    Attributes
    ----------
    bytes
        Bytes of all resources, and of all shared memory.
    """

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._resources: dict[int, Resource] = {}
        self._fences: dict[int, Staging] = {}
        """The shared memory of those that are no resources yet."""
        self._spare = SpareStagings(FENCE_BYTES)
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._resources) + len(self._fences)

    def get(self, handle: int) -> Resource | None:
        """The resource with a handle; None if there is none."""
        found = self._resources.get(handle)
        if found is None and handle in self._fences:
            return self._seen(handle)
        return found

    def is_only_read(self, handle: int) -> bool:
        """Whether it is a buffer of vertices, indices or uniforms."""
        found = self._resources.get(handle)
        return found is not None and found.target == Target.BUFFER and bool(found.bind & _READ)

    def fence(self, handle: int) -> Staging | None:
        """A new fence's memory; None if it cannot be had so (`create` says why)."""
        if not handle or handle in self._fences or handle in self._resources:
            return None
        if len(self) >= limits.RESOURCES:
            return None
        try:
            staging = self._spare.take()
        except OSError:
            return None
        self._fences[handle] = staging
        self.bytes += 2 * FENCE_BYTES
        return staging

    def create(
        self, message: ResourceCreate | ResourceCreate2, size: int, staging: Staging | None = None
    ) -> Staging | None:
        """A resource, and `size` bytes of shared memory, if they are not there already."""
        handle = message.handle
        if len(self) >= limits.RESOURCES:
            raise Refused("GL-006", f"more than {limits.RESOURCES} resources")
        if not handle or handle in self._resources or handle in self._fences:
            raise Refused("GL-004", f"{handle} is no handle for a new resource")
        if size > limits.RESOURCE_BYTES:
            raise Refused("GL-006", f"{size} bytes of shared memory")
        try:
            resource = self._screen.create(message)
            if size and staging is None:
                staging = Staging(size)
        except (OSError, MemoryError) as error:
            raise Refused("GL-006", f"the host has no room: {error}") from None
        resource.staging = staging
        self.bytes += resource.size + size
        if self.bytes > limits.CLIENT_BYTES:
            raise Refused("GL-006", f"more than {limits.CLIENT_BYTES} bytes in all")
        self._resources[handle] = resource
        return staging

    def _seen(self, handle: int) -> Resource:
        """A fence becomes a resource."""
        staging = self._fences.pop(handle)
        self.bytes -= 2 * FENCE_BYTES
        try:
            self.create(ResourceCreate2.decode(_HANDLE.pack(handle) + FENCE_WORDS), FENCE_BYTES, staging)
        except Refused:
            self._fences[handle] = staging
            self.bytes += 2 * FENCE_BYTES
            raise
        return self._resources[handle]

    def end_fence(self, handle: int) -> bool:
        """A fence that nothing has looked at goes; whether there was one."""
        staging = self._fences.pop(handle, None)
        if staging is None:
            return False
        self.bytes -= 2 * FENCE_BYTES
        self._spare.give_back(staging)
        return True

    def close(self) -> list[Resource]:
        """The client is gone: its shared memory is given back at once, whatever still knows its
        resources; those are the caller's to destroy.
        """
        resources = list(self._resources.values())
        for resource in resources:
            resource.staging = None
        self._resources.clear()
        self._fences.clear()
        self._spare = SpareStagings(FENCE_BYTES)
        return resources

    def take(self, handle: int) -> Resource:
        """A resource goes: it is the caller's to destroy."""
        resource = self._resources.pop(handle, None)
        if resource is None:
            raise Refused("GL-004", f"there is no resource {handle}")
        staging = resource.staging
        self.bytes -= resource.size + (staging.size if staging is not None else 0)
        if staging is not None and staging.is_kept:
            resource.staging = None
            self._spare.give_back(staging)
        return resource
