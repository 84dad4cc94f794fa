"""Lists executed in Python wherever Python can, to compare what native code makes of them."""

from __future__ import annotations

from typing import Any

from vc4lab.v3d.core import V3D


def in_python(v3d: V3D) -> None:
    """Every record with a handler in Python meets it, whatever native code knows of it."""
    collector: Any = v3d.rendering.collector
    set_mode, run, context = collector.set_mode, collector.run, collector.context

    def without_semaphore(address: int, end: int) -> int:
        held, context.increments = context.increments, 0
        reason = run(address, end)
        context.increments = held
        return int(reason)

    collector.set_mode = lambda *a, **o: set_mode(*a, **(o | {"quiet": False}))
    collector.run = without_semaphore
