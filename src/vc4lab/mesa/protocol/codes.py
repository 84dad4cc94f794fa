"""The numbers that fields of the protocol take, with Gallium's names.

Source: Mesa 22.3, src/virtio/virtio-gpu/virgl_protocol.h and p_defines.h.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag


class Code(IntEnum):
    """A number with a name; as text the name in lower case."""

    def __str__(self) -> str:
        return self.name.lower()


class ObjectKind(Code):
    """Names the kind of object that CREATE_OBJECT makes (bits 15:8 of its header)."""

    NULL = 0
    BLEND = 1
    RASTERIZER = 2
    DSA = 3
    SHADER = 4
    VERTEX_ELEMENTS = 5
    SAMPLER_VIEW = 6
    SAMPLER_STATE = 7
    SURFACE = 8
    QUERY = 9
    STREAMOUT_TARGET = 10
    MSAA_SURFACE = 11


class Stage(Code):
    """Names the stage in which a shader runs."""

    VERTEX = 0
    FRAGMENT = 1
    GEOMETRY = 2
    TESS_CTRL = 3
    TESS_EVAL = 4
    COMPUTE = 5


class Target(Code):
    """Names the type of a resource."""

    BUFFER = 0
    TEXTURE_1D = 1
    TEXTURE_2D = 2
    TEXTURE_3D = 3
    TEXTURE_CUBE = 4
    TEXTURE_RECT = 5
    TEXTURE_1D_ARRAY = 6
    TEXTURE_2D_ARRAY = 7
    TEXTURE_CUBE_ARRAY = 8


class Primitive(Code):
    """Kinds of primitives."""

    POINTS = 0
    LINES = 1
    LINE_LOOP = 2
    LINE_STRIP = 3
    TRIANGLES = 4
    TRIANGLE_STRIP = 5
    TRIANGLE_FAN = 6
    QUADS = 7
    QUAD_STRIP = 8
    POLYGON = 9
    LINES_ADJACENCY = 10
    LINE_STRIP_ADJACENCY = 11
    TRIANGLES_ADJACENCY = 12
    TRIANGLE_STRIP_ADJACENCY = 13
    PATCHES = 14


class Compare(Code):
    """When a test passes."""

    NEVER = 0
    LESS = 1
    EQUAL = 2
    LEQUAL = 3
    GREATER = 4
    NOTEQUAL = 5
    GEQUAL = 6
    ALWAYS = 7


class BlendFunc(Code):
    """How source and destination are combined."""

    ADD = 0
    SUBTRACT = 1
    REVERSE_SUBTRACT = 2
    MIN = 3
    MAX = 4


class BlendFactor(Code):
    """By what source or destination is multiplied. 0 is in targets that do not blend."""

    NONE = 0
    ONE = 1
    SRC_COLOR = 2
    SRC_ALPHA = 3
    DST_ALPHA = 4
    DST_COLOR = 5
    SRC_ALPHA_SATURATE = 6
    CONST_COLOR = 7
    CONST_ALPHA = 8
    SRC1_COLOR = 9
    SRC1_ALPHA = 10
    ZERO = 17
    INV_SRC_COLOR = 18
    INV_SRC_ALPHA = 19
    INV_DST_ALPHA = 20
    INV_DST_COLOR = 21
    INV_CONST_COLOR = 23
    INV_CONST_ALPHA = 24
    INV_SRC1_COLOR = 25
    INV_SRC1_ALPHA = 26


class LogicOp(Code):
    """Bitwise operations of source and destination."""

    CLEAR = 0
    NOR = 1
    AND_INVERTED = 2
    COPY_INVERTED = 3
    AND_REVERSE = 4
    INVERT = 5
    XOR = 6
    NAND = 7
    AND = 8
    EQUIV = 9
    NOOP = 10
    OR_INVERTED = 11
    COPY = 12
    OR_REVERSE = 13
    OR = 14
    SET = 15


class StencilOp(Code):
    """Names an operation on a stencil value."""

    KEEP = 0
    ZERO = 1
    REPLACE = 2
    INCR = 3
    DECR = 4
    INCR_WRAP = 5
    DECR_WRAP = 6
    INVERT = 7


class Face(Code):
    """Which faces are culled."""

    NONE = 0
    FRONT = 1
    BACK = 2
    FRONT_AND_BACK = 3


class PolygonMode(Code):
    """How polygons are filled."""

    FILL = 0
    LINE = 1
    POINT = 2
    FILL_RECTANGLE = 3


class Wrap(Code):
    """Names how coordinates outside of a texture are read."""

    REPEAT = 0
    CLAMP = 1
    CLAMP_TO_EDGE = 2
    CLAMP_TO_BORDER = 3
    MIRROR_REPEAT = 4
    MIRROR_CLAMP = 5
    MIRROR_CLAMP_TO_EDGE = 6
    MIRROR_CLAMP_TO_BORDER = 7


class Filter(Code):
    """How texels of a level are filtered."""

    NEAREST = 0
    LINEAR = 1


class MipFilter(Code):
    """How levels are chosen."""

    NEAREST = 0
    LINEAR = 1
    NONE = 2


class Swizzle(Code):
    """Names the source of a sample's component."""

    X = 0
    Y = 1
    Z = 2
    W = 3
    ZERO = 4
    ONE = 5
    NONE = 6


class QueryType(Code):
    """Names the quantity that a query counts."""

    OCCLUSION_COUNTER = 0
    OCCLUSION_PREDICATE = 1
    OCCLUSION_PREDICATE_CONSERVATIVE = 2
    TIMESTAMP = 3
    TIMESTAMP_DISJOINT = 4
    TIME_ELAPSED = 5
    PRIMITIVES_GENERATED = 6
    PRIMITIVES_EMITTED = 7
    SO_STATISTICS = 8
    SO_OVERFLOW_PREDICATE = 9
    SO_OVERFLOW_ANY_PREDICATE = 10
    GPU_FINISHED = 11
    PIPELINE_STATISTICS = 12
    PIPELINE_STATISTICS_SINGLE = 13


class Direction(Code):
    """Which way a transfer goes."""

    TO_HOST = 1
    FROM_HOST = 2


class Bind(IntFlag):
    """Names the uses of a resource."""

    DEPTH_STENCIL = 1 << 0
    RENDER_TARGET = 1 << 1
    SAMPLER_VIEW = 1 << 3
    VERTEX_BUFFER = 1 << 4
    INDEX_BUFFER = 1 << 5
    CONSTANT_BUFFER = 1 << 6
    DISPLAY_TARGET = 1 << 7
    COMMAND_ARGS = 1 << 8
    STREAM_OUTPUT = 1 << 11
    SHADER_BUFFER = 1 << 14
    QUERY_BUFFER = 1 << 15
    CURSOR = 1 << 16
    CUSTOM = 1 << 17
    SCANOUT = 1 << 18
    STAGING = 1 << 19
    SHARED = 1 << 20


def bind_text(value: int) -> str:
    """The names of the bits, joined by |."""
    names = [bit.name.lower() for bit in Bind if bit.name and value & bit]
    left = value & ~sum(Bind)
    return "|".join([*names, *([f"0x{left:x}"] if left or not names else [])])
