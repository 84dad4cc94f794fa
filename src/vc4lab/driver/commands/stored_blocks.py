"""Blocks of state into GPU memory, and out of it.

Reading a block gives the same object as long as its bytes are the same, so that what is derived of
it is kept by it.

Equal state is stored once, and stays when the frame ends; uniforms, and the blocks that refer to
them, last a frame.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from vc4lab.bounded import Bounded
from vc4lab.driver.commands.blocks import MAX_KNOWN, PIPE_PARTS, STAGE_PARTS, Codec, Resources
from vc4lab.mesa.protocol.fields import Malformed
from vc4lab.mesa.state.pipe import Framebuffer, PipeState, StageState, with_index_offset, with_offsets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vc4lab.driver.gpu.memory import GpuMemory

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
        """The words of a stage before its constants, by its other parts."""
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
        """The address of the block with both stages' shaders, uniforms, textures and samplers.

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


MAX_BLOCK = 1 << 23
"""Bytes."""


class SharedState:
    """State that draws with other uniforms share.

    Attributes
    ----------
    state
        Without constants.
    reads
        The resources that a draw reads, by number.
    textures
        Those that it reads as a whole, if of its buffers the bytes are known.
    prepared
        For what is made of it.
    moving
        For what is made of draws whose vertices may be others.
    lasts
        Whether its blocks stay when the queue is done.
    """

    def __init__(self, state: PipeState, *, lasts: bool) -> None:
        self.state = state
        self.lasts = lasts
        self.reads: dict[int, Any] = {one.number: one for one in resources_of(state)}
        self.textures = {number: one for number, one in self.reads.items() if not one.is_buffer}
        self.prepared: Bounded[Any, Any] = Bounded(MAX_KNOWN)
        self.moving: Bounded[Any, Any] = Bounded(MAX_KNOWN)


class Uniforms(NamedTuple):
    """Addresses of a draw's constant buffers by stage and number, 0: empty."""

    vertex: tuple[int, ...]
    fragment: tuple[int, ...]


def with_own_offsets(state: PipeState, data: bytes) -> PipeState:
    """A state with the offsets of its vertex buffers, and after them that of its index buffer if
    it has one, as a block has them. Raises Malformed.
    """
    buffers, indices = state.vertex_buffers, state.index_buffer
    count = len(buffers) + (indices is not None)
    if len(data) != 4 * count:
        raise Malformed(f"{len(data)} bytes are no offsets of {count} vertex and index buffers")
    offsets = struct.unpack(f"<{count}I", data)
    if indices is not None:
        indices = with_index_offset(indices, offsets[-1])
        offsets = offsets[:-1]
    return replace(state, vertex_buffers=with_offsets(buffers, offsets), index_buffer=indices)


class BlockReader:
    """Reads state from memory. Raises Malformed for what is none.

    What blocks of the arena of states hold is known as long as that is not emptied; blocks
    elsewhere are read again with each queue.
    """

    def __init__(self, memory: GpuMemory, resources: Resources) -> None:
        self.memory = memory
        self.resources = resources
        self._values: Bounded[tuple[str, bytes], Any] = Bounded(MAX_KNOWN)
        self._lasting: dict[tuple[str, int], Any] = {}
        self._places: dict[tuple[str, int], Any] = {}
        self._shared: Bounded[tuple[int, ...], SharedState] = Bounded(MAX_KNOWN)
        self._turn = memory.states.turn

    def reset(self) -> bool:
        """Another queue: other blocks may lie where some did. Whether those that last, too."""
        self._places.clear()
        if self._turn == self.memory.states.turn:
            return False
        self._turn = self.memory.states.turn
        self._lasting.clear()
        self._shared.clear()
        return True

    def forget(self) -> None:
        """A resource went; its number will not come again."""
        self._values.clear()
        self._lasting.clear()
        self._places.clear()
        self._shared.clear()

    def bytes_at(self, address: int) -> bytes:
        """A block's bytes."""
        size = self.memory.guest.u32(address)
        if size > MAX_BLOCK:
            raise Malformed(f"a block of {size} bytes at 0x{address:x}")
        return self.memory.guest.read(address + 4, size)

    def lasts(self, address: int) -> bool:
        """Whether the block at an address stays when the queue is done."""
        states = self.memory.states
        return states.start <= address < states.next

    def value(self, name: str, codec: Codec, address: int) -> Any:
        """The part of the state in a block."""
        place = name, address
        places = self._lasting if self.lasts(address) else self._places
        known = places.get(place)
        if known is None:
            data = self.bytes_at(address)
            known = places[place] = self._read(name, codec, data)
        return known

    def _read(self, name: str, codec: Codec, data: bytes) -> Any:
        key = name, data
        known = self._values.get(key)
        if known is None:
            try:
                known = self._values[key] = codec.read(data, self.resources)
            except (struct.error, ValueError) as error:
                raise Malformed(f"{name}: {error}") from None
        return known

    def framebuffer(self, address: int) -> Framebuffer:
        """A frame buffer."""
        found: Framebuffer = self.value("framebuffer", PIPE_PARTS["framebuffer"], address)
        return found

    def state(self, pipe_state: int, shader_state: int) -> PipeState:
        """All that a draw is made with."""
        shared, uniforms = self.shared(pipe_state, shader_state)
        return self.whole(shared, uniforms)

    def whole(self, shared: SharedState, uniforms: Uniforms) -> PipeState:
        """A state with its constants."""
        state = shared.state
        vertex, fragment = (tuple(map(self._constants, places)) for places in uniforms)
        return replace(
            state,
            vertex=replace(state.vertex, constants=vertex),
            fragment=replace(state.fragment, constants=fragment),
        )

    def moved(self, state: PipeState, address: int) -> PipeState:
        """A state with a draw's own offsets of buffers, if it has any."""
        return with_own_offsets(state, self.bytes_at(address)) if address else state

    def _constants(self, address: int) -> bytes:
        return self.bytes_at(address) if address else b""

    def shared(self, pipe_state: int, shader_state: int) -> tuple[SharedState, Uniforms]:
        """All that a draw is made with: the state without its constants, and where those are."""
        data = self.bytes_at(shader_state)
        words = struct.unpack(f"<{len(data) // 4}I", data[: len(data) & ~3])
        parts = len(STAGE_PARTS)
        try:
            middle = parts + 1 + words[parts]
            uniforms = Uniforms(
                words[parts + 1 : middle],
                words[middle + parts + 1 : middle + parts + 1 + words[middle + parts]],
            )
        except IndexError:
            raise Malformed(f"a shader state of {len(data)} bytes at 0x{shader_state:x}") from None
        key = (pipe_state, *words[:parts], *words[middle : middle + parts])
        known = self._shared.get(key)
        if known is None:
            addresses = self._addresses(pipe_state)
            made = PipeState(
                **self._parts(addresses),
                vertex=self._stage(key[1 : 1 + parts]),
                fragment=self._stage(key[1 + parts :]),
            )
            known = SharedState(made, lasts=all(map(self.lasts, filter(None, key))))
            if known.lasts:
                self._shared[key] = known
        return known, uniforms

    def _addresses(self, address: int) -> tuple[int, ...]:
        """Those of a pipe state's parts."""
        data = self.bytes_at(address)
        if len(data) != 4 * len(PIPE_PARTS):
            raise Malformed(f"a pipe state of {len(data)} bytes at 0x{address:x}")
        return struct.unpack(f"<{len(PIPE_PARTS)}I", data)

    def _parts(self, addresses: tuple[int, ...]) -> dict[str, Any]:
        return {
            name: self.value(name, codec, part)
            for (name, codec), part in zip(PIPE_PARTS.items(), addresses, strict=True)
            if part
        }

    def _stage(self, addresses: tuple[int, ...]) -> StageState:
        return StageState(**{
            name: self.value(name, codec, part)
            for (name, codec), part in zip(STAGE_PARTS.items(), addresses, strict=True)
            if part
        })  # fmt: skip
