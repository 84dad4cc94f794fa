"""Blocks of state into GPU memory.

Equal state is stored once, and stays when the frame ends; uniforms, and the blocks that refer to
them, last a frame.
"""

from __future__ import annotations

import struct
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from vc4lab.driver.queue.blocks import MAX_KNOWN, PIPE_PARTS, STAGE_PARTS, Codec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vc4lab.driver.gpu.memory import GpuMemory
    from vc4lab.mesa.state.pipe import Framebuffer, PipeState, StageState

GENERATIONS = 1 << 30
ROOM = 1 << 16
"""Bytes of the arena of states that stay free: allocations are aligned."""
_WORD = struct.Struct("<I")
_ONE_BUFFER = struct.Struct("<II")
_pipe_parts = attrgetter(*PIPE_PARTS)
_stage_parts = attrgetter(*STAGE_PARTS)


class BlockWriter:
    """Puts state into memory: what frames repeat stays where it is, other blocks last a frame.

    Attributes
    ----------
    generation
        Changes when blocks that stay must be asked for again.
    """

    def __init__(self, memory: GpuMemory) -> None:
        self.memory = memory
        self._parts: dict[tuple[int, str], tuple[Any, int]] = {}
        """Addresses of parts by the objects that they are made of, which are kept alive so that
        ids stay theirs."""
        self._places: dict[bytes, int] = {}
        self._states: dict[tuple[int, ...], tuple[Any, int]] = {}
        """Addresses of pipe states by their parts."""
        self._stages: dict[tuple[int, ...], tuple[Any, bytes]] = {}
        """The same of a stage without its constants: the words before those."""
        self._of_frame: dict[bytes, int] = {}
        self._is_full = False
        self.generation = 1

    def reset(self) -> None:
        """The arena is empty."""
        self._of_frame.clear()
        if self._is_full:
            self._is_full = False
            self.forget()
            self._places.clear()
            self.memory.states.reset()

    def forget(self) -> None:
        """A resource went: nothing may keep it alive."""
        self.generation = self.generation % GENERATIONS + 1
        self._parts.clear()
        self._states.clear()
        self._stages.clear()

    def place(self, name: str, codec: Codec, value: Any) -> int:
        """The address of a part of the state."""
        key = id(value), name
        known = self._parts.get(key)
        if known is None:
            if len(self._parts) >= MAX_KNOWN:
                self.forget()
            address = self.block(codec.write(value))
            if self._is_full:
                return address
            known = self._parts[key] = value, address
        return known[1]

    def block(self, data: bytes) -> int:
        """The address of a block with these bytes, which frames repeat."""
        address = self._places.get(data)
        if address is None:
            whole = _WORD.pack(len(data)) + data
            if self._is_full or self.memory.states.left < len(whole) + ROOM:
                self._is_full = True
                return self.frame_block(data)
            address = self._places[data] = self.memory.keep_state(whole)
        return address

    def frame_block(self, data: bytes) -> int:
        """The address of a block with these bytes, which lasts a frame."""
        address = self._of_frame.get(data)
        if address is None:
            address = self.memory.keep(_WORD.pack(len(data)) + data)
            self._of_frame[data] = address
        return address

    def framebuffer(self, value: Framebuffer) -> int:
        """The address of a frame buffer's block."""
        return self.place("framebuffer", PIPE_PARTS["framebuffer"], value)

    def pipe_state(self, state: PipeState) -> int:
        """The address of the block with the addresses of all its parts."""
        parts = _pipe_parts(state)
        key = tuple(map(id, parts))
        known = self._states.get(key)
        if known is None:
            if len(self._states) >= MAX_KNOWN:
                self.forget()
            known = parts, self.block(self._addresses(PIPE_PARTS, parts))
            if not self._is_full:
                self._states[key] = known
        return known[1]

    def shader_state(self, state: PipeState, constants: tuple[tuple[bytes, ...], ...] | None = None) -> int:
        """The same of both stages' shaders, uniforms, textures and samplers.

        constants: of both stages, where they are not the state's.
        """
        data = b""
        stages = state.vertex, state.fragment
        of_stages = constants or tuple(one.constants for one in stages)
        for stage, buffers in zip(stages, of_stages, strict=True):
            data += self.stage_words(stage)
            if len(buffers) == 1:
                data += _ONE_BUFFER.pack(1, self.frame_block(buffers[0]) if buffers[0] else 0)
            else:
                places = [self.frame_block(values) if values else 0 for values in buffers]
                data += struct.pack(f"<{1 + len(places)}I", len(places), *places)
        return self.frame_block(data)

    def stage_words(self, stage: StageState) -> bytes:
        """The words of a stage before its constants."""
        parts = _stage_parts(stage)
        key = tuple(map(id, parts))
        known = self._stages.get(key)
        if known is None:
            if len(self._stages) >= MAX_KNOWN:
                self.forget()
            known = parts, self._addresses(STAGE_PARTS, parts)
            if not self._is_full:
                self._stages[key] = known
        return known[1]

    def _addresses(self, codecs: Mapping[str, Codec], parts: tuple[Any, ...]) -> bytes:
        """The words of the places of parts; 0 where there is none."""
        addresses = [
            self.place(name, codec, value) if value is not None and value != () else 0
            for (name, codec), value in zip(codecs.items(), parts, strict=True)
        ]
        return struct.pack(f"<{len(addresses)}I", *addresses)


def resources_of(state: PipeState) -> list[Any]:
    """The resources that a draw reads."""
    bound = [
        *state.vertex_buffers, *state.vertex.views, *state.fragment.views, state.index_buffer
    ]  # fmt: skip
    return [one.resource for one in bound if one is not None]
