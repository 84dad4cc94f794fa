"""Topologies that cannot move are refused."""

import pytest

from vc4lab.simd import Struct, Value, i32, i64, kernel, ptr
from vc4lab.timing.declare import Module, Queue, StandsStill, Topology
from vc4lab.timing.event_scheduler import Engine, Pause, wake_self
from vc4lab.timing.machine import Machine
from vc4lab.timing.queues import first_piece, is_readable, queue_at, remove_piece, write_piece


class Counter(Struct):
    """How many pieces a module handled, and the clock of the last."""

    left = i32
    done = i32
    last = i64


@kernel(args=(ptr, ptr, i64))
def produce(address: Value, state: Value, clock: Value) -> None:
    from vc4lab.simd import call, const

    engine, counter = Engine.at(address), Counter.at(state)
    queue = queue_at(engine, 0, const(i32, 0))
    if counter.left > 0:
        zero = const(i64, 0)
        wrote = call(write_piece, address, queue.pointer, clock, clock + 1, zero, zero, zero)
        counter.left = counter.left - wrote
        counter.done = counter.done + wrote
        if wrote != 0:
            wake_self(engine, clock + 1)


@kernel(args=(ptr, ptr, i64))
def consume(address: Value, state: Value, clock: Value) -> None:
    from vc4lab.simd import call, const

    engine, counter = Engine.at(address), Counter.at(state)
    queue = queue_at(engine, 0, const(i32, 0))
    if counter.last + 10 > clock:
        wake_self(engine, counter.last + 10)
    elif call(is_readable, address, queue.pointer, clock) != 0:
        assert first_piece(queue) is not None
        call(remove_piece, address, queue.pointer, clock)
        counter.done = counter.done + 1
        counter.last = clock


def pair(depth: int, **options: bool) -> Topology:
    return Topology(
        (
            Module("first", "writes", produce, Counter, (), ("way",)),
            Module("second", "reads one every ten clocks", consume, Counter, ("way",), ()),
        ),
        (Queue("way", depth, **options),),
    )


@pytest.mark.parametrize("depth", [1, 2, 7])
def test_a_full_queue_holds_back_who_writes_it(depth: int) -> None:
    machine = Machine(pair(depth), 0, "test pair")
    first, second = machine.states["first"][0], machine.states["second"][0]
    first.left = 50
    machine.call("first", 0, 0)
    assert machine.run() is Pause.IDLE
    assert (first.done, second.done) == (50, 50)
    queue = machine.queues["way"][0]
    assert (queue.writes, queue.reads, queue.peak) == (50, 50, depth)
    assert second.last == 10 * 50
    assert queue.full >= 9 * (50 - depth)


def test_the_same_clocks_each_time() -> None:
    runs = []
    for _ in range(2):
        machine = Machine(pair(3), 0, "test pair")
        machine.states["first"][0].left = 20
        machine.call("first", 0, 0)
        machine.run()
        runs.append((machine.engine.clock, machine.engine.events, machine.queues["way"][0].filled))
    assert runs[0] == runs[1]


def test_depth_0() -> None:
    with pytest.raises(StandsStill, match="way: a queue of depth 0 cannot move"):
        pair(0)


def test_a_circle() -> None:
    modules = (
        Module("a", "", produce, Counter, ("back",), ("way",)),
        Module("b", "", produce, Counter, ("way",), ("back",)),
    )
    with pytest.raises(StandsStill, match="the circle a -> b -> a cannot move"):
        Topology(modules, (Queue("way", 4), Queue("back", 4)))
    Topology(modules, (Queue("way", 4), Queue("back", 4, reserved=True)))


def test_queues_without_an_end() -> None:
    module = Module("a", "", produce, Counter, (), ("way",))
    with pytest.raises(StandsStill, match="way: no module reads this queue"):
        Topology((module,), (Queue("way", 4),))
    with pytest.raises(StandsStill, match="a: there is no queue called way"):
        Topology((module,), ())
    with pytest.raises(StandsStill, match="two queues are called way"):
        Topology((module,), (Queue("way", 4), Queue("way", 4)))


def test_too_many_modules() -> None:
    many = Module("a", "", produce, Counter, ("way",), ("way",), count=257)
    with pytest.raises(StandsStill, match="257 modules"):
        Topology((many,), (Queue("way", 4, reserved=True),))
