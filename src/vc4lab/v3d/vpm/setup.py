"""DMA setup words in use, and where each element of a block lies in the VPM.

The VPM is seen as bytes: word column X of row Y is at 64 * Y + 4 * X. A block's elements are
numbered by *sub-index*: element `sub` of width w bytes, counted from the word at (Y, X), lies w *
sub bytes further to the right (horizontal) or, with 4 / w elements a word, sub // (4 / w) rows
further down (vertical). Source: hardware reference 5.2-5.5.
"""

from __future__ import annotations

from dataclasses import dataclass

from vc4lab.qpu.isa.vpm_setup import StoreSetup, StoreStride
from vc4lab.v3d.vpm.shader_rows import LANES, ROW_BYTES

DMA_ROWS = 128
"""Rows that the 7-bit Y of a DMA setup reaches; the window of a program has the first 64."""

VPM_BYTES = DMA_ROWS * ROW_BYTES


@dataclass(frozen=True)
class Width:
    """Element size in bytes, elements a word, and the half or byte a block starts with."""

    bytes: int
    offset: int = 0

    @property
    def per_word(self) -> int:
        return 4 // self.bytes


def mode_width(mode: int) -> Width:
    """Width and offset of a DMA setup's MODEW; the unused code 1 counts as 32 bit."""
    if mode >= 4:
        return Width(1, mode & 3)
    return Width(2, mode & 1) if mode >= 2 else Width(4)


STORE_SHAPE_BITS = sum(
    field.mask for field in (StoreSetup.units, StoreSetup.depth, StoreSetup.horizontal, StoreSetup.mode)
)
"""Bits of a StoreSetup that describe the shape of its block."""

UNPACKED_SHAPE = StoreSetup.make(units=16, depth=1, horizontal=1).value
"""The shape that BLOCKMODE does not pack on boards, whatever it does to others."""


def is_packed(setup: StoreSetup, stride: StoreStride, choice: str) -> bool:
    """Whether a memory row continues in the VPM where the last one ended.

    choice: the unknown "vdw_blockmode".
    """
    if choice == "ignored" or not stride.block_mode:
        return False
    found: bool = int(setup) & STORE_SHAPE_BITS != UNPACKED_SHAPE
    return found


def first_sub_index(width: Width, number: int, layout: str) -> int:
    """Sub-index of element `number` of a block. layout: the unknown "dma_subword"."""
    if layout == "lanes":
        return number * width.per_word + width.offset
    if layout == "quarters":
        return number + LANES * width.offset
    return number + width.offset
