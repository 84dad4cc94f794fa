"""State in GPU memory: blocks that draws and clears refer to by address.

A block is a word for its bytes, and the bytes: Gallium's objects as the protocol declares them,
with the driver's numbers of resources. Equal state is stored once, and stays when the frame ends;
uniforms, and the blocks that refer to them, last a frame. Reading a block gives the same object as
long as its bytes are the same, so that what is derived of it is kept by it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from vc4lab.mesa.protocol import objects
from vc4lab.mesa.protocol.codes import Stage
from vc4lab.mesa.protocol.fields import Malformed
from vc4lab.mesa.protocol.state_commands import Scissor, SetStencilRef, VertexBuffer, Viewport
from vc4lab.mesa.state.pipe import (
    BoundSurface,
    BoundVertices,
    BoundView,
    Framebuffer,
    IndexBuffer,
    PipeState,
    Shader,
    StageState,
)

if TYPE_CHECKING:
    from vc4lab.driver.gpu.memory import GpuMemory

_WORD = struct.Struct("<I")
MAX_KNOWN = 4096
MAX_BLOCK = 1 << 23
"""Bytes."""
GENERATIONS = 1 << 30
Resources = Callable[[int], Any]
"""The `GpuResource` (of captures: the kept one) with a number. Raises Malformed."""


def _put_list(values: tuple[Any, ...], put: Callable[[Any], bytes]) -> bytes:
    """Optional values of one size: their number, then {1, value} or {0}."""
    parts = [_WORD.pack(len(values))]
    for value in values:
        parts += [b"\0\0\0\0"] if value is None else [b"\1\0\0\0", put(value)]
    return b"".join(parts)


def _get_list(data: bytes, size: int, get: Callable[[bytes], Any]) -> tuple[Any, ...]:
    (count,) = _WORD.unpack_from(data)
    at, values = 4, []
    for _ in range(min(count, 64)):
        (present,) = _WORD.unpack_from(data, at)
        at += 4
        values.append(get(data[at : at + size]) if present else None)
        at += size if present else 0
    return tuple(values)


def _bound(value: Any) -> bytes:
    return bytes(value.state.encode()) + _WORD.pack(value.resource.number)


class Codec:
    """How one part of the state is written and read.

    Attributes
    ----------
    item
        The payload that it consists of; "f" or "I": numbers; None: its form is its own.
    is_list
        Whether it has any number of them.
    bound
        What holds one of them with its resource; None: it refers to no resources.
    """

    def __init__(
        self,
        write: Callable[[Any], bytes],
        read: Callable[[bytes, Resources], Any],
        item: Any = None,
        *,
        is_list: bool = False,
        bound: Any = None,
    ) -> None:
        self.write, self.read = write, read
        self.item, self.is_list, self.bound = item, is_list, bound

    @property
    def is_bound(self) -> bool:
        """Whether it refers to resources."""
        return self.bound is not None


def _object(kind: type[Any]) -> Codec:
    return Codec(lambda value: value.encode(), lambda data, _: kind.decode(data), kind)


def _objects(kind: type[Any]) -> Codec:
    size = 4 * kind.fixed
    return Codec(
        lambda values: _put_list(values, kind.encode),
        lambda data, _: _get_list(data, size, kind.decode),
        kind,
        is_list=True,
    )


def _of_resource(bound: type[Any], kind: type[Any]) -> Callable[[bytes, Resources], Any]:
    size = 4 * kind.fixed

    def read(data: bytes, resources: Resources) -> Any:
        (number,) = _WORD.unpack_from(data, size)
        return bound(kind.decode(data[:size]), resources(number))

    return read


def _bound_list(bound: type[Any], kind: type[Any]) -> Codec:
    read = _of_resource(bound, kind)
    size = 4 * kind.fixed + 4
    return Codec(
        lambda values: _put_list(values, _bound),
        lambda data, resources: _get_list(data, size, lambda part: read(part, resources)),
        kind,
        is_list=True,
        bound=bound,
    )


SURFACES = _bound_list(BoundSurface, objects.Surface)


def _write_framebuffer(value: Framebuffer) -> bytes:
    return SURFACES.write((value.zsbuf, *value.cbufs))


def _read_framebuffer(data: bytes, resources: Resources) -> Framebuffer:
    surfaces = SURFACES.read(data, resources)
    return Framebuffer(surfaces[1:], surfaces[0])


def _write_indices(value: IndexBuffer) -> bytes:
    return struct.pack("<III", value.resource.number, value.index_size, value.offset)  # type: ignore[attr-defined]


def _read_indices(data: bytes, resources: Resources) -> IndexBuffer:
    number, size, offset = struct.unpack_from("<III", data)
    return IndexBuffer(resources(number), size, offset)


def _read_shader(data: bytes, _resources: Resources) -> Shader:
    (stage,) = _WORD.unpack_from(data)
    return Shader(Stage(stage), data[4:].decode("latin-1"))


def _words(letter: str) -> Codec:
    return Codec(
        lambda values: struct.pack(f"<{len(values)}{letter}", *values),
        lambda data, _: struct.unpack(f"<{len(data) // 4}{letter}", data),
        letter,
        is_list=True,
    )


PIPE_PARTS: dict[str, Codec] = {
    "framebuffer": Codec(_write_framebuffer, _read_framebuffer, bound=Framebuffer),
    "blend": _object(objects.BlendState),
    "rasterizer": _object(objects.RasterizerState),
    "dsa": _object(objects.DepthStencilAlphaState),
    "vertex_elements": _object(objects.VertexElements),
    "viewports": _objects(Viewport),
    "scissors": _objects(Scissor),
    "ucp": _words("f"),
    "stencil_ref": _object(SetStencilRef),
    "blend_color": _words("f"),
    "stipple": _words("I"),
    "vertex_buffers": _bound_list(BoundVertices, VertexBuffer),
    "index_buffer": Codec(_write_indices, _read_indices, bound=IndexBuffer),
}
"""The parts of `PipeState` in the order of a pipe state block's addresses, 0: not set."""
STAGE_PARTS: dict[str, Codec] = {
    "shader": Codec(
        lambda value: _WORD.pack(value.stage) + value.text.encode("latin-1", "replace"),
        _read_shader,
    ),
    "views": _bound_list(BoundView, objects.SamplerView),
    "samplers": _objects(objects.SamplerState),
}
"""Those of `StageState`; a shader state block has them of the vertex stage, then the number and the
addresses of its constant buffers, then the same of the fragment stage."""


_VERTEX_BUFFERS = list(PIPE_PARTS).index("vertex_buffers")
_pipe_parts = attrgetter(*PIPE_PARTS)
_stage_parts = attrgetter(*STAGE_PARTS)
_ONE_BUFFER = struct.Struct("<II")
ROOM = 1 << 16
"""Bytes of the arena of states that stay free: allocations are aligned."""


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
            addresses = [
                self.place(name, codec, value) if value is not None and value != () else 0
                for (name, codec), value in zip(PIPE_PARTS.items(), parts, strict=True)
            ]
            known = parts, self.block(struct.pack(f"<{len(addresses)}I", *addresses))
            if not self._is_full:
                self._states[key] = known
        return known[1]

    def shader_state(self, state: PipeState) -> int:
        """The same of both stages' shaders, uniforms, textures and samplers."""
        data = b""
        for stage in (state.vertex, state.fragment):
            data += self.stage_words(stage)
            constants = stage.constants
            if len(constants) == 1:
                data += _ONE_BUFFER.pack(1, self.frame_block(constants[0]) if constants[0] else 0)
            else:
                places = [self.frame_block(values) if values else 0 for values in constants]
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
            addresses = [
                self.place(name, codec, value) if value is not None and value != () else 0
                for (name, codec), value in zip(STAGE_PARTS.items(), parts, strict=True)
            ]
            known = parts, struct.pack(f"<{len(addresses)}I", *addresses)
            if not self._is_full:
                self._stages[key] = known
        return known[1]


def resources_of(state: PipeState) -> list[Any]:
    """The resources that a draw reads."""
    bound = [
        *state.vertex_buffers, *state.vertex.views, *state.fragment.views, state.index_buffer
    ]  # fmt: skip
    return [one.resource for one in bound if one is not None]


class SharedState:
    """What draws with other uniforms share.

    Attributes
    ----------
    state
        Without constants.
    reads
        The resources that a draw reads, by number.
    prepared
        For what is made of it.
    elsewhere
        The same of draws that differ in where their vertices lie, and in nothing else.
    lasts
        Whether its blocks stay when the queue is done.
    """

    def __init__(self, state: PipeState, elsewhere: dict[Any, Any], *, lasts: bool) -> None:
        self.state = state
        self.elsewhere = elsewhere
        self.lasts = lasts
        self.reads: dict[int, Any] = {one.number: one for one in resources_of(state)}
        self.prepared: dict[Any, Any] = {}


class Uniforms(NamedTuple):
    """Addresses of a draw's constant buffers by stage and number, 0: empty."""

    vertex: tuple[int, ...]
    fragment: tuple[int, ...]


class BlockReader:
    """Reads state from memory. Raises Malformed for what is none.

    What blocks of the arena of states hold is known as long as that is not emptied; blocks
    elsewhere are read again with each queue.
    """

    def __init__(self, memory: GpuMemory, resources: Resources) -> None:
        self.memory = memory
        self.resources = resources
        self._values: dict[tuple[str, bytes], Any] = {}
        self._lasting: dict[tuple[str, int], Any] = {}
        self._places: dict[tuple[str, int], Any] = {}
        self._shared: dict[tuple[int, ...], SharedState] = {}
        self._elsewhere: dict[Any, dict[Any, Any]] = {}
        self._turn = memory.states.turn

    def reset(self) -> None:
        """Another queue: other blocks may lie at the same addresses."""
        self._places.clear()
        if self._turn != self.memory.states.turn:
            self._turn = self.memory.states.turn
            self._lasting.clear()
            self._shared.clear()
            self._elsewhere.clear()

    def forget(self) -> None:
        """A resource went; its number will not come again."""
        self._values.clear()
        self._lasting.clear()
        self._places.clear()
        self._shared.clear()
        self._elsewhere.clear()

    def bytes_at(self, address: int) -> bytes:
        """A block's bytes."""
        size = self.memory.guest.u32(address)
        if size > MAX_BLOCK:
            raise Malformed(f"a block of {size} bytes at 0x{address:x}")
        return self.memory.guest.read(address + 4, size)

    def _lasts(self, address: int) -> bool:
        states = self.memory.states
        return states.start <= address < states.next

    def value(self, name: str, codec: Codec, address: int) -> Any:
        """The part of the state in a block."""
        place = name, address
        places = self._lasting if self._lasts(address) else self._places
        known = places.get(place)
        if known is None:
            data = self.bytes_at(address)
            known = places[place] = self._read(name, codec, data)
        return known

    def _read(self, name: str, codec: Codec, data: bytes) -> Any:
        key = name, data
        known = self._values.get(key)
        if known is None:
            if len(self._values) >= MAX_KNOWN:
                self._values.clear()
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
            if len(self._shared) >= MAX_KNOWN:
                self._shared.clear()
            addresses = self._addresses(pipe_state)
            made = PipeState(
                **self._parts(addresses),
                vertex=self._stage(key[1 : 1 + parts]),
                fragment=self._stage(key[1 + parts :]),
            )
            known = SharedState(
                made,
                self._elsewhere_of(addresses, key[1:]),
                lasts=all(map(self._lasts, filter(None, key))),
            )
            if known.lasts:
                self._shared[key] = known
        return known, uniforms

    def _elsewhere_of(self, addresses: tuple[int, ...], stages: tuple[int, ...]) -> dict[Any, Any]:
        """What states with other vertex buffers and the same other parts have in common."""
        others = addresses[:_VERTEX_BUFFERS], addresses[_VERTEX_BUFFERS + 1 :], stages
        if not all(self._lasts(one) for part in others for one in part if one):
            return {}
        known = self._elsewhere.get(others)
        if known is None:
            if len(self._elsewhere) >= MAX_KNOWN:
                self._elsewhere.clear()
            known = self._elsewhere[others] = {}
        return known

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
