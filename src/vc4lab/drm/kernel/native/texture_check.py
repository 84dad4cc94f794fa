"""Checks a texture's parameters as the kernel does: every level inside the texture's buffer.

Section 9.4 of the hardware reference. Source: Linux vc4_validate.c, reloc_tex and
vc4_check_tex_size.
"""

from __future__ import annotations

from vc4lab.drm.kernel.native.context import JobContext, TextureFinding, found
from vc4lab.images.tiling import TILE_UTILES, UTILE_SHAPES
from vc4lab.records.texture import MAX_SIZE, ParameterType, TextureType
from vc4lab.simd import Value, call, const, i8, i32, i64, kernel, load, max_, ptr, select, staged, table

REFUSED_TYPES = frozenset(
    [TextureType.BW1, TextureType.A4, TextureType.A1, TextureType.RGBA64, TextureType.YUYV422R]
)
ETC1_BLOCK_BITS = 64
ACCEPTED = [kind for kind in TextureType if kind not in REFUSED_TYPES]
RASTER = [kind for kind in ACCEPTED if kind.raster]
CUBE = 1 << 9
LARGEST = 0x7FF


def _bits(kind: TextureType) -> int:
    return ETC1_BLOCK_BITS if kind is TextureType.ETC1 else kind.bits


_BYTES_LOG2 = [0] * 32
_WIDTH_LOG2 = [0] * 32
_HEIGHT_LOG2 = [0] * 32
_IS_ACCEPTED = [0] * 32
for _kind in ACCEPTED:
    _shape = UTILE_SHAPES[_bits(_kind)]
    _BYTES_LOG2[_kind] = (_bits(_kind) // 8).bit_length() - 1
    _WIDTH_LOG2[_kind], _HEIGHT_LOG2[_kind] = _shape.width_log2, _shape.height_log2
    _IS_ACCEPTED[_kind] = 1
_TILE_LOG2 = TILE_UTILES.bit_length() - 1


@staged
def _entry(numbers: list[int], kind: Value) -> Value:
    return load(i8, table(i8, numbers) + kind).zext(i64)


@staged
def _padded(size: Value, unit_log2: Value) -> Value:
    """`size` rounded up to whole units."""
    return ((size + (const(i64, 1) << unit_log2) - 1) >> unit_log2) << unit_log2


@kernel(args=(i64, i64, i64), returns=i64)
def level_bytes(kind: Value, width: Value, height: Value) -> Value:
    """Bytes of one level, padded as its layout needs."""
    wide, high = _entry(_WIDTH_LOG2, kind), _entry(_HEIGHT_LOG2, kind)
    linear = (width <= (const(i64, 4) << wide)) | (height <= (const(i64, 4) << high))
    more = select(linear, const(i64, 0), const(i64, _TILE_LOG2))
    padded_width = _padded(width, wide + more)
    padded_height = _padded(height, high + more)
    for raster in RASTER:
        is_raster = kind == int(raster)
        padded_width = select(is_raster, _padded(width, wide), padded_width)
        padded_height = select(is_raster, height, padded_height)
    return (padded_width * padded_height) << _entry(_BYTES_LOG2, kind)


@staged
def _stride(parameter: Value) -> Value:
    """The cube map stride that P2 or P3 gives, 0 for none."""
    gives = (parameter >> 30) == int(ParameterType.CUBE_STRIDE)
    return select(gives, parameter & 0x3FFFF000, const(i64, 0))


@kernel(args=(ptr, i64, i64, i64, i64, i64), returns=i32)
def check_texture(context: Value, p0: Value, p1: Value, p2: Value, p3: Value, size: Value) -> Value:
    """Whether the kernel accepts these parameters (words without signs) for a buffer's size.

    The base address in parameter 0 is an offset in the buffer.
    """
    c = JobContext.at(context)
    kind = (p0 >> 4 & 15) | (p1 >> 31 << 4)
    if _entry(_IS_ACCEPTED, kind) == 0:
        return found(TextureFinding.TYPE)
    width = p1 >> 8 & LARGEST
    height = p1 >> 20 & LARGEST
    width = select(width == 0, const(i64, MAX_SIZE), width)
    height = select(height == 0, const(i64, MAX_SIZE), height)
    is_etc1 = kind == int(TextureType.ETC1)
    width = select(is_etc1, (width + 3) >> 2, width)
    height = select(is_etc1, (height + 3) >> 2, height)
    stride = const(i64, 0)
    if (p0 & CUBE) != 0:
        one, other = _stride(p2), _stride(p3)
        if (one != 0) & (other != 0):
            return found(TextureFinding.TWO_STRIDES)
        stride = one | other
        if stride == 0:
            return found(TextureFinding.NO_STRIDE)
    base = p0 & 0xFFFFF000
    end = base + stride * 5 + call(level_bytes, kind, width, height)
    if end > size:
        c.value = end
        return found(TextureFinding.END)
    levels = p0 & 15
    level = const(i64, 1)
    offset = base
    while level <= levels:
        needed = call(level_bytes, kind, max_(width >> level, 1), max_(height >> level, 1))
        if needed > offset:
            c.value = level
            c.more = needed
            return found(TextureFinding.LEVEL)
        offset = offset - needed
        level = level + 1
    return found(TextureFinding.ACCEPTED)


@staged
def check_lookup(base: Value, clamp: Value, size: Value) -> Value:
    """Whether the kernel accepts a memory lookup: with such a clamp it stays inside."""
    room = size - 4 - base
    clamped = select(clamp > room, found(TextureFinding.LOOKUP_CLAMP), found(TextureFinding.ACCEPTED))
    return select(room < 0, found(TextureFinding.LOOKUP_BASE), clamped)
