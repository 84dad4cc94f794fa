"""Generic VPM access, byte by byte as hardware reference 5.2 and 5.3 describe it.

Independent of the staged code that all engines run: what it is compared with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vc4lab.qpu.isa.vpm_setup import GenericSetup
from vc4lab.v3d.vpm.shader_rows import LANES, PER_WORD, ROW_BYTES, WINDOW_ROWS

if TYPE_CHECKING:
    from numpy.typing import NDArray


def places(setup: GenericSetup, address: int) -> tuple[NDArray[np.int64], int]:
    """(byte offset in the VPM of each of the 16 elements, bytes of an element) at `address`.

    `address` is the setup's combined number {Y, B}, {Y, H} or Y, as advanced by the stride.
    """
    per = PER_WORD[setup.size]
    size = 4 // per
    block, part = address // per, address % per
    lanes = np.arange(LANES)
    element = lanes * per + part if setup.laned and per > 1 else part * LANES + lanes
    word, within = element // per, element % per * size
    if setup.horizontal:
        return (block % WINDOW_ROWS) * ROW_BYTES + 4 * word + within, size
    row = ((block & 0x30) + word) % WINDOW_ROWS
    return row * ROW_BYTES + 4 * (block & 15) + within, size


def read(vpm: NDArray[np.uint8], setup: GenericSetup, address: int, extension: str) -> NDArray[np.uint32]:
    """A vector. extension: of 8- and 16-bit elements, the unknown "vpm_read_extension"."""
    offsets, size = places(setup, address)
    result = np.zeros(LANES, np.uint32)
    for byte in range(size):
        result |= vpm[offsets + byte].astype(np.uint32) << np.uint32(8 * byte)
    if extension == "sign":
        unused = 32 - 8 * size
        result = ((result << np.uint32(unused)).view(np.int32) >> unused).view(np.uint32)
    return result


def write(
    vpm: NDArray[np.uint8],
    setup: GenericSetup,
    address: int,
    value: NDArray[np.uint32],
    mask: NDArray[np.bool_],
) -> None:
    """Write the low bits of the lanes in `mask`."""
    offsets, size = places(setup, address)
    for byte in range(size):
        part = (value[mask] >> np.uint32(8 * byte)).astype(np.uint8)
        vpm[offsets[mask] + byte] = part
