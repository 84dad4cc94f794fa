"""From four samples a pixel to one and back: what multisample frames store and load as pictures.

The store and load loops of `stores.py` know tiles with one sample; these functions fill a second
buffer of that arrangement from the tile buffer, or the tile buffer from it. Source: hardware
reference 7.10.
"""

from __future__ import annotations

from vc4lab.records.codes import Decimate
from vc4lab.simd import Value, i32, load, reduce_add, staged, store, unroll, vec
from vc4lab.v3d.state.tile_layout import PLANE_BYTES, QUAD_BYTES, QUAD_ROW_BYTES, TileLayout
from vc4lab.v3d.unknowns import Unknowns

QUADS_PER_ROW = 16
QUAD_ROWS = 16
"""With 64-bit colours, 8 rows of red and green and 8 of blue and alpha."""

RESOLVED_PLANE_BYTES = PLANE_BYTES // 2
"""Distance of the halves of 64-bit colours in a resolved tile."""

_FOUR_SAMPLES = TileLayout(multisample=True)
_QUAD = vec(i32, 4)
_PAIRS = 0x00FF00FF


def average(samples: list[Value], rounding: str, whole_quad: bool = False) -> Value:
    """Mean of the four samples of each pixel, channel by channel; or of all 16 of a quad."""
    even, odd = samples[0] & _PAIRS, samples[0].shr(8) & _PAIRS
    for sample in samples[1:]:
        even, odd = even + (sample & _PAIRS), odd + (sample.shr(8) & _PAIRS)
    shift = 2
    if whole_quad:
        even, odd, shift = reduce_add(even), reduce_add(odd), 4
    half = (1 << (shift - 1)) * 0x00010001 if rounding == "nearest" else 0
    even, odd = (even + half).shr(shift) & _PAIRS, (odd + half).shr(shift) & _PAIRS
    return even | odd << 8


def samples_at(source: Value) -> list[Value]:
    """The four samples of a quad, each with its four pixels."""
    return [load(_QUAD, source + QUAD_BYTES * number) for number in range(4)]


@staged
def resolve(target: Value, source: Value, decimate: Value, unknowns: Unknowns) -> None:
    """Fills `target` (one sample) from the multisample buffer at `source`.

    `decimate`: as record 28 says; 16x makes one pixel of a quad, so that the tile becomes 16x16.
    """
    rounding = unknowns["resolve_rounding"]
    for y in range(QUAD_ROWS):
        for x in range(QUADS_PER_ROW):
            samples = samples_at(source + y * _FOUR_SAMPLES.quad_row_bytes + x * 64)
            quad = target + y * QUAD_ROW_BYTES + x * QUAD_BYTES
            if decimate == int(Decimate.X16):
                place = (y >> 1) * QUAD_ROW_BYTES + (x >> 1) * QUAD_BYTES
                place = place + (y & 1) * 8 + (x & 1) * 4
                store(target + place, average(samples, rounding, True))
            elif decimate == int(Decimate.X4):
                store(quad, average(samples, rounding))
            else:
                store(quad, samples[0])


@staged
def spread(target: Value, source: Value) -> None:
    """The inverse: every sample of the multisample buffer `target` becomes its pixel's word."""
    for y in range(QUAD_ROWS):
        for x in range(QUADS_PER_ROW):
            pixels = load(_QUAD, source + y * QUAD_ROW_BYTES + x * QUAD_BYTES)
            for number in unroll(4):
                place = y * _FOUR_SAMPLES.quad_row_bytes + x * 64 + QUAD_BYTES * number
                store(target + place, pixels)
