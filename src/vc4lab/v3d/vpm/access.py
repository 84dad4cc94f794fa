"""Generic VPM access as staged code: vectors in every mode, setup word known only at run time.

The VPM is a block of host memory, 64 bytes a row. `address` is a setup's combined number ({Y, B},
{Y, H} or Y, for vertical access {Y5:4, X, …}), as advanced by the stride; the interpreter runs all
this eagerly. Source: hardware reference 5.2-5.3, AG100-R tables 31-33.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from vc4lab.simd.eager import running
from vc4lab.simd.kernel import Function, staged
from vc4lab.simd.members import i8, i16, i32, i32x16, ptr
from vc4lab.simd.memory import gather, load, scatter, store
from vc4lab.simd.struct import Struct
from vc4lab.simd.types import mask16
from vc4lab.simd.value import Value, const, const_bits, select, splat
from vc4lab.simd.vector import iota
from vc4lab.v3d.vpm.shader_rows import LANES, MAX_READS, ROW_BYTES, WINDOW_ROWS

HORIZONTAL, _LANED = 1 << 11, 1 << 10


def width_shift(word: Value) -> Value:
    """log2 of the elements in a word: 2, 1 or 0 for 8, 16 or 32 bit (or the reserved size 3)."""
    size = (word >> 8) & 3
    return select(size >= 2, const(i32, 0), 2 - size)


@staged
def first_address(word: Value) -> Value:
    """The combined number that a setup word starts with."""
    return word & 0xFF & ((const(i32, WINDOW_ROWS) << width_shift(word)) - 1)


@staged
def next_address(word: Value, address: Value) -> Value:
    """The combined number of the next vector; wraps in the width of its field."""
    stride = (word >> 12) & 63
    stride = select(stride == 0, const(i32, 64), stride)
    return (address + stride) & ((const(i32, WINDOW_ROWS) << width_shift(word)) - 1)


class Reads(Struct):
    """Read setups in flight: the one in force, the number of its next vector, how many are left of
    it, and the setup after it.
    """

    setup = i32
    vector = i32
    left = i32
    next_setup = i32
    next_left = i32


@staged
def take_setup(reads: Reads, word: Value) -> Value:
    """A read setup; false (i1) if it is ignored, while more than one vector is outstanding."""
    taken = reads.left + reads.next_left <= 1
    number = word.shr(20) & 15
    number = select(number == 0, MAX_READS, number)
    if taken:
        if reads.left == 0:
            reads.setup, reads.vector, reads.left = word, first_address(word), number
        else:
            reads.next_setup, reads.next_left = word, number
    return taken


@staged
def one_was_read(reads: Reads) -> None:
    """Goes on to the next vector, after the last one of a setup to the setup that waits."""
    if reads.left > 1:
        reads.left = reads.left - 1
        reads.vector = next_address(reads.setup, reads.vector)
    else:
        reads.setup, reads.vector = reads.next_setup, first_address(reads.next_setup)
        reads.left = reads.next_left
        reads.next_left = 0


@staged
def element_offsets(word: Value, address: Value) -> Value:
    """Byte offset in the VPM of each of the 16 elements (i32x16)."""
    shift = width_shift(word)
    inside = (const(i32, 1) << shift) - 1
    block, part = address >> shift, address & inside
    laned = ((word & _LANED) != 0) & (shift > 0)
    lanes = iota(LANES)
    elements = select(splat(laned), (lanes << splat(shift)) + part, lanes + (part << 4))
    words = elements >> splat(shift)
    byte = (elements & splat(inside)) << splat(2 - shift)
    across = splat((block & (WINDOW_ROWS - 1)) * ROW_BYTES) + (words << 2)
    down = ((words + (block & 0x30)) & (WINDOW_ROWS - 1)) * ROW_BYTES + ((block & 15) << 2)
    return select(splat((word & HORIZONTAL) != 0), across, down) + byte


def extended(words: Value, shift: Value, extension: str) -> Value:
    """The low 8, 16 or 32 bits of words as 32. extension: the unknown "vpm_read_extension"."""
    if extension == "sign":
        unused = splat(select(shift == 2, 24, select(shift == 1, 16, const(i32, 0))))
        return (words << unused) >> unused
    kept = select(shift == 2, 0xFF, select(shift == 1, 0xFFFF, const(i32, -1)))
    return words & splat(kept)


@staged
def read_vector(vpm: Value, word: Value, address: Value, extension: str) -> Value:
    """The vector at `address`."""
    offsets = element_offsets(word, address)
    words = gather(i32, vpm, offsets & ~3).shr((offsets & 3) << 3)
    return extended(words, width_shift(word), extension)


@staged
def write_vector(vpm: Value, word: Value, address: Value, value: Value, mask: Value) -> None:
    """Write the low bits of the lanes in `mask`."""
    offsets = element_offsets(word, address)
    shift = width_shift(word)
    if shift == 2:
        scatter(vpm, offsets, value.trunc(i8), mask)
    elif shift == 1:
        scatter(vpm, offsets, value.trunc(i16), mask)
    else:
        scatter(vpm, offsets, value, mask)


@lru_cache(maxsize=4096)
def vector_places(word: int, address: int) -> frozenset[int]:
    """Byte offsets in the VPM of a vector's elements, for Python: a set-up word and an address."""
    with running() as eager:
        offsets = element_offsets(const_bits(i32, word), const_bits(i32, address))
        return frozenset(eager.words(offsets).tolist())


@lru_cache(maxsize=2)
def reader(extension: str) -> Function[Any]:
    """`read_vector` as a function of its own: it is large, and programs read often."""

    def body(vpm: Value, word: Value, address: Value) -> Value:
        return read_vector(vpm, word, address, extension)

    return Function((ptr, i32, i32), i32x16, body, name="vpm_read")


@lru_cache(maxsize=1)
def writer() -> Function[Any]:
    """`write_vector` as a function of its own."""

    def body(vpm: Value, word: Value, address: Value, value: Value, mask: Value) -> None:
        write_vector(vpm, word, address, value, mask)

    return Function((ptr, i32, i32, i32x16, mask16), None, body, name="vpm_write")


def read_row(vpm: Value, address: Value) -> Value:
    """A whole row of words (horizontal, 32 bit)."""
    return load(i32x16, vpm + (address & (WINDOW_ROWS - 1)) * ROW_BYTES)


def write_row(vpm: Value, address: Value, value: Value, mask: Value) -> None:
    """A whole row of words (horizontal, 32 bit)."""
    place = vpm + (address & (WINDOW_ROWS - 1)) * ROW_BYTES
    store(place, select(mask, value, load(i32x16, place)))
