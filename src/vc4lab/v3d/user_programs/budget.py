"""How many instructions a user program may execute before it counts as endless.

A limit in instructions and not in seconds, so that a program ends the same way on every machine.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from vc4lab.ranges import BUDGET

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter

NATIVE_BUDGET = 1 << 29
"""About nine seconds of a real QPU; one to three seconds here, for each QPU that never ends."""
REFERENCE_BUDGET = 1 << 18
"""`BUDGET` for the interpreter, which takes some seconds for it."""

DMA_START_COST = 16
"""Steps of a DMA besides one for each element: a transfer of 16384 bytes takes its time, too."""

BUDGET_VARIABLE = "VC4LAB_BUDGET"
BUDGET_HINT = f"{BUDGET_VARIABLE} in the environment, or --budget of `vc4lab run`, allows more"


def chosen_budget(reporter: Reporter) -> int | None:
    """Read the budget from the environment; None, with QPU-060 if it makes no sense, for the default."""
    text = os.environ.get(BUDGET_VARIABLE, "")
    if not text:
        return None
    try:
        return BUDGET.check(int(text, 0))
    except ValueError:
        what = f"{BUDGET_VARIABLE}={text[:40]!r} is not a number of instructions {BUDGET}"
    reporter.report("QPU-060", what)
    return None
