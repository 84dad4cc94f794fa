"""The CRTC's colours: gamma tables and matrix, as vc4 of Linux 6.1 handles them.

Source: Linux drivers/gpu/drm/vc4/vc4_hvs.c (vc4_hvs_update_gamma_lut, vc4_hvs_init_channel,
vc4_hvs_atomic_flush) and vc4_kms.c (vc4_ctm_atomic_check, vc4_ctm_commit).
"""

from __future__ import annotations

import struct

from vc4lab.scanout.colours import FACTOR_BITS, MAGNITUDE, STEPS, STRAIGHT, Matrix, Ramps

LUT, CTM = "GAMMA_LUT", "CTM"
LUT_ENTRY = struct.Struct("<3H2x")
"""struct drm_color_lut: red, green, blue."""
CTM_SIZE = 72
_CTM = struct.Struct("<9Q")
"""struct drm_color_ctm: a sign and 31.32 bits each."""
_SIGN, _ONE = 1 << 63, 1 << 32
_FIRST_RAMP = struct.pack(f"<{STEPS}H", *(step << 8 for step in range(STEPS)))


class Colours:
    """The display hardware's colours; the properties are the CRTC's.

    Attributes
    ----------
    store
        Red, green and blue of SETGAMMA, which GETGAMMA gives back whatever GAMMA_LUT is.
    """

    def __init__(self) -> None:
        self.store = _FIRST_RAMP, _FIRST_RAMP, _FIRST_RAMP
        self._tables = tuple(bytearray(STRAIGHT) for _ in range(3))
        self._is_on = False
        self._matrix: Matrix | None = None

    @property
    def gamma(self) -> Ramps | None:
        """The ramps that count, None if they change nothing."""
        red, green, blue = map(bytes, self._tables)
        return (red, green, blue) if self._is_on and {red, green, blue} != {STRAIGHT} else None

    @property
    def matrix(self) -> Matrix | None:
        """The matrix, if there is one."""
        return self._matrix

    def set_table(self, table: bytes | None) -> None:
        """GAMMA_LUT is new, of a CRTC that is on: that many entries of the tables change."""
        self._is_on = table is not None
        entries = LUT_ENTRY.iter_unpack(table[: STEPS * LUT_ENTRY.size]) if table is not None else ()
        for number, entry in enumerate(entries):
            for channel, value in zip(self._tables, entry, strict=True):
                channel[number] = min((value + 0x80) >> 8, 0xFF)

    def set_matrix(self, ctm: bytes | None, *, has_mode: bool) -> None:
        """CTM is new. One that is set without a mode has no effect, also not with a later mode."""
        self._matrix = None
        if ctm is not None and has_mode:
            self._matrix = Matrix(tuple(_factor(value) for value in _CTM.unpack(ctm)))

    def switched_on(self) -> None:
        """The CRTC starts: its tables count, whether GAMMA_LUT is set or not."""
        self._is_on = True


def fits(ctm: bytes) -> bool:
    """Whether the hardware can have such a matrix: no number above one."""
    return all(value & ~_SIGN <= _ONE for value in _CTM.unpack(ctm))


def table_of(red: bytes, green: bytes, blue: bytes) -> bytes:
    """The GAMMA_LUT that SETGAMMA makes of its three arrays."""
    arrays = (struct.unpack(f"<{STEPS}H", array) for array in (red, green, blue))
    return b"".join(LUT_ENTRY.pack(*entry) for entry in zip(*arrays, strict=True))


def _factor(value: int) -> int:
    size = value & ~_SIGN
    size = MAGNITUDE if size >= _ONE else size >> (32 - FACTOR_BITS)
    return -size if value & _SIGN else size
