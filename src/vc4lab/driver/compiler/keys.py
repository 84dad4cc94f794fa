"""What a compiled shader depends on besides its text: the state that becomes part of its program.

A VideoCore IV has no units that fetch vertex formats, that blend, or that test alpha: its shaders
do that. A key has exactly the state that changes the program; what may change from draw to draw
without another program is in its uniforms (`result.py`). Keys are equal if programs are.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from vc4lab.mesa.protocol.codes import Compare, LogicOp, Swizzle
from vc4lab.mesa.protocol.objects import BlendTarget

RGBA = (Swizzle.X, Swizzle.Y, Swizzle.Z, Swizzle.W)


ALL_SAMPLES = 15
"""Of a pixel's four; with one, all bits stand for it."""


class Primitives(Enum):
    """What is drawn, after strips and fans are taken apart."""

    POINTS = "points"
    LINES = "lines"
    TRIANGLES = "triangles"


@dataclass(frozen=True)
class TextureKey:
    """How a shader samples one texture.

    Attributes
    ----------
    swizzle
        What each component of a sample is: bytes of the texture unit's word (X: the lowest), 0, 1.
        Format and view together: a B8G8R8A8 texture, which lies in memory with blue first and is
        sampled as RGBA8888, has (Z, Y, X, W).
    is_depth
        The word is a 24-bit depth in bits 31:8, and becomes the components' X.
    compare
        Of a shadow sampler: how the reference is compared with the depth; None: it is not.
    saturate_s, saturate_t
        The coordinate is clamped to 0..1 by the program (GL_CLAMP).
    has_border
        The border colour is sent with each request.
    is_srgb
        Red, green and blue become linear after sampling.
    is_sampled
        It has several samples a pixel: nothing samples it, single ones are fetched.
    clamps_level
        The program computes the level of detail, and clamps it: the unit has no limits but whole
        levels.
    """

    swizzle: tuple[Swizzle, ...] = RGBA
    is_depth: bool = False
    compare: Compare | None = None
    saturate_s: bool = False
    saturate_t: bool = False
    has_border: bool = False
    is_srgb: bool = False
    is_sampled: bool = False
    clamps_level: bool = False


@dataclass(frozen=True)
class ColorTarget:
    """What becomes of a fragment's colour.

    Attributes
    ----------
    order
        Which component each byte of the tile buffer's word is, the lowest first: "rgba"; of a
        B8G8R8A8 buffer "bgra", of B8G8R8X8 "bgrx". 565 buffers have "rgbx", since the store
        converts. An x reads as 1.
    blend
        None, or how to blend; its colour mask counts always.
    logic_op
        None, or what replaces blending.
    is_srgb
        Red, green and blue are blended as linear values and stored by the sRGB curve; a logic
        operation only turns blending off.
    is_sampled
        The buffer has four samples a pixel: what depends on them is done for each.
    """

    order: str = "rgba"
    blend: BlendTarget | None = None
    colormask: int = 15
    logic_op: LogicOp | None = None
    alpha_to_one: bool = False
    is_srgb: bool = False
    is_sampled: bool = False


@dataclass(frozen=True)
class FragmentKey:
    """State in a fragment program.

    Attributes
    ----------
    color
        None: no colour is written (a depth pass).
    writes_z
        Whether depth or stencil test are on: the program then gives its depth to the tile buffer.
    stencil_words
        How many stencil set-up words it writes before: 0 to 3, uniforms STENCIL 0, 1, 2.
    alpha_test
        None or ALWAYS: there is none; the reference is the uniform ALPHA_REF.
    sprite_coords
        Bit n: GENERIC[n] of points is the place in the point.
    sprite_origin_is_lower
        Of such places, whether t begins at the lower edge.
    is_two_sided
        Back faces have the colours BCOLOR.
    clip_planes
        A bit for each user clip plane: pixels beyond one are left out.
    is_stippled
        Pixels are left out whose bit of the polygon stipple is 0.
    sample_mask
        The samples of a pixel that may be drawn, as bits.
    alpha_to_coverage
        Alpha says how many of them are.
    """

    color: ColorTarget | None = ColorTarget()
    writes_z: bool = False
    stencil_words: int = 0
    alpha_test: Compare | None = None
    primitives: Primitives = Primitives.TRIANGLES
    sprite_coords: int = 0
    sprite_origin_is_lower: bool = False
    is_two_sided: bool = False
    clip_planes: int = 0
    is_stippled: bool = False
    sample_mask: int = ALL_SAMPLES
    alpha_to_coverage: bool = False
    textures: tuple[TextureKey, ...] = ()


@dataclass(frozen=True)
class Varying:
    """One word that vertices give and pixels get: a component of an output.

    interpolation: as TGSI declares it (PERSPECTIVE, LINEAR, CONSTANT, COLOR). CONSTANT is flat,
    COLOR is if the rasterizer says flatshade.
    """

    name: str
    index: int
    component: int
    interpolation: str = "PERSPECTIVE"


@dataclass(frozen=True)
class VertexKey:
    """State in vertex and coordinate programs.

    Attributes
    ----------
    formats
        The format of each vertex element, as `mesa.protocol.formats.Format` numbers them.
    varyings
        What the fragment program reads, in its order: `CompiledShader.varyings`.
    has_point_size
        Points whose size the shader gives.
    clip_planes
        A bit for each user clip plane: the distances from them are CLIPDIST[0] and CLIPDIST[1].
    """

    formats: tuple[int, ...] = ()
    varyings: tuple[Varying, ...] = ()
    has_point_size: bool = False
    clip_planes: int = 0
    textures: tuple[TextureKey, ...] = ()
