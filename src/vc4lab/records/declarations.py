"""Every control-list record, declared once: id, size, where it is legal, and its fields bit by bit.

Bit 0 is the lowest bit of the byte after the id. `legal` says where a record belongs: B the
binning list, R the rendering list, T tile lists as the binner writes them. That is lint, not a
refusal: programs that draw correctly on boards put records into the wrong list.
Source: AG100-R pp. 62-81, Mesa's v3d_packet_v21.xml, recorded lists of drivers and boards.
"""

from __future__ import annotations

from typing import ClassVar

from vc4lab.bits import Bits, Layout
from vc4lab.records import codes
from vc4lab.records.fields import Address, Fixed, Flags, Float


class Payload(Layout):
    """The bytes of a record after its id. Subclasses are the declarations."""

    id: ClassVar[int] = -1
    title: ClassVar[str] = ""
    legal: ClassVar[str] = ""
    size: ClassVar[int] = 1
    """Fixed size in bytes, the id byte included."""
    variable: ClassVar[bool] = False
    """A list of primitives follows the fixed part."""

    def __init_subclass__(
        cls, *, id: int, size: int, title: str, legal: str = "", variable: bool = False
    ) -> None:
        super().__init_subclass__(width=8 * (size - 1))
        cls.id, cls.size, cls.title, cls.legal, cls.variable = id, size, title, legal, variable

    def text(self) -> str:
        """`name=value` pairs; a one-bit field is named when it is set."""
        parts = []
        for name, bits in self.layout_fields.items():
            if bits.width > 1:
                parts.append(f"{name}={bits.text(self.value)}")
            elif bits.extract(self.value):
                parts.append(name)
        return " ".join(parts)


class Halt(Payload, id=0, size=1, title="Halt", legal="BR"):
    """Stops the thread; writing CTSUBS resumes after it."""


class Nop(Payload, id=1, size=1, title="NOP", legal="BR"):
    """Nothing."""


class Marker(Payload, id=2, size=1, title="Marker", legal="BR"):
    """Counts; no effect on drawing."""


class ResetMarker(Payload, id=3, size=1, title="Reset marker count", legal="BR"):
    """No effect on drawing."""


class Flush(Payload, id=4, size=1, title="Flush", legal="B"):
    """Ends every tile list with Return, writes them to memory, counts a binned frame."""


class FlushAllState(Payload, id=5, size=1, title="Flush all state", legal="B"):
    """Writes the complete state into all tile lists, then flushes."""


class StartTileBinning(Payload, id=6, size=1, title="Start tile binning", legal="B"):
    """State set before belongs to the prefix, which is not written to tile lists."""


class IncrementSemaphore(Payload, id=7, size=1, title="Increment semaphore", legal="BR"):
    """Increments the other thread's semaphore when the flush or the frame is done."""


class WaitSemaphore(Payload, id=8, size=1, title="Wait on semaphore", legal="BR"):
    """Stalls until the own semaphore is above zero, then decrements it."""


class Branch(Payload, id=16, size=5, title="Branch", legal="BRT"):
    """Continues at another address."""

    address = Address(31, 0)


class BranchToSublist(Payload, id=17, size=5, title="Branch to sub-list", legal="BR"):
    """Pushes the address after this record and continues at another one."""

    address = Address(31, 0)


class Return(Payload, id=18, size=1, title="Return from sub-list", legal="BRT"):
    """Pops; without a pushed address it does nothing."""


class RepeatStart(Payload, id=19, size=1, title="Repeat start marker"):
    """Only named in a driver's header."""


class Repeat(Payload, id=20, size=2, title="Repeat from start marker"):
    """Only named in a driver's header."""

    count = Bits(7, 0)


class StoreResolved(Payload, id=24, size=1, title="Store resolved tile colour", legal="R"):
    """Stores the colour as record 113 says, then clears all buffers."""


class StoreResolvedEnd(
    Payload, id=25, size=1, title="Store resolved tile colour, end of frame", legal="R"
):
    """As 24, and the frame is done."""


class StoreFull(Payload, id=26, size=5, title="Store full-resolution tile buffer", legal="R"):
    """Stores all samples of this tile to the address itself, whatever the tile coordinates."""

    disable_colour = Bits(0)
    disable_zs = Bits(1)
    disable_clear = Bits(2)
    last_tile = Bits(3, doc="end of frame")
    address = Address(31, 4, 4)


class LoadFull(Payload, id=27, size=5, title="Re-load full-resolution tile buffer", legal="R"):
    """Loads what record 26 stored."""

    disable_colour = Bits(0)
    disable_zs = Bits(1)
    address = Address(31, 4, 4)


class StoreGeneral(Payload, id=28, size=7, title="Store tile buffer general", legal="R"):
    """Stores one buffer in a chosen format."""

    buffer = Bits(2, 0, enum=codes.TileBuffer)
    tiling = Bits(5, 4, enum=codes.Tiling)
    decimate = Bits(7, 6, enum=codes.Decimate, doc="multisample frames only")
    format = Bits(9, 8, enum=codes.TileFormat)
    disable_swap = Bits(12, doc="double-buffer swap")
    disable_colour_clear = Bits(13)
    disable_zs_clear = Bits(14)
    disable_vg_mask_clear = Bits(15)
    disable_colour = Bits(16, doc="full dump only")
    disable_zs = Bits(17, doc="full dump only")
    disable_vg_mask = Bits(18, doc="full dump only")
    last_tile = Bits(19, doc="end of frame")
    address = Address(47, 20, 4)


class LoadGeneral(Payload, id=29, size=7, title="Load tile buffer general", legal="R"):
    """Loads one buffer when the next tile coordinates are processed."""

    buffer = Bits(2, 0, enum=codes.TileBuffer)
    tiling = Bits(5, 4, enum=codes.Tiling)
    format = Bits(9, 8, enum=codes.TileFormat)
    disable_colour = Bits(16, doc="full dump only")
    disable_zs = Bits(17, doc="full dump only")
    disable_vg_mask = Bits(18, doc="full dump only")
    address = Address(47, 20, 4)


class IndexedPrimitives(Payload, id=32, size=14, title="Indexed primitive list", legal="BR"):
    """Draws vertices named by an index array."""

    mode = Bits(3, 0, enum=codes.PrimitiveMode)
    index_type = Bits(7, 4, enum=codes.IndexType)
    length = Bits(39, 8, doc="number of indices")
    address = Address(71, 40, doc="of the indices")
    maximum_index = Bits(103, 72)


class VertexArrayPrimitives(Payload, id=33, size=10, title="Vertex array primitives", legal="BR"):
    """Draws consecutive vertices."""

    mode = Bits(7, 0, enum=codes.PrimitiveMode)
    length = Bits(39, 8, doc="number of vertices")
    first = Bits(71, 40)


class VgCoordinateArray(
    Payload, id=41, size=10, title="VG coordinate array primitives", legal="BR"
):
    """Draws 32-bit coordinates (x in 15:0, y in 31:16, 12.4 fixed point) from memory."""

    type = Bits(3, 0, enum=codes.VgPrimitive)
    continuation = Bits(7, 4, doc="the list continues a fan")
    length = Bits(39, 8, doc="number of vertices")
    address = Address(71, 40)


class VgInline(Payload, id=42, size=2, title="VG inline primitives", legal="BR", variable=True):
    """Coordinates follow, ended by the code 0xBFFF0000."""

    type = Bits(3, 0, enum=codes.VgPrimitive)
    continuation = Bits(7, 4, doc="the list continues a fan")


class CompressedList(
    Payload, id=48, size=1, title="Compressed primitive list", legal="RT", variable=True
):
    """A compressed list of primitives follows, in the format of record 56."""


class ClippedList(
    Payload, id=49, size=5, title="Clipped primitive + compressed list", legal="RT", variable=True
):
    """As 48; the first primitive's flagged vertices are replaced by those of the clip record."""

    flags = Flags(2, 0, doc="one for each vertex of the first primitive")
    address = Address(31, 3, 3, doc="of the clip record, 32 bytes a flagged vertex")


class PrimitiveListFormat(Payload, id=56, size=2, title="Primitive list format", legal="BRT"):
    """How the following compressed lists are to be read; counts once a shader state follows."""

    type = Bits(3, 0, enum=codes.ListPrimitive)
    data = Bits(7, 4, enum=codes.ListData)


class GlShaderState(Payload, id=64, size=5, title="GL shader state", legal="BRT"):
    """Three shaders and attribute arrays."""

    attributes = Bits(2, 0, doc="number of attribute arrays, 0 = 8")
    extended = Bits(3, doc="the record has 26-bit strides; then always 8 arrays")
    address = Address(31, 4, 4)


class NvShaderState(Payload, id=65, size=5, title="NV shader state", legal="BRT"):
    """A fragment shader and vertices shaded beforehand."""

    address = Address(31, 0)


class VgShaderState(Payload, id=66, size=5, title="VG shader state", legal="BRT"):
    """A fragment shader for VG primitives."""

    address = Address(31, 0)


class VgInlineShader(Payload, id=67, size=9, title="VG inline shader record", legal="BRT"):
    """A VG shader record without the memory."""

    threading = Bits(2, 0, doc="0 two threads, 1 one thread")
    code = Address(31, 3, 3)
    uniforms = Address(63, 32)


class ConfigurationBits(Payload, id=96, size=4, title="Configuration bits", legal="BRT"):
    """Facing, rasteriser and depth switches."""

    enable_forward = Bits(0, doc="draw forward-facing primitives")
    enable_reverse = Bits(1, doc="draw reverse-facing primitives")
    clockwise = Bits(2, doc="clockwise is forward facing, seen with y upward")
    enable_depth_offset = Bits(3)
    antialias = Bits(4, doc="points and lines; no effect")
    coverage_read_mask = Bits(5, doc="0 8-bit level, 1 16-bit mask")
    oversample = Bits(7, 6, enum=codes.Oversample)
    coverage_pipe = Bits(8, doc="coverage accumulation instead of QPUs")
    coverage_update = Bits(10, 9, enum=codes.CoverageUpdate)
    coverage_read_leave = Bits(11, doc="0 clear on read")
    depth_test = Bits(14, 12, enum=codes.Compare)
    z_update = Bits(15)
    early_z = Bits(16)
    early_z_update = Bits(17)


class FlatShadeFlags(Payload, id=97, size=5, title="Flat shade flags", legal="BRT"):
    """Bit n: component n of the varyings is that of the last vertex."""

    flags = Flags(31, 0)


MAX_POINT_SIZE = 512.0
"""Pixels, for binner and setup alike. Larger ones act as this: on a Pi 3 dEQP-GLES2 finds one of
528 so (rasterization.limits.points).
"""


class PointSize(Payload, id=98, size=5, title="Point size", legal="BRT"):
    """Pixels; used when vertices carry no size of their own."""

    point_size = Float(31, 0)


class LineWidth(Payload, id=99, size=5, title="Line width", legal="BRT"):
    """Pixels."""

    line_width = Float(31, 0)


class RhtXBoundary(Payload, id=100, size=3, title="RHT X boundary", legal="BRT"):
    """The other side of a right-hand trapezoid."""

    x = Fixed(15, 0)


class DepthOffset(Payload, id=101, size=5, title="Depth offset", legal="BRT"):
    """Added to Zs: factor x maximum slope + units x smallest step."""

    factor = Float(15, 0)
    units = Float(31, 16)


class ClipWindow(Payload, id=102, size=9, title="Clip window", legal="BRT"):
    """Pixels outside are not drawn."""

    left = Bits(15, 0)
    bottom = Bits(31, 16)
    width = Bits(47, 32)
    height = Bits(63, 48)


class ViewportOffset(Payload, id=103, size=5, title="Viewport offset", legal="BRT"):
    """Pixel position of the viewport's centre, to which Xs and Ys are relative."""

    x = Fixed(15, 0)
    y = Fixed(31, 16)


class ZClipPlanes(Payload, id=104, size=9, title="Z min and max clipping planes", legal="BRT"):
    """Fragments outside (both ends inclusive) are rejected."""

    minimum = Float(31, 0)
    maximum = Float(63, 32)


class ClipperXyScaling(Payload, id=105, size=9, title="Clipper XY scaling", legal="B"):
    """Half width and height of the viewport in sixteenths of a pixel."""

    x = Float(31, 0)
    y = Float(63, 32)


class ClipperZScale(Payload, id=106, size=9, title="Clipper Z scale and offset", legal="B"):
    """Zs = Zc / Wc x scale + offset."""

    scale = Float(31, 0)
    offset = Float(63, 32)


class TileBinningMode(Payload, id=112, size=16, title="Tile binning mode configuration", legal="B"):
    """Tile memory and the grid of tiles; begins every binning list."""

    address = Address(31, 0, doc="tile allocation memory")
    memory_size = Bits(63, 32, doc="bytes of tile allocation memory")
    state_address = Address(95, 64, doc="tile state data array, 48 bytes a tile")
    tiles_x = Bits(103, 96)
    tiles_y = Bits(111, 104)
    multisample = Bits(112)
    colour64 = Bits(113)
    auto_initialise = Bits(114, doc="of the tile state data array")
    initial_block = Bits(116, 115, enum=codes.BlockSize)
    block = Bits(118, 117, enum=codes.BlockSize)
    double_buffer = Bits(119)


class TileRenderingMode(
    Payload, id=113, size=11, title="Tile rendering mode configuration", legal="R"
):
    """The frame: address, size in pixels and format."""

    address = Address(31, 0)
    width = Bits(47, 32)
    height = Bits(63, 48)
    multisample = Bits(64)
    colour64 = Bits(65)
    format = Bits(67, 66, enum=codes.FrameFormat)
    decimate = Bits(69, 68, enum=codes.Decimate)
    tiling = Bits(71, 70, enum=codes.Tiling)
    vg_mask = Bits(72)
    coverage = Bits(73)
    early_z_greater = Bits(74, doc="direction of the early-Z update")
    early_z_disable = Bits(75)
    double_buffer = Bits(76)


class ClearColours(Payload, id=114, size=14, title="Clear colours", legal="R"):
    """What a cleared tile buffer holds; visible after the next store."""

    colour = Flags(31, 0, doc="R in the lowest byte")
    colour_high = Flags(63, 32, doc="the same again; upper half of a 64-bit colour")
    z = Flags(87, 64)
    vg_mask = Flags(95, 88)
    stencil = Flags(103, 96)


class TileCoordinates(Payload, id=115, size=3, title="Tile coordinates", legal="R"):
    """Selects the tile; executes a pending load."""

    column = Bits(7, 0)
    row = Bits(15, 8)


class GemHandles(Payload, id=254, size=9, title="GEM handles"):
    """Not hardware: names the buffers of the next record between Linux driver and kernel."""

    index0 = Bits(31, 0)
    index1 = Bits(63, 32)
