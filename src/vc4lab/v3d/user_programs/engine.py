"""Runs a set of QPUs until each has ended or waits: turn by turn, so that they can wait for each
other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from vc4lab.v3d.user_programs.qpu import Qpu, RunState

if TYPE_CHECKING:
    from concurrent.futures import Executor


def run_until_quiet(
    qpus: Sequence[Qpu],
    threads: Executor | None = None,
    helpers: int = 1,
    after_round: Callable[[], None] | None = None,
) -> bool:
    """Round robin over the QPUs that are alive; whether anything was executed.

    The turns of programs without mutex and semaphores run side by side, in this thread and in
    `helpers` of `threads`; the others always in the same order, so that a run can be repeated.
    """
    anything = False
    active = [qpu for qpu in qpus if qpu.alive]
    while active:
        together = [qpu for qpu in active if qpu.parallel] if threads else []
        moved = False
        if threads is not None and len(together) > 1:
            todo = deque(together)
            count = min(helpers, len(together) - 1)
            futures = [threads.submit(_take_turns, todo) for _ in range(count)]
            moved = _take_turns(todo)
            for future in futures:
                moved |= future.result()
        else:
            together = []
        for qpu in active:
            if qpu not in together:
                moved |= qpu.advance()
        anything |= moved
        if after_round is not None:
            after_round()
        active = [qpu for qpu in active if qpu.alive]
        if not moved and all(qpu.run_state is RunState.WAITING for qpu in active):
            break
    return anything


def _take_turns(todo: deque[Qpu]) -> bool:
    """Take QPUs from the common list until it is empty."""
    moved = False
    while True:
        try:
            qpu = todo.popleft()
        except IndexError:
            return moved
        moved |= qpu.advance()
