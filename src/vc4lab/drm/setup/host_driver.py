"""Mesa's vc4 driver for the host's own processor: where it is, if there is one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

DRIVER = "vc4_dri.so"
DRIVER_PLACES = (
    ".", "dri", "lib/dri", "lib/x86_64-linux-gnu/dri", "lib/aarch64-linux-gnu/dri",
    "src/gallium/targets/dri", "build/src/gallium/targets/dri",
)  # fmt: skip
"""Folders in which one of the user's may have the driver: installed, or a Mesa build tree."""
DRIVERS_PATH = "LIBGL_DRIVERS_PATH"
SYSTEM_PLACES = (
    "/usr/lib/x86_64-linux-gnu/dri", "/usr/lib/aarch64-linux-gnu/dri", "/usr/lib/dri",
    "/usr/lib64/dri",
)  # fmt: skip

SOFTWARE = "LIBGL_ALWAYS_SOFTWARE", "GBM_ALWAYS_SOFTWARE"
"""Variables by which a user asks Mesa to draw on the processor: for EGL and GLX, and for gbm."""
_YES = frozenset(("1", "y", "yes", "t", "true"))
"""Words that Mesa takes for yes, in any case."""


def asks_for_software(environment: Mapping[str, str]) -> str:
    """The variable that asks Mesa to draw on the processor; "" if none does."""
    return next((name for name in SOFTWARE if environment.get(name, "").lower() in _YES), "")


def find_driver(environment: Mapping[str, str], folder: Path | None = None) -> Path | None:
    """The folder of the driver: below the user's, else where GL programs look themselves."""
    if folder is not None:
        places = [folder / place for place in DRIVER_PLACES]
    else:
        named = environment.get(DRIVERS_PATH, "").split(":")
        places = [Path(place) for place in (*named, *SYSTEM_PLACES) if place]
    return next((place for place in places if os.path.isfile(place / DRIVER)), None)
