"""State in GPU memory: blocks that draws and clears refer to by address.

A block is a word for its bytes, and the bytes: Gallium's objects as the protocol declares them,
with the driver's numbers of resources. Equal state is stored once in a frame. Reading a block gives
the same object as long as its bytes are the same, so that what is derived of it is kept by it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

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


_pipe_parts = attrgetter(*PIPE_PARTS)


class BlockWriter:
    """Puts state into the arena."""

    def __init__(self, memory: GpuMemory) -> None:
        self.memory = memory
        self._encoded: dict[tuple[int, str], tuple[Any, bytes]] = {}
        self._bound: dict[tuple[int, str], tuple[Any, bytes]] = {}
        self._places: dict[bytes, int] = {}
        self._states: dict[tuple[int, ...], tuple[Any, int]] = {}
        """Blocks of pipe states by their parts, which are kept alive so that ids stay theirs."""

    def reset(self) -> None:
        """The arena is empty."""
        self._places.clear()
        self._states.clear()
        self._bound.clear()

    def place(self, name: str, codec: Codec, value: Any) -> int:
        """The address of a part of the state."""
        cache = self._bound if codec.is_bound else self._encoded
        key = id(value), name
        known = cache.get(key)
        if known is None:
            if len(cache) >= MAX_KNOWN:
                cache.clear()
            data = codec.write(value)
            known = cache[key] = value, data
        return self.block(known[1])

    def block(self, data: bytes) -> int:
        """The address of a block with these bytes."""
        address = self._places.get(data)
        if address is None:
            address = self.memory.keep(_WORD.pack(len(data)) + data)
            self._places[data] = address
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
            addresses = [
                self.place(name, codec, value) if value is not None and value != () else 0
                for (name, codec), value in zip(PIPE_PARTS.items(), parts, strict=True)
            ]
            known = parts, self.block(struct.pack(f"<{len(addresses)}I", *addresses))
            self._states[key] = known
        return known[1]

    def shader_state(self, state: PipeState) -> int:
        """The same of both stages' shaders, uniforms, textures and samplers."""
        addresses = []
        for stage in (state.vertex, state.fragment):
            for name, codec in STAGE_PARTS.items():
                value = getattr(stage, name)
                is_set = value is not None and value != ()
                addresses.append(self.place(name, codec, value) if is_set else 0)
            addresses.append(len(stage.constants))
            addresses += [self.block(values) if values else 0 for values in stage.constants]
        return self.block(struct.pack(f"<{len(addresses)}I", *addresses))


class BlockReader:
    """Reads state from memory that programs can write. Raises Malformed for what is none."""

    def __init__(self, memory: GpuMemory, resources: Resources) -> None:
        self.memory = memory
        self.resources = resources
        self._values: dict[tuple[str, bytes], Any] = {}
        self._places: dict[tuple[str, int], Any] = {}

    def reset(self) -> None:
        """Another queue: other blocks may lie at the same addresses."""
        self._places.clear()

    def forget(self) -> None:
        """A resource went; its number will not come again."""
        self._values.clear()

    def bytes_at(self, address: int) -> bytes:
        """A block's bytes."""
        size = self.memory.guest.u32(address)
        if size > MAX_BLOCK:
            raise Malformed(f"a block of {size} bytes at 0x{address:x}")
        return self.memory.guest.read(address + 4, size)

    def value(self, name: str, codec: Codec, address: int) -> Any:
        """The part of the state in a block."""
        place = name, address
        known = self._places.get(place)
        if known is None:
            data = self.bytes_at(address)
            known = self._places[place] = self._read(name, codec, data)
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
        place = "state", pipe_state << 32 | shader_state
        known = self._places.get(place)
        if known is None:
            known = self._places[place] = self._state(pipe_state, shader_state)
        found: PipeState = known
        return found

    def _state(self, pipe_state: int, shader_state: int) -> PipeState:
        place = "parts", pipe_state
        parts = self._places.get(place)
        if parts is None:
            parts = self._places[place] = self._parts(pipe_state)
        vertex, fragment = self._stages(shader_state)
        return PipeState(**parts, vertex=vertex, fragment=fragment)

    def _parts(self, address: int) -> dict[str, Any]:
        data = self.bytes_at(address)
        if len(data) != 4 * len(PIPE_PARTS):
            raise Malformed(f"a pipe state of {len(data)} bytes at 0x{address:x}")
        addresses = struct.unpack(f"<{len(PIPE_PARTS)}I", data)
        return {
            name: self.value(name, codec, part)
            for (name, codec), part in zip(PIPE_PARTS.items(), addresses, strict=True)
            if part
        }

    def _stages(self, address: int) -> list[StageState]:
        data = self.bytes_at(address)
        words = list(struct.unpack(f"<{len(data) // 4}I", data[: len(data) & ~3]))
        stages = []
        for _ in range(2):
            if len(words) < len(STAGE_PARTS) + 1:
                raise Malformed(f"a shader state of {len(data)} bytes at 0x{address:x}")
            stage: dict[str, Any] = {}
            for name, codec in STAGE_PARTS.items():
                part = words.pop(0)
                if part:
                    stage[name] = self.value(name, codec, part)
            count = words.pop(0)
            buffers, words = words[:count], words[count:]
            stage["constants"] = tuple(self.bytes_at(one) if one else b"" for one in buffers)
            stages.append(StageState(**stage))
        return stages
