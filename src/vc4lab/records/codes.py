"""The codes that control lists and state records use for their fields."""

from enum import IntEnum

from vc4lab.images.tiling import Tiling as Tiling


class PrimitiveMode(IntEnum):
    """Records 32 and 33."""

    POINTS = 0
    LINES = 1
    LINE_LOOP = 2
    LINE_STRIP = 3
    TRIANGLES = 4
    TRIANGLE_STRIP = 5
    TRIANGLE_FAN = 6

    @property
    def list_primitive(self) -> "ListPrimitive":
        """The kind of primitive that such a draw writes into compressed lists."""
        if self is PrimitiveMode.POINTS:
            return ListPrimitive.POINTS
        is_line = self <= PrimitiveMode.LINE_STRIP
        return ListPrimitive.LINES if is_line else ListPrimitive.TRIANGLES


class IndexType(IntEnum):
    """Record 32."""

    BYTE = 0
    SHORT = 1

    @property
    def bits(self) -> int:
        """Bits of an index."""
        return 8 << self.value


class VgPrimitive(IntEnum):
    """Records 41 and 42."""

    RHT = 1
    RHT_STRIP = 3
    TRIANGLES = 4
    TRIANGLE_STRIP = 5
    TRIANGLE_FAN = 6

    @property
    def list_primitive(self) -> "ListPrimitive":
        """The kind of primitive that such a draw writes into compressed lists."""
        is_rht = self in (VgPrimitive.RHT, VgPrimitive.RHT_STRIP)
        return ListPrimitive.RHT if is_rht else ListPrimitive.TRIANGLES


class ListPrimitive(IntEnum):
    """Record 56: what the following compressed lists hold."""

    POINTS = 0
    LINES = 1
    TRIANGLES = 2
    RHT = 3


class ListData(IntEnum):
    """Record 56: how the following compressed lists name a vertex."""

    INDEX16 = 1
    INDEX24 = 2
    XY = 3

    @property
    def bits(self) -> int:
        """Bits of a vertex."""
        return 8 + 8 * self.value if self is not ListData.XY else 32

    def of(self, primitive: ListPrimitive) -> int:
        """The byte of record 56 for lists of these primitives."""
        return self.value << 4 | primitive


class TileFormat(IntEnum):
    """Colour format of records 28 and 29."""

    RGBA8888 = 0
    BGR565_DITHERED = 1
    BGR565 = 2


class FrameFormat(IntEnum):
    """Colour format of record 113; other numbers than in records 28 and 29."""

    BGR565_DITHERED = 0
    RGBA8888 = 1
    BGR565 = 2


class TileBuffer(IntEnum):
    """Which part of the tile buffer records 28 and 29 move."""

    NONE = 0
    COLOUR = 1
    ZS = 2
    Z = 3
    VG_MASK = 4
    FULL = 5


class Decimate(IntEnum):
    """Resolving of multisampled colours."""

    SAMPLE_0 = 0
    X4 = 1
    X16 = 2


class Compare(IntEnum):
    """Depth and stencil functions: bit 0 = less, 1 = equal, 2 = greater."""

    NEVER = 0
    LESS = 1
    EQUAL = 2
    LESS_EQUAL = 3
    GREATER = 4
    NOT_EQUAL = 5
    GREATER_EQUAL = 6
    ALWAYS = 7


class Oversample(IntEnum):
    """Rasteriser oversampling, record 96."""

    NONE = 0
    X4 = 1
    X16 = 2


class CoverageUpdate(IntEnum):
    """How coverage accumulates, record 96."""

    NONZERO = 0
    ODD = 1
    OR = 2
    ZERO = 3


class BlockSize(IntEnum):
    """Tile list block sizes of record 112."""

    B32 = 0
    B64 = 1
    B128 = 2
    B256 = 3

    @property
    def size(self) -> int:
        """Size in bytes."""
        return 32 << self.value
