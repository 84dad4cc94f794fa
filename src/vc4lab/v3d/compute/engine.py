"""Runs a set of QPUs until each has ended or waits: turn by turn, so that they can wait for each
other.
"""

from __future__ import annotations

from collections.abc import Sequence

from vc4lab.v3d.compute.qpu import Condition, Qpu


def run_until_quiet(qpus: Sequence[Qpu]) -> bool:
    """Round robin over the QPUs that are alive; whether anything was executed."""
    anything = False
    active = [qpu for qpu in qpus if qpu.alive]
    while active:
        moved = False
        for qpu in active:
            moved |= qpu.advance()
        anything |= moved
        active = [qpu for qpu in active if qpu.alive]
        if not moved and all(qpu.condition is Condition.WAITING for qpu in active):
            break
    return anything
