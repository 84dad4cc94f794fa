"""The scheduler's data of each core, for a saved state: its waiting loop, what it polls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vc4lab.soc.address.polls import checked
from vc4lab.soc.cores.cores import Core
from vc4lab.soc.cores.idle import MOST_REGISTERS, PLACES
from vc4lab.soc.states.state_table import BadValue

MAX_NUMBER = 1 << 62


def snapshot_core(core: Core) -> dict[str, Any]:
    """As JSON can hold it."""
    idle = core.idle
    return {
        "again": idle.again,
        "places": [[place, state] for place, state in idle.places],
        "polls": None if core.polls is None else core.polls.hex(),
    }


def check_core(saved: Any) -> Callable[[Core], None]:
    """Check a core's part of the scheduler, and give the function that sets it. Raises BadValue."""
    again, places, polls = _number(saved["again"]), saved["places"], saved["polls"]
    if len(places) > PLACES:
        raise BadValue("core")
    seen = {}
    for place, state in places:
        if not isinstance(state, list) or len(state) > MOST_REGISTERS:
            raise BadValue("core")
        seen[_number(place, 1 << 64)] = [_number(value, 1 << 64) for value in state]
    kept = None if polls is None else checked(bytes.fromhex(polls))

    def restore(core: Core) -> None:
        core.idle.restore(again, list(seen.items()))
        core.polls = kept

    return restore


def _number(value: Any, end: int = MAX_NUMBER, least: int = 0) -> int:
    if type(value) is not int or not least <= value < end:
        raise BadValue("core")
    return value
