"""A topology in memory: what the event scheduler moves."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from vc4lab.simd import NativeFunction, build
from vc4lab.timing.declare import MAX_INSTANCES, Queue, Topology
from vc4lab.timing.event_scheduler import (
    BLOCK,
    INSTANCE_BITS,
    MAX_QUEUE_KINDS,
    NEVER,
    Engine,
    Instance,
    Pause,
    event_scheduler,
)
from vc4lab.timing.queues import Piece, QueueState

TURN = 1 << 22
"""Events after which the event scheduler returns, so that Python sees an interrupt."""


def _block(kind: Any, count: int) -> Any:
    """Memory for some Structs, one after the other, aligned: (keeps it alive, address)."""
    storage = (ctypes.c_char * (kind.size * count + 64))()
    start = -ctypes.addressof(storage) % 64
    return storage, ctypes.addressof(storage) + start


class Machine:
    """Modules and queues of a topology, with their state. chip: address of what they share.

    turn, on_turn: events after which the event scheduler returns, and what is called then.
    """

    turn = TURN
    on_turn: Callable[[], object] | None = None

    def __init__(self, topology: Topology, chip: int, name: str) -> None:
        self.topology = topology
        self._kept: list[Any] = []
        self.states: dict[str, list[Any]] = {}
        self.engine = Engine(short_of_work=-1, chip=chip)
        for number in range(MAX_INSTANCES):
            self.engine.wakes[number] = NEVER
        total = sum(module.count for module in topology.modules)
        self.instances = self._structs(Instance, total)
        self.engine.instances = self.instances[0].address
        self.engine.blocks = -(-total // BLOCK)
        self.names: list[tuple[str, int]] = []
        for kind, module in enumerate(topology.modules):
            self.engine.firsts[kind] = len(self.names)
            states = self.states[module.name] = self._structs(module.state, module.count)
            for number, state in enumerate(states):
                instance = self.instances[len(self.names)]
                instance.state, instance.kind, instance.number = state.address, kind, number
                self.names.append((module.name, number))
        self.queues: dict[str, list[Any]] = {}
        self._make_queues(topology.queues)
        self._run = _compiled(topology, name)

    def _structs(self, kind: Any, count: int) -> list[Any]:
        storage, address = _block(kind, count)
        self._kept.append(storage)
        return [kind.python.from_address(address + kind.size * n) for n in range(count)]

    def _make_queues(self, queues: tuple[Queue, ...]) -> None:
        if len(queues) > MAX_QUEUE_KINDS:
            raise ValueError(f"{len(queues)} kinds of queues: {MAX_QUEUE_KINDS} at most")
        every = self._structs(QueueState, sum(queue.count for queue in queues))
        self.engine.queues = every[0].address
        at = 0
        for kind, queue in enumerate(queues):
            self.engine.bases[kind] = at
            mine = self.queues[queue.name] = every[at : at + queue.count]
            at += queue.count
            capacity = queue.depth + queue.in_flight
            slots = 1 << (capacity - 1).bit_length()
            readers = [i for i, (name, _) in enumerate(self.names) if self._reads(name, queue.name)]
            for number, state in enumerate(mine):
                pieces = (ctypes.c_char * (Piece.size * slots))()
                self._kept.append(pieces)
                state.pieces = ctypes.addressof(pieces)
                state.depth, state.capacity, state.slots = queue.depth, capacity, slots
                state.written_at = state.read_at = -1
                # as many readers as queues: each its own; else in equal shares
                state.reader = readers[number * len(readers) // queue.count]

    def _reads(self, module: str, queue: str) -> bool:
        return any(m.name == module and queue in m.inputs for m in self.topology.modules)

    def set_reader(self, queue: str, number: int, module: str, instance: int) -> None:
        """Which module reads a queue, if it is not the one by number."""
        self.queues[queue][number].reader = self.names.index((module, instance))

    def call(self, module: str, number: int, clock: int) -> None:
        """A module is to be called at a clock, if not earlier."""
        instance = self.names.index((module, number))
        key = clock << INSTANCE_BITS | instance
        self.engine.wakes[instance] = min(self.engine.wakes[instance], key)

    def run(self) -> Pause:
        """Moves on until nothing happens any more, or a module needs more of the record."""
        while True:
            self.engine.left = self.turn
            pause = Pause(self._run(self.engine.address))
            if self.on_turn is not None:
                self.on_turn()
            if pause is not Pause.TURN:
                return pause

    @property
    def short_of_work(self) -> tuple[str, int]:
        """The module that needs more of the record."""
        return self.names[self.engine.short_of_work]


def _compiled(topology: Topology, name: str) -> NativeFunction:
    """The event scheduler for these kinds of modules."""
    steps = tuple(module.step for module in topology.modules)
    known = _COMPILED.get(steps)
    if known is None:
        module = build(f"timing {name}", {"run": event_scheduler(steps)}, float_mode="default", key=name)
        known = _COMPILED[steps] = module["run"]
    return known


_COMPILED: dict[Any, NativeFunction] = {}
