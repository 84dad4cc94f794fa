"""Counts how often the program in a core has the TLB emptied, as a whole or for a page.

The engine's functions for that are replaced where it calls them (`engine_patches.py`); each counts
for the core that runs in its thread and does what it did. An engine knows one core: what is for all
cores of a board (TLBIALLIS, tlbi vae1is and their like) is carried to the other engines. What vc4lab
empties itself, between two slices, is not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from vc4lab.simd import Function, Value, call_pointer, i32, i64, imported, ptr, staged

WAYS = (
    ("tlb_flush", False, False),
    ("tlb_flush_by_mmuidx", False, True),
    ("tlb_flush_page", True, False),
    ("tlb_flush_page_by_mmuidx", True, True),
)
"""Name; whether there is an address; whether there is a set of MMU indices."""
SCOPES = ("", "_all_cpus_synced")


@staged
def _flush(
    name: str, types: tuple[Any, ...], count: Callable[[], None], arguments: tuple[Value, ...]
) -> None:
    count()
    call_pointer(imported(name, None, types), None, types, *arguments)


def functions(count: Callable[[str, bool], None]) -> dict[str, Function[None]]:
    """The functions and what replaces them.

    count
        Staged: counts for the core that runs; the engine's suffix, and whether it is for all cores.
    """
    found: dict[str, Function[None]] = {}
    for suffix, word in (("arm", i32), ("aarch64", i64)):
        for way, has_address, has_indices in WAYS:
            types = (ptr, *((word,) if has_address else ()), *((i32,) if has_indices else ()))
            for scope in SCOPES:
                name = f"{way}{scope}_{suffix}"
                found[name] = _function(name, types, partial(count, suffix, bool(scope)))
    return found


def _function(name: str, types: tuple[Any, ...], count: Callable[[], None]) -> Function[None]:
    return Function(types, None, lambda *values: _flush(name, types, count, values), name)
