"""State objects: Gallium's structures, as CREATE_OBJECT brings them.

Word 0 of a CREATE_OBJECT is the handle, so that fields begin with word 1. The handle is no part of
the state: two objects with the same state are equal. Names are those of Mesa's
src/gallium/include/pipe/p_state.h; the places of the bits those of virgl_protocol.h.
"""

from __future__ import annotations

from typing import Any, ClassVar

from vc4lab.mesa.protocol import limits
from vc4lab.mesa.protocol.codes import (
    BlendFactor,
    BlendFunc,
    Compare,
    Face,
    Filter,
    LogicOp,
    MipFilter,
    ObjectKind,
    PolygonMode,
    QueryType,
    Stage,
    StencilOp,
    Swizzle,
    Wrap,
)
from vc4lab.mesa.protocol.fields import Malformed, array, bits, flag, real, rest, word
from vc4lab.mesa.protocol.formats import Format
from vc4lab.mesa.protocol.payload import Payload

OBJECTS: dict[ObjectKind, type[StateObject]] = {}
"""The declarations by kind."""


class StateObject(Payload, first=1):
    """Base of what CREATE_OBJECT makes.

    Class attributes
    ----------------
    kind
        As the header of CREATE_OBJECT has it.
    needs
        The capability without which Mesa sends none; "" if it always may.
    """

    kind: ClassVar[ObjectKind] = ObjectKind.NULL
    needs: ClassVar[str] = ""

    def __init_subclass__(cls, *, kind: ObjectKind, needs: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(first=1, **kwargs)
        cls.kind, cls.needs = kind, needs
        OBJECTS[kind] = cls


class BlendTarget(Payload):
    """How one colour buffer is blended (pipe_rt_blend_state)."""

    blend_enable: bool = flag(0, 0)
    rgb_func: BlendFunc = bits(0, 3, 1, enum=BlendFunc)
    rgb_src_factor: BlendFactor = bits(0, 8, 4, enum=BlendFactor)
    rgb_dst_factor: BlendFactor = bits(0, 13, 9, enum=BlendFactor)
    alpha_func: BlendFunc = bits(0, 16, 14, enum=BlendFunc)
    alpha_src_factor: BlendFactor = bits(0, 21, 17, enum=BlendFactor)
    alpha_dst_factor: BlendFactor = bits(0, 26, 22, enum=BlendFactor)
    colormask: int = bits(0, 30, 27, hex=True, doc="red 1, green 2, blue 4, alpha 8")

    def _parts(self) -> list[str]:
        if self.blend_enable:
            return super()._parts()
        return [f"colormask=0x{self.colormask:x}"]


class BlendState(StateObject, kind=ObjectKind.BLEND):
    """Blending, logic operation, colour masks (pipe_blend_state)."""

    independent_blend_enable: bool = flag(1, 0)
    logicop_enable: bool = flag(1, 1)
    dither: bool = flag(1, 2)
    alpha_to_coverage: bool = flag(1, 3)
    alpha_to_one: bool = flag(1, 4)
    logicop_func: LogicOp = bits(2, 3, 0, enum=LogicOp)
    rt: tuple[BlendTarget, ...] = array(3, BlendTarget, limits.COLOR_BUFFERS)

    def _parts(self) -> list[str]:
        """Without independent blending only the first target counts."""
        texts = super()._parts()
        if not self.independent_blend_enable:
            texts[-1] = f"rt=({self.rt[0].text()})"
        return [one for one in texts if self.logicop_enable or not one.startswith("logicop")]


class RasterizerState(StateObject, kind=ObjectKind.RASTERIZER):
    """How primitives become pixels (pipe_rasterizer_state)."""

    flatshade: bool = flag(1, 0)
    depth_clip: bool = flag(1, 1)
    clip_halfz: bool = flag(1, 2)
    rasterizer_discard: bool = flag(1, 3)
    flatshade_first: bool = flag(1, 4)
    light_twoside: bool = flag(1, 5)
    sprite_coord_mode: int = bits(1, 6, doc="1: the origin is the lower left corner")
    point_quad_rasterization: bool = flag(1, 7)
    cull_face: Face = bits(1, 9, 8, enum=Face)
    fill_front: PolygonMode = bits(1, 11, 10, enum=PolygonMode)
    fill_back: PolygonMode = bits(1, 13, 12, enum=PolygonMode)
    scissor: bool = flag(1, 14)
    front_ccw: bool = flag(1, 15)
    clamp_vertex_color: bool = flag(1, 16)
    clamp_fragment_color: bool = flag(1, 17)
    offset_line: bool = flag(1, 18)
    offset_point: bool = flag(1, 19)
    offset_tri: bool = flag(1, 20)
    poly_smooth: bool = flag(1, 21)
    poly_stipple_enable: bool = flag(1, 22)
    point_smooth: bool = flag(1, 23)
    point_size_per_vertex: bool = flag(1, 24)
    multisample: bool = flag(1, 25)
    line_smooth: bool = flag(1, 26)
    line_stipple_enable: bool = flag(1, 27)
    line_last_pixel: bool = flag(1, 28)
    half_pixel_center: bool = flag(1, 29)
    bottom_edge_rule: bool = flag(1, 30)
    force_persample_interp: bool = flag(1, 31)
    point_size: float = real(2)
    sprite_coord_enable: int = word(3, hex=True, doc="a bit for each varying")
    line_stipple_pattern: int = bits(4, 15, 0, hex=True)
    line_stipple_factor: int = bits(4, 23, 16)
    clip_plane_enable: int = bits(4, 31, 24, hex=True, doc="a bit for each plane")
    line_width: float = real(5)
    offset_units: float = real(6)
    offset_scale: float = real(7)
    offset_clamp: float = real(8)


class StencilFace(Payload):
    """The stencil test of one face (pipe_stencil_state)."""

    enabled: bool = flag(0, 0)
    func: Compare = bits(0, 3, 1, enum=Compare)
    fail_op: StencilOp = bits(0, 6, 4, enum=StencilOp)
    zpass_op: StencilOp = bits(0, 9, 7, enum=StencilOp)
    zfail_op: StencilOp = bits(0, 12, 10, enum=StencilOp)
    valuemask: int = bits(0, 20, 13, hex=True)
    writemask: int = bits(0, 28, 21, hex=True)

    def _parts(self) -> list[str]:
        return super()._parts() if self.enabled else ["off"]


class DepthStencilAlphaState(StateObject, kind=ObjectKind.DSA):
    """Depth, stencil and alpha tests (pipe_depth_stencil_alpha_state)."""

    depth_enabled: bool = flag(1, 0)
    depth_writemask: bool = flag(1, 1)
    depth_func: Compare = bits(1, 4, 2, enum=Compare)
    alpha_enabled: bool = flag(1, 8)
    alpha_func: Compare = bits(1, 11, 9, enum=Compare)
    stencil: tuple[StencilFace, ...] = array(2, StencilFace, 2, doc="front, back")
    alpha_ref_value: float = real(4)


class StreamOutput(Payload):
    """The place that one output of a vertex shader is written to (pipe_stream_output)."""

    register_index: int = bits(0, 7, 0)
    start_component: int = bits(0, 9, 8)
    num_components: int = bits(0, 12, 10)
    output_buffer: int = bits(0, 15, 13)
    dst_offset: int = bits(0, 31, 16)
    stream: int = bits(1, 1, 0)


class ShaderPart(StateObject, kind=ObjectKind.SHADER):
    """A shader's text, or a part of it (pipe_shader_state).

    `offset` is the size of the whole text in bytes, its NUL included; in a part that continues one
    (`is_continuation`) the place of the part in the text. With stream output, which the
    capabilities do not have, 4 + 2n words come before the text.
    """

    stage: Stage = word(1, enum=Stage)
    offset: int = bits(2, 30, 0)
    is_continuation: bool = flag(2, 31)
    num_tokens: int = word(3)
    num_stream_outputs: int = word(4, below=1)
    part: bytes = rest(5, "s")


class VertexElement(Payload):
    """The source of an attribute (pipe_vertex_element)."""

    src_offset: int = word(0)
    instance_divisor: int = word(1)
    vertex_buffer_index: int = word(2, below=limits.VERTEX_BUFFERS)
    src_format: Any = word(3, enum=Format)


class VertexElements(StateObject, kind=ObjectKind.VERTEX_ELEMENTS):
    """All attributes of a draw, in the order of the vertex shader's inputs."""

    elements: tuple[VertexElement, ...] = rest(1, VertexElement, below=limits.VERTEX_ELEMENTS + 1)


class SamplerView(StateObject, kind=ObjectKind.SAMPLER_VIEW):
    """A texture as a shader sees it (pipe_sampler_view)."""

    resource: int = word(1)
    format: Any = bits(2, 23, 0, enum=Format)
    target: int = bits(2, 31, 24, doc="only with the capability TEXTURE_VIEW")
    first_layer: int = bits(3, 15, 0)
    last_layer: int = bits(3, 31, 16)
    first_level: int = bits(4, 7, 0)
    last_level: int = bits(4, 15, 8)
    swizzle_r: Swizzle = bits(5, 2, 0, enum=Swizzle)
    swizzle_g: Swizzle = bits(5, 5, 3, enum=Swizzle)
    swizzle_b: Swizzle = bits(5, 8, 6, enum=Swizzle)
    swizzle_a: Swizzle = bits(5, 11, 9, enum=Swizzle)


class SamplerState(StateObject, kind=ObjectKind.SAMPLER_STATE):
    """How a texture is sampled (pipe_sampler_state)."""

    wrap_s: Wrap = bits(1, 2, 0, enum=Wrap)
    wrap_t: Wrap = bits(1, 5, 3, enum=Wrap)
    wrap_r: Wrap = bits(1, 8, 6, enum=Wrap)
    min_img_filter: Filter = bits(1, 10, 9, enum=Filter)
    min_mip_filter: MipFilter = bits(1, 12, 11, enum=MipFilter)
    mag_img_filter: Filter = bits(1, 14, 13, enum=Filter)
    compare_mode: bool = flag(1, 15)
    compare_func: Compare = bits(1, 18, 16, enum=Compare)
    seamless_cube_map: bool = flag(1, 19)
    max_anisotropy: int = bits(1, 25, 20)
    lod_bias: float = real(2)
    min_lod: float = real(3)
    max_lod: float = real(4)
    border_color: tuple[float, ...] = array(5, "f", 4)


class Surface(StateObject, kind=ObjectKind.SURFACE):
    """A level of a texture as a render target (pipe_surface)."""

    resource: int = word(1)
    format: Any = word(2, enum=Format)
    level: int = word(3)
    first_layer: int = bits(4, 15, 0)
    last_layer: int = bits(4, 31, 16)


class Query(StateObject, kind=ObjectKind.QUERY):
    """The quantity that is counted, and the place for the result (pipe_query)."""

    type: QueryType = bits(1, 15, 0, enum=QueryType)
    index: int = bits(1, 31, 16)
    offset: int = word(2)
    resource: int = word(3)


class StreamOutputTarget(StateObject, kind=ObjectKind.STREAMOUT_TARGET, needs="max_streamout_buffers"):
    """A buffer for a vertex shader's outputs (pipe_stream_output_target)."""

    resource: int = word(1)
    buffer_offset: int = word(2)
    buffer_size: int = word(3)


class MsaaSurface(StateObject, kind=ObjectKind.MSAA_SURFACE, needs="IMPLICIT_MSAA"):
    """A render target with more samples than its texture."""

    resource: int = word(1)
    format: Any = word(2, enum=Format)
    level: int = word(3)
    first_layer: int = bits(4, 15, 0)
    last_layer: int = bits(4, 31, 16)
    nr_samples: int = word(5)


def decode_object(kind: int, data: Any, start: int, words: int) -> StateObject:
    """The state of a CREATE_OBJECT whose words after the handle these are. Raises Malformed."""
    known = ObjectKind._value2member_map_.get(kind)
    declared = OBJECTS.get(known) if isinstance(known, ObjectKind) else None
    if declared is None:
        raise Malformed(f"there is no object of kind {kind}")
    return declared.decode(data, start, words)
