"""How busy modules were and how full queues were, clock by clock: sampled while a model runs.

The number of samples is bounded: when there are too many, every second one is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vc4lab.timing.machine import Machine

SAMPLES = 400
EVENTS = 1 << 9
"""Events of the event scheduler between two looks."""


@dataclass(frozen=True)
class Timeline:
    """Samples: `clocks` are their ends; what lies between two of them belongs to the second.

    modules: by kind, the mean share of clocks at work. queues: by kind, pieces in all of them.
    """

    clocks: tuple[int, ...]
    modules: dict[str, tuple[float, ...]]
    queues: dict[str, tuple[float, ...]]


class Sampler:
    """Looks at a machine while it runs::

    with Sampler(model.machine) as sampler:
        ...
    timeline = sampler.timeline(clocks)
    """

    def __init__(self, machine: Machine, samples: int = SAMPLES) -> None:
        self._machine = machine
        self._most = max(samples, 2)
        self._step = 1
        self._next = 0
        self._rows: list[tuple[int, list[int], list[int]]] = []
        self._kinds = list(dict.fromkeys(name for name, _ in machine.names))

    def __enter__(self) -> Sampler:
        self._rows = [self._look()]
        self._machine.turn, self._machine.on_turn = EVENTS, self._on_turn
        return self

    def __exit__(self, *_details: object) -> None:
        self._machine.turn, self._machine.on_turn = type(self._machine).turn, None
        if self._machine.engine.clock > self._rows[-1][0]:
            self._rows.append(self._look())

    def _look(self) -> tuple[int, list[int], list[int]]:
        machine = self._machine
        clock = int(machine.engine.clock)
        busy = dict.fromkeys(self._kinds, 0)
        for (name, _), instance in zip(machine.names, machine.instances, strict=True):
            busy[name] += int(instance.busy)
        filled = [
            sum(
                int(queue.filled) + max(clock - int(queue.changed_at), 0) * int(queue.count)
                for queue in queues
            )
            for queues in machine.queues.values()
        ]
        return clock, list(busy.values()), filled

    def _on_turn(self) -> None:
        clock = int(self._machine.engine.clock)
        if clock < self._next or clock <= self._rows[-1][0]:
            return
        self._rows.append(self._look())
        if len(self._rows) > 2 * self._most:
            length = clock - self._rows[0][0]
            self._step = max(2 * self._step, length // self._most)
            self._rows = self._rows[:1] + self._rows[2::2]
        self._next = clock + self._step

    def timeline(self, length: int) -> Timeline:
        """Return the load over the last `length` clocks, which are counted from 0."""
        begin = max(self._rows[-1][0] - length, 0)
        rows = [row for row in self._rows if row[0] >= begin]
        counts = [sum(name == kind for name, _ in self._machine.names) for kind in self._kinds]
        pairs = list(pairwise(rows))
        spans = [max(after[0] - before[0], 1) for before, after in pairs]
        modules = {
            kind: tuple(
                min((after[1][number] - before[1][number]) / (span * counts[number]), 1.0)
                for (before, after), span in zip(pairs, spans, strict=True)
            )
            for number, kind in enumerate(self._kinds)
        }
        queues = {
            name: tuple(
                (after[2][number] - before[2][number]) / span
                for (before, after), span in zip(pairs, spans, strict=True)
            )
            for number, name in enumerate(self._machine.queues)
        }
        return Timeline(
            tuple(after[0] - begin for _, after in pairs),
            {name: values for name, values in modules.items() if any(values)},
            {name: values for name, values in queues.items() if any(values)},
        )
