"""Textures as the texture unit takes them: formats, configuration words, and copies of what it cannot read.

Windows lie in raster order; views may begin with a level that is not at the begin of a page. Their
texels are copied when a draw samples them, again only after they have changed.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from vc4lab.bounded import Bounded
from vc4lab.driver.compiler.interface import TextureKey
from vc4lab.driver.gpu.memory import GpuResource
from vc4lab.images import srgb
from vc4lab.mesa.protocol.codes import Bind, Filter, MipFilter, Swizzle, Target
from vc4lab.mesa.protocol.codes import Wrap as PipeWrap
from vc4lab.mesa.protocol.formats import Format, layout_of
from vc4lab.mesa.protocol.messages import ResourceCreate2
from vc4lab.mesa.protocol.objects import SamplerState
from vc4lab.mesa.state.pipe import BoundView
from vc4lab.mesa.store.resources import Box, Refused
from vc4lab.records.texture import MAX_SIZE, MagFilter, MinFilter, TextureConfig, TextureType, Wrap

if TYPE_CHECKING:
    from vc4lab.driver.gpu.memory import GpuMemory
    from vc4lab.mesa.state.pipe import PipeState, StageState

X, Y, Z, W = Swizzle.X, Swizzle.Y, Swizzle.Z, Swizzle.W
ZERO, ONE = Swizzle.ZERO, Swizzle.ONE
TYPES: dict[Any, tuple[TextureType, tuple[Swizzle, ...]]] = {
    Format.B8G8R8A8_UNORM: (TextureType.RGBA8888, (Z, Y, X, W)),
    Format.B8G8R8X8_UNORM: (TextureType.RGBA8888, (Z, Y, X, ONE)),
    Format.R8G8B8A8_UNORM: (TextureType.RGBA8888, (X, Y, Z, W)),
    Format.R8G8B8X8_UNORM: (TextureType.RGBA8888, (X, Y, Z, ONE)),
    Format.B5G6R5_UNORM: (TextureType.RGB565, (X, Y, Z, ONE)),
    Format.B5G5R5A1_UNORM: (TextureType.RGBA5551, (X, Y, Z, W)),
    Format.B4G4R4A4_UNORM: (TextureType.RGBA4444, (Y, Z, W, X)),
    Format.L8_UNORM: (TextureType.LUMINANCE, (X, Y, Z, ONE)),
    Format.A8_UNORM: (TextureType.ALPHA, (ZERO, ZERO, ZERO, W)),
    Format.R8_UNORM: (TextureType.LUMINANCE, (X, ZERO, ZERO, ONE)),
    Format.L8A8_UNORM: (TextureType.LUMALPHA, (X, Y, Z, W)),
    Format.B8G8R8A8_SRGB: (TextureType.RGBA8888, (Z, Y, X, W)),
    Format.B8G8R8X8_SRGB: (TextureType.RGBA8888, (Z, Y, X, ONE)),
    Format.R8G8B8A8_SRGB: (TextureType.RGBA8888, (X, Y, Z, W)),
    Format.R8G8B8X8_SRGB: (TextureType.RGBA8888, (X, Y, Z, ONE)),
    Format.ETC1_RGB8: (TextureType.ETC1, (X, Y, Z, ONE)),
    Format.S8_UINT_Z24_UNORM: (TextureType.RGBA8888, (X, X, X, ONE)),
    Format.X8Z24_UNORM: (TextureType.RGBA8888, (X, X, X, ONE)),
}
"""Formats as the texture unit knows them, and which of its components each of ours is. In
B5G5R5A1 the bits are turned by one when they are stored (`gpu/memory.py`)."""
_WRAPS = {
    PipeWrap.REPEAT: Wrap.REPEAT,
    PipeWrap.CLAMP: Wrap.CLAMP,
    PipeWrap.CLAMP_TO_EDGE: Wrap.CLAMP,
    PipeWrap.CLAMP_TO_BORDER: Wrap.BORDER,
    PipeWrap.MIRROR_REPEAT: Wrap.MIRROR,
}
_MIN_FILTERS = {
    (Filter.NEAREST, MipFilter.NEAREST): MinFilter.NEAREST_MIP_NEAREST,
    (Filter.NEAREST, MipFilter.LINEAR): MinFilter.NEAREST_MIP_LINEAR,
    (Filter.LINEAR, MipFilter.NEAREST): MinFilter.LINEAR_MIP_NEAREST,
    (Filter.LINEAR, MipFilter.LINEAR): MinFilter.LINEAR_MIP_LINEAR,
    (Filter.NEAREST, MipFilter.NONE): MinFilter.NEAREST,
    (Filter.LINEAR, MipFilter.NONE): MinFilter.LINEAR,
}
_PAGE_MASK = 4095


@dataclass(frozen=True)
class Texture:
    """A texture of a draw.

    Attributes
    ----------
    parameters
        The configuration words P0 to P2. Of several samples: where they begin, the offset of the
        last one, and bytes of a row of tiles.
    border
        The border colour in the texture unit's layout.
    min_level, max_level
        Between which programs keep the level of detail (`TextureKey.clamps_level`).
    """

    parameters: tuple[int, int, int]
    width: int
    height: int
    border: int
    min_level: float = 0.0
    max_level: float = 0.0


@lru_cache(maxsize=1024)
def texture_key(view: Any, sampler: SamplerState, format_number: Any) -> TextureKey:
    """Give what a program must know of a view (`SamplerView`) with a sampler. Raises Refused."""
    known = TYPES.get(format_number)
    if known is None:
        raise Refused("GL-007", f"textures of {format_number} were not announced")
    own = known[1]
    asked = (view.swizzle_r, view.swizzle_g, view.swizzle_b, view.swizzle_a)
    swizzle = tuple(own[one] if one <= W else one for one in asked)
    return TextureKey(
        swizzle=swizzle,
        is_depth=format_number in (Format.S8_UINT_Z24_UNORM, Format.X8Z24_UNORM),
        compare=sampler.compare_func if sampler.compare_mode else None,
        saturate_s=sampler.wrap_s == PipeWrap.CLAMP,
        saturate_t=sampler.wrap_t == PipeWrap.CLAMP,
        is_srgb=_is_srgb(format_number),
        has_border=PipeWrap.CLAMP_TO_BORDER in (sampler.wrap_s, sampler.wrap_t),
        clamps_level=clamps_level(sampler, view.last_level - view.first_level),
    )


def clamps_level(sampler: SamplerState, last: int) -> bool:
    """Whether a sampler limits the level of detail by what no number of levels does.

    last: the highest of a view's levels, from its first one on.
    """
    mip, most = sampler.min_mip_filter, sampler.max_lod
    if last <= 0 or mip == MipFilter.NONE:
        return False
    between = mip == MipFilter.LINEAR and 0 < most < last and not float(most).is_integer()
    return sampler.min_lod > 0 or between


def _limited(sampler: SamplerState, levels: int, low: Any, high: Any) -> tuple[int, Any, Any, Any]:
    """Levels, mip filter, and filters of minified and magnified texels, as a sampler's limits of
    the level of detail leave them, but for what programs do (`clamps_level`).
    """
    mip, most = sampler.min_mip_filter, sampler.max_lod
    if levels <= 1:
        mip = MipFilter.NONE
    if clamps_level(sampler, levels - 1):
        return levels, mip, low, high
    if most <= 0:
        return 1, MipFilter.NONE, high, high  # always magnified
    if sampler.min_lod > 0:
        return levels, mip, low, low  # never
    if most < levels - 1:
        levels = int(most + 0.5) + 1
    return levels, mip, low, high


def is_sampled_in_place(view: BoundView) -> bool:
    """Whether the texture unit can read it where it is."""
    resource: Any = view.resource
    first = resource.chain[view.state.first_level]
    if resource.is_raster:
        return False
    if view.state.first_level == 0:
        return True
    # What the unit takes for level 0 must begin with a page, and its other levels lie below as if
    # it were the first: sizes of powers of two.
    is_aligned = not (resource.address + first.offset) & _PAGE_MASK
    powers = not (resource.width & (resource.width - 1) or resource.height & (resource.height - 1))
    return is_aligned and powers


def texture_of(view: BoundView, sampler: SamplerState) -> Texture:
    """A texture that `is_sampled_in_place`. Raises Refused."""
    resource: Any = view.resource
    state = view.state
    first = resource.chain[state.first_level]
    levels = min(state.last_level, len(resource.chain) - 1) - state.first_level + 1
    if first.width > MAX_SIZE or first.height > MAX_SIZE:
        raise Refused("GL-007", f"{resource}: textures have at most {MAX_SIZE} texels a side")
    kind, _ = TYPES[state.format]
    is_depth = resource.layout.has_depth
    wraps = [_WRAPS.get(wrap) for wrap in (sampler.wrap_s, sampler.wrap_t)]
    if None in wraps:
        raise Refused("GL-007", f"a sampler with wrap {sampler.wrap_s}, {sampler.wrap_t}")
    low = Filter.NEAREST if is_depth else sampler.min_img_filter
    high = Filter.NEAREST if is_depth else sampler.mag_img_filter
    levels, mip, low, high = _limited(sampler, levels, low, high)
    layer = state.first_layer
    # A blit sees a face of a cube as a picture.
    is_cube = resource.target == Target.TEXTURE_CUBE and state.target != Target.TEXTURE_2D
    config = TextureConfig(
        base=resource.address + first.offset + layer * resource.layer_bytes,
        type=kind,
        width=first.width,
        height=first.height,
        levels=max(levels, 1),
        mag_filter=MagFilter.LINEAR if high == Filter.LINEAR else MagFilter.NEAREST,
        min_filter=_MIN_FILTERS[low, mip],
        wrap_s=wraps[0] or 0,
        wrap_t=wraps[1] or 0,
        etc_flip=kind is TextureType.ETC1,  # as memory has rows here: the first one on top
        cube=is_cube,
        cube_stride=resource.layer_bytes if is_cube else 0,
    )
    words = config.parameters()
    border = _border(sampler, kind, state.format)
    limits = sampler.min_lod, sampler.max_lod
    return Texture(words[:3], first.width, first.height, border, *limits)


def samples_of(view: BoundView) -> Texture:
    """A texture of several samples, single ones of which are fetched."""
    resource: Any = view.resource
    level = resource.chain[0]
    words = resource.address, level.size - 4, level.pitch
    return Texture(words, level.width, level.height, 0)


def _border(sampler: SamplerState, kind: TextureType, number: Any) -> int:
    """The border colour as the unit takes it, which then swizzles it as a texel."""
    colour = [min(max(one, 0.0), 1.0) if one == one else 0.0 for one in sampler.border_color]
    if number in (Format.S8_UINT_Z24_UNORM, Format.X8Z24_UNORM):
        return int(colour[0] * 0xFFFFFF) << 8
    if _is_srgb(number):  # the program makes it linear, as it does with texels
        colour[:3] = srgb.stored(colour[:3]).tolist()
    red, green, blue, alpha = (round(one * 255) for one in colour)
    if kind is TextureType.LUMALPHA:
        return red | alpha << 24
    if kind is TextureType.ALPHA:
        return alpha << 24
    if kind is TextureType.LUMINANCE:
        return red
    # The word's bytes, of which `TYPES` says what component each is.
    own = TYPES[number][1]
    places = {component: place for place, component in enumerate(own) if component <= W}
    values = (red, green, blue, alpha)
    word = 0
    for byte in (X, Y, Z, W):
        if byte in places:
            word |= values[places[byte]] << 8 * byte
    return word


def _is_srgb(number: Any) -> bool:
    layout = layout_of(number)
    return layout is not None and layout.is_srgb


def float_word(value: float) -> int:
    """A single's bits."""
    word: int = struct.unpack("<I", struct.pack("<f", value))[0]
    return word


MAX_COPIES = 64


class SampledTextures:
    """Textures of draws, with copies where they are needed."""

    def __init__(self, memory: GpuMemory) -> None:
        self._memory = memory
        self._copies: Bounded[tuple[int, int, int], tuple[int, GpuResource]] = Bounded(MAX_COPIES)

    def of_stage(self, stage: StageState) -> tuple[Texture | None, ...]:
        """The textures of a stage by number. Raises Refused."""
        found: list[Texture | None] = []
        for number, view in enumerate(stage.views):
            sampler = stage.samplers[number] if number < len(stage.samplers) else None
            has_both = view is not None and sampler is not None
            found.append(self._texture(view, sampler) if has_both else None)  # type: ignore[arg-type]
        return tuple(found)

    def copied(self, state: PipeState) -> list[GpuResource]:
        """The resources of a state whose copies are sampled, and the copies."""
        found: list[GpuResource] = []
        for view in (*state.vertex.views, *state.fragment.views):
            if view is not None and not is_sampled_in_place(view):
                source: Any = view.resource
                last = min(view.state.last_level, source.last_level)
                known = self._copies.get((source.number, view.state.first_level, last))
                found += [source] if known is None else [source, known[1]]
        return found

    def forget(self) -> None:
        """A resource went."""
        self._copies.clear()

    def _texture(self, view: BoundView, sampler: SamplerState) -> Texture:
        if view.resource.samples > 1:
            return samples_of(view)
        return texture_of(view if is_sampled_in_place(view) else self._copied(view), sampler)

    def _copied(self, view: BoundView) -> BoundView:
        state = view.state
        source: GpuResource | Any = view.resource
        last = min(state.last_level, source.last_level)
        key = source.number, state.first_level, last
        known = self._copies.get(key)
        if known is None or known[0] != source.changes:
            known = self._copies[key] = source.changes, self._copy(source, state.first_level, last)
        made = replace(state, first_level=0, last_level=last - state.first_level)
        return BoundView(made, known[1])

    def _copy(self, source: GpuResource, first: int, last: int) -> GpuResource:
        level = source.level(first)
        is_cube = source.target == Target.TEXTURE_CUBE
        asked = ResourceCreate2(
            handle=0,
            target=Target.TEXTURE_CUBE if is_cube else Target.TEXTURE_2D,
            format=source.format,
            bind=int(Bind.SAMPLER_VIEW),
            width=level.width,
            height=level.height,
            depth=1,
            array_size=level.layers,
            last_level=last - first,
            nr_samples=0,
            data_size=0,
        )
        made = GpuResource(asked, self._memory, 0)
        for number in range(first, last + 1):
            level = source.level(number)
            box = Box(0, 0, 0, level.width, level.height, level.layers)
            made.put(number - first, box, source.get(number, box))
        return made
