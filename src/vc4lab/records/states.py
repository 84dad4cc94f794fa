"""The render state, and every record that sets members of it.

As in `declarations.py`; a record names in its head what it sets of `RenderState`. Source: AG100-R
Tables 42-45, and those of `declarations.py`.
"""

from __future__ import annotations

from vc4lab.bits import Bits
from vc4lab.records import codes
from vc4lab.records.payload import Address, Fixed, Flags, Float, ShaderState, State
from vc4lab.simd import Struct, f32, i32


class RenderState(Struct):
    """Everything the records of state say, comparable byte by byte (no padding)."""

    config = i32
    flat_flags = i32
    point_size = f32
    line_width = f32
    rht_boundary = i32
    depth_offset = i32
    clip_left = i32
    clip_bottom = i32
    clip_width = i32
    clip_height = i32
    viewport_x = i32
    viewport_y = i32
    z_min = f32
    z_max = f32
    list_format = i32
    shader_kind = i32  # the id of the record that named the shaders last, 0 before the first
    shader_word = i32
    shader_uniforms = i32


TRIANGLES_16_BIT = codes.ListData.INDEX16.of(codes.ListPrimitive.TRIANGLES)
"""Record 56 for triangles with 16-bit indices: what the binner writes unless it says otherwise."""


class PrimitiveListFormat(
    State,
    id=56,
    size=2,
    title="Primitive list format",
    sets=(RenderState.list_format,),
    initial={"list_format": TRIANGLES_16_BIT},
):
    """How the following compressed lists are to be read; counts once a shader state follows."""

    type = Bits(3, 0, enum=codes.ListPrimitive)
    data = Bits(7, 4, enum=codes.ListData)


class GlShaderState(ShaderState, id=64, size=5, title="GL shader state", sets=(RenderState.shader_word,)):
    """Three shaders and attribute arrays."""

    attributes = Bits(2, 0, doc="number of attribute arrays, 0 = 8")
    extended = Bits(3, doc="the record has 26-bit strides; then always 8 arrays")
    address = Address(31, 4, 4)


class NvShaderState(ShaderState, id=65, size=5, title="NV shader state", sets=(RenderState.shader_word,)):
    """A fragment shader and vertices shaded beforehand."""

    address = Address(31, 0)


class VgShaderState(ShaderState, id=66, size=5, title="VG shader state", sets=(RenderState.shader_word,)):
    """A fragment shader for VG primitives."""

    address = Address(31, 0)


class VgInlineShader(
    ShaderState,
    id=67,
    size=9,
    title="VG inline shader record",
    sets=(RenderState.shader_word, RenderState.shader_uniforms),
):
    """A VG shader record without the memory."""

    threading = Bits(2, 0, doc="0 two threads, 1 one thread")
    code = Address(31, 3, 3)
    uniforms = Address(63, 32)


class ConfigurationBits(State, id=96, size=4, title="Configuration bits", sets=(RenderState.config,)):
    """Facing, rasteriser and depth switches."""

    enable_forward = Bits(0, doc="draw forward-facing primitives")
    enable_reverse = Bits(1, doc="draw reverse-facing primitives")
    clockwise = Bits(2, doc="clockwise is forward facing, seen with y upward")
    enable_depth_offset = Bits(3)
    antialias = Bits(4, doc="points and lines; no effect")
    coverage_read_mask = Bits(5, doc="0 8-bit level, 1 16-bit mask")
    oversample = Bits(7, 6, enum=codes.Oversample)
    coverage_pipe = Bits(8, doc="coverage accumulation instead of QPUs")
    coverage_update = Bits(10, 9, enum=codes.CoverageUpdate)
    coverage_read_leave = Bits(11, doc="0 clear on read")
    depth_test = Bits(14, 12, enum=codes.Compare)
    z_update = Bits(15)
    early_z = Bits(16)
    early_z_update = Bits(17)


class FlatShadeFlags(State, id=97, size=5, title="Flat shade flags", sets=(RenderState.flat_flags,)):
    """Bit n: component n of the varyings is that of the last vertex."""

    flags = Flags(31, 0)


MAX_POINT_SIZE = 512.0
"""Pixels, for binner and setup alike. Larger ones act as this: on a Pi 3 dEQP-GLES2 finds one of
528 so (rasterization.limits.points).
"""


class PointSize(
    State,
    id=98,
    size=5,
    title="Point size",
    sets={"point_size": RenderState.point_size},
    initial={"point_size": 1.0},
):
    """Pixels; used when vertices carry no size of their own."""

    point_size = Float(31, 0)


class LineWidth(
    State,
    id=99,
    size=5,
    title="Line width",
    sets={"line_width": RenderState.line_width},
    initial={"line_width": 1.0},
):
    """Pixels."""

    line_width = Float(31, 0)


class RhtXBoundary(State, id=100, size=3, title="RHT X boundary", sets={"x": RenderState.rht_boundary}):
    """The other side of a right-hand trapezoid."""

    x = Fixed(15, 0)


class DepthOffset(State, id=101, size=5, title="Depth offset", sets=(RenderState.depth_offset,)):
    """Added to Zs: factor x maximum slope + units x smallest step."""

    factor = Float(15, 0)
    units = Float(31, 16)


class ClipWindow(
    State,
    id=102,
    size=9,
    title="Clip window",
    sets={
        "left": RenderState.clip_left,
        "bottom": RenderState.clip_bottom,
        "width": RenderState.clip_width,
        "height": RenderState.clip_height,
    },
):
    """Pixels outside are not drawn."""

    left = Bits(15, 0)
    bottom = Bits(31, 16)
    width = Bits(47, 32)
    height = Bits(63, 48)


class ViewportOffset(
    State,
    id=103,
    size=5,
    title="Viewport offset",
    sets={"x": RenderState.viewport_x, "y": RenderState.viewport_y},
):
    """Pixel position of the viewport's centre, to which Xs and Ys are relative."""

    x = Fixed(15, 0)
    y = Fixed(31, 16)


class ZClipPlanes(
    State,
    id=104,
    size=9,
    title="Z min and max clipping planes",
    sets={"minimum": RenderState.z_min, "maximum": RenderState.z_max},
    initial={"z_max": 1.0},
):
    """Fragments outside (both ends inclusive) are rejected."""

    minimum = Float(31, 0)
    maximum = Float(63, 32)
