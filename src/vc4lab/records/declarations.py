"""Every control-list record, declared once: id, size, where it is legal, and its fields bit by bit.

Those of the render state are in `states.py`. Bit 0 is the lowest bit of the byte after the id.
The base class of a record is its kind (`payload.py`). `legal` says where it belongs: B the binning
list, R the rendering list, T tile lists as the binner writes them. That is lint, not a refusal:
programs that draw correctly on boards put records into the wrong list. `native`: the lists whose
native reader executes it, if it can.
Source: AG100-R pp. 62-81, Mesa's v3d_packet_v21.xml, recorded lists of drivers and boards.
"""

from __future__ import annotations

from vc4lab.bits import Bits
from vc4lab.records import codes
from vc4lab.records.payload import (
    Address,
    BinnerState,
    Compressed,
    Flags,
    Float,
    Flow,
    Frame,
    Ignored,
    Payload,
    Primitives,
    Semaphore,
)


class Halt(Flow, id=0, size=1, title="Halt", legal="BR"):
    """Stops the thread; writing CTSUBS resumes after it."""


class Nop(Ignored, id=1, size=1, title="NOP"):
    """Nothing."""


class Marker(Ignored, id=2, size=1, title="Marker"):
    """Counts; no effect on drawing."""


class ResetMarker(Ignored, id=3, size=1, title="Reset marker count"):
    """No effect on drawing."""


class Flush(Frame, id=4, size=1, title="Flush", legal="B", native="B"):
    """Ends every tile list with Return, writes them to memory, counts a binned frame."""


class FlushAllState(Frame, id=5, size=1, title="Flush all state", legal="B", native="B"):
    """Writes the complete state into all tile lists, then flushes."""


class StartTileBinning(Frame, id=6, size=1, title="Start tile binning", legal="B", native="B"):
    """State set before belongs to the prefix, which is not written to tile lists."""


class IncrementSemaphore(Semaphore, id=7, size=1, title="Increment semaphore", native="B"):
    """Increments the other thread's semaphore when the flush or the frame is done."""


class WaitSemaphore(Semaphore, id=8, size=1, title="Wait on semaphore", native="R"):
    """Stalls until the own semaphore is above zero, then decrements it."""


class Branch(Flow, id=16, size=5, title="Branch", legal="BRT"):
    """Continues at another address."""

    address = Address(31, 0)


class BranchToSublist(Flow, id=17, size=5, title="Branch to sub-list", legal="BR", native="R"):
    """Pushes the address after this record and continues at another one."""

    address = Address(31, 0)


class Return(Flow, id=18, size=1, title="Return from sub-list", legal="BRT"):
    """Pops; without a pushed address it does nothing."""


class RepeatStart(Payload, id=19, size=1, title="Repeat start marker"):
    """Only named in a driver's header."""


class Repeat(Payload, id=20, size=2, title="Repeat from start marker"):
    """Only named in a driver's header."""

    count = Bits(7, 0)


class StoreResolved(Frame, id=24, size=1, title="Store resolved tile colour", legal="R", native="R"):
    """Stores the colour as record 113 says, then clears all buffers."""


class StoreResolvedEnd(
    Frame, id=25, size=1, title="Store resolved tile colour, end of frame", legal="R", native="R"
):
    """As 24, and the frame is done."""


class StoreFull(Frame, id=26, size=5, title="Store full-resolution tile buffer", legal="R", native="R"):
    """Stores all samples of this tile to the address itself, whatever the tile coordinates."""

    disable_colour = Bits(0)
    disable_zs = Bits(1)
    disable_clear = Bits(2)
    last_tile = Bits(3, doc="end of frame")
    address = Address(31, 4, 4)


class LoadFull(Frame, id=27, size=5, title="Re-load full-resolution tile buffer", legal="R", native="R"):
    """Loads what record 26 stored."""

    disable_colour = Bits(0)
    disable_zs = Bits(1)
    address = Address(31, 4, 4)


class StoreGeneral(Frame, id=28, size=7, title="Store tile buffer general", legal="R", native="R"):
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


class LoadGeneral(Frame, id=29, size=7, title="Load tile buffer general", legal="R", native="R"):
    """Loads one buffer when the next tile coordinates are processed."""

    buffer = Bits(2, 0, enum=codes.TileBuffer)
    tiling = Bits(5, 4, enum=codes.Tiling)
    format = Bits(9, 8, enum=codes.TileFormat)
    disable_colour = Bits(16, doc="full dump only")
    disable_zs = Bits(17, doc="full dump only")
    disable_vg_mask = Bits(18, doc="full dump only")
    address = Address(47, 20, 4)


class IndexedPrimitives(Primitives, id=32, size=14, title="Indexed primitive list", native="B"):
    """Draws vertices named by an index array."""

    mode = Bits(3, 0, enum=codes.PrimitiveMode)
    index_type = Bits(7, 4, enum=codes.IndexType)
    length = Bits(39, 8, doc="number of indices")
    address = Address(71, 40, doc="of the indices")
    maximum_index = Bits(103, 72)


class VertexArrayPrimitives(Primitives, id=33, size=10, title="Vertex array primitives", native="B"):
    """Draws consecutive vertices."""

    mode = Bits(7, 0, enum=codes.PrimitiveMode)
    length = Bits(39, 8, doc="number of vertices")
    first = Bits(71, 40)


class VgCoordinateArray(Primitives, id=41, size=10, title="VG coordinate array primitives"):
    """Draws 32-bit coordinates (x in 15:0, y in 31:16, 12.4 fixed point) from memory."""

    type = Bits(3, 0, enum=codes.VgPrimitive)
    continuation = Bits(7, 4, doc="the list continues a fan")
    length = Bits(39, 8, doc="number of vertices")
    address = Address(71, 40)


class VgInline(Primitives, id=42, size=2, title="VG inline primitives", variable=True):
    """Coordinates follow, ended by the code 0xBFFF0000."""

    type = Bits(3, 0, enum=codes.VgPrimitive)
    continuation = Bits(7, 4, doc="the list continues a fan")


class CompressedList(Compressed, id=48, size=1, title="Compressed primitive list", variable=True):
    """A compressed list of primitives follows, in the format of record 56."""


class ClippedList(Compressed, id=49, size=5, title="Clipped primitive + compressed list", variable=True):
    """As 48; the first primitive's flagged vertices are replaced by those of the clip record."""

    flags = Flags(2, 0, doc="one for each vertex of the first primitive")
    address = Address(31, 3, 3, doc="of the clip record, 32 bytes a flagged vertex")


class ClipperXyScaling(BinnerState, id=105, size=9, title="Clipper XY scaling"):
    """Half width and height of the viewport in sixteenths of a pixel."""

    x = Float(31, 0)
    y = Float(63, 32)


class ClipperZScale(BinnerState, id=106, size=9, title="Clipper Z scale and offset"):
    """Zs = Zc / Wc x scale + offset."""

    scale = Float(31, 0)
    offset = Float(63, 32)


class TileBinningMode(Frame, id=112, size=16, title="Tile binning mode configuration", legal="B", native="B"):
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
    Frame, id=113, size=11, title="Tile rendering mode configuration", legal="R", native="R"
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


class ClearColours(Frame, id=114, size=14, title="Clear colours", legal="R", native="R"):
    """Sets the values of a cleared tile buffer; visible after the next store."""

    colour = Flags(31, 0, doc="R in the lowest byte")
    colour_high = Flags(63, 32, doc="the same again; upper half of a 64-bit colour")
    z = Flags(87, 64)
    vg_mask = Flags(95, 88)
    stencil = Flags(103, 96)


class TileCoordinates(Frame, id=115, size=3, title="Tile coordinates", legal="R", native="R"):
    """Selects the tile; executes a pending load."""

    column = Bits(7, 0)
    row = Bits(15, 8)


class GemHandles(Payload, id=254, size=9, title="GEM handles"):
    """Not hardware: names the buffers of the next record between Linux driver and kernel."""

    index0 = Bits(31, 0)
    index1 = Bits(63, 32)
