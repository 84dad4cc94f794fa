"""The rows of memory and the bytes of the VPM that a DMA transfer touches, for the watch.

Source: hardware reference 5.4 and 5.5. `../native/dma.py` moves them.
"""

from __future__ import annotations

from collections.abc import Iterator

from vc4lab.qpu.isa.vpm_setup import LoadSetup, LoadStride, StoreSetup, StoreStride
from vc4lab.v3d.unknowns import Unknowns
from vc4lab.v3d.vpm.setup import DMA_ROWS, VPM_BYTES, Width, first_sub_index, mode_width
from vc4lab.v3d.vpm.shader_rows import LANES, ROW_BYTES

_WORD = 0xFFFFFFFF


def store_rows(
    setup: StoreSetup, stride: StoreStride, address: int, unknowns: Unknowns
) -> Iterator[tuple[int, int]]:
    """(guest address, bytes) of each row that a store writes."""
    width = mode_width(setup.mode)
    length = (int(setup.depth) or 128) * width.bytes
    gap = int(stride.stride)
    if unknowns["vdw_stride_bits"] == "13":
        gap &= 0x1FFF
    for _ in range(int(setup.units) or 128):
        yield _memory_row(address, width, unknowns) & _WORD, length
        address = (address + length + gap) & _WORD


def load_rows(
    setup: LoadSetup, stride: LoadStride, address: int, unknowns: Unknowns
) -> Iterator[tuple[int, int]]:
    """(guest address, bytes) of each row that a load reads."""
    width = mode_width(setup.mode)
    bits = int(unknowns["vdr_stride_bits"])
    pitch = int(stride) & ((1 << bits) - 1)
    if setup.memory_pitch:
        pitch = 8 << int(setup.memory_pitch)
    for row in range(int(setup.rows) or 16):
        start = _memory_row(address + row * pitch, width, unknowns) & _WORD
        yield start, (int(setup.row_length) or 16) * width.bytes


def load_places(setup: LoadSetup, unknowns: Unknowns) -> Iterator[list[int]]:
    """Byte offsets in the VPM where the elements of each row go."""
    width = mode_width(setup.mode)
    step = int(setup.vpm_pitch) or 16
    for row in range(int(setup.rows) or 16):
        # the pitch counts {Y, B}, {Y, H} or Y
        first = int(setup.y) * width.per_word + width.offset
        number = first + row * step
        if unknowns["vdr_pitch_carry"] == "low":
            number = first & ~15 | number & 15
        y, part = number // width.per_word, Width(width.bytes, number % width.per_word)
        places = []
        for element in range(int(setup.row_length) or 16):
            sub = first_sub_index(part, element, unknowns["dma_subword"])
            if setup.vertical:
                at = down(y, int(setup.x), sub, width, unknowns["vdr_vertical_wrap"])
            else:
                at = across(y, int(setup.x), sub, width, unknowns)
            places.append(at)
        yield places


def _memory_row(address: int, width: Width, unknowns: Unknowns) -> int:
    """The address at which a row in memory begins."""
    return address & -width.bytes if unknowns["dma_alignment"] == "rounded" else address


def across(y: int, x: int, sub: int, width: Width, unknowns: Unknowns) -> int:
    """Byte offset in the VPM of an element of a horizontal block."""
    column = 4 * x + sub * width.bytes
    if unknowns["dma_row_end"] == "wrap":
        column %= ROW_BYTES
    return (y * ROW_BYTES + column) % VPM_BYTES


def down(y: int, x: int, sub: int, width: Width, wrap: str) -> int:
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
