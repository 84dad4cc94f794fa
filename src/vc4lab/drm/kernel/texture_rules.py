"""What the kernel demands of a texture's parameters: every level inside the texture's buffer.

Section 9.4 of the hardware reference. Source: Linux vc4_validate.c, reloc_tex and
vc4_check_tex_size.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from vc4lab.images.tiling import UTILE_SHAPES, Tiling, image_bytes, is_linear_tile, round_up
from vc4lab.records.texture import (
    MAX_SIZE,
    ParameterType,
    Texture0,
    Texture1,
    Texture23,
    TextureType,
)

REFUSED_TYPES = frozenset(
    [TextureType.BW1, TextureType.A4, TextureType.A1, TextureType.RGBA64, TextureType.YUYV422R]
)
ETC1_BLOCK, ETC1_BLOCK_BITS = 4, 64


def texture_problem(parameters: Sequence[int], size: int) -> str | None:
    """Why the kernel refuses a texture with 2 to 4 parameters in a buffer of `size` bytes.

    The base address in parameter 0 is an offset in the buffer. None: it is accepted.
    """
    return _problem(tuple(parameters), size)


@lru_cache(maxsize=4096)
def _problem(parameters: tuple[int, ...], size: int) -> str | None:
    """The same textures come in every job."""
    p0, p1, p2, p3 = [*parameters, 0, 0, 0][:4]
    zero, one = Texture0(p0), Texture1(p1)
    number = zero.type_low | one.type_high << 4
    width, height = one.width or MAX_SIZE, one.height or MAX_SIZE
    if number > max(TextureType) or TextureType(number) in REFUSED_TYPES:
        return f"textures of type {_name(number)} are not accepted"
    kind = TextureType(number)
    stride = 0
    if zero.cube:
        strides = [Texture23(word) for word in (p2, p3)]
        given = [s.cube_stride for s in strides if s.type == ParameterType.CUBE_STRIDE]
        if len([s for s in given if s]) > 1:
            return "the cube map stride is given twice"
        stride = next((s for s in given if s), 0)
        if not stride:
            return "a cube map without a stride"
    bits = kind.bits
    if kind is TextureType.ETC1:
        bits = ETC1_BLOCK_BITS
        width, height = -(-width // ETC1_BLOCK), -(-height // ETC1_BLOCK)
    end = zero.base + 5 * stride + level_bytes(kind, width, height, bits)
    if end > size:
        return f"level 0 ends at byte {end} of a buffer of {size}"
    offset = zero.base
    for level in range(1, zero.levels_minus_1 + 1):
        needed = level_bytes(kind, max(width >> level, 1), max(height >> level, 1), bits)
        if needed > offset:
            return f"level {level} of {needed} bytes begins before the buffer"
        offset -= needed
    return None


def lookup_problem(base: int, clamp: int, size: int) -> str | None:
    """Why a memory lookup at `base` with addresses clamped to `clamp` may leave its buffer."""
    if base > size - 4:
        return f"lookups at offset {base} of a buffer of {size} bytes"
    if clamp > size - base - 4:
        return f"lookups up to offset {base} + {clamp} of a buffer of {size} bytes"
    return None


def level_bytes(kind: TextureType, width: int, height: int, bits: int) -> int:
    """Bytes of one level, padded as its layout needs."""
    if kind.raster:
        return image_bytes(round_up(width, UTILE_SHAPES[bits].width), height, bits, Tiling.RASTER)
    tiling = Tiling.LT if is_linear_tile(width, height, bits) else Tiling.T
    return image_bytes(width, height, bits, tiling)


def _name(number: int) -> str:
    known = number in TextureType._value2member_map_
    return f"{number} ({TextureType(number).name.lower()})" if known else f"{number} (reserved)"
