"""Names what is a V3D's state, and keeps the V3D as it was when it was switched on.

Everything else (callbacks, caches, compiled code, threads) serves any state. Saved states consist
of these attributes. And a V3D whose power domain is switched off and on again is the same object
with its first state: Linux does that between two programs, and a new V3D would load all compiled
code again, for nothing, while the old one, tens of MiB, waited to be collected.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from vc4lab.v3d.events import PoweredOn

V3D_STATE: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("", ("values", "_line")),
    ("counters", ("enable", "everything", "sources", "_values", "_bases")),
    ("programs", ("made", "completed", "dropping", "reserved", "reserved_rows", "instructions")),
    ("binning", (
        "index_error", "clipping_disabled", "configured", "started", "spills_taken",
        "_unflushed", "_ended", "_flushing", "_walked",
    )),
    ("frames", ("index_error",)),
)  # fmt: skip
THREAD_STATE = (
    "current", "end", "first", "halted", "error", "prefixing", "increments", "increment_armed",
    "flushes", "returns", "primitives", "started", "signals", "closed",
)  # fmt: skip


def parts_of(v3d: Any) -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    """Name, object and attributes of each part that has state."""
    for path, attributes in V3D_STATE:
        yield path, getattr(v3d, path) if path else v3d, attributes
    for thread in v3d.threads:
        yield f"thread {thread.number}", thread, THREAD_STATE


def set_all(target: Any, values: Mapping[str, Any]) -> None:
    """Set attributes; containers that others hold keep their identity."""
    for attribute, value in values.items():
        present = getattr(target, attribute)
        if isinstance(present, (dict, set)):
            present.clear()
            present.update(value)
        elif isinstance(present, (list, bytearray)):
            present[:] = value
        elif isinstance(present, deque):
            present.clear()
            present.extend(value)
        else:
            setattr(target, attribute, value)


def is_idle(v3d: Any) -> bool:
    """Whether nothing of a list or a user program is under way."""
    threads = any(thread.running or thread.stalled for thread in v3d.threads)
    return not (threads or v3d.programs.queue or v3d.programs.running)


class PowerOn:
    """The state of a V3D that was just made."""

    def __init__(self, v3d: Any) -> None:
        self._values = {
            name: copy.deepcopy({attribute: getattr(part, attribute) for attribute in attributes})
            for name, part, attributes in parts_of(v3d)
        }

    def can_reset(self, v3d: Any) -> bool:
        """Whether the state is all that there is: no list or frame is half done, no user program
        has run. They leave more than that: tiles to draw, VPM, semaphores, mutex.
        """
        collected = v3d.rendering.collector.context
        begun = collected.tasks or collected.load_count
        return is_idle(v3d) and not (v3d.waiting or v3d.programs.used or begun)

    def reset(self, v3d: Any) -> None:
        """The V3D is as it was.

        What is remembered by address goes, too: another program has other things there.
        """
        v3d.forget_programs()
        binner = v3d.binning.binner
        binner.reset_state()
        binner.supply_memory(0, 0)
        binner.context.pool_address = binner.context.pool_bytes = 0
        v3d.frames.reset_state()
        for thread in v3d.threads:
            thread.reset()
        for name, part, _attributes in parts_of(v3d):
            set_all(part, copy.deepcopy(self._values[name]))
        if v3d.listeners.powered_on.subscriptions:
            v3d.listeners.powered_on.emit(PoweredOn())
