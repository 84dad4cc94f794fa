"""Tile lists in memory, read without a frame, and what the scan found as Python objects."""

import ctypes
from collections.abc import Sequence

from vc4lab.memory import GuestMemory
from vc4lab.records.control import STATE_FIELDS
from vc4lab.records.payload import StateField
from vc4lab.v3d.ptb.direct_lists import DirectLists
from vc4lab.v3d.state.render_state import (
    SHADER_MEMBERS,
    SHADERS,
    STATE_BYTES,
    RenderState,
    state_bytes,
    state_from_bytes,
)
from vc4lab.v3d.tile_lists import scan_context as sc
from vc4lab.v3d.tile_lists.scan_context import ScanResult
from vc4lab.v3d.tile_lists.scanner import ListScanner


def scan_tile_lists(
    memory: GuestMemory, tiles: Sequence[int | tuple[int, int]], initial_state: RenderState, depth: int = 1
) -> ScanResult:
    """Walk the tile lists at the guest addresses `tiles`, in order, with arrays of their own.

    Parameters
    ----------
    tiles
        Guest address of each tile's list, or (start, end) of a piece of rendering list, in which
        system records are skipped; results refer to positions in this sequence.
    initial_state
        State in force before the first list; it carries over from list to list.
    depth
        Sub-list levels already in use (1: the tile list was entered by record 17); pieces of
        rendering list want 0.

    Returns
    -------
    ScanResult
        Broken lists become entries in `errors`; what came before the error stays valid.
    """
    pairs = [(tile, sc.NO_END) if isinstance(tile, int) else tile for tile in tiles]
    columns = [[pair[side] & 0xFFFFFFFF for pair in pairs] for side in (0, 1)]
    starts, ends = ((ctypes.c_uint32 * max(len(c), 1))(*c) for c in columns)
    scanner = ListScanner(memory, DirectLists(memory, None).expand, depth=depth)
    scanner.set_state(state_bytes(initial_state))
    result = scanner.scan(ctypes.addressof(starts), ctypes.addressof(ends), len(pairs))
    result.keep = scanner
    return result


def final_state(result: ScanResult) -> RenderState:
    """The state after the last tile."""
    place = result.context.address + sc.ScanContext.state.offset
    return state_from_bytes(ctypes.string_at(place, STATE_BYTES))


def segment_list(result: ScanResult) -> list[tuple[int, ...]]:
    """The segments as (tile, draw, address, primitives) tuples."""
    words = (ctypes.c_uint32 * (result.segment_count * 4)).from_address(result.segments)
    return [tuple(words[i : i + 4]) for i in range(0, len(words), 4)]


def _decode(item: StateField, payload: bytes) -> int:
    raw = payload[item.offset : item.offset + item.width].ljust(item.width, b"\0")
    value = int.from_bytes(raw, "little", signed=item.signed)
    return value - (1 << 32) if value >= 1 << 31 else value


def apply_record(state: RenderState, record: bytes) -> None:
    """Applies one state record (id byte and payload) to `state`, as native code must."""
    fields, payload = STATE_FIELDS[record[0]], record[1:]
    for item in fields:
        if item.real:  # copied as bits: a float conversion would quieten NaNs
            raw = payload[item.offset : item.offset + 4].ljust(4, b"\0")
            ctypes.memmove(state.address + RenderState.offset(item.name), raw, 4)
        else:
            setattr(state, item.name, _decode(item, payload))
    if record[0] in SHADERS:
        state.shader_kind = record[0]
        for name in SHADER_MEMBERS - {item.name for item in fields}:
            setattr(state, name, 0)
