"""Settings of one texture request: the part that is compiled in and the part that stays data.

:func:`describe_texture` turns the texture parameter words P0..P3 into a :class:`TextureKind`
(hashable; the native sampler is specialised for it) and a :class:`TextureDescriptor` (addresses
and sizes of the levels, read by the native sampler at run time). Kinds are few, so that pictures
of another size or place use the same pipeline.

Source: AG100-R pp. 39-45; Mesa ``vc4_uniforms.c`` (how drivers fill the words).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING

from vc4lab.bits import sign_extend
from vc4lab.images.tiling import MipLevel, Tiling, UtileShape, mip_chain
from vc4lab.records.texture import MAX_SIZE, MagFilter, MinFilter, TextureConfig, TextureType, Wrap
from vc4lab.simd import Array, Struct, i32
from vc4lab.v3d.tmu.formats import FORMATS, TextureFormat
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS, Unknowns

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter

MAX_LEVELS = 16
"""MIPLVLS has 4 bits; levels beyond 1x1 stay 1x1."""


class MipMode(IntEnum):
    """How many levels a minified sample reads."""

    BASE = 0
    NEAREST = 1
    BLEND = 2


class LevelLayout(IntEnum):
    """Layout of the levels a sample can touch; the first three are those of `Tiling`."""

    RASTER = Tiling.RASTER
    T = Tiling.T
    LT = Tiling.LT
    MIXED = 3


#: MINFILT -> (linear inside a level, which levels). AG100-R p. 42.
MINIFICATION = {
    MinFilter.LINEAR: (True, MipMode.BASE),
    MinFilter.NEAREST: (False, MipMode.BASE),
    MinFilter.NEAREST_MIP_NEAREST: (False, MipMode.NEAREST),
    MinFilter.NEAREST_MIP_LINEAR: (False, MipMode.BLEND),
    MinFilter.LINEAR_MIP_NEAREST: (True, MipMode.NEAREST),
    MinFilter.LINEAR_MIP_LINEAR: (True, MipMode.BLEND),
}


@dataclass(frozen=True)
class TextureKind:
    """Everything of a texture that is fixed at compile time.

    ``mag_linear``/``min_linear`` say whether bilinear or nearest; ``explicit_lod`` means that the B
    coordinate is the level of detail. The fields with texts are choices of ``unknowns``.
    """

    type: TextureType
    layout: LevelLayout
    mag_linear: bool = False
    min_linear: bool = False
    mip: MipMode = MipMode.BASE
    wrap_s: Wrap = Wrap.REPEAT
    wrap_t: Wrap = Wrap.REPEAT
    explicit_lod: bool = False
    cube: bool = False
    child: bool = False
    flip_y: bool = False
    etc_flip: bool = False
    filter_rounding: str = "each"
    filter_weights: str = "8"
    coordinate_bits: int = 24
    lod_log2: str = "smooth"
    lod_lane: str = "lane"
    bias_lane: str = "lane"
    cube_lod: str = "projected"
    short_position: str = "low"
    half_rounding: str = "round"
    lod_footprint: str = "largest"
    lod_step: str = "size"
    not_finite: str = "zero"
    yuyv_order: str = "yuv"
    alpha_colour: str = "zero"
    bit_utile: str = "32x16"
    border_4444: str = "result"
    magnified_below: int = 0
    """The largest LOD (8 fractional bits) at which MAGFILT acts, on level 0."""

    @property
    def format(self) -> TextureFormat:
        return FORMATS[self.type]

    @property
    def utile(self) -> UtileShape:
        """Shape of the utiles that its units lie in."""
        return self.format.utile(self.bit_utile)

    @property
    def weight_mask(self) -> int:
        """The bits that count of a coordinate's 8 fractional ones where four texels blend."""
        return 0xFF if self.filter_weights == "8" else 0xFE

    @property
    def needs_lod(self) -> bool:
        """Whether the level of detail changes the result at all."""
        return self.mip is not MipMode.BASE or self.mag_linear != self.min_linear

    @property
    def plain(self) -> bool:
        """Whether a sample is a texel of level 0 as it is stored."""
        filters = self.mag_linear or self.min_linear or self.needs_lod or self.cube
        return not filters and self.type in (TextureType.RGBA8888, TextureType.RGBA32R)

    @property
    def unit_s(self) -> bool:
        """Whether S only counts clamped to 0 .. 1."""
        return self.wrap_s is Wrap.CLAMP and not (self.needs_lod or self.cube)

    @property
    def unit_t(self) -> bool:
        """Whether T only counts clamped to 0 .. 1."""
        return self.wrap_t is Wrap.CLAMP and not (self.needs_lod or self.cube)

    @property
    def result_words(self) -> int:
        """Words a request returns to r4, one load signal each."""
        return 2 if self.type is TextureType.RGBA64 else 1


class TextureDescriptor(Struct):
    """Addresses and sizes for the native sampler, one element per mip level.

    ``base`` is the guest address of the level (of face +x for a cube); ``pitch`` the bytes
    between two rows (raster), utile rows (LT) or tile rows (T); ``size_s``/``size_t`` are the size
    as float32 bits, ``scale_s``/``scale_t`` 256 times that. ``linear_tile`` is -1 for levels stored
    as LT, else 0.
    """

    base = Array(i32, MAX_LEVELS)
    width = Array(i32, MAX_LEVELS)
    height = Array(i32, MAX_LEVELS)
    last_x = Array(i32, MAX_LEVELS)
    last_y = Array(i32, MAX_LEVELS)
    scale_s = Array(i32, MAX_LEVELS)
    scale_t = Array(i32, MAX_LEVELS)
    size_s = Array(i32, MAX_LEVELS)
    size_t = Array(i32, MAX_LEVELS)
    pitch = Array(i32, MAX_LEVELS)
    linear_tile = Array(i32, MAX_LEVELS)
    last_level = i32
    cube_stride = i32
    child_x = i32
    child_y = i32


@dataclass(frozen=True)
class TextureFinding:
    """A finding about the parameter words, for the user."""

    code: str
    message: str


def describe_texture(
    p0: int,
    p1: int,
    p2: int = 0,
    p3: int = 0,
    used_params: int = 2,
    *,
    unknowns: Unknowns = DEFAULT_UNKNOWNS,
    reporter: Reporter | None = None,
    address: int | None = None,
) -> tuple[TextureKind, TextureDescriptor]:
    """Kind and descriptor of a texture request with ``used_params`` parameter words (1..4).

    Words beyond ``used_params`` count as 0. Never raises for any words: what this simulator does
    not do is reported as TMU-... to ``reporter`` (``address``: where the words came from) and
    replaced by the nearest thing it does. The descriptor is shared and must not be changed.
    """
    words = (p0, p1, p2, p3)
    kept = tuple(word & 0xFFFFFFFF if i < used_params else 0 for i, word in enumerate(words))
    kind, descriptor, findings = _described(kept, unknowns)
    if reporter is not None:
        for finding in findings:
            reporter.report(finding.code, finding.message, address=address)
    return kind, descriptor


@lru_cache(maxsize=256)
def _described(
    words: tuple[int, ...], unknowns: Unknowns
) -> tuple[TextureKind, TextureDescriptor, tuple[TextureFinding, ...]]:
    config = TextureConfig.parse(*words)
    findings: list[TextureFinding] = []

    def note(code: str, message: str) -> None:
        findings.append(TextureFinding(code, message))

    if config.type not in FORMATS:
        note("TMU-001", f"P0.TYPE/P1.TYPE4: there is no texture type {config.type}")
    texture_format = FORMATS.get(config.type, FORMATS[TextureType.RGBA8888])
    child = config.child
    if child is not None and config.cube:
        note("TMU-008", "P2/P3: child image of a cube map (P0.CMMODE); the child is ignored")
        child = None
    levels = config.levels
    if child is not None and levels > 1:
        note("TMU-007", f"P0.MIPLVLS: child image of a texture with {levels} levels")
        levels = 1
    mag_linear = config.mag_filter == MagFilter.LINEAR
    min_linear, mip = _minification(config.min_filter, note)
    pointwise = texture_format.half and unknowns["tmu_half_filter"] == "point"
    if (pointwise or not texture_format.filterable) and (mag_linear or min_linear or mip is MipMode.BLEND):
        name = texture_format.type.name
        note("TMU-002", f"P1.MAGFILT/MINFILT: type {name} can only be sampled nearest")
        mag_linear = min_linear = False
        mip = min(mip, MipMode.NEAREST)
    if levels == 1:
        mip = MipMode.BASE
    _size_findings(config, texture_format, levels, note)
    chain = mip_chain(
        config.width, config.height, texture_format.unit_bits, levels,
        raster=texture_format.type.raster, block=texture_format.block,
        shape=texture_format.utile(unknowns["tmu_bw1_utile"]),
        padded=unknowns["tmu_level_size"] == "room",
    )  # fmt: skip
    used = chain if mip is not MipMode.BASE else chain[:1]
    tilings = {level.tiling for level in used}
    kind = TextureKind(
        type=texture_format.type,
        layout=LevelLayout(tilings.pop()) if len(tilings) == 1 else LevelLayout.MIXED,
        mag_linear=mag_linear,
        min_linear=min_linear,
        mip=mip,
        wrap_s=_wrap(config, config.wrap_s, unknowns),
        wrap_t=_wrap(config, config.wrap_t, unknowns),
        cube=config.cube,
        child=child is not None,
        flip_y=config.flip_y,
        etc_flip=config.etc_flip and texture_format.block > 1,
        filter_rounding=unknowns["tmu_filter_rounding"],
        filter_weights=unknowns["tmu_filter_weights"],
        coordinate_bits=int(unknowns["tmu_coordinate_bits"]),
        lod_log2=unknowns["tmu_lod_log2"],
        lod_lane=unknowns["tmu_lod_lane"],
        bias_lane=unknowns["tmu_bias_lane"],
        cube_lod=unknowns["tmu_cube_lod"],
        short_position=unknowns["tmu_short_position"],
        half_rounding=unknowns["tmu_half_filter"] if texture_format.half else "round",
        lod_footprint=unknowns["tmu_lod_footprint"],
        lod_step=unknowns["tmu_lod_step"],
        not_finite=unknowns["tmu_not_finite"],
        yuyv_order=unknowns["tmu_yuyv_order"],
        alpha_colour=unknowns["tmu_alpha_colour"],
        bit_utile=unknowns["tmu_bw1_utile"],
        border_4444=unknowns["tmu_border_4444"],
        magnified_below=_magnified_below(config, unknowns),
    )
    if kind.needs_lod and config.explicit_lod:
        kind = replace(kind, explicit_lod=True)
    return kind, _descriptor(config, chain, child), tuple(findings)


def _wrap(config: TextureConfig, code: int, unknowns: Unknowns) -> Wrap:
    """The wrap mode that acts. R is a direction in cube maps: they have no border colour."""
    wrap = Wrap(code)
    if config.cube and (wrap is Wrap.BORDER or unknowns["tmu_cube_wrap"] == "clamp"):
        return Wrap.CLAMP
    return wrap


def _magnified_below(config: TextureConfig, unknowns: Unknowns) -> int:
    """The largest LOD that counts as magnification, in 256ths."""
    nearest_of_levels = (MinFilter.NEAREST_MIP_NEAREST, MinFilter.NEAREST_MIP_LINEAR)
    early = config.mag_filter == MagFilter.LINEAR and config.min_filter in nearest_of_levels
    return 128 if early and unknowns["tmu_magnified_below"] == "gl" else 0


def _minification(code: int, note: Callable[[str, str], None]) -> tuple[bool, MipMode]:
    if code in MINIFICATION:
        return MINIFICATION[MinFilter(code)]
    note("TMU-003", f"P1.MINFILT: there is no minification filter {int(code)}")
    return False, MipMode.BASE


def _size_findings(
    config: TextureConfig, row: TextureFormat, levels: int, note: Callable[[str, str], None]
) -> None:
    width, height = config.width, config.height
    size = f"{width}x{height}"
    npot = width & (width - 1) or height & (height - 1)
    if row.type.raster and width & (width - 1):
        note("TMU-004", f"P1.WIDTH: raster texture of width {width}")
    if row.type.raster and levels > 1:
        note("TMU-009", f"P0.MIPLVLS: raster texture with {levels} mip levels")
    if npot and (levels > 1 or {config.wrap_s, config.wrap_t} & {Wrap.REPEAT, Wrap.MIRROR}):
        what = "mip levels" if levels > 1 else "a repeating wrap mode"
        note("TMU-006", f"P1.WIDTH/HEIGHT: {size} texture with {what}")
    if levels > max(width, height).bit_length():
        note("TMU-010", f"P0.MIPLVLS: {levels} levels, but {size} has fewer")
    if config.cube and not config.cube_stride:
        note("TMU-011", "P2: cube map without a cube map stride")
    if config.child is not None and MAX_SIZE in config.child[2:]:
        note("TMU-005", "P2/P3: child image of width or height 2048")


def _descriptor(
    config: TextureConfig, chain: tuple[MipLevel, ...], child: tuple[int, int, int, int] | None
) -> TextureDescriptor:
    descriptor = TextureDescriptor()
    sizes = [(level.width, level.height) if child is None else child[2:] for level in chain]
    descriptor.base = _levels(sign_extend(config.base + level.offset, 32) for level in chain)
    descriptor.width = _levels(width for width, _ in sizes)
    descriptor.height = _levels(height for _, height in sizes)
    descriptor.last_x = _levels(width - 1 for width, _ in sizes)
    descriptor.last_y = _levels(height - 1 for _, height in sizes)
    descriptor.scale_s = _levels(_float_bits(256.0 * width) for width, _ in sizes)
    descriptor.scale_t = _levels(_float_bits(256.0 * height) for _, height in sizes)
    descriptor.size_s = _levels(_float_bits(width) for width, _ in sizes)
    descriptor.size_t = _levels(_float_bits(height) for _, height in sizes)
    descriptor.pitch = _levels(level.pitch for level in chain)
    descriptor.linear_tile = _levels(-(level.tiling is Tiling.LT) for level in chain)
    descriptor.last_level = len(chain) - 1
    descriptor.cube_stride = config.cube_stride
    descriptor.child_x, descriptor.child_y = child[:2] if child is not None else (0, 0)
    return descriptor


def same_textures(descriptors: Sequence[TextureDescriptor | None]) -> tuple[int, ...]:
    """For each descriptor the number of its first appearance; empty if each appears once."""
    first: dict[int, int] = {}
    places = [-1 - n if d is None else d.address for n, d in enumerate(descriptors)]
    numbers = tuple(first.setdefault(place, n) for n, place in enumerate(places))
    return numbers if len(first) < len(numbers) else ()


def _levels(values: Iterable[int]) -> list[int]:
    known = list(values)
    return known + [0] * (MAX_LEVELS - len(known))


def _float_bits(value: float) -> int:
    return int.from_bytes(struct.pack("<f", value), "little")
