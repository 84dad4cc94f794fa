"""Runs a set of QPUs until each has ended or waits: turn by turn, so that they can wait for each
other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vc4lab.v3d.compute.qpu import Condition, Qpu

if TYPE_CHECKING:
    from concurrent.futures import Executor


def _advance(qpu: Qpu) -> bool:
    return qpu.advance()


def run_until_quiet(qpus: Sequence[Qpu], threads: Executor | None = None) -> bool:
    """Round robin over the QPUs that are alive; whether anything was executed.

    The turns of programs without mutex and semaphores run side by side in `threads`; the others
    always in the same order, so that a run can be repeated.
    """
    anything = False
    active = [qpu for qpu in qpus if qpu.alive]
    while active:
        together = [qpu for qpu in active if qpu.parallel] if threads else []
        moved = False
        if threads is not None and len(together) > 1:
            moved = any(list(threads.map(_advance, together)))
        else:
            together = []
        for qpu in active:
            if qpu not in together:
                moved |= qpu.advance()
        anything |= moved
        active = [qpu for qpu in active if qpu.alive]
        if not moved and all(qpu.condition is Condition.WAITING for qpu in active):
            break
    return anything
