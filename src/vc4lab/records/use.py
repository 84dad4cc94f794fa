"""Tables of records by what their classes say: for handlers, native readers and hints.

All are in the order of ids; native code is compiled with what stands here.
"""

from __future__ import annotations

from vc4lab.records.control import RECORDS
from vc4lab.records.payload import BINNING, RENDERING, Payload, ShaderState, State, StateField
from vc4lab.records.states import PrimitiveListFormat

STATES: tuple[type[State], ...] = tuple(kind for kind in RECORDS.values() if issubclass(kind, State))
"""The records of state."""

STATE_FIELDS: dict[int, tuple[StateField, ...]] = {kind.id: kind.state_fields for kind in STATES}
"""What each record of state sets."""

STATE_RECORD_BYTES: dict[int, int] = {kind.id: kind.size for kind in STATES}
"""Size of each record of state, id byte included."""

STATE_SLOTS: tuple[tuple[int, ...], ...] = (
    *((kind.id,) for kind in STATES if not issubclass(kind, PrimitiveListFormat | ShaderState)),
    (PrimitiveListFormat.id,),
    tuple(kind.id for kind in STATES if issubclass(kind, ShaderState)),
)
"""Kinds of state that the binner caches, in the order in which it writes them into a tile list.

Records of one kind replace each other.
"""

DEFAULTS: dict[str, float] = {name: value for kind in STATES for name, value in kind.initial.items()}
"""Members of the render state that are not 0 at first."""


def records_of(*kinds: type[Payload], native: str = "") -> tuple[type[Payload], ...]:
    """The records of these kinds, or of all; `native`: those that this list's reader executes."""
    return tuple(
        kind for kind in RECORDS.values() if issubclass(kind, kinds or Payload) and native in kind.native
    )


def ids_of(*kinds: type[Payload], native: str = "") -> tuple[int, ...]:
    """The ids of `records_of`."""
    return tuple(kind.id for kind in records_of(*kinds, native=native))


def foreign_to(letter: str) -> tuple[type[Payload], ...]:
    """The records that belong to the other thread (than `BINNING` or `RENDERING`) alone."""
    other = {BINNING: RENDERING, RENDERING: BINNING}[letter]
    return tuple(kind for kind in records_of() if kind.legal == other)
