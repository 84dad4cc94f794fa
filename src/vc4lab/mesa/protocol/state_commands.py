"""Commands that set state which is no object."""

from __future__ import annotations

from vc4lab.mesa.protocol import limits
from vc4lab.mesa.protocol.codes import Stage
from vc4lab.mesa.protocol.command import Command
from vc4lab.mesa.protocol.fields import WORD, array, bits, rest, word
from vc4lab.mesa.protocol.payload import Payload


class Viewport(Payload):
    """From clip coordinates to those of the window (pipe_viewport_state)."""

    scale: tuple[float, ...] = array(0, "f", 3)
    translate: tuple[float, ...] = array(3, "f", 3)


class SetViewportState(Command, number=4, name="SET_VIEWPORT_STATE"):
    """Viewports from a slot on."""

    start_slot: int = word(0, below=limits.VIEWPORTS)
    viewports: tuple[Viewport, ...] = rest(1, Viewport, below=limits.VIEWPORTS + 1)


class SetFramebufferState(Command, number=5, name="SET_FRAMEBUFFER_STATE"):
    """The surfaces that are drawn to, by their handles (pipe_framebuffer_state)."""

    nr_cbufs: int = word(0, below=limits.COLOR_BUFFERS + 1)
    zsbuf: int = word(1)
    cbufs: tuple[int, ...] = rest(2, "u", below=limits.COLOR_BUFFERS + 1)


class VertexBuffer(Payload):
    """The place of attributes in a resource (pipe_vertex_buffer)."""

    stride: int = word(0)
    offset: int = word(1)
    resource: int = word(2)


class SetVertexBuffers(Command, number=6, name="SET_VERTEX_BUFFERS"):
    """All vertex buffers."""

    buffers: tuple[VertexBuffer, ...] = rest(0, VertexBuffer, below=limits.VERTEX_BUFFERS + 1)


class SetSamplerViews(Command, number=10, name="SET_SAMPLER_VIEWS"):
    """The textures of a stage from a slot on."""

    stage: Stage = word(0, enum=Stage)
    start_slot: int = word(1, below=limits.SAMPLERS)
    views: tuple[int, ...] = rest(2, "u", below=limits.SAMPLERS + 1)


class SetIndexBuffer(Command, number=11, name="SET_INDEX_BUFFER", lengths=(1, 3)):
    """Sets the place of indices; one word, 0: there are none."""

    resource: int = word(0)
    index_size: int = word(1, below=5, doc="bytes of an index")
    offset: int = word(2)

    def size(self) -> int:
        return 3 if self.resource else 1


class SetConstantBuffer(Command, number=12, name="SET_CONSTANT_BUFFER"):
    """The uniforms of a stage."""

    stage: Stage = word(0, enum=Stage)
    index: int = word(1, below=limits.CONSTANT_BUFFERS)
    values: bytes = rest(2, "s")

    @property
    def floats(self) -> tuple[float, ...]:
        """The values as singles; what they are, the shader decides."""
        import struct

        return struct.unpack(f"<{len(self.values) // WORD}f", self.values)

    def _parts(self) -> list[str]:
        values = ", ".join(f"{value:.7g}" for value in self.floats[:16])
        count = len(self.values) // WORD
        more = f", … {count} in all" if count > 16 else ""
        return [f"stage={self.stage} index={self.index} values=[{values}{more}]"]


class SetStencilRef(Command, number=13, name="SET_STENCIL_REF"):
    """Sets the values that stencil values are compared with (pipe_stencil_ref)."""

    front: int = bits(0, 7, 0)
    back: int = bits(0, 15, 8)


class SetBlendColor(Command, number=14, name="SET_BLEND_COLOR"):
    """The constant of blending (pipe_blend_color)."""

    color: tuple[float, ...] = array(0, "f", 4)


class Scissor(Payload):
    """The pixels that may be drawn (pipe_scissor_state)."""

    minx: int = bits(0, 15, 0)
    miny: int = bits(0, 31, 16)
    maxx: int = bits(1, 15, 0)
    maxy: int = bits(1, 31, 16)


class SetScissorState(Command, number=15, name="SET_SCISSOR_STATE"):
    """Scissors from a slot on."""

    start_slot: int = word(0, below=limits.VIEWPORTS)
    scissors: tuple[Scissor, ...] = rest(1, Scissor, below=limits.VIEWPORTS + 1)


class BindSamplerStates(Command, number=18, name="BIND_SAMPLER_STATES"):
    """The samplers of a stage from a slot on."""

    stage: Stage = word(0, enum=Stage)
    start_slot: int = word(1, below=limits.SAMPLERS)
    states: tuple[int, ...] = rest(2, "u", below=limits.SAMPLERS + 1)


class SetPolygonStipple(Command, number=22, name="SET_POLYGON_STIPPLE"):
    """A pattern of 32x32 pixels (pipe_poly_stipple)."""

    stipple: tuple[int, ...] = array(0, "u", 32)


class SetClipState(Command, number=23, name="SET_CLIP_STATE"):
    """Eight planes (pipe_clip_state)."""

    ucp: tuple[float, ...] = array(0, "f", 32)


class SetSampleMask(Command, number=24, name="SET_SAMPLE_MASK"):
    """The samples that may be drawn."""

    mask: int = word(0, hex=True)


class SetSubCtx(Command, number=28, name="SET_SUB_CTX"):
    """The context that the following commands are for."""

    id: int = word(0)


class CreateSubCtx(Command, number=29, name="CREATE_SUB_CTX"):
    """A new context."""

    id: int = word(0)


class DestroySubCtx(Command, number=30, name="DESTROY_SUB_CTX"):
    """Ends a context with all of its objects."""

    id: int = word(0)


class BindShader(Command, number=31, name="BIND_SHADER"):
    """The shader of a stage; handle 0: none."""

    handle: int = word(0)
    stage: Stage = word(1, enum=Stage)


class LinkShader(Command, number=52, name="LINK_SHADER"):
    """The shaders of a program, by their handles."""

    vertex: int = word(0)
    fragment: int = word(1)
    geometry: int = word(2)
    tess_ctrl: int = word(3)
    tess_eval: int = word(4)
    compute: int = word(5)
