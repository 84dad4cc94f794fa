"""State in GPU memory: blocks that draws and clears refer to by address.

A block is a word for its bytes, and the bytes: Gallium's objects as the protocol declares them,
with the driver's numbers of resources. This is their form; `stored_blocks.py` puts them
into memory, and takes them out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from vc4lab.mesa.protocol import objects
from vc4lab.mesa.protocol.codes import Stage
from vc4lab.mesa.protocol.state_commands import Scissor, SetSampleMask, SetStencilRef, VertexBuffer, Viewport
from vc4lab.mesa.state.pipe import BoundSurface, BoundVertices, BoundView, Framebuffer, IndexBuffer, Shader

_WORD = struct.Struct("<I")
MAX_KNOWN = 4096
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
        The class that holds one of them with its resource; None: it refers to no resources.
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
    "sample_mask": _object(SetSampleMask),
    "stipple": _words("I"),
    "vertex_buffers": _bound_list(BoundVertices, VertexBuffer),
    "index_buffer": Codec(_write_indices, _read_indices, bound=IndexBuffer),
}
"""The parts of `PipeState` in the order of a pipe state block's addresses, 0: not set."""
STAGE_PARTS: dict[str, Codec] = {
    "shader": Codec(
        lambda value: _WORD.pack(value.stage) + value.text.encode("latin-1", "replace"), _read_shader
    ),
    "views": _bound_list(BoundView, objects.SamplerView),
    "samplers": _objects(objects.SamplerState),
}
"""Those of `StageState`; a shader state block has them of the vertex stage, then the number and the
addresses of its constant buffers, then the same of the fragment stage."""
