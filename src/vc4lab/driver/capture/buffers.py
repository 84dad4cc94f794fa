"""Where the bytes of buffers come from: the content at the begin, or an upload.

Commands are followed in order, so that a draw's vertices can be edited where their bytes are.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.driver.queue import commands as c
from vc4lab.mesa.protocol.codes import Target
from vc4lab.mesa.store.resources import Box

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vc4lab.driver.capture.model import Capture, CapturedResource

AT_BEGIN = 0
"""The owner of bytes that were there when the first frame began; others are numbers of data."""


@dataclass
class Buffer:
    """A buffer at a moment.

    Attributes
    ----------
    content
        Its bytes.
    owner, place
        Of each byte: the data that it comes from, and where in it.
    writes
        How often it was written.
    """

    content: NDArray[np.uint8]
    owner: NDArray[np.int32]
    place: NDArray[np.int64]
    writes: int = 0

    def runs(self, first: int, end: int) -> list[tuple[int, int, int, int]]:
        """Bytes from `first` to `end`: begin, length, owner, place of each part in a row."""
        owner, place = self.owner[first:end], self.place[first:end]
        if not len(owner):
            return []
        breaks = (np.diff(owner) != 0) | (np.diff(place) != 1)
        starts = [0, *(np.flatnonzero(breaks) + 1).tolist(), len(owner)]
        return [
            (first + start, stop - start, int(owner[start]), int(place[start]))
            for start, stop in pairwise(starts)
        ]


class Buffers:
    """The buffers of a capture while its commands are followed."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._buffers: dict[int, Buffer] = {}

    def buffer(self, resource: CapturedResource) -> Buffer:
        """A buffer as it is now."""
        found = self._buffers.get(resource.number)
        if found is None:
            size = resource.size
            found = self._buffers[resource.number] = Buffer(
                resource.memory.copy(), np.full(size, AT_BEGIN, np.int32), np.arange(size, dtype=np.int64)
            )
        return found

    def follow(self, command: c.QueueCommand) -> None:
        """The next command."""
        resources: Any = self._capture.resources
        if isinstance(command, c.Upload):
            resource = resources[command.resource]
            if resource.target == Target.BUFFER:
                box = Box(*command.box)
                data = np.frombuffer(self._capture.data[command.address], np.uint8)
                target, end = self.buffer(resource), box.x + box.width
                target.content[box.x : end] = data
                target.owner[box.x : end] = command.address
                target.place[box.x : end] = np.arange(box.width)
                target.writes += 1
        elif isinstance(command, c.Copy):
            target, source = resources[command.target], resources[command.source]
            if target.target == source.target == Target.BUFFER:
                self._copy(command, target, source)

    def _copy(self, command: c.Copy, target: Any, source: Any) -> None:
        box, at = Box(*command.box), command.place[0]
        if box.x + box.width > source.size or at + box.width > target.size:
            return  # the processor refuses it
        one, other = self.buffer(target), self.buffer(source)
        for name in ("content", "owner", "place"):
            part = getattr(other, name)[box.x : box.x + box.width].copy()
            getattr(one, name)[at : at + box.width] = part
        one.writes += 1
