"""Texture parameters: the uniform words P0 to P3 of a texture request.

`TextureConfig.parse` gives what they mean together; `parameters` gives the words back.
Source: AG100-R pp. 41-43.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

from vc4lab.bits import Bits, Layout
from vc4lab.records.payload import Address

MAX_SIZE = 2048
"""Width and height of 0 mean this."""


class TextureType(IntEnum):
    """Texel formats; `bits` gives their size."""

    RGBA8888 = 0
    RGBX8888 = 1
    RGBA4444 = 2
    RGBA5551 = 3
    RGB565 = 4
    LUMINANCE = 5
    ALPHA = 6
    LUMALPHA = 7
    ETC1 = 8
    S16F = 9
    S8 = 10
    S16 = 11
    BW1 = 12
    A4 = 13
    A1 = 14
    RGBA64 = 15
    RGBA32R = 16
    YUYV422R = 17

    @property
    def bits(self) -> int:
        """Bits per texel in memory (YUYV: on average)."""
        return BITS_PER_TEXEL[self]

    @property
    def raster(self) -> bool:
        """Whether it is stored in raster order instead of T or LT."""
        return self in (TextureType.RGBA32R, TextureType.YUYV422R)


BITS_PER_TEXEL = dict(
    zip(TextureType, (32, 32, 16, 16, 16, 8, 8, 16, 4, 16, 8, 16, 1, 4, 1, 64, 32, 16), strict=True)
)


class Wrap(IntEnum):
    """Names how a coordinate outside of the image is read."""

    REPEAT = 0
    CLAMP = 1
    MIRROR = 2
    BORDER = 3


class MagFilter(IntEnum):
    """Filter of magnified images."""

    LINEAR = 0
    NEAREST = 1


class MinFilter(IntEnum):
    """Filter of reduced images: texel filter, then filter between levels."""

    LINEAR = 0
    NEAREST = 1
    NEAREST_MIP_NEAREST = 2
    NEAREST_MIP_LINEAR = 3
    LINEAR_MIP_NEAREST = 4
    LINEAR_MIP_LINEAR = 5


class ParameterType(IntEnum):
    """Names the contents of P2 and P3."""

    NONE = 0
    CUBE_STRIDE = 1
    CHILD_SIZE = 2
    CHILD_OFFSET = 3


class Texture0(Layout):
    """P0."""

    levels_minus_1 = Bits(3, 0)
    type_low = Bits(7, 4)
    flip_y = Bits(8)
    cube = Bits(9)
    cache_swizzle = Bits(11, 10)
    base = Address(31, 12, 12)


class Texture1(Layout):
    """P1."""

    wrap_s = Bits(1, 0, enum=Wrap)
    wrap_t = Bits(3, 2, enum=Wrap)
    min_filter = Bits(6, 4, enum=MinFilter)
    mag_filter = Bits(7, enum=MagFilter)
    width = Bits(18, 8)
    etc_flip = Bits(19)
    height = Bits(30, 20)
    type_high = Bits(31)


class Texture23(Layout):
    """P2 or P3; `type` says which of the other fields count."""

    type = Bits(31, 30, enum=ParameterType)
    cube_stride = Address(29, 12, 12, doc="type 1")
    explicit_lod = Bits(0, doc="type 1: B is the LOD, none is computed")
    height = Bits(22, 12, doc="type 2: of the child image")
    width = Bits(10, 0, doc="type 2: of the child image")
    y = Bits(22, 12, doc="type 3: of the child image")
    x = Bits(10, 0, doc="type 3: of the child image")


@dataclass(frozen=True)
class TextureConfig:
    """The decoded parameters of one request.

    `type` is a TextureType, or a plain number when it is reserved. Sizes in pixels, addresses and
    strides in bytes. `child` is (x, y, width, height) or None.
    """

    base: int = 0
    type: int = TextureType.RGBA8888
    width: int = 1
    height: int = 1
    levels: int = 1
    mag_filter: int = MagFilter.NEAREST
    min_filter: int = MinFilter.NEAREST
    wrap_s: int = Wrap.REPEAT
    wrap_t: int = Wrap.REPEAT
    flip_y: bool = False
    etc_flip: bool = False
    cube: bool = False
    cube_stride: int = 0
    explicit_lod: bool = False
    child: tuple[int, int, int, int] | None = None
    cache_swizzle: int = 0

    @classmethod
    def parse(cls, p0: int, p1: int, p2: int = 0, p3: int = 0) -> TextureConfig:
        """From the four words (unused ones 0); any 32-bit values are accepted."""
        zero, one = Texture0(p0 & 0xFFFFFFFF), Texture1(p1 & 0xFFFFFFFF)
        number = zero.type_low | one.type_high << 4
        config = cls(
            base=zero.base,
            type=TextureType(number) if number in TextureType._value2member_map_ else number,
            width=one.width or MAX_SIZE,
            height=one.height or MAX_SIZE,
            levels=zero.levels_minus_1 + 1,
            mag_filter=one.mag_filter,
            min_filter=one.min_filter,
            wrap_s=one.wrap_s,
            wrap_t=one.wrap_t,
            flip_y=bool(zero.flip_y),
            etc_flip=bool(one.etc_flip),
            cube=bool(zero.cube),
            cache_swizzle=zero.cache_swizzle,
        )
        offset, size = (0, 0), None
        for word in (p2, p3):
            extra = Texture23(word & 0xFFFFFFFF)
            if extra.type == ParameterType.CUBE_STRIDE:
                config = replace(config, cube_stride=extra.cube_stride, explicit_lod=bool(extra.explicit_lod))
            elif extra.type == ParameterType.CHILD_SIZE:
                size = (extra.width or MAX_SIZE, extra.height or MAX_SIZE)
            elif extra.type == ParameterType.CHILD_OFFSET:
                offset = (extra.x, extra.y)
                size = size or (config.width, config.height)
        if size is not None:
            config = replace(config, child=(*offset, *size))
        return config

    def parameters(self) -> tuple[int, int, int, int]:
        """The words P0 to P3. Raises ValueError for values that do not fit or go together."""
        zero = Texture0.make(
            levels_minus_1=self.levels - 1,
            type_low=self.type & 15,
            flip_y=self.flip_y,
            cube=self.cube,
            cache_swizzle=self.cache_swizzle,
            base=self.base,
        )
        one = Texture1.make(
            wrap_s=self.wrap_s,
            wrap_t=self.wrap_t,
            min_filter=self.min_filter,
            mag_filter=self.mag_filter,
            width=_stored(self.width),
            etc_flip=self.etc_flip,
            height=_stored(self.height),
            type_high=self.type >> 4,
        )
        extra = []
        if self.cube or self.cube_stride or self.explicit_lod:
            extra.append(
                Texture23.make(
                    type=ParameterType.CUBE_STRIDE,
                    cube_stride=self.cube_stride,
                    explicit_lod=self.explicit_lod,
                )
            )
        if self.child is not None:
            x, y, width, height = self.child
            extra.append(Texture23.make(type=ParameterType.CHILD_OFFSET, x=x, y=y))
            extra.append(
                Texture23.make(type=ParameterType.CHILD_SIZE, width=_stored(width), height=_stored(height))
            )
        if len(extra) > 2:
            raise ValueError("a child image cannot be a cube map or have an explicit LOD as well")
        words = [int(word) for word in extra] + [0, 0]
        return int(zero), int(one), words[0], words[1]

    def text(self) -> str:
        """One line for people."""
        kind = self.type.name.lower() if isinstance(self.type, TextureType) else f"type {self.type}"
        wraps = "/".join(Wrap(wrap).name.lower() for wrap in (self.wrap_s, self.wrap_t))
        shape = "cube " if self.cube else ""
        child = f" child={self.child}" if self.child else ""
        lod = " explicit lod" if self.explicit_lod else ""
        return (
            f"{shape}{kind} {self.width}x{self.height} levels={self.levels} "
            f"base=0x{self.base:08x} wrap={wraps} min={_filter(self.min_filter)} "
            f"mag={MagFilter(self.mag_filter).name.lower()}{lod}{child}"
        )


def _filter(code: int) -> str:
    return code.name.lower() if isinstance(code, MinFilter) else f"reserved {int(code)}"


def _stored(size: int) -> int:
    if not 1 <= size <= MAX_SIZE:
        raise ValueError(f"texture size {size}: 1 to {MAX_SIZE} possible")
    return size & (MAX_SIZE - 1)
