"""The catalogue of every message: one file per area, each with `ENTRIES = [Entry(...), …]`."""

from __future__ import annotations

import difflib
from functools import cache
from importlib import import_module

from vc4lab.diagnostics.entry import Entry, Severity

AREAS = {
    "qpu": "QPU",
    "lists": "CLE",
    "memory": "MEM",
    "vertex": "VTX",
    "fragment": "FRG",
    "drawn": "DRAW",
    "texture": "TMU",
    "boot": "BOOT",
    "soc": "SOC",
    "caches": "CACHE",
    "drm": "DRM",
    "mesa": "GL",
    "tgsi": "TGSI",
    "capture": "CAP",
    "cli": "CLI",
    "compiler": "JIT",
    "performance": "PERF",
}
"""File name of an area → prefix of its codes."""
_AREA_OF = {prefix: area for area, prefix in AREAS.items()}


@cache
def _entries(area: str) -> dict[str, Entry]:
    """The entries of an area by code. Raises ValueError for a code of another one, or given twice."""
    entries: dict[str, Entry] = {}
    for entry in import_module(f"{__name__}.{area}").ENTRIES:
        if entry.code in entries or entry.code.rpartition("-")[0] != AREAS[area]:
            raise ValueError(
                f"diagnostic {entry.code} is in the catalogue twice, or in the wrong area {area}"
            )
        entries[entry.code] = entry
    return entries


@cache
def catalogue() -> dict[str, Entry]:
    """Every entry by code, in order of area and file. Raises ValueError as `_entries`."""
    return {code: entry for area in AREAS for code, entry in _entries(area).items()}


def severity_of(code: str, strict: bool = False) -> Severity:
    """Severity of a code, or that in strict mode; one missing from the catalogue is an error.

    It is asked by programs that only run: the first message of an area reads the entries of no other.
    """
    area = _AREA_OF.get(code.rpartition("-")[0])
    entry = None if area is None else _entries(area).get(code)
    if entry is None or (strict and entry.fails_on_boards):
        return Severity.ERROR
    return entry.severity


def explain(code: str) -> str:
    """The catalogue's text for `code` (any case). Raises KeyError with a helpful sentence."""
    wanted = code.strip().upper()
    entry = catalogue().get(wanted)
    if entry is not None:
        return entry.text()
    near = difflib.get_close_matches(wanted, catalogue(), n=3)
    hint = f" Did you mean {', '.join(near)}?" if near else ""
    areas = ", ".join(f"{prefix}-" for prefix in AREAS.values())
    raise KeyError(f"There is no diagnostic {wanted!r}.{hint} Codes begin with {areas}.")
