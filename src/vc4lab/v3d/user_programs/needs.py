"""Needs of an instruction for which a QPU may have to wait: the mutex or a semaphore.

Both engines ask before they execute such an instruction, so that a QPU waits with nothing half
done.
"""

from __future__ import annotations

from typing import NamedTuple

from vc4lab.qpu.isa.registers import Read
from vc4lab.qpu.run.plan import Plan

SEMAPHORES = 16
SEMAPHORE_LIMIT = 15


class Need(NamedTuple):
    """kind: "mutex", "raise" (increment semaphore `number`) or "lower" (decrement it)."""

    kind: str
    number: int = 0


MUTEX = Need("mutex")


def need_of(p: Plan) -> Need | None:
    """Find what must be possible before `p` can be executed; None: nothing."""
    if p.kind == "semaphore":
        word = int(p.instruction.value)
        return Need("lower" if word >> 4 & 1 else "raise", word & 15)
    if p.kind == "alu" and Read.MUTEX_ACQUIRE in (p.raddr_a, p.raddr_b):
        return MUTEX
    return None
