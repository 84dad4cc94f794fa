"""What a draw is made of, in numbers, and the choices about it."""

from __future__ import annotations

from vc4lab.diagnostics.unknown import Unknowns
from vc4lab.records.codes import IndexType, PrimitiveMode

INDEX_ARRAY, INDEX_8, INDEX_16 = 0, *(1 + int(width) for width in IndexType)
"""Where vertex indices come from: consecutive, or 8 / 16-bit indices in guest memory."""

MAX_LENGTH = 1 << 24
"""Vertices of one draw, and of all draws of a binning list, that are looked at; what is longer is
cut with a message. A board needs half a second for so many."""

PRIMITIVE_TYPE = tuple(int(mode.list_primitive) for mode in PrimitiveMode)
"""List primitive type (record 56, bits 3:0) of each primitive mode."""


def closes_from_first(unknowns: Unknowns) -> bool:
    """Whether the last line of a line loop goes from the first vertex to the last."""
    return unknowns["line_loop_end"] == "first_last"


def restarts_at_dummy(unknowns: Unknowns) -> bool:
    """Whether a VG strip or fan begins again after a vertex that leaves a primitive out."""
    return unknowns["vg_dummy"] == "restart"


def keeps_own_second(unknowns: Unknowns) -> bool:
    """Whether a VG fan that continues another takes only the hub from it, no second vertex."""
    return unknowns["vg_continuation"] == "one"


def double_buffer_halves(unknowns: Unknowns) -> bool:
    """Whether tiles have half the rows with double buffering (records 112 and 113)."""
    return unknowns["double_buffer_tile"] == "half"
