"""Finds the cache's folder."""

from __future__ import annotations

import os
from pathlib import Path

PLACES = (("VC4LAB_CACHE", ""), ("XDG_CACHE_HOME", "vc4lab"), ("HOME", ".cache/vc4lab"))
"""Variables that name the folder, or one above it, and what follows."""


def cache_folder() -> Path | None:
    """$VC4LAB_CACHE, $XDG_CACHE_HOME/vc4lab or ~/.cache/vc4lab; None if there is no such place."""
    for name, below in PLACES:
        value = os.environ.get(name, "")
        if name == "VC4LAB_CACHE" and value:
            return Path(os.path.abspath(value))
        if os.path.isabs(value) and (name != "HOME" or os.path.isdir(value)):
            return Path(value) / below
    return None
