"""The golden VPM: generic block access in every mode, on a numpy block of bytes.

`access.py` is the same as staged code. Source: hardware reference 5.2-5.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vc4lab.v3d.vpm.shader_rows import LANES, ROW_BYTES, WINDOW_ROWS, GenericSetup

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words = NDArray[np.uint32]
    Lanes = NDArray[np.bool_]

MAX_READS = 16
"""Vectors of a read setup whose NUM is 0."""

_PER_WORD = (4, 2, 1, 1)
"""Elements in a word by the setup's size; the reserved size 3 counts as 32 bit."""


def places(setup: GenericSetup, address: int) -> tuple[NDArray[np.int64], int]:
    """(byte offset in the VPM of each of the 16 elements, bytes of an element) at `address`.

    `address` is the setup's combined number {Y, B}, {Y, H} or Y, as advanced by the stride.
    """
    per = _PER_WORD[setup.size]
    size = 4 // per
    block, part = address // per, address % per
    lanes = np.arange(LANES)
    element = lanes * per + part if setup.laned and per > 1 else part * LANES + lanes
    word, within = element // per, element % per * size
    if setup.horizontal:
        return (block % WINDOW_ROWS) * ROW_BYTES + 4 * word + within, size
    row = ((block & 0x30) + word) % WINDOW_ROWS
    return row * ROW_BYTES + 4 * (block & 15) + within, size


def advance(setup: GenericSetup, address: int) -> int:
    """The combined number of the next vector; it wraps in the width of its field."""
    stride = setup.stride or 64
    return int(address + stride) % (WINDOW_ROWS * _PER_WORD[setup.size])


def first(setup: GenericSetup) -> int:
    """The combined number a setup starts with."""
    return int(setup.address) % (WINDOW_ROWS * _PER_WORD[setup.size])


def read(
    vpm: NDArray[np.uint8], setup: GenericSetup, address: int, extension: str
) -> NDArray[np.uint32]:
    """A vector. extension: of 8- and 16-bit elements, the unknown "vpm_read_extension".

    With many VPMs side by side (another dimension in front) a vector of each.
    """
    offsets, size = places(setup, address)
    result = np.zeros((*vpm.shape[:-1], LANES), np.uint32)
    for byte in range(size):
        result |= vpm[..., offsets + byte].astype(np.uint32) << np.uint32(8 * byte)
    if extension == "sign":
        unused = 32 - 8 * size
        result = ((result << np.uint32(unused)).view(np.int32) >> unused).view(np.uint32)
    return result


def write(
    vpm: NDArray[np.uint8],
    setup: GenericSetup,
    address: int,
    value: Words,
    mask: Lanes,
    rows: int = WINDOW_ROWS,
) -> bool:
    """Write the low bits of the lanes in `mask`; False if some lie beyond the first `rows` rows and
    are not written.
    """
    offsets, size = places(setup, address)
    words = np.asarray(value, np.uint32)
    inside = offsets < rows * ROW_BYTES
    chosen = np.asarray(mask, bool) & inside
    for byte in range(size):
        vpm[offsets[chosen] + byte] = (words[chosen] >> np.uint32(8 * byte)).astype(np.uint8)
    return not bool(np.any(mask & ~inside))


class ReadQueue:
    """Read setups in flight: vectors still to be read, at most two setups.

    A setup is taken while at most one vector of the earlier ones is outstanding, else ignored (as
    vc4asm measured).
    """

    def __init__(self) -> None:
        self.entries: list[tuple[GenericSetup, int, int]] = []  # (setup, address, vectors left)

    @property
    def outstanding(self) -> int:
        """Vectors that were asked for and not read."""
        return sum(left for _, _, left in self.entries)

    def setup(self, word: int) -> bool:
        """Take a setup; False if it is ignored."""
        if self.outstanding > 1:
            return False
        setup = GenericSetup(word)
        self.entries.append((setup, first(setup), int(setup.number) or MAX_READS))
        return True

    def next(self) -> tuple[GenericSetup, int] | None:
        """Setup and address of the next vector; None if nothing was asked for."""
        if not self.entries:
            return None
        setup, address, left = self.entries.pop(0)
        if left > 1:
            self.entries.insert(0, (setup, advance(setup, address), left - 1))
        return setup, address
