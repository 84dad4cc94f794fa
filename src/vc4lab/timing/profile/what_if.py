"""Estimates a frame's time if a module were free: runs the model again with that module's figures at
the best values that a chip's file may have.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from vc4lab.timing.boards import BoardSpeed
from vc4lab.timing.changes import Change, changed, text_of
from vc4lab.timing.chip import Chip
from vc4lab.timing.figures import MODULES
from vc4lab.timing.profile.result import WhatIf

SECTIONS: dict[str, tuple[str, ...]] = {
    "qpu": ("qpu", "varyings", "sfu", "vpm"),
    "shader_scheduler": ("shaders",),
    "loader": ("load",),
    "storer": ("store",),
}
"""Sections of a chip's file that say how fast a module is, where it is not the module's name."""

FREE_BYTES = 1e18
"""Bytes a second that a memory moves, if it is free."""

TIMES = ("clocks", "clocks of the memory", "ns")
"""Units of figures that are 0 or the least, if a module is free."""


AHEAD = (
    ("rendering_list", "ahead"),
    ("rendering_list", "tiles"),
    ("binning_list", "ahead"),
    ("attributes", "ahead"),
    ("tile_buffer", "loads_ahead"),
    ("tmu", "vectors"),
    ("l2", "misses"),
    ("load", "ahead"),
)
"""How much a module has under way at a time: as much as it may, if it is free."""


def free_changes(chip: Chip, module: str) -> dict[Change, float | bool]:
    """The figures of a module at their best: times at the least; bytes a clock, and what it may
    have under way, at the most.

    Sizes and counts stay, so a cache that is free still misses its lines.
    """
    changes: dict[Change, float | bool] = {}
    for section in SECTIONS.get(module, (module,)):
        for key, spec in MODULES.get(section, {}).items():
            if spec.flag or section not in chip.figures:
                continue
            best = None
            if spec.unit in TIMES:
                best = spec.least
            elif key.endswith("_per_clock") or (section, key) in AHEAD:
                best = spec.most
            if best is not None and chip.real(section, key) != best:
                changes[section, key] = int(best) if float(best).is_integer() else best
    return changes


def what_ifs(
    chip: Chip, speed: BoardSpeed, modules: Iterable[str], clocks: int, run: Callable[[Chip, BoardSpeed], int]
) -> tuple[WhatIf, ...]:
    """Every module free in turn; the best first. run: clocks of the frame on a chip and a board."""

    def ask(module: str) -> WhatIf | None:
        changes = free_changes(chip, module)
        if not changes:
            return None
        other = changed(chip, changes, "what if")
        taken = run(other, speed._replace(memory=FREE_BYTES) if module == "sdram" else speed)
        return WhatIf(module, text_of(changes), taken, clocks / max(taken, 1))

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:  # the model is native code
        found = [one for one in pool.map(ask, modules) if one is not None]
    return tuple(sorted(found, key=lambda one: one.clocks))
