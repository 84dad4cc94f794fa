"""Keeps frames while a program draws: a listener of the command queue.

What a frame needs is what its commands name. The content of a resource is kept when the first
queue that names it begins, before anything of it is executed: nothing that is kept has changed it
until then. Blocks of state are kept once for the same bytes, rows of uploads as well.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vc4lab.driver.capture import jobs
from vc4lab.driver.capture.model import STAGES, Capture, CapturedFrame, CapturedResource, box_shape
from vc4lab.driver.commands import commands as c
from vc4lab.driver.commands.blocks import PIPE_PARTS, STAGE_PARTS, Codec
from vc4lab.driver.commands.stored_blocks import BlockReader, with_own_offsets
from vc4lab.images.pixels import png_bytes
from vc4lab.jobs.model import JobsCapture
from vc4lab.jobs.recorder import LIMIT, JobsRecorder
from vc4lab.mesa.protocol.fields import Malformed
from vc4lab.mesa.protocol.messages import ResourceCreate2
from vc4lab.mesa.state.pipe import PipeState
from vc4lab.mesa.store.blits import copy_content
from vc4lab.mesa.store.resources import Box, Refused

if TYPE_CHECKING:
    from vc4lab.driver.pictures import Snapshot
    from vc4lab.driver.queue.events import FrameShown, QueueBegun
    from vc4lab.driver.screen import VideoCoreScreen


FAST = 1
"""Level of zlib for pictures."""
MOST_WAITING = 8
"""Pictures that are being packed while the program goes on, at most."""
Waiting = tuple[CapturedFrame, "Future[bytes | None]"]


class Recorder:
    """Keeps the frames `first` to `last` of a screen: commands, and the jobs that they become.

    Parameters
    ----------
    limit
        Bytes of memory that the jobs may need; no jobs are kept from a frame on for which they
        do not suffice.
    tell
        Called with a sentence when that is so.

    Attributes
    ----------
    capture
        The capture so far.
    is_done
        Whether the last frame was shown; `on_done` is called then.
    """

    def __init__(
        self,
        screen: VideoCoreScreen,
        first: int,
        last: int,
        program: str = "",
        on_done: Callable[[], None] | None = None,
        *,
        limit: int = LIMIT,
        tell: Callable[[str], object] = lambda _text: None,
    ) -> None:
        self.capture = Capture(program)
        self.jobs = JobsRecorder(JobsCapture("gl"), first=first, last=last, limit=limit, tell=tell)
        self.first, self.last = first, last
        self.is_done = False
        self._on_done = on_done
        self._screen = screen
        self._numbers: dict[tuple[str, bytes], int] = {}
        self._shown_last = 0
        """Number of the kept frame that was shown last."""
        self._packer = ThreadPoolExecutor(1, "vc4lab-pictures")
        self._pictures: deque[Waiting] = deque()
        self._blocks = BlockReader(screen.memory, self._resource)
        self._subscriptions: list[Any] = [
            *jobs.capture(screen, self.jobs),  # its frame ends first
            screen.listeners.queue.subscribe(self._queue),
            screen.listeners.frame.subscribe(self._shown),
        ]

    def close(self) -> None:
        """The program ended: what it drew to last is the picture of a frame that was not shown."""
        frames = self.capture.frames
        if frames and frames[-1].number != self._shown_last and not self.is_done:
            frames[-1].picture = _png(self._screen.processor.last_picture)
        self._end()

    def _end(self) -> None:
        from vc4lab.driver.stored_programs import stored_programs

        if not self.is_done:
            self.is_done = True
            while self._pictures:
                self._packed(self._pictures.popleft())
            self._packer.shutdown()
            for one in self._subscriptions:
                one.close()
            self.jobs.close()
            self.capture.jobs = self.jobs.capture
            programs = self._screen.processor.draws.lowering.programs
            self.capture.programs = stored_programs(programs, self.capture)

    @staticmethod
    def _packed(waiting: Waiting) -> None:
        """A picture is a file now."""
        frame, file = waiting
        frame.picture = file.result()

    # -- events ------------------------------------------------------------------------------------

    def _queue(self, event: QueueBegun) -> None:
        counts = self._screen.processor.counts
        if not self.first <= counts.frame <= self.last:
            return
        frames = self.capture.frames
        if not frames or frames[-1].number != counts.frame:
            frames.append(CapturedFrame(counts.frame))
        data = self._screen.memory.guest.view(event.address, event.size)
        self._blocks.reset()
        place = 0
        while place < event.size:
            try:
                command, place = c.command_at(data, place)
                kept = self._kept(command)
            except (Malformed, struct.error):
                continue  # the processor reports it, and leaves it out
            frames[-1].commands.append(kept)

    def _shown(self, event: FrameShown) -> None:
        from vc4lab.driver.pictures import Snapshot

        frames = self.capture.frames
        if frames and frames[-1].number == event.number:
            self._shown_last = event.number
            self._pictures.append((frames[-1], self._packer.submit(_png, Snapshot(event.picture))))
            if len(self._pictures) > MOST_WAITING:
                self._packed(self._pictures.popleft())
        if event.number >= self.last:
            self._end()
            if self._on_done is not None:
                self._on_done()

    # -- commands ----------------------------------------------------------------------------------

    def _kept(self, command: c.QueueCommand) -> c.QueueCommand:
        """The command with the capture's numbers. Raises Malformed."""
        numbers: dict[str, int] = {}
        for name, spec in command.specs.items():
            value = getattr(command, name)
            if spec.ref == "resource":
                self._resource(value)
            elif spec.ref == "data":
                numbers[name] = self._rows(command) if isinstance(command, c.Upload) else 0
            elif spec.ref == "offsets":
                numbers[name] = 0  # in captures the pipe state has them
            elif spec.ref == "pipe_state" and isinstance(command, c.Draw):
                numbers[name] = self._pipe_state(value, command.vertices)
            elif spec.ref:
                numbers[name] = _KEEPERS[spec.ref](self, value)
        return replace(command, **numbers) if numbers else command

    def _rows(self, command: c.Upload) -> int:
        shape = box_shape(self._resource(command.resource), Box(*command.box))
        guest = self._screen.memory.guest
        data = guest.read(command.address, shape[0] * shape[1] * shape[2])
        return self._number("data", data, lambda: data)

    def _number(self, kind: str, data: bytes, make: Callable[[], Any]) -> int:
        """The number of what has these bytes."""
        known = self._numbers.get((kind, data))
        if known is None:
            table = self.capture.data if kind == "data" else self.capture.parts[kind]
            made = make()
            known = self._numbers[kind, data] = len(table) + 1
            table[known] = made
        return known

    def _part(self, kind: str, codec: Codec, address: int) -> int:
        data = self._blocks.bytes_at(address)
        return self._number(kind, data, lambda: self._value(kind, codec, data))

    def _value(self, kind: str, codec: Codec, data: bytes) -> Any:
        value = codec.read(data, self._resource)
        return value.text if kind == "shader" else value

    def _framebuffer(self, address: int) -> int:
        return self._part("framebuffer", PIPE_PARTS["framebuffer"], address)

    def _pipe_state(self, address: int, vertices: int) -> int:
        data = self._blocks.bytes_at(address)
        addresses = struct.unpack(f"<{len(PIPE_PARTS)}I", data)
        places = {kind: part for kind, part in zip(PIPE_PARTS, addresses, strict=True) if part}
        moved = self._moved(places, vertices) if vertices else {}
        found = {
            kind: moved[kind] if kind in moved else self._part(kind, PIPE_PARTS[kind], part)
            for kind, part in places.items()
        }
        return self._number("pipe_state", repr(found).encode(), lambda: found)

    def _moved(self, places: Mapping[str, int], vertices: int) -> dict[str, int]:
        """Vertex buffers and index buffer with a draw's own offsets. places: of a pipe state."""
        bound = {
            kind: PIPE_PARTS[kind].read(self._blocks.bytes_at(places[kind]), self._resource)
            for kind in _MOVED
            if kind in places
        }
        moved = with_own_offsets(PipeState(**bound), self._blocks.bytes_at(vertices))
        return {kind: self._numbered(kind, getattr(moved, kind)) for kind in bound}

    def _numbered(self, kind: str, value: Any) -> int:
        return self._number(kind, PIPE_PARTS[kind].write(value), lambda: value)

    def _shader_state(self, address: int) -> int:
        data = self._blocks.bytes_at(address)
        words = iter(struct.unpack(f"<{len(data) // 4}I", data))
        found: dict[str, dict[str, Any]] = {}
        for stage in STAGES:
            parts: dict[str, Any] = {}
            for kind, codec in STAGE_PARTS.items():
                part = next(words)
                if part:
                    parts[kind] = self._part(kind, codec, part)
            buffers = [next(words) for _ in range(next(words))]
            if buffers:
                parts["constants"] = tuple(self._constants(one) if one else 0 for one in buffers)
            found[stage] = parts
        return self._number("shader_state", repr(found).encode(), lambda: found)

    def _constants(self, address: int) -> int:
        data = self._blocks.bytes_at(address)
        return self._number("constants", data, lambda: data)

    # -- resources ---------------------------------------------------------------------------------

    def _resource(self, number: int) -> CapturedResource:
        """The kept resource; it is kept now if it was not. Raises Malformed."""
        known = self.capture.resources.get(number)
        if known is not None:
            return known
        source = self._screen.processor.resources(number)
        kept = CapturedResource(
            ResourceCreate2(
                number, source.target, source.format, source.bind, source.width, source.height,
                source.depth, source.array_size, source.last_level, source.samples, 0,
            )
        )  # fmt: skip
        copy_content(kept, source)
        self.capture.resources[number] = kept
        return kept


def _png(picture: Snapshot | None) -> bytes | None:
    try:
        return png_bytes(picture.image(), FAST) if picture is not None else None
    except Refused:
        return None


_MOVED = ("vertex_buffers", "index_buffer")
"""Parts of a pipe state of which draws may have offsets of their own."""
_KEEPERS: dict[str, Callable[[Recorder, int], int]] = {
    "framebuffer": Recorder._framebuffer,
    "shader_state": Recorder._shader_state,
}
