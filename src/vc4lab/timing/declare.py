"""Modules and queues as they are declared, before anything moves.

A *module* is a hardware block: it takes pieces of work from its input queues, has resources for so
many at a time, needs so many clocks for one, and hands pieces on to its output queues. A *queue*
joins modules: a first-in first-out memory of some depth with one write and one read a clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vc4lab.simd import Function, Struct

MAX_INSTANCES = 256
"""Modules that one event scheduler moves, all kinds together."""

MAX_DEPTH = 4096
"""Pieces that a queue may hold."""


class StandsStill(ValueError):  # noqa: N818 - said to the user as it is
    """Modules and queues that can never move; the text names them. queues: of a circle, by name."""

    def __init__(self, text: str, queues: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.queues = tuple(queues)


@dataclass(frozen=True)
class Queue:
    """A queue, or several of the same kind; or none, in a chip without it.

    depth: pieces that it holds. count: how many queues of the kind there are. reserved: its room is
    reserved by the request that it answers, so that a write never waits. in_flight: pieces that are
    in the pipeline of the module that writes it, and are not in the queue yet.
    """

    name: str
    depth: int
    count: int = 1
    reserved: bool = False
    in_flight: int = 0


@dataclass(frozen=True)
class Module:
    """A kind of module.

    inputs, outputs: names of queues. count: how many there are (0: a chip without it). resources:
    in words, what each of them has a limited number of. latency, interval: clocks from the
    beginning of a piece of work to its end, and from the beginning of one to that of the next; None
    if that depends on the piece.
    step: the kernel (engine, state, clock) that does what can be done at a clock. state: its
    memory.
    """

    name: str
    does: str
    step: Function[None]
    state: type[Struct]
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    count: int = 1
    resources: str = ""
    latency: int | None = None
    interval: int | None = None


@dataclass(frozen=True)
class Topology:
    """Modules and the queues between them."""

    modules: tuple[Module, ...]
    queues: tuple[Queue, ...] = field(default=())

    def __post_init__(self) -> None:
        names = [queue.name for queue in self.queues]
        for name in names:
            if names.count(name) > 1:
                raise StandsStill(f"two queues are called {name}")
        there = [module for module in self.modules if module.count]
        for queue in self.queues:
            if not queue.count:
                continue
            if not 0 < queue.depth <= MAX_DEPTH:
                raise StandsStill(f"{queue.name}: a queue of depth {queue.depth} cannot move")
            for end, ways in (("writes", "outputs"), ("reads", "inputs")):
                if not any(queue.name in getattr(module, ways) for module in there):
                    raise StandsStill(f"{queue.name}: no module {end} this queue")
        for module in self.modules:
            for name in (*module.inputs, *module.outputs):
                if name not in names:
                    raise StandsStill(f"{module.name}: there is no queue called {name}")
        total = sum(module.count for module in self.modules)
        if total > MAX_INSTANCES:
            raise StandsStill(f"{total} modules: a chip has {MAX_INSTANCES} at most")
        circle = find_circle(there, self.queues)
        if circle:
            raise StandsStill(
                f"the circle {' -> '.join(circle)} cannot move when its queues are full: "
                "one queue of it must have its room reserved by the request it answers",
                self._between(circle),
            )

    def _between(self, circle: Sequence[str]) -> list[str]:
        """The queues of a circle of modules whose room is not reserved."""
        of = {module.name: module for module in self.modules}
        pairs = list(pairwise(circle))
        return [
            queue.name
            for queue in self.queues
            if not queue.reserved
            and any(queue.name in of[a].outputs and queue.name in of[b].inputs for a, b in pairs)
        ]


def find_circle(modules: Iterable[Module], queues: Iterable[Queue]) -> Sequence[str]:
    """Modules that wait for each other in a circle of queues, the first one again at the end."""
    waits = [queue.name for queue in queues if not queue.reserved]
    modules = tuple(modules)
    following = {
        module.name: [
            other.name
            for other in modules
            if any(name in other.inputs for name in module.outputs if name in waits)
        ]
        for module in modules
    }
    done: set[str] = set()

    def look(name: str, way: tuple[str, ...]) -> tuple[str, ...]:
        if name in way:
            return (*way[way.index(name) :], name)
        if name in done:
            return ()
        for after in following[name]:
            found = look(after, (*way, name))
            if found:
                return found
        done.add(name)
        return ()

    for name in following:
        found = look(name, ())
        if found:
            return found
    return ()
