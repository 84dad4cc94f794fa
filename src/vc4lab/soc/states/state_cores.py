"""The scheduler's data of each core, for a saved state: its waiting loop, what it polls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vc4lab.soc.address.bus import OWN_TIME
from vc4lab.soc.address.native_bus import NO_REGISTER, POLLED_TOGETHER, PollState
from vc4lab.soc.cores.cores import Core
from vc4lab.soc.cores.idle import PLACES
from vc4lab.soc.states.state_table import BadValue

MAX_NUMBER = 1 << 62
REGISTERS = 40


def snapshot_core(core: Core) -> dict[str, Any]:
    """As JSON can hold it."""
    idle = core.idle
    return {
        "again": idle._again,
        "places": [[place, list(state)] for place, state in idle._seen.items()],
        "polls": [
            [polls.polls, polls.patience, *list(polls.seen)[: polls.known]] for polls in core.polls
        ],
    }


def check_core(saved: Any) -> Callable[[Core], None]:
    """What sets a core's part of the scheduler. Raises BadValue."""
    again, places, polls = _number(saved["again"]), saved["places"], saved["polls"]
    if len(places) > PLACES or len(polls) not in (0, 2):
        raise BadValue("core")
    seen = {}
    for place, state in places:
        if not isinstance(state, list) or len(state) > REGISTERS:
            raise BadValue("core")
        seen[_number(place, 1 << 64)] = tuple(_number(value, 1 << 64) for value in state)
    states = [_polling(*row) for row in polls]

    def restore(core: Core) -> None:
        core.idle._again = again
        core.idle._seen = seen
        core.polls = states

    return restore


def _polling(polls: Any, patience: Any, *registers: Any) -> Any:
    if len(registers) > POLLED_TOGETHER:
        raise BadValue("polls")
    numbers = [_number(value, 1 << 32, OWN_TIME) for value in registers]
    state = PollState(
        polls=_number(polls, 1 << 32), patience=_number(patience, 1 << 32), known=len(numbers)
    )
    state.seen = numbers + [NO_REGISTER] * (POLLED_TOGETHER - len(numbers))
    return state


def _number(value: Any, end: int = MAX_NUMBER, least: int = 0) -> int:
    if type(value) is not int or not least <= value < end:
        raise BadValue("core")
    return value
