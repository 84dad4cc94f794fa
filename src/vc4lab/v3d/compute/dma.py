"""The golden VPM DMA: VDW stores VPM blocks to memory, VDR loads memory into the VPM.

Element by element, as hardware reference 5.4 and 5.5 describe; `native_dma.py` does the same fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vc4lab.v3d.compute.setup import (
    DMA_ROWS,
    LANES,
    ROW_BYTES,
    VPM_BYTES,
    LoadSetup,
    LoadStride,
    StoreSetup,
    StoreStride,
    Width,
    first_sub_index,
    is_packed,
    mode_width,
)
from vc4lab.v3d.unknowns import Unknowns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vc4lab.memory import GuestMemory

_WORD = 0xFFFFFFFF


def store_elements(setup: StoreSetup) -> int:
    """Elements that a store moves."""
    return (int(setup.units) or 128) * (int(setup.depth) or 128)


def load_elements(setup: LoadSetup) -> int:
    """Elements that a load moves."""
    return (int(setup.rows) or 16) * (int(setup.row_length) or 16)


def store(
    vpm: NDArray[np.uint8],
    memory: GuestMemory,
    setup: StoreSetup,
    stride: StoreStride,
    address: int,
    unknowns: Unknowns,
) -> None:
    """VDW: write the block that `setup` describes to guest `address`."""
    width = mode_width(setup.mode)
    units, depth = int(setup.units) or 128, int(setup.depth) or 128
    gap = int(stride.stride)
    if unknowns["vdw_stride_bits"] == "13":
        gap &= 0x1FFF
    write = {1: memory.set_u8, 2: memory.set_u16, 4: memory.set_u32}[width.bytes]
    packed = is_packed(setup, stride, unknowns["vdw_blockmode"])
    for unit in range(units):
        y, x, number = int(setup.y), int(setup.x), 0
        if packed:
            number = unit * depth
        elif setup.horizontal:
            y += unit
        else:  # the next column; after the last one 16 rows down
            y, x = y + (x + unit) // 16 * 16, (x + unit) % 16
        start = _memory_row(address, width, unknowns)
        for element in range(depth):
            sub = first_sub_index(width, number + element, unknowns["dma_subword"])
            if setup.horizontal:
                at = _across(y, x, sub, width, unknowns)
            else:
                at = _down(y, x, sub, width, unknowns["vdw_vertical_wrap"])
            value = int.from_bytes(vpm[at : at + width.bytes].tobytes(), "little")
            write((start + element * width.bytes) & _WORD, value)
        address = (address + depth * width.bytes + gap) & _WORD


def load(
    vpm: NDArray[np.uint8],
    memory: GuestMemory,
    setup: LoadSetup,
    stride: LoadStride,
    address: int,
    unknowns: Unknowns,
) -> None:
    """VDR: read the block that `setup` describes from guest `address`."""
    width = mode_width(setup.mode)
    bits = int(unknowns["vdr_stride_bits"])
    pitch = int(stride) & ((1 << bits) - 1)
    if setup.memory_pitch:
        pitch = 8 << int(setup.memory_pitch)
    step = int(setup.vpm_pitch) or 16
    read = {1: memory.u8, 2: memory.u16, 4: memory.u32}[width.bytes]
    for row in range(int(setup.rows) or 16):
        # the pitch counts {Y, B}, {Y, H} or Y
        first = int(setup.y) * width.per_word + width.offset
        number = first + row * step
        if unknowns["vdr_pitch_carry"] == "low":
            number = first & ~15 | number & 15
        start = _memory_row(address + row * pitch, width, unknowns)
        y, part = number // width.per_word, Width(width.bytes, number % width.per_word)
        for element in range(int(setup.row_length) or 16):
            sub = first_sub_index(part, element, unknowns["dma_subword"])
            if setup.vertical:
                at = _down(y, int(setup.x), sub, width, unknowns["vdr_vertical_wrap"])
            else:
                at = _across(y, int(setup.x), sub, width, unknowns)
            value = read((start + element * width.bytes) & _WORD)
            vpm[at : at + width.bytes] = np.frombuffer(
                value.to_bytes(width.bytes, "little"), np.uint8
            )


def _memory_row(address: int, width: Width, unknowns: Unknowns) -> int:
    """Where a row in memory begins."""
    return address & -width.bytes if unknowns["dma_alignment"] == "rounded" else address


def _across(y: int, x: int, sub: int, width: Width, unknowns: Unknowns) -> int:
    """Byte offset in the VPM of an element of a horizontal block."""
    column = 4 * x + sub * width.bytes
    if unknowns["dma_row_end"] == "wrap":
        column %= ROW_BYTES
    return (y * ROW_BYTES + column) % VPM_BYTES


def _down(y: int, x: int, sub: int, width: Width, wrap: str) -> int:
    """Byte offset in the VPM of an element of a vertical block.

    wrap: what follows after 16 rows or at the end of a group of 16, as `vdw_vertical_wrap` and
    `vdr_vertical_wrap` name it.
    """
    down = sub // width.per_word
    if wrap == "group":
        row = y & -LANES | (y + down) % LANES
    elif wrap == "start":
        row = y + down % LANES
    else:
        row = y + down
    return row % DMA_ROWS * ROW_BYTES + 4 * x + sub % width.per_word * width.bytes
