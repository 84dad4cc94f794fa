"""Declares the compiler's input besides a shader's text, and its output: keys, programs, uniforms.

A VideoCore IV has no units that fetch vertex formats, that blend, or that test alpha: its shaders
do that. A key has exactly the state that changes the program; what may change from draw to draw
without another program is in its uniforms. Keys are equal if programs are. A result is a program's
words, and what its driver must put beside them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from vc4lab.mesa.protocol.codes import Compare, LogicOp, Swizzle
from vc4lab.mesa.protocol.objects import BlendTarget
from vc4lab.qpu.machine.code import STREAM_ADDRESS, Const, Streamed, StreamWord

RGBA = (Swizzle.X, Swizzle.Y, Swizzle.Z, Swizzle.W)


ALL_SAMPLES = 15
"""The bits of a pixel's four samples; with one, all bits stand for it."""


class Primitives(Enum):
    """Names the primitives that are drawn, after strips and fans are taken apart."""

    POINTS = "points"
    LINES = "lines"
    TRIANGLES = "triangles"


@dataclass(frozen=True)
class TextureKey:
    """How a shader samples one texture.

    Attributes
    ----------
    swizzle
        The source of each component of a sample: bytes of the unit's word (X: the lowest), 0, 1.
        Format and view together: a B8G8R8A8 texture, which lies in memory with blue first and is
        sampled as RGBA8888, has (Z, Y, X, W).
    is_depth
        The word is a 24-bit depth in bits 31:8, and becomes the components' X.
    compare
        How a shadow sampler compares the reference with the depth; None: it does not.
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
    """The treatment of a fragment's colour on its way into the tile buffer.

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
        Whether t begins at the lower edge in such places.
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
        The varyings that the fragment program reads, in order: `CompiledShader.varyings`.
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


class UniformKind(Enum):
    """Names the meaning of a word of the uniform stream. `index` and `value` are those of `Uniform`."""

    LITERAL = "literal"
    """`value` itself."""
    CONSTANT = "constant"
    """Word `value` (4 * register + component) of the stage's constant buffer `index`, or 0."""
    CONSTANTS_ADDRESS = "constants address"
    """The guest address of constant buffer `index`, plus `value` bytes."""
    CONSTANTS_LIMIT = "constants limit"
    """The largest byte offset from CONSTANTS_ADDRESS with the same `value` that is inside."""
    VIEWPORT_X_SCALE = "viewport x scale"
    """Half the viewport's width in sixteenths of a pixel, a float: 16 * Viewport.scale[0]."""
    VIEWPORT_Y_SCALE = "viewport y scale"
    """Half the viewport's height likewise; the sign says which way is up."""
    VIEWPORT_Z_SCALE = "viewport z scale"
    VIEWPORT_Z_OFFSET = "viewport z offset"
    TEXTURE_P0 = "texture p0"
    """Configuration words of the stage's texture `index`; hardware reference 6.2."""
    TEXTURE_P1 = "texture p1"
    TEXTURE_P2 = "texture p2"
    """PTYPE 1: the cube stride (0 unless a cube map), or-ed with `value` (bit 0: BSLOD)."""
    TEXTURE_ZERO = "texture zero"
    """A configuration word of texture `index` with no meaning: 0."""
    TEXTURE_WIDTH_RCP = "1 / texture width"
    """A float; of RECT textures, whose coordinates count texels."""
    TEXTURE_HEIGHT_RCP = "1 / texture height"
    TEXTURE_BORDER = "border colour"
    """The border of texture `index`'s sampler, in the texture unit's raw layout; hardware reference 6.6."""
    TEXTURE_MIN_LEVEL = "lowest level"
    """The lowest level of texture `index`'s sampler, a float: the level of detail is not below it."""
    TEXTURE_MAX_LEVEL = "highest level"
    TEXTURE_ADDRESS = "texture address"
    """The guest address at which texture `index`, of several samples, begins."""
    TEXTURE_LIMIT = "texture limit"
    """The byte offset of its last word."""
    TEXTURE_ROW = "texture row"
    """Bytes of a row of its tiles; hardware reference 7.11."""
    BLEND_COLOR = "blend colour"
    """The blend colour as a word of the tile buffer (`ColorTarget.order`)."""
    BLEND_ALPHA = "blend alpha"
    """Its alpha in all four bytes."""
    BLEND_COMPONENT = "blend component"
    """Component `index` of the blend colour, a float from 0 to 1."""
    ALPHA_REF = "alpha reference"
    """A float."""
    STENCIL = "stencil"
    """Stencil set-up word `index`; hardware reference 7.9."""
    CLIP_PLANE = "clip plane"
    """Component `value` of user clip plane `index`, a float."""
    INSTANCE = "instance"
    """The number of the instance, from 0."""
    UNIFORMS_ADDRESS = "uniforms address"
    """The guest address of this stream; programs with branches find their place again by it."""


@dataclass(frozen=True)
class Uniform(StreamWord):
    """One word of a uniform stream."""

    kind: UniformKind
    index: int = 0
    value: int = 0

    def __str__(self) -> str:
        if self.kind is UniformKind.LITERAL:
            return f"0x{self.value:08x}"
        if self.kind is UniformKind.CONSTANT:
            outer = f"[{self.index}]" if self.index else ""
            return f"CONST{outer}[{self.value >> 2}].{'xyzw'[self.value & 3]}"
        return f"{self.kind.value} {self.index} {self.value}".replace(" 0 0", "")


def uniforms_of(stream: Iterable[Streamed]) -> tuple[Uniform, ...]:
    """The words of a scheduled program's stream, constants and its own address among them."""
    return tuple(map(_uniform, stream))


def _uniform(word: Streamed) -> Uniform:
    if isinstance(word, Const):
        return Uniform(UniformKind.LITERAL, 0, word.word)
    if word is STREAM_ADDRESS:
        return Uniform(UniformKind.UNIFORMS_ADDRESS)
    assert isinstance(word, Uniform)
    return word


class Stage(Enum):
    """Which of a draw's three programs it is."""

    FRAGMENT = "fragment"
    VERTEX = "vertex"
    COORDINATE = "coordinate"


@dataclass(frozen=True)
class CompiledShader:
    """A program for the QPU.

    Attributes
    ----------
    words
        Its 64-bit instructions.
    uniforms
        Its uniform stream, in the order in which it is read.
    is_threaded
        Whether a fragment program has thread switches, so that the shader record's bit "single
        threaded" is 0.
    varyings
        Those that a fragment program reads, in order (the implicit ones of points and lines not
        among them): the shader record's number of varyings, and `VertexKey.varyings`; or those that
        a vertex program writes.
    uses_discard, writes_depth
        Whether a fragment program discards, or writes depth, which early Z must know.
    lines
        For each word the lines of the TGSI text that it comes from, for listings.
    """

    stage: Stage
    words: tuple[int, ...]
    uniforms: tuple[Uniform, ...] = ()
    is_threaded: bool = False
    varyings: tuple[Varying, ...] = ()
    uses_discard: bool = False
    writes_depth: bool = False
    reads_color: bool = False
    lines: tuple[tuple[int, ...], ...] = field(default=(), compare=False, repr=False)

    @property
    def textures(self) -> tuple[int, ...]:
        """Numbers of the textures that it samples."""
        kinds = (UniformKind.TEXTURE_P0, UniformKind.TEXTURE_ADDRESS)
        return tuple(sorted({one.index for one in self.uniforms if one.kind in kinds}))

    @property
    def code(self) -> bytes:
        """The instructions as memory has them."""
        return b"".join(word.to_bytes(8, "little") for word in self.words)


NO_ELEMENT, VERTEX_NUMBER = -1, -2
"""Slots of no vertex element: a word that does not matter, the number of the vertex."""


@dataclass(frozen=True)
class AttributeSlot:
    """A vertex element's place in the vertex memory: an attribute array of the shader record.

    Attributes
    ----------
    element
        Number of the vertex element, and of the TGSI input; or NO_ELEMENT, VERTEX_NUMBER.
    size
        Bytes that are fetched for a vertex.
    vertex_offset, coordinate_offset
        Byte offsets in the columns of vertex and coordinate program; None: not selected there.
    """

    element: int
    size: int
    vertex_offset: int | None
    coordinate_offset: int | None


@dataclass(frozen=True)
class CompiledVertex:
    """The vertex program and the coordinate program that is derived from it.

    `attributes` are in the order of the shader record's attribute arrays. There is always one: a
    shader that reads none has the slot NO_ELEMENT with 4 bytes, whose content does not matter.
    """

    vertex: CompiledShader
    coordinate: CompiledShader
    attributes: tuple[AttributeSlot, ...] = ()

    @property
    def vertex_size(self) -> int:
        """Total attribute bytes of the vertex program."""
        return _total(one.size for one in self.attributes if one.vertex_offset is not None)

    @property
    def coordinate_size(self) -> int:
        """Total attribute bytes of the coordinate program."""
        return _total(one.size for one in self.attributes if one.coordinate_offset is not None)


def _total(sizes: Iterable[int]) -> int:
    """In whole words."""
    return sum(-(-size // 4) * 4 for size in sizes)
