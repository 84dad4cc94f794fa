"""The VPM DMA: VDW stores VPM blocks to memory, VDR loads memory into the VPM.

Source: hardware reference 5.4 and 5.5. It is compiled into programs, and the interpreter runs it
eagerly. Rows of 32-bit words that lie in one piece in memory move 16 words at a time; everything
else element by element.
"""

from __future__ import annotations

from functools import lru_cache

from vc4lab.memory import MEMORY_MASK, MEMORY_SIZE
from vc4lab.memory.native import host
from vc4lab.simd import (
    Function,
    NativeModule,
    Value,
    build,
    const,
    eager,
    gather,
    i1,
    i8,
    i16,
    i32,
    i32x16,
    i64,
    iota,
    kernel,
    load,
    masked_load,
    masked_store,
    max_,
    ptr,
    scatter,
    select,
    splat,
    staged,
    store,
)
from vc4lab.v3d.unknowns import Unknowns
from vc4lab.v3d.user_programs.budget import DMA_START_COST
from vc4lab.v3d.user_programs.state import FINDING_OUTSIDE_RAM, PIECES, QpuState, SharedState
from vc4lab.v3d.vpm.setup import DMA_ROWS, STORE_SHAPE_BITS, UNPACKED_SHAPE, VPM_BYTES
from vc4lab.v3d.vpm.shader_rows import LANES, ROW_BYTES


def _or(value: Value, zero: int) -> Value:
    """A field in which 0 stands for its range."""
    return select(value == 0, zero, value)


def _mode(mode: Value) -> tuple[Value, Value]:
    """(log2 of the elements in a word, offset) of a MODEW."""
    shift = select(mode >= 4, 2, select(mode >= 2, 1, 0))
    return shift, mode & ((1 << shift) - 1)


def _sub_index(number: Value | int, shift: Value, offset: Value, layout: str) -> Value:
    if layout == "lanes":
        return (number << shift) + offset
    if layout == "quarters":
        return number + (offset << 4)
    return number + offset


def _across(y: Value, x: Value, sub: Value, shift: Value, row_end: str) -> Value:
    """Byte offset in the VPM of an element of a horizontal block."""
    column = (x << 2) + (sub << (2 - shift))
    if row_end == "wrap":
        column = column & (ROW_BYTES - 1)
    return (y * ROW_BYTES + column) & (VPM_BYTES - 1)


def _row_down(y: Value, down: Value, wrap: str) -> Value:
    """VPM row of a vertical block, `down` rows after y."""
    if wrap == "group":
        return ((y & -LANES) | ((y + down) & (LANES - 1))) & (DMA_ROWS - 1)
    if wrap == "start":
        return (y + (down & (LANES - 1))) & (DMA_ROWS - 1)
    return (y + down) & (DMA_ROWS - 1)


def _down(y: Value, x: Value, sub: Value, shift: Value, wrap: str) -> Value:
    """Byte offset in the VPM of an element of a vertical block."""
    within = (sub & ((1 << shift) - 1)) << (2 - shift)
    return _row_down(y, sub >> shift, wrap) * ROW_BYTES + (x << 2) + within


def _memory_row(address: Value, shift: Value, alignment: str) -> Value:
    """The address at which a row in memory begins."""
    return address & -(4 >> shift) if alignment == "rounded" else address


@staged
def _copy(target: Value, source: Value, shift: Value) -> None:
    """One element of 4, 2 or 1 bytes."""
    if shift == 0:
        store(target, load(i32, source))
    elif shift == 1:
        store(target, load(i16, source))
    else:
        store(target, load(i8, source))


@staged
def _check_ram(shared: SharedState, state: QpuState, address: Value) -> None:
    if (address & MEMORY_MASK) > shared.ram - 4:
        state.findings = state.findings | FINDING_OUTSIDE_RAM
        state.outside = address


@staged
def _note_piece(state: QpuState, at: Value, length: Value) -> None:
    """A row of memory is written: it goes on where the last one ended, or begins a piece."""
    pasts = state.pointer + QpuState.pasts.offset
    count = state.pieces
    place = max_(count - 1, const(i32, 0)).sext(i64) * 4
    if (count > 0) & (load(i32, pasts + place) == at):
        store(pasts + place, at + length)
    elif count < PIECES:
        place = count.sext(i64) * 4
        store(state.pointer + QpuState.firsts.offset + place, at)
        store(pasts + place, at + length)
        state.pieces = count + 1


@staged
def _charge(state: QpuState, elements: Value) -> None:
    """The transfer counts for the budget, and for this turn."""
    cost = (elements + DMA_START_COST).sext(i64)
    state.dma_time = state.dma_time + cost
    state.slice_end = state.slice_end - cost


@lru_cache
def store_kernel(
    layout: str, row_end: str, stride_bits: str, alignment: str, block_mode: str, wrap: str
) -> Function[None]:
    """VDW: (shared, qpu, guest address)."""

    @kernel(args=(ptr, ptr, i32))
    def vdw(shared_address: Value, qpu: Value, address: Value) -> None:
        shared, state = SharedState.at(shared_address), QpuState.at(qpu)
        vpm, memory = shared.vpm, shared.memory
        setup, stride = state.store_setup, state.store_stride
        _check_ram(shared, state, address)
        units, depth = _or((setup >> 23) & 127, 128), _or((setup >> 16) & 127, 128)
        _charge(state, units * depth)
        state.stored_rows = state.stored_rows + units.sext(i64)
        state.stored = state.stored + (units * depth).sext(i64)
        horizontal = ((setup >> 14) & 1) != 0
        y0, x0 = (setup >> 7) & 127, (setup >> 3) & 15
        shift, offset = _mode(setup & 7)
        gap = stride & ((1 << int(stride_bits)) - 1)
        packed = const(i1, 0)
        if block_mode == "packed":  # as setup.is_packed
            packed = (((stride >> 16) & 1) != 0) & ((setup & STORE_SHAPE_BITS) != UNPACKED_SHAPE)
        length = depth << (2 - shift)
        following = address
        for unit in range(units):
            at = _memory_row(following, shift, alignment)
            column = x0 + unit
            across_y, down_y = y0 + unit, y0 + (column & ~15)
            y = select(packed, y0, select(horizontal, across_y, down_y))
            x = select(packed | horizontal, x0, column & 15)
            number = select(packed, unit * depth, 0)
            _note_piece(state, at, length)
            inside = (at & MEMORY_MASK) <= MEMORY_SIZE - length
            start = _across(y, x, number, shift, row_end)
            whole = start + length <= VPM_BYTES
            if row_end == "wrap":
                whole = whole & ((start & (ROW_BYTES - 1)) + length <= ROW_BYTES)
            if (shift == 0) & inside & (whole | ~horizontal):
                for k in range(0, depth, 16):
                    lanes = iota() + k
                    if horizontal:
                        words = load(i32x16, vpm + (start + (k << 2)))
                    else:
                        rows = _row_down(splat(y), lanes + number, wrap)
                        words = gather(i32, vpm, rows * ROW_BYTES + (x << 2))
                    masked_store(host(memory, at) + (k << 2), words, lanes < splat(depth))
            else:
                for element in range(depth):
                    sub = _sub_index(number + element, shift, offset, layout)
                    across = _across(y, x, sub, shift, row_end)
                    place = select(horizontal, across, _down(y, x, sub, shift, wrap))
                    _copy(host(memory, at + (element << (2 - shift))), vpm + place, shift)
            following = following + length + gap

    return vdw


@lru_cache
def load_kernel(
    layout: str, row_end: str, carry: str, alignment: str, stride_bits: str, wrap: str
) -> Function[None]:
    """VDR: (shared, qpu, guest address)."""

    @kernel(args=(ptr, ptr, i32))
    def vdr(shared_address: Value, qpu: Value, address: Value) -> None:
        shared, state = SharedState.at(shared_address), QpuState.at(qpu)
        vpm, memory = shared.vpm, shared.memory
        setup = state.load_setup
        _check_ram(shared, state, address)
        exponent = (setup >> 24) & 15
        stride = state.load_stride & ((1 << int(stride_bits)) - 1)
        pitch = select(exponent == 0, stride, 8 << exponent)
        count, rows = _or((setup >> 20) & 15, 16), _or((setup >> 16) & 15, 16)
        _charge(state, count * rows)
        state.loaded_rows = state.loaded_rows + rows.sext(i64)
        state.loaded = state.loaded + (count * rows).sext(i64)
        step = _or((setup >> 12) & 15, 16)
        horizontal = ((setup >> 11) & 1) == 0
        x = setup & 15
        shift, offset = _mode((setup >> 28) & 7)
        start_number = (((setup >> 4) & 127) << shift) + offset
        length = count << (2 - shift)
        for row in range(rows):
            number = start_number + row * step
            if carry == "low":
                number = (start_number & ~15) | (number & 15)
            y, part = number >> shift, number & ((1 << shift) - 1)
            at = _memory_row(address + row * pitch, shift, alignment)
            inside = (at & MEMORY_MASK) <= MEMORY_SIZE - length
            start = _across(y, x, part, shift, row_end)
            whole = start + length <= VPM_BYTES
            if row_end == "wrap":
                whole = whole & ((start & (ROW_BYTES - 1)) + length <= ROW_BYTES)
            if (shift == 0) & inside & (whole | ~horizontal):
                lanes = iota() < splat(count)
                words = masked_load(i32x16, host(memory, at), lanes)
                if horizontal:
                    masked_store(vpm + start, words, lanes)
                else:
                    down = _row_down(splat(y), iota(), wrap)
                    scatter(vpm, down * ROW_BYTES + (x << 2), words, lanes)
            else:
                for element in range(count):
                    sub = _sub_index(element, shift, part, layout)
                    across = _across(y, x, sub, shift, row_end)
                    place = select(horizontal, across, _down(y, x, sub, shift, wrap))
                    _copy(vpm + place, host(memory, at + (element << (2 - shift))), shift)

    return vdr


def transfer(side: str, unknowns: Unknowns) -> Function[None]:
    """Start the transfer that a write of an address asks for: a load ("read") or a store."""
    layout, row_end = unknowns["dma_subword"], unknowns["dma_row_end"]
    alignment = unknowns["dma_alignment"]
    if side == "read":
        carry, stride_bits = unknowns["vdr_pitch_carry"], unknowns["vdr_stride_bits"]
        wrap = unknowns["vdr_vertical_wrap"]
        return load_kernel(layout, row_end, carry, alignment, stride_bits, wrap)
    stride_bits, block_mode = unknowns["vdw_stride_bits"], unknowns["vdw_blockmode"]
    wrap = unknowns["vdw_vertical_wrap"]
    return store_kernel(layout, row_end, stride_bits, alignment, block_mode, wrap)


@lru_cache
def _interpreted(function: Function[None]) -> NativeModule:
    return build("dma", {"transfer": function}, target=eager.TARGET)


def run_transfer(side: str, unknowns: Unknowns, shared: SharedState, state: QpuState, address: int) -> None:
    """The transfer, for the interpreter."""
    function = _interpreted(transfer(side, unknowns))["transfer"]
    function(shared.address, state.address, address)
