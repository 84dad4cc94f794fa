"""Teams: every piece of work is done once, whichever thread wakes up when, and threads end."""

import ctypes
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import pytest
from tests.support.threads import left_of, simulator_threads

from vc4lab.simd import (
    NativeFunction,
    Struct,
    Value,
    atomic_add,
    build,
    call_pointer,
    const,
    i32,
    kernel,
    load,
    ptr,
    store,
)
from vc4lab.simd import team as module
from vc4lab.simd.team import PART_ARGUMENTS, Team, TeamState

PIECES = 400
ALLOWED = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()


class Sums(Struct):
    """Work: adds the numbers below `until` to the sum of the thread that takes them."""

    next = i32
    until = i32
    length = i32  # of a piece
    sums = ptr  # i32 of each thread


@kernel(args=PART_ARGUMENTS, returns=None)
def add_up(shared: Value, number: Value) -> None:
    s: Any = Sums.at(shared)
    mine = s.sums + (number * 64).zext(module.i64)
    piece: Any = atomic_add(s.field_ptr("next"), 1)
    while piece < s.until:
        turn: Any = const(i32, 0)
        while turn < s.length:  # through memory, so that it takes time
            store(mine + 4, load(i32, mine + 4) + turn)
            turn = turn + 1
        store(mine, load(i32, mine) + piece)
        piece = atomic_add(s.field_ptr("next"), 1)


class Stay(Struct):
    """Work that lasts as long as the test says; `stage` is set from outside."""

    stage = i32
    began = i32  # helpers that have begun, and ended
    ended = i32
    late = i32  # that have begun after the run


@kernel(args=PART_ARGUMENTS, returns=None)
def stay(shared: Value, number: Value) -> None:
    """The asking thread stays until stage 1, helpers until stage 2."""
    s: Any = Stay.at(shared)
    until: Any = const(i32, 1)
    if number != 0:
        until = const(i32, 2)
        atomic_add(s.field_ptr("began"), 1)
    if atomic_add(s.field_ptr("stage"), 0) == 3:
        atomic_add(s.field_ptr("late"), 1)
    while atomic_add(s.field_ptr("stage"), 0) < until:
        pass
    if number != 0:
        atomic_add(s.field_ptr("ended"), 1)


@kernel(args=(ptr, ptr, ptr, i32), returns=None)
def ask(team: Value, part: Value, shared: Value, helpers: Value) -> None:
    """Native code asks, twice."""
    t: Any = TeamState.at(team)
    s: Any = Sums.at(shared)
    for _ in range(2):
        s.next = 0
        call_pointer(t.together, None, (ptr, ptr, ptr, i32), team, part, shared, helpers)


@cache
def native(name: str) -> NativeFunction:
    return build("test_team", {"add_up": add_up, "ask": ask, "stay": stay})[name]


class Work:
    def __init__(self, threads: int, length: int = 200) -> None:
        self.room = (ctypes.c_int32 * (16 * threads))()
        self.state: Any = Sums(until=PIECES, length=length, sums=ctypes.addressof(self.room))

    def sums(self) -> list[int]:
        return list(self.room[::16])


DUE = sum(range(PIECES))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_each_piece_is_done_once(threads: int) -> None:
    team = Team(threads)
    assert team.provide(threads - 1) == team.helpers == threads - 1
    for length in (0, 20, 2000):
        for _ in range(20):
            work = Work(threads, length)
            team.run(native("add_up").address, work.state.address, threads - 1)
            assert sum(work.sums()) == DUE
    team.close()


def soon(true: Callable[[], bool]) -> bool:
    """Whether it becomes true in a minute."""
    until = time.monotonic() + 60
    while not true() and time.monotonic() < until:
        time.sleep(0.001)
    return true()


def test_helpers_take_part() -> None:
    team = Team(2)
    team.provide(1)
    work = Work(2, 20_000)

    def has_helped() -> bool:
        work.state.next = 0
        team.run(native("add_up").address, work.state.address, 1)
        return bool(work.sums()[1])

    assert soon(has_helped)


def test_who_asks_waits_for_helpers() -> None:
    team, state = Team(2), Stay()
    team.provide(1)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(team.run, native("stay").address, state.address, 1)
        begun = soon(lambda: state.began == 1)
        state.stage = 1
        time.sleep(0.1)
        waits = not run.done()
        state.stage = 2
        run.result()
    assert begun
    assert waits
    assert state.ended == 1
    team.close()


def test_helpers_that_wake_up_late_do_nothing() -> None:
    team, states = Team(2), [Stay(stage=2) for _ in range(200)]
    team.provide(1)
    for state in states:
        team.run(native("stay").address, state.address, 1)
        state.stage = 3
        time.sleep(0.0005)
    team.close()
    assert not sum(state.late for state in states)


def test_native_code_asks() -> None:
    team = Team(3)
    team.provide(2)
    work = Work(3)
    native("ask")(team.address, native("add_up").address, work.state.address, 2)
    assert sum(work.sums()) == 2 * DUE


def test_no_more_helpers_than_there_are() -> None:
    team = Team(8)
    team.provide(1)
    work = Work(2)
    team.run(native("add_up").address, work.state.address, 7)
    assert sum(work.sums()) == DUE


def test_threads_end_with_their_team_and_start_again_after_close() -> None:
    before = simulator_threads()
    team = Team(3)
    told: list[int] = []
    team.on_first_helper(lambda: told.append(1))
    assert not told
    team.provide(2)
    team.provide(2)
    assert told == [1]
    started = simulator_threads() - before
    assert len(started) == 2
    team.close()
    assert not left_of(started)
    assert team.helpers == 0
    assert not team.state.helpers, "native code asks as many"
    assert not team.state.wanted, "or those that come next never wait"
    team.provide(2)
    work = Work(3)
    team.run(native("add_up").address, work.state.address, 2)
    assert sum(work.sums()) == DUE
    started = simulator_threads() - before
    assert len(started) == 2
    del team
    assert not left_of(started)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no choice of processors here")
def test_helpers_keep_to_the_processors_of_the_process() -> None:
    allowed = os.sched_getaffinity(0)
    team = Team(3)
    team.provide(2)
    work = Work(3)
    team.run(native("add_up").address, work.state.address, 2)
    assert os.sched_getaffinity(0) == allowed, "the asking thread runs where it did"
    for thread in team._threads:
        assert thread.native_id is not None
        assert os.sched_getaffinity(thread.native_id) <= allowed


@pytest.mark.skipif(len(ALLOWED) < 2, reason="no choice of processors here")
def test_helpers_are_kept_off_the_processor_of_the_one_that_asks_while_it_works() -> None:
    own = min(ALLOWED)
    team, nothing, state = Team(3), Stay(stage=2), Stay()
    assert team.provide(1) == 1
    with ThreadPoolExecutor(1) as pool:
        pool.submit(os.sched_setaffinity, 0, {own}).result()
        part = native("stay").address
        pool.submit(team.run, part, nothing.address, 1).result()
        team.provide(2)  # the second one, too
        run = pool.submit(team.run, part, state.address, 2)
        begun = soon(lambda: state.began == 2)
        helpers = [thread.native_id for thread in team._threads if thread.native_id is not None]
        apart = [os.sched_getaffinity(helper) for helper in helpers]
        state.stage = 1
        lifted = soon(lambda: all(os.sched_getaffinity(helper) == ALLOWED for helper in helpers))
        state.stage = 2
        run.result()
    team.close()
    assert begun
    assert apart == [ALLOWED - {own}] * 2
    assert lifted, "the asking thread does nothing but wait"


def test_without_posix_threads_there_are_no_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_library", lambda: None)
    team = Team(4)
    assert team.provide(3) == team.helpers == 0
    team.close()
