"""Every undocumented behaviour of the V3D: the question, our choice, the alternatives, a switch.

No such choice hides in code. A block asks `unknowns["fill_rule"]`; `vc4lab unknowns` prints the
table. Each block adds its rows here (rows of the QPU, one floor below, are in `qpu/unknowns.py`).
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from vc4lab.diagnostics.unknown import Unknown

__all__ = ["DEFAULT_UNKNOWNS", "ROWS", "Unknown", "Unknowns", "unknowns_table"]

LOWER_FLOORS = ("vc4lab.qpu.unknowns",)
"""Modules below this one with a `ROWS` list of `Unknown` of their own."""

ROWS: list[Unknown] = [
    Unknown(
        "sublist_depth",
        "How deep may Branch to Sub-list (17) nest?",
        {"1": "one return address", "2": "two return addresses"},
        "2",
        "Nest two sub-lists on a board and look where the list goes on.",
        "AG100-R p. 66 says 2, the CTnRA register says one deep",
    ),
    Unknown(
        "ctsema",
        "Whose semaphore does CTnCS.CTSEMA show?",
        {
            "sent": "increments made by thread n that the other thread has not consumed",
            "own": "increments that thread n itself can still consume",
        },
        "sent",
        "Increment in thread 0, do not wait in thread 1, read both registers.",
        "AG100-R CTnCS; Broadcom's driver tests CT0CS.CTSEMA before submitting a bin list",
    ),
]


@cache
def unknowns_table() -> dict[str, Unknown]:
    """All rows by name. Raises ValueError for a name given twice."""
    table: dict[str, Unknown] = {}
    rows = list(ROWS)
    for module in LOWER_FLOORS:
        if find_spec(module) is not None:
            rows += list(import_module(module).ROWS)
    for row in rows:
        if row.name in table:
            raise ValueError(f"unknown {row.name!r} is in the table twice")
        table[row.name] = row
    return table


def __getattr__(name: str) -> dict[str, Unknown]:
    if name == "UNKNOWNS":
        return unknowns_table()
    raise AttributeError(name)


class Unknowns:
    """One immutable, hashable setting of all switches; those not named have their default.

    Raises KeyError for an unknown name, ValueError for a value that is not a choice.
    """

    __slots__ = ("_changed",)

    def __init__(self, changed: Mapping[str, str] | None = None) -> None:
        table = unknowns_table()
        kept: dict[str, str] = {}
        for name, value in (changed or {}).items():
            row = _row(name)
            if value not in row.choices:
                raise ValueError(
                    f"unknown {name}: {value!r} is not one of {', '.join(row.choices)}"
                )
            if value != table[name].default:
                kept[name] = value
        self._changed: tuple[tuple[str, str], ...] = tuple(sorted(kept.items()))

    def __getitem__(self, name: str) -> str:
        for key, value in self._changed:
            if key == name:
                return value
        return _row(name).default

    def with_(self, **changes: str) -> Unknowns:
        """A copy with some switches set."""
        return Unknowns({**dict(self._changed), **changes})

    def changed(self) -> dict[str, str]:
        """Only the switches that differ from their default."""
        return dict(self._changed)

    def digest(self) -> str:
        """Short stable text for cache keys; the same for equal settings, in every process."""
        return hashlib.sha256(repr(self._changed).encode()).hexdigest()[:16]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unknowns) and self._changed == other._changed

    def __hash__(self) -> int:
        return hash(self._changed)

    def __repr__(self) -> str:
        return f"Unknowns({dict(self._changed)!r})"


def _row(name: str) -> Unknown:
    table = unknowns_table()
    if name in table:
        return table[name]
    near = difflib.get_close_matches(name, table, n=3)
    hint = f" (did you mean {', '.join(near)}?)" if near else ""
    raise KeyError(f"no unknown is called {name!r}{hint}")


DEFAULT_UNKNOWNS = Unknowns()
"""Every switch at its default."""
