"""The primitive tile binner (PTB): state cache, tile list memory, resuming after a stop.

Records, vertices and primitives are handled by native code in this folder, which writes real tile
lists into guest memory. The tile state data array of record 112 is kept
inside the simulator: its layout is not documented and programs never read it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from vc4lab.memory import MEMORY_MASK
from vc4lab.records.codes import ListData, ListPrimitive, VgPrimitive
from vc4lab.records.states import PrimitiveListFormat
from vc4lab.simd import Function, NativeFunction, NativeModule, Type, build, i32, late_kernel, ptr
from vc4lab.v3d.ptb import context as pc
from vc4lab.v3d.ptb.context import BinnerContext, TileState
from vc4lab.v3d.state.native_records import RECORD_SLOT
from vc4lab.v3d.state.render_state import (
    INDEX_16,
    MAX_LENGTH,
    STATE_BYTES,
    closes_from_first,
    default_state,
    double_buffer_halves,
    empty_windows,
    keeps_own_second,
    restarts_at_dummy,
    rht_movement,
    state_bytes,
)
from vc4lab.v3d.tile_lists.scan_context import MAX_VERTICES
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.ptb.overwritten import KeptMemory
    from vc4lab.v3d.unknowns import Unknowns

KERNELS = ("points", "lines", "triangles")

VG_KERNELS = {ListPrimitive.RHT: "vg_trapezoids", ListPrimitive.TRIANGLES: "vg_triangles"}
"""Native function of VG primitives by what they are in compressed lists."""


def _late(module: str, name: str, *args: Type, returns: Type | None = None) -> Function[Any]:
    return late_kernel(f"vc4lab.v3d.ptb.{module}", name, args, returns)


_GROUPS: dict[str, dict[str, Function[Any]]] = {
    "frame": {
        "set_state": _late("state_records", "set_state", ptr, ptr),
        "update_limits": _late("state_records", "update_limits", ptr),
        "finish_all": _late("state_records", "finish_all", ptr, i32, returns=i32),
        "exchange": _late("overwritten", "exchange", ptr, i32),
    },
    "triangles": {
        "triangles": _late("lines_and_triangles", "draw_triangles", ptr, returns=i32),
        "outcodes": _late("clipper", "make_outcodes", ptr, i32, i32),
    },
    "lines": {"lines": _late("lines_and_triangles", "draw_lines", ptr, returns=i32)},
    "points": {"points": _late("lines_and_triangles", "draw_points", ptr, returns=i32)},
    "vg": {
        "vg_triangles": _late("vg_and_direct", "draw_vg_triangles", ptr, returns=i32),
        "vg_trapezoids": _late("vg_and_direct", "draw_vg_trapezoids", ptr, returns=i32),
    },
    "direct": {"direct_vertices": _late("vg_and_direct", "direct_vertices", ptr)},
    "direct_vg": {
        "direct_vg_triangles": _late("vg_and_direct", "direct_triangles", ptr),
        "direct_vg_trapezoids": _late("vg_and_direct", "direct_trapezoids", ptr),
    },
}
"""Modules with their entry points; a frame of triangles has no need to compile the others."""


@cache
def _module(name: str) -> NativeModule:
    key = f"ptb {name}"
    return build(f"ptb_{name}", _GROUPS[name], float_mode="default", key=key)


_GROUP = {entry: name for name, group in _GROUPS.items() for entry in group}
"""Module of an entry point."""


@cache
def native(entry: str) -> NativeFunction:
    """A native function by its name."""
    return _module(_GROUP[entry])[entry]


def choose_assembly(c: BinnerContext, unknowns: Unknowns) -> None:
    """The choices about which vertices make a primitive."""
    c.close_first = int(closes_from_first(unknowns))
    c.vg_restart = int(restarts_at_dummy(unknowns))
    c.vg_keep_second = int(keeps_own_second(unknowns))


def begin_vg(c: BinnerContext, kind: int, address: int, length: int, continues: bool) -> str:
    """The context is that of a VG list before its first primitive; the name of its native function.

    `continues`: the first vertices of this fan are those of the one before.
    """
    fan = kind == VgPrimitive.TRIANGLE_FAN
    c.mode, c.index_address, c.length = kind, address, length
    c.primitive, c.vg_odd = 0, 0
    c.vg_held = 2 if continues and fan and c.vg_fan and c.vg_held else 0
    c.vg_fan = int(fan)
    return VG_KERNELS[VgPrimitive(kind).list_primitive]


class Binner:
    """One PTB. Statuses: DONE, OUT_OF_MEMORY (supply memory, then `resume`), PAUSED, BAD_INDEX.

    State lives across lists and jobs until changed.
    """

    def __init__(
        self, memory: GuestMemory, reporter: Reporter, unknowns: Unknowns = DEFAULT_UNKNOWNS
    ) -> None:
        self.memory = memory
        self.reporter = reporter
        self.unknowns = unknowns
        self.state = default_state()
        self.context = BinnerContext()
        self.interrupted: Callable[[], bool] = lambda: False
        self.context.memory = memory.base
        choose_assembly(self.context, unknowns)
        self._tiles: Any = None
        self.context.halves = int(double_buffer_halves(unknowns))
        self._codes = (ctypes.c_char * (MAX_VERTICES + 64))()
        self.context.codes = ctypes.addressof(self._codes)
        self.context.state = self.state.address
        self.context.clip_used = int(unknowns["binner_clip_window"] == "used")
        self.context.format_told = int(unknowns["tile_list_format"] == "first_list")
        self.context.empty_windows = empty_windows(unknowns)
        self.context.guard_follows = int(unknowns["guard_band"] == "viewport")
        self.context.offset_first = int(unknowns["clipper_z_order"] == "offset_first")
        self.context.rht_moved = rht_movement(unknowns)
        shader_first = unknowns["tile_state_order"] == "shader_first"
        self.context.first_kind = pc.FORMAT_KIND if shader_first else 0
        self.context.leave_facing = int(unknowns["binner_facing"] == "yes")
        self.context.weights_projected = int(unknowns["clip_weights"] == "projected")
        self.context.keep_far = int(unknowns["clipper_far"] == "left")
        self._record = ctypes.create_string_buffer(RECORD_SLOT)
        self._pending: tuple[str, int] | None = None
        self._kept: KeptMemory | None = None
        self.reset_state()

    # -- record 112 ------------------------------------------------------------------------------

    def make_tiles(self, count: int) -> None:
        """Room for so many tiles."""
        self._tiles = (ctypes.c_char * (count * TileState.size + 64))()
        self.context.tiles, self.context.tile_room = ctypes.addressof(self._tiles), count

    def cursor_of(self, tile: int) -> int:
        """Bus address at which a tile's list goes on; 0 if there is no such tile."""
        if self._tiles is None or not 0 <= tile < self.context.tile_room:
            return 0
        return int(TileState.python.from_buffer(self._tiles, tile * TileState.size).cursor)

    def drop_remaining(self) -> None:
        """Drops the rest of an interrupted draw or flush: record 112 was executed."""
        self._pending = None

    # -- state -----------------------------------------------------------------------------------

    @property
    def draws_nothing(self) -> bool:
        """Whether the clip window leaves no tile at all."""
        return bool(self.context.last_x < 0 or self.context.last_y < 0)

    def reset_state(self) -> None:
        """Resets all state to that after power on."""
        c = self.context
        ctypes.memmove(self.state.address, state_bytes(default_state()), STATE_BYTES)
        for k in range(len(pc.STATE_KINDS)):
            c.changed[k] = pc.NEVER_SET
        c.format_in_force = -1
        c.point_size, c.line_width = self.state.point_size, self.state.line_width
        c.viewport_x = c.viewport_y = c.rht_boundary = 0
        c.half_width = c.half_height = c.z_scale = c.z_offset = 0.0
        c.guard_x = c.guard_y = pc.GUARD_BAND
        if self._tiles is not None:
            native("update_limits")(c.address)

    def set_state(self, record: bytes) -> None:
        """A record of state, or of state of the binner alone: id byte and payload."""
        self._record.raw = record[:RECORD_SLOT].ljust(RECORD_SLOT, b"\0")
        native("set_state")(self.context.address, ctypes.addressof(self._record))
        if self.context.full:
            self.context.full = 0
            self.report_full()

    def report_full(self) -> None:
        """The counter of changes has come to its end."""
        self.reporter.report("CLE-029", f"{pc.STATE_LIMIT} changes of state in one list")

    # -- draws -----------------------------------------------------------------------------------

    def draw_vg(self, kind: int, address: int, length: int, continues: bool = False) -> int:
        """Bin VG primitives of a `VgPrimitive` kind, `length` words at an address; a status."""
        c = self.context
        if self._tiles is None or c.width * c.height == 0:
            return pc.DONE
        primitive = VgPrimitive(kind).list_primitive
        self._need_format(ListData.XY.of(primitive))
        name = begin_vg(c, kind, address, self.limited(length, address), continues)
        c.primitive_count, c.tile_x = c.length, -1
        c.key = (c.counter << 2 | primitive) + 1
        c.drawn = 1
        self._pending = name, 0
        return self.resume()

    def _need_format(self, needed: int) -> None:
        """The following lists have this format; if it is new, tiles get record 56."""
        if self.context.format_in_force != needed:
            self.set_state(bytes((PrimitiveListFormat.id, needed)))

    def limited(self, length: int, address: int | None) -> int:
        """The number of vertices that are drawn; reports a draw that is cut."""
        if length > MAX_LENGTH:
            self.reporter.report("VTX-001", f"a draw of {length} vertices", address=address)
        return min(length, MAX_LENGTH)

    def resume(self) -> int:
        """Go on with the interrupted draw or flush; the status as for `draw`."""
        if self._pending is None:
            return pc.DONE
        name, argument = self._pending
        return self._settle(self._finish(argument) if name == "finish" else self._run(name))

    def _settle(self, status: int) -> int:
        """Notes whether there is anything to resume; the status."""
        if status not in (pc.OUT_OF_MEMORY, pc.PAUSED):
            self._pending = None
        return status

    def settle_draw(self, status: int) -> int:
        """A draw was begun natively, as its context says, and ended with `status`."""
        self._pending = (KERNELS[(self.context.key - 1) & 3], 0)
        return self._settle(self._run(self._pending[0], status))

    def settle_flush(self, status: int, all_state: bool) -> int:
        """A flush was begun natively and ended with `status`."""
        self._pending = ("finish", int(all_state))
        return self._settle(status)

    def _run(self, name: str, status: int | None = None) -> int:
        """Calls a binning kernel until it is done; `status`: what it returned already."""
        kernel = native(name)
        while True:
            if status is None:
                self.context.work = pc.WORK_PER_CALL
                status = int(kernel(self.context.address))
            if status == pc.BAD_INDEX:
                c = self.context
                most = c.max_index & 0xFFFFFFFF
                bytes_ = c.index_type == INDEX_16 and max(c.bad_index & 0xFF, c.bad_index >> 8) <= most
                guess = ": are the indices bytes? They are read as 16-bit ones" if bytes_ else ""
                self.reporter.report(
                    "CLE-014",
                    f"index {c.bad_index} in a draw whose maximum is {most}{guess}",
                    address=c.index_address & 0xFFFFFFFF,
                )
            if status != pc.PAUSED or self.interrupted():
                return status
            status = None

    # -- what the renderer sees too early ----------------------------------------------------------

    def keep_overwritten(self) -> None:
        """Keeps what lies where tile lists are written, from now on; anew for each list."""
        if self._kept is None:
            from vc4lab.v3d.ptb.overwritten import KeptMemory

            self._kept = KeptMemory(self.context)

    def writes_list(self, address: int) -> bool:
        """Whether a bus address is in the first blocks of the tiles of the last record 112."""
        c = self.context
        size = int(c.width * c.height * c.initial_bytes)
        return (address - int(c.lists)) & MEMORY_MASK < size

    @contextmanager
    def before_writing(self) -> Iterator[None]:
        """Memory as it was before the tile lists were written."""
        exchange, address = native("exchange"), self.context.address
        exchange(address, 1)
        try:
            yield
        finally:
            exchange(address, 0)

    # -- memory and flush ------------------------------------------------------------------------

    def supply_memory(self, address: int, size: int) -> None:
        """Registers BPOA and BPOS: the overspill block, taken when the pool is empty."""
        self._set(spill_address=address, spill_bytes=size)

    def _finish(self, everything: int) -> int:
        return int(native("finish_all")(self.context.address, everything))

    @property
    def pool_address(self) -> int:
        """BPCA: the next free byte of the pool."""
        return int(self.context.pool_address) & 0xFFFFFFFF

    @property
    def pool_bytes(self) -> int:
        """BPCS: what is left of the pool (modulo 2^32)."""
        return int(self.context.pool_bytes) & 0xFFFFFFFF

    @property
    def overspill(self) -> tuple[int, int]:
        """BPOA and BPOS; a size of 0 means the block was taken or never given."""
        c = self.context
        return int(c.spill_address) & 0xFFFFFFFF, int(c.spill_bytes) & 0xFFFFFFFF

    @property
    def counters(self) -> dict[str, int]:
        """Counts since `configure`: rejected, clipped, degenerate, outside, entries, blocks."""
        return {name: int(getattr(self.context, name)) for name in pc.COUNTERS}

    @property
    def totals(self) -> dict[str, int]:
        """Counts since the start, as `counters` has them."""
        counters = zip(self.counters.items(), self.context.earlier, strict=True)
        return {name: count + earlier for (name, count), earlier in counters}

    @property
    def entries(self) -> int:
        """Primitives in tile lists since the start."""
        return int(self.context.entries) + int(self.context.earlier[pc.COUNTERS.index("entries")])

    def _set(self, **values: int) -> None:
        context = self.context
        for name, value in values.items():  # 32-bit members take the low bits of what is set
            setattr(context, name, value)
