"""A binner driven by hand: records 112, 6, 32, 33 and 4 without a list and without shaders."""

import ctypes
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from vc4lab.bits import signed32
from vc4lab.memory import GuestMemory
from vc4lab.records.declarations import TileBinningMode
from vc4lab.simd import NativeModule, build
from vc4lab.v3d.ptb import binner as ptb
from vc4lab.v3d.ptb import context as pc
from vc4lab.v3d.ptb.state_records import begin_draw, configure
from vc4lab.v3d.state.render_state import INDEX_8, INDEX_16, INDEX_ARRAY, PRIMITIVE_TYPE
from vc4lab.v3d.tile_lists.scan_context import MAX_VERTICES
from vc4lab.v3d.vertex.fetch import range_function


@dataclass(frozen=True)
class Coordinates:
    """Where binning finds its vertices: SoA batches of 16 in host memory, a 64-byte row per word.

    With `clip_words` the rows are Xc Yc Zc Wc, Ys:Xs, Zs, 1/Wc [, point size] (coordinate shader,
    or NV with clip header), without it Ys:Xs, Zs, 1/Wc [, point size]. `first`..`last` are valid.
    """

    address: int
    pitch: int
    first: int
    last: int
    clip_words: bool
    point_size: bool = False
    keep: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class IndexSource:
    """The vertices of a draw: consecutive from `first`, or 8/16-bit indices at guest `address`."""

    length: int
    first: int = 0
    address: int | None = None
    bits: int = 16
    maximum: int = 0xFFFFFFFF

    @property
    def kind(self) -> int:
        """The native code of the index type."""
        if self.address is None:
            return INDEX_ARRAY
        return INDEX_8 if self.bits == 8 else INDEX_16


class IndexRange(NamedTuple):
    """Lowest and highest index (first > last: none) and a used map, one byte per vertex."""

    first: int
    last: int
    used: int
    keep: Any


def index_range(memory: GuestMemory, bits: int, address: int, length: int) -> IndexRange:
    """Range and used map of `length` indices of 8 or 16 bits at guest `address`."""
    used = (ctypes.c_char * MAX_VERTICES)()
    result = (ctypes.c_int32 * 2)()
    place = ctypes.addressof(used)
    function = range_function(bits)
    function(memory.base, signed32(address), length, place, ctypes.addressof(result))
    return IndexRange(result[0], result[1], place, used)


@cache
def _native() -> NativeModule:
    kernels = {"configure": configure, "begin_draw": begin_draw}
    return build("binner_by_hand", kernels, float_mode="default", key="binner by hand")


class BinnerByHand(ptb.Binner):
    """A binner that gets what native code hands it."""

    def configure(self, mode: TileBinningMode) -> None:
        """Record 112."""
        count = int(mode.tiles_x * mode.tiles_y)
        if count > self.context.tile_room or not self.context.tiles:
            self.make_tiles(count)
        payload = ctypes.create_string_buffer(mode.to_bytes())
        _native()["configure"](self.context.address, ctypes.addressof(payload))
        self.drop_remaining()

    def start(self) -> None:
        """Record 6: what was set before counts as prefix and stays out of the tile lists."""
        if self.context.counter == 0:
            self.context.counter = 1
            self.context.drawn = 0

    def draw(self, mode: int, source: IndexSource, coordinates: Coordinates, *, clip: bool = True) -> int:
        """Bins one primitive record; `clip` is the shader record's clipping flag. A status."""
        c, row = self.context, 4 * coordinates.clip_words
        if not c.width * c.height:
            return pc.DONE
        self._set(
            vertices=coordinates.address,
            pitch=coordinates.pitch,
            xy_row=row * 64,
            size_row=(row + 3) * 64 if coordinates.point_size else -1,
            clipping=int(clip and coordinates.clip_words),
            mode=mode,
            index_type=source.kind,
            index_address=source.address or 0,
            first_index=source.first,
            length=source.length,
            max_index=source.maximum,
            first_vertex=coordinates.first,
            last_vertex=coordinates.last,
        )
        _native()["begin_draw"](c.address)
        if c.full:
            self.report_full()
        if c.clipping:
            ptb.native("outcodes")(c.address, coordinates.first >> 4, coordinates.last >> 4)
        self._keep = coordinates
        return self.settle_draw(int(ptb.native(ptb.KERNELS[PRIMITIVE_TYPE[mode]])(c.address)))

    def flush(self, all_state: bool = False) -> int:
        """Records 4 and 5: end every tile list, after the complete state for 5. A status."""
        self.context.primitive = 0
        finish = ptb.native("finish_all")
        return self.settle_flush(int(finish(self.context.address, int(all_state))), all_state)
