"""Questions about the hardware that no source answers, and the simulator's choices.

Modules `register` their rows when they are imported; `Unknowns` is a setting of all switches.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Unknown:
    """One undocumented behaviour and its switch.

    Attributes
    ----------
    name
        Name of the switch, lower case with underscores.
    question
        What is not known, in one sentence.
    choices
        Each value of the switch and what it means; the code implements all of them.
    default
        The value chosen.
    decided_by
        The measurement or document that would decide it.
    reference
        Where the question comes up in the hardware documents.
    settled
        The evidence that settled the row for `default`, or "" while it is open. A settled row
        keeps its switch, so that the other choices can still be tried.
    """

    name: str
    question: str
    choices: dict[str, str]
    default: str
    decided_by: str
    reference: str
    settled: str = ""

    def __post_init__(self) -> None:
        if self.default not in self.choices:
            raise ValueError(f"unknown {self.name}: default {self.default!r} is not a choice")

    def __hash__(self) -> int:
        return hash(self.name)


_table: dict[str, Unknown] = {}


def register(rows: Iterable[Unknown]) -> None:
    """Add a module's rows to the table. Raises ValueError for a name that is already there."""
    for row in rows:
        if row.name in _table:
            raise ValueError(f"unknown {row.name!r} is in the table twice")
        _table[row.name] = row


def table() -> Mapping[str, Unknown]:
    """The rows of all modules imported so far, by name."""
    return MappingProxyType(_table)


def find(name: str) -> Unknown:
    """A row. Raises KeyError, with similar names, if there is none."""
    if name in _table:
        return _table[name]
    near = difflib.get_close_matches(name, _table, n=3)
    hint = f" (did you mean {', '.join(near)}?)" if near else ""
    raise KeyError(f"no unknown is called {name!r}{hint}")


class Unknowns:
    """An immutable, hashable setting of all switches; those not given have their default.

    Raises KeyError for an unknown name, ValueError for a value that is not a choice.
    """

    __slots__ = ("_changed",)

    def __init__(self, changed: Mapping[str, str] | None = None) -> None:
        kept: dict[str, str] = {}
        for name, value in (changed or {}).items():
            row = find(name)
            if value not in row.choices:
                raise ValueError(f"unknown {name}: {value!r} is not one of {', '.join(row.choices)}")
            if value != row.default:
                kept[name] = value
        self._changed: tuple[tuple[str, str], ...] = tuple(sorted(kept.items()))

    def __getitem__(self, name: str) -> str:
        for key, value in self._changed:
            if key == name:
                return value
        return find(name).default

    def with_(self, **changes: str) -> Unknowns:
        """A copy with some switches set."""
        return Unknowns({**dict(self._changed), **changes})

    def changed(self) -> dict[str, str]:
        """Only the switches that differ from their default."""
        return dict(self._changed)

    def digest(self) -> str:
        """A short text for cache keys, equal for equal settings in every process."""
        return hashlib.sha256(repr(self._changed).encode()).hexdigest()[:16]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unknowns) and self._changed == other._changed

    def __hash__(self) -> int:
        return hash(self._changed)

    def __repr__(self) -> str:
        return f"Unknowns({dict(self._changed)!r})"


DEFAULT_UNKNOWNS = Unknowns()
"""Every switch at its default."""
