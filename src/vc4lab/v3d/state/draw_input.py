"""What a draw is made of: its vertices, indices and primitive mode."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from vc4lab.diagnostics.unknown import Unknowns
from vc4lab.records.codes import IndexType, PrimitiveMode

INDEX_ARRAY, INDEX_8, INDEX_16 = 0, *(1 + int(width) for width in IndexType)
"""Where vertex indices come from: consecutive, or 8 / 16-bit indices in guest memory."""

MAX_LENGTH = 1 << 24
"""Vertices of one draw, and of all draws of a binning list, that are looked at; what is longer is
cut with a message. A board needs half a second for so many."""

PRIMITIVE_TYPE = tuple(int(mode.list_primitive) for mode in PrimitiveMode)
"""List primitive type (record 56, bits 3:0) of each primitive mode."""


@dataclass(frozen=True)
class Coordinates:
    """Where binning finds its vertices: SoA batches of 16 in host memory, a 64-byte row per word.

    With `clip_words` the rows are Xc Yc Zc Wc, Ys:Xs, Zs, 1/Wc [, point size] (coordinate shader,
    or NV with clip header), without it Ys:Xs, Zs, 1/Wc [, point size]. `first`..`last` are valid.
    """

    address: int
    pitch: int
    first: int
    last: int
    clip_words: bool
    point_size: bool = False
    keep: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class IndexSource:
    """The vertices of a draw: consecutive from `first`, or 8/16-bit indices at guest `address`."""

    length: int
    first: int = 0
    address: int | None = None
    bits: int = 16
    maximum: int = 0xFFFFFFFF

    @property
    def kind(self) -> int:
        """The native code of the index type."""
        if self.address is None:
            return INDEX_ARRAY
        return INDEX_8 if self.bits == 8 else INDEX_16


def closes_from_first(unknowns: Unknowns) -> bool:
    """Whether the last line of a line loop goes from the first vertex to the last."""
    return unknowns["line_loop_end"] == "first_last"


def restarts_at_dummy(unknowns: Unknowns) -> bool:
    """Whether a VG strip or fan begins anew after a vertex that leaves a primitive out."""
    return unknowns["vg_dummy"] == "restart"


def keeps_own_second(unknowns: Unknowns) -> bool:
    """Whether a VG fan that continues another takes only the hub from it, no second vertex."""
    return unknowns["vg_continuation"] == "one"


def double_buffer_halves(unknowns: Unknowns) -> bool:
    """Whether tiles have half the rows with double buffering (records 112 and 113)."""
    return unknowns["double_buffer_tile"] == "half"


def primitive_count(mode: int, length: int) -> int:
    """Number of primitives of a draw with `length` vertices."""
    if mode == PrimitiveMode.LINE_LOOP:
        return length if length > 1 else 0
    per_mode = (length, length // 2, 0, length - 1, length // 3, length - 2, length - 2)
    return max(0, per_mode[mode])
