"""Reports the work between two clocks: differences of what modules and queues count."""

from __future__ import annotations

from typing import Any

import numpy as np

from vc4lab.timing.compute.kinds import MemorySource
from vc4lab.timing.compute.model import CACHES
from vc4lab.timing.graphics.feed import Feed
from vc4lab.timing.graphics.result import DrawTiming, FrameTiming, ModuleUse
from vc4lab.timing.graphics.tables import Tables
from vc4lab.timing.machine import Machine
from vc4lab.timing.result import CacheUse, QueueUse

Counts = dict[tuple[str, int, str], int]

_MODULE = ("busy", "blocked", "events")
_QUEUE = ("writes", "filled", "full")


class Accounts:
    """Keeps the counts of a machine, from frame to frame."""

    def __init__(self, machine: Machine, feed: Feed) -> None:
        self.machine, self.feed = machine, feed
        self.counters = feed.counters(machine)
        self.restart()

    def restart(self) -> None:
        """From here on."""
        self.before = self._counts()
        if self.counters is not None:
            self.counters.restart()
        self.feed.restart()
        for queues in self.machine.queues.values():
            for queue in queues:
                queue.peak = queue.count

    def _counts(self) -> Counts:
        machine = self.machine
        found: Counts = {}
        for (name, number), instance in zip(machine.names, machine.instances, strict=True):
            for field in _MODULE:
                found[name, number, field] = int(getattr(instance, field))
        for name, queues in machine.queues.items():
            for number, queue in enumerate(queues):
                for field in _QUEUE:
                    found[f"queue {name}", number, field] = int(getattr(queue, field))
        for name in CACHES:
            for number, cache in enumerate(machine.states[name]):
                found[f"cache {name}", number, "hits"] = int(cache.tags.hits)
                found[f"cache {name}", number, "misses"] = int(cache.tags.misses)
        sdram, buffers = machine.states["sdram"][0], machine.states["tile_buffer"]
        for source in MemorySource:
            found["memory", int(source), "bytes"] = int(sdram.bytes[source])
        for field in ("drawing", "loading", "storing"):
            found["tile", 0, field] = sum(int(getattr(tile, field)) for tile in buffers)
        return found

    def take(
        self, number: int, tables: Tables, started: int, found: tuple[int, int], binned: int,
        first: int,
    ) -> FrameTiming:  # fmt: skip
        """The timing of a frame that has been rendered. first: clocks of its binning that nothing
        was rendered in."""
        now = self._counts()
        self.now = {key: now[key] - self.before[key] for key in now}
        clocks = max(found)
        timing = FrameTiming(
            number,
            clocks + first,
            binned,
            found[1],
            *self._totals(tables),
            {name: self.now["tile", 0, name] for name in ("drawing", "loading", "storing")},
            self._draws(tables, started),
            self._modules(clocks),
            self._queues(clocks),
            tuple(
                CacheUse(
                    name, place,
                    self.now[f"cache {name}", place, "hits"],
                    self.now[f"cache {name}", place, "misses"],
                )
                for name in CACHES
                for place in range(len(self.machine.states[name]))
            ),
            {
                source.name.lower(): self.now["memory", int(source), "bytes"]
                for source in MemorySource
            },
            sum(self.now[name, place, "events"] for name, place in self.machine.names),
            self.feed.uses(tables),
            tables.notes,
            counters={} if self.counters is None else self.counters.take(tables, clocks),
        )  # fmt: skip
        self.restart()
        return timing

    def _totals(self, tables: Tables) -> tuple[int, int, int, int, int]:
        """Tiles, vectors, quads, primitives, batches."""
        draws: Any = tables.rendered["draws"]
        buffers = self.machine.states["tile_buffer"]
        tiles = sum(int(tile.tiles) for tile in buffers)
        vectors = sum(int(tile.written) for tile in buffers)
        batches = len(tables.rendered.get("batches", ()))
        return (
            tiles, vectors, int(draws["quads"].sum()), int(draws["primitives"].sum()), batches
        )  # fmt: skip

    def _draws(self, tables: Tables, started: int) -> tuple[DrawTiming, ...]:
        rows = tables.rendered["draws"]
        assert tables.rendering is not None
        frame = tables.rendering.frame
        drawn = np.arange(len(frame.draws))
        found = tables.rendering
        draw_of_group = frame.lists["draw"][found.groups[:-1]]
        batches = np.bincount(draw_of_group, np.diff(found.batches.first_batch), len(drawn))
        return tuple(
            DrawTiming(
                int(number), int(frame.draws["record"][number]), int(row["clocks"]),
                int(row["busy"]), int(row["setup"]),
                int(row["first"]) - started if row["primitives"] else 0,
                int(row["last"]) - started if row["primitives"] else 0,
                int(row["primitives"]), int(row["quads"]), int(row["vectors"]),
                int(batches[number]),
            )
            for number, row in zip(drawn, rows[: len(frame.draws)], strict=True)
        )  # fmt: skip

    def _modules(self, clocks: int) -> tuple[ModuleUse, ...]:
        uses = []
        for name, number in self.machine.names:
            busy = self.now[name, number, "busy"]
            blocked = self.now[name, number, "blocked"]
            uses.append(ModuleUse(name, number, busy, blocked, max(clocks - busy - blocked, 0)))
        return tuple(uses)

    def _queues(self, clocks: int) -> tuple[QueueUse, ...]:
        return tuple(
            QueueUse(
                name, number,
                self.now[f"queue {name}", number, "writes"],
                int(queue.depth), int(queue.peak),
                self.now[f"queue {name}", number, "filled"] / max(clocks, 1),
                self.now[f"queue {name}", number, "full"],
            )
            for name, queues in self.machine.queues.items()
            for number, queue in enumerate(queues)
            if self.now[f"queue {name}", number, "writes"]
        )  # fmt: skip
