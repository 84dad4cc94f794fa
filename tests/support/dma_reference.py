"""The VPM DMA, element by element as hardware reference 5.4 and 5.5 describe it.

Independent of the code that both engines run: what it is compared with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vc4lab.qpu.isa.vpm_setup import LoadSetup, LoadStride, StoreSetup, StoreStride
from vc4lab.v3d.unknowns import Unknowns
from vc4lab.v3d.user_programs.state import Setups
from vc4lab.v3d.user_programs.watching.transfers import across, down, load_places, load_rows, store_rows
from vc4lab.v3d.vpm.setup import first_sub_index, is_packed, mode_width

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vc4lab.memory import GuestMemory

_WORD = 0xFFFFFFFF


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
    depth = int(setup.depth) or 128
    write = {1: memory.set_u8, 2: memory.set_u16, 4: memory.set_u32}[width.bytes]
    packed = is_packed(setup, stride, unknowns["vdw_blockmode"])
    for unit, (start, _) in enumerate(store_rows(setup, stride, address, unknowns)):
        y, x, number = int(setup.y), int(setup.x), 0
        if packed:
            number = unit * depth
        elif setup.horizontal:
            y += unit
        else:  # the next column; after the last one 16 rows down
            y, x = y + (x + unit) // 16 * 16, (x + unit) % 16
        for element in range(depth):
            sub = first_sub_index(width, number + element, unknowns["dma_subword"])
            if setup.horizontal:
                at = across(y, x, sub, width, unknowns)
            else:
                at = down(y, x, sub, width, unknowns["vdw_vertical_wrap"])
            value = int.from_bytes(vpm[at : at + width.bytes].tobytes(), "little")
            write((start + element * width.bytes) & _WORD, value)


def load(
    vpm: NDArray[np.uint8],
    memory: GuestMemory,
    setup: LoadSetup,
    stride: LoadStride,
    address: int,
    unknowns: Unknowns,
) -> None:
    """VDR: read the block that `setup` describes from guest `address`."""
    size = mode_width(setup.mode).bytes
    read = {1: memory.u8, 2: memory.u16, 4: memory.u32}[size]
    rows = load_rows(setup, stride, address, unknowns)
    for (start, _), places in zip(rows, load_places(setup, unknowns), strict=True):
        for element, at in enumerate(places):
            value = read((start + element * size) & _WORD)
            vpm[at : at + size] = np.frombuffer(value.to_bytes(size, "little"), np.uint8)


def transfer(
    side: str, vpm: NDArray[np.uint8], memory: GuestMemory, setups: Setups, address: int, unknowns: Unknowns
) -> None:
    """A load ("read") or a store."""
    if side == "read":
        words = LoadSetup(setups.load), LoadStride(setups.pitch)
        load(vpm, memory, *words, address, unknowns)
    else:
        store(vpm, memory, StoreSetup(setups.store), StoreStride(setups.gap), address, unknowns)
