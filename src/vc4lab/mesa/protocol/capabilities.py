"""Declares the server's capabilities: a VideoCore IV, in the structure that Mesa reads.

Mesa makes its OpenGL from these numbers: OpenGL ES 2.0 and desktop OpenGL 2.1 with eight
attributes, eight varyings, textures up to 2048 and four samples a pixel. Source: Mesa 22.3,
virgl_hw.h (struct virgl_caps_v2), and AG100-R for the limits.
"""

from __future__ import annotations

from typing import Any

from vc4lab.mesa.protocol import limits
from vc4lab.mesa.protocol.fields import array, real, word
from vc4lab.mesa.protocol.formats import Format
from vc4lab.mesa.protocol.payload import Payload

V1_BYTES = 308
MASK_WORDS = 16
PRIMITIVES = 0x7F
"""Points to triangle fans; Mesa converts quads and polygons."""
SRGB_WRITE_CONTROL = 1 << 15
"""capability_bits: a texture in sRGB may be drawn to as if it were linear, and the other way."""
TRANSFER = 1 << 17
"""capability_bits: uploads are TRANSFER3D commands in the stream."""
TEXTURE_MULTISAMPLE = 1 << 14
"""bset: without it Mesa asks for no resource of several samples at all."""
SAMPLE_LOCATIONS = (0xAE62, 0xAE2AE662, *(0,) * 6)
"""Samples' places in a pixel: a byte each in sixteenths, x in the high half; the first word has
those of two samples, the second of four. As the table of unknowns takes them (`sample_positions`).
"""
RENDERER = "vc4lab VideoCore IV"

SRGB = ("B8G8R8A8_SRGB", "B8G8R8X8_SRGB", "R8G8B8A8_SRGB", "R8G8B8X8_SRGB")
"""OpenGL 2.1 asks for them. The chip knows no sRGB: programs decode and encode."""
TEXTURES = (
    *SRGB,
    *("B8G8R8A8_UNORM", "B8G8R8X8_UNORM", "R8G8B8A8_UNORM", "R8G8B8X8_UNORM"),
    *("B5G6R5_UNORM", "B5G5R5A1_UNORM", "B4G4R4A4_UNORM"),
    *("L8_UNORM", "A8_UNORM", "L8A8_UNORM", "ETC1_RGB8"),
    *("S8_UINT_Z24_UNORM", "X8Z24_UNORM"),
)
"""Formats that may be sampled, and be a depth buffer: without Z24X8 and Z16, all are X8Z24."""
RENDER_TARGETS = (
    *SRGB,
    *("B8G8R8A8_UNORM", "B8G8R8X8_UNORM", "R8G8B8A8_UNORM", "R8G8B8X8_UNORM"),
    "B5G6R5_UNORM",
)
DEPTHS = ("S8_UINT_Z24_UNORM", "X8Z24_UNORM")
READ_BACK = (*RENDER_TARGETS, *DEPTHS)
"""Formats that clients read as they are; depth of several samples through a resource with one."""
MULTISAMPLED = (*RENDER_TARGETS[:-1], *DEPTHS)
"""Formats that may have four samples a pixel, which lie in memory as in the tile buffer: 565 would
have 32 bits there, too.
"""


class Capabilities(Payload):
    """The fields that are not 0 (struct virgl_caps_v2); at = offset in bytes / 4."""

    max_version: int = word(0)
    sampler: tuple[int, ...] = array(1, "u", MASK_WORDS, doc="a bit for each format")
    render: tuple[int, ...] = array(17, "u", MASK_WORDS)
    depthstencil: tuple[int, ...] = array(33, "u", MASK_WORDS)
    vertexbuffer: tuple[int, ...] = array(49, "u", MASK_WORDS)
    bset: int = word(65, hex=True, doc="features as bits")
    glsl_level: int = word(66)
    max_texture_array_layers: int = word(67)
    max_streamout_buffers: int = word(68)
    max_dual_source_render_targets: int = word(69)
    max_render_targets: int = word(70)
    max_samples: int = word(71)
    prim_mask: int = word(72, hex=True, doc="a bit for each kind of primitive")
    max_tbo_size: int = word(73)
    max_uniform_blocks: int = word(74)
    max_viewports: int = word(75)
    max_texture_gather_components: int = word(76)
    min_aliased_point_size: float = real(77)
    max_aliased_point_size: float = real(78)
    min_smooth_point_size: float = real(79)
    max_smooth_point_size: float = real(80)
    min_aliased_line_width: float = real(81)
    max_aliased_line_width: float = real(82)
    min_smooth_line_width: float = real(83)
    max_smooth_line_width: float = real(84)
    max_texture_lod_bias: float = real(85)
    max_vertex_outputs: int = word(88)
    max_vertex_attribs: int = word(89)
    uniform_buffer_offset_alignment: int = word(96)
    capability_bits: int = word(98, hex=True)
    sample_locations: tuple[int, ...] = array(99, "u", 8)
    max_vertex_attrib_stride: int = word(107)
    max_texture_2d_size: int = word(121)
    max_texture_3d_size: int = word(122)
    max_texture_cube_size: int = word(123)
    host_feature_check_version: int = word(139)
    supported_readback_formats: tuple[int, ...] = array(140, "u", MASK_WORDS)
    scanout: tuple[int, ...] = array(156, "u", MASK_WORDS)
    capability_bits_v2: int = word(172, hex=True)
    renderer: tuple[int, ...] = array(174, "u", 16, doc="a text of 64 bytes")
    max_anisotropy: float = real(190)
    max_shader_sampler_views: int = word(191)
    supported_multisample_formats: tuple[int, ...] = array(192, "u", MASK_WORDS)
    max_const_buffer_size: tuple[int, ...] = array(208, "u", 6, doc="of each stage")
    max_uniform_block_size: int = word(343)


def format_mask(names: tuple[str, ...]) -> tuple[int, ...]:
    """The bits of these formats."""
    bits = sum(1 << int(Format[name]) for name in names)
    return tuple(bits >> 32 * word & 0xFFFFFFFF for word in range(MASK_WORDS))


def renderer_words(name: str) -> tuple[int, ...]:
    """A text as the words of `renderer`; longer than 63 bytes it is cut."""
    data = name.encode()[:63].ljust(64, b"\0")
    return tuple(int.from_bytes(data[at : at + 4], "little") for at in range(0, 64, 4))


def videocore(**changes: Any) -> Capabilities:
    """The capabilities of a VideoCore IV; `changes` replaces fields.

    `glsl_level` 130 gives integers, as Mesa's own driver for the chip has them; with 120, Mesa 22.3
    compiles arrays that are indexed by variables wrongly. The other bits of `bset` are 0: turning
    pictures upside down and clamping colours are left to Mesa.
    """
    fields: dict[str, Any] = {
        "max_version": 2,
        "sampler": format_mask(TEXTURES),
        "render": format_mask(RENDER_TARGETS),
        "bset": TEXTURE_MULTISAMPLE,
        "glsl_level": 130,
        "max_render_targets": 1,
        "max_samples": limits.SAMPLES,
        "prim_mask": PRIMITIVES,
        "max_uniform_blocks": 1,
        "max_viewports": 1,
        "min_aliased_point_size": 1.0,
        "max_aliased_point_size": 512.0,
        "min_smooth_point_size": 1.0,
        "max_smooth_point_size": 512.0,
        "min_aliased_line_width": 1.0,
        "max_aliased_line_width": 32.0,
        "min_smooth_line_width": 1.0,
        "max_smooth_line_width": 32.0,
        "max_vertex_outputs": 8,
        "max_vertex_attribs": 8,
        "uniform_buffer_offset_alignment": 16,
        "capability_bits": SRGB_WRITE_CONTROL | TRANSFER,
        "sample_locations": SAMPLE_LOCATIONS,
        "max_vertex_attrib_stride": 255,
        "max_texture_2d_size": 2048,
        "max_texture_3d_size": 1,
        "max_texture_cube_size": 2048,
        "host_feature_check_version": 12,
        "supported_readback_formats": format_mask(READ_BACK),
        "scanout": format_mask(RENDER_TARGETS),
        "renderer": renderer_words(RENDERER),
        "max_shader_sampler_views": 16,
        "supported_multisample_formats": format_mask(MULTISAMPLED),
        "max_const_buffer_size": (65536,) * 6,
    }
    return Capabilities(**{**fields, **changes})
