"""The state that a draw is made with, as one object that can be printed and compared.

Names are Gallium's. State objects (`protocol/objects.py`) are held as they were created; resources
that they name are beside them, so that two clients' equal states compare equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from vc4lab.mesa.protocol.codes import Stage
from vc4lab.mesa.protocol.fields import value_text
from vc4lab.mesa.protocol.objects import (
    BlendState,
    DepthStencilAlphaState,
    Query,
    RasterizerState,
    SamplerState,
    SamplerView,
    Surface,
    VertexElements,
)
from vc4lab.mesa.protocol.state_commands import Scissor, SetSampleMask, SetStencilRef, VertexBuffer, Viewport

if TYPE_CHECKING:
    from vc4lab.mesa.store.resources import Resource


@dataclass(frozen=True)
class Shader:
    """A whole shader (pipe_shader_state): its stage and its TGSI text."""

    stage: Stage
    text: str

    def __repr__(self) -> str:
        return f"Shader({self.stage}, {self.text.count(chr(10))} lines)"


class BoundSurface(NamedTuple):
    """A render target: the surface and its texture."""

    state: Surface
    resource: Resource


class BoundView(NamedTuple):
    """A texture of a stage: the view and its texture."""

    state: SamplerView
    resource: Resource


class BoundVertices(NamedTuple):
    """A vertex buffer: where attributes lie in its resource."""

    state: VertexBuffer
    resource: Resource


VertexBuffers = tuple[BoundVertices | None, ...]


def offsets_of(buffers: VertexBuffers) -> tuple[int, ...]:
    """Return the byte offsets of vertex buffers in their resources; 0 where there is none."""
    return tuple([0 if one is None else one.state.offset for one in buffers])


def with_offsets(buffers: VertexBuffers, offsets: Sequence[int]) -> VertexBuffers:
    """A copy of the buffers with other offsets."""
    return tuple([
        None if one is None else BoundVertices(
            VertexBuffer(one.state.stride, offset, one.state.resource), one.resource
        )
        for one, offset in zip(buffers, offsets, strict=True)
    ])  # fmt: skip


class BoundQuery(NamedTuple):
    """A query and the buffer for its result."""

    state: Query
    resource: Resource


INDEX_SIZES = (1, 2, 4)
"""Bytes that an index may have."""


class IndexBuffer(NamedTuple):
    """The place of indices, and bytes of one."""

    resource: Resource
    index_size: int
    offset: int


def index_offset_of(indices: IndexBuffer | None) -> int:
    """Return the byte offset of an index buffer in its resource; 0 where there is none."""
    return 0 if indices is None else indices.offset


def with_index_offset(indices: IndexBuffer | None, offset: int) -> IndexBuffer | None:
    """A copy of the buffer with another offset."""
    if indices is None or indices.offset == offset:
        return indices
    return IndexBuffer(indices.resource, indices.index_size, offset)


def buffer_offsets(state: PipeState) -> tuple[int, ...]:
    """Return the byte offsets of vertex buffers in their resources, and after them the index buffer's."""
    return *offsets_of(state.vertex_buffers), index_offset_of(state.index_buffer)


@dataclass(frozen=True)
class Framebuffer:
    """The surfaces that are drawn to (pipe_framebuffer_state)."""

    cbufs: tuple[BoundSurface | None, ...] = ()
    zsbuf: BoundSurface | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Width and height that all of its surfaces have."""
        surfaces = [one for one in (*self.cbufs, self.zsbuf) if one is not None]
        sizes = [one.resource.level(one.state.level) for one in surfaces]
        if not sizes:
            return 0, 0
        return min(one.width for one in sizes), min(one.height for one in sizes)


@dataclass(frozen=True)
class StageState:
    """The state of one stage: shader, uniforms, textures and samplers by their slots."""

    shader: Shader | None = None
    constants: tuple[bytes, ...] = ()
    views: tuple[BoundView | None, ...] = ()
    samplers: tuple[SamplerState | None, ...] = ()


_NO_STENCIL_REF = SetStencilRef(0, 0)
_ALL_SAMPLES = SetSampleMask(0xFFFFFFFF)


@dataclass(frozen=True)
class PipeState:
    """All that a draw depends on, besides its own numbers (`DrawVbo`)."""

    blend: BlendState | None = None
    rasterizer: RasterizerState | None = None
    dsa: DepthStencilAlphaState | None = None
    vertex_elements: VertexElements | None = None
    framebuffer: Framebuffer = Framebuffer()
    viewports: tuple[Viewport | None, ...] = ()
    scissors: tuple[Scissor | None, ...] = ()
    ucp: tuple[float, ...] = ()
    stencil_ref: SetStencilRef = _NO_STENCIL_REF
    blend_color: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    sample_mask: SetSampleMask = _ALL_SAMPLES
    stipple: tuple[int, ...] = ()
    vertex_buffers: tuple[BoundVertices | None, ...] = ()
    index_buffer: IndexBuffer | None = None
    vertex: StageState = StageState()
    fragment: StageState = StageState()

    def lines(self) -> list[str]:
        """One line for each part, as listings print them."""
        lines = []
        for name, value in vars(self).items():
            if isinstance(value, StageState):
                lines += [f"{name}.{part}: {_text(one)}" for part, one in vars(value).items()]
            elif isinstance(value, Framebuffer):
                lines += [f"cbuf {number}: {_text(one)}" for number, one in enumerate(value.cbufs)]
                lines.append(f"zsbuf: {_text(value.zsbuf)}")
            else:
                lines.append(f"{name}: {_text(value)}")
        return lines


class Settings(NamedTuple):
    """A context's state without constants: what differs from `PipeState`'s defaults, and stages.

    key: as ids of its objects (`Context.bound_key`).
    """

    parts: dict[str, Any]
    vertex: StageState
    fragment: StageState
    key: tuple[Any, ...]

    def state(self) -> PipeState:
        """The whole state as one object."""
        return PipeState(**self.parts, vertex=self.vertex, fragment=self.fragment)


def _text(value: Any) -> str:
    """A part of the state for people."""
    if value is None or value == ():
        return "none"
    if isinstance(value, BoundSurface | BoundView | BoundVertices | BoundQuery):
        return f"{value.resource} {value.state.text()}"
    if isinstance(value, IndexBuffer):
        return f"{value.resource} index_size={value.index_size} offset={value.offset}"
    if isinstance(value, Shader):
        return repr(value)
    if isinstance(value, tuple):
        return f"[{', '.join(_text(one) for one in value)}]"
    return value_text(value)
