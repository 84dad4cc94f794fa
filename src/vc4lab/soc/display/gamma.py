"""Gamma ramps of the HVS: of each channel 256 steps of red, of green and of blue.

Source: Linux, drivers/gpu/drm/vc4/vc4_crtc.c and vc4_regs.h (SCALER_GAMADDR, SCALER_GAMDATA).
"""

from __future__ import annotations

from vc4lab.scanout.colours import STEPS, STRAIGHT, Ramps

COLOURS = 3
COUNTS = 1 << 31
"""GAMADDR's bit that counts on with each step."""


class GammaRamps:
    """The memory of the ramps; `steps` is in the order of GAMADDR."""

    def __init__(self, channels: int) -> None:
        self.steps = bytearray(STRAIGHT * COLOURS * channels)

    def write(self, address: int, value: int) -> int:
        """A step at GAMADDR; what GAMADDR is then."""
        at = address & ~COUNTS
        if at < len(self.steps):
            self.steps[at] = value & 0xFF
        return COUNTS | (at + 1) & 0xFFFF if address & COUNTS else address

    def of(self, channel: int) -> Ramps | None:
        """A channel's ramps for the composer; None if all are straight."""
        size = STEPS * COLOURS
        mine = bytes(self.steps[size * channel : size * (channel + 1)])
        if mine == STRAIGHT * COLOURS:
            return None
        red, green, blue = (mine[at : at + STEPS] for at in range(0, size, STEPS))
        return red, green, blue
