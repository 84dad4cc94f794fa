"""Changes the colours of a composed picture as the HVS does: a matrix, then gamma ramps.

Source: Linux, drivers/gpu/drm/vc4/vc4_regs.h (SCALER_OLEDOFFS, SCALER_OLEDCOEF0 to 2, SCALER_GAMDATA)
and vc4_kms.c. That the matrix comes before the ramps is the order of DRM's properties, which that
driver maps to these registers (drivers/gpu/drm/drm_color_mgmt.c).
"""

from __future__ import annotations

from dataclasses import dataclass

STEPS = 256
STRAIGHT = bytes(range(STEPS))
"""A ramp that changes nothing."""
Ramps = tuple[bytes, bytes, bytes]
"""The ramps of red, green and blue: each maps 256 numbers."""
FACTOR_BITS = 9
ONE = 1 << FACTOR_BITS
SIGN, MAGNITUDE = ONE, ONE - 1
"""The sign bit and the magnitude of a factor's 10 bits."""


@dataclass(frozen=True)
class Matrix:
    """How red, green and blue are made of red, green and blue.

    factors: rows for red, green and blue, in 512ths, -511 to 511; offsets: added to the sums.
    """

    factors: tuple[int, ...]
    offsets: tuple[int, int, int] = (0, 0, 0)


def factor_of(field: int) -> int:
    """A factor of a register's 10 bits: its sign, and 9 bits after the point."""
    size = field & MAGNITUDE
    return -size if field & SIGN else size
