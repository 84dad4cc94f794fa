"""What happens a few instructions later: branches, thread switches and the program end, each with
its delay slots.
"""

from __future__ import annotations

from typing import NamedTuple

from vc4lab.qpu.isa.encoding import BRANCH_DELAY_SLOTS, END_DELAY_SLOTS
from vc4lab.qpu.isa.operations import END_SIGNALS, Signal
from vc4lab.qpu.run.plan import Plan

SWITCH_DELAY_SLOTS = 2


class Event(NamedTuple):
    """Something due after `remaining` more instructions: "branch" (target: address or None if
    dynamic), "switch" (target 1: the last one) or "end".
    """

    remaining: int
    kind: str
    target: int | None = 0


def signal_events(p: Plan) -> tuple[Event, ...]:
    """The events that an instruction's signal starts."""
    if p.signal == Signal.NONE or p.kind != "alu":
        return ()
    if p.signal in END_SIGNALS:
        return (Event(END_DELAY_SLOTS, "end"),)
    if p.signal in (Signal.THREAD_SWITCH, Signal.LAST_THREAD_SWITCH):
        return (Event(SWITCH_DELAY_SLOTS, "switch", int(p.signal == Signal.LAST_THREAD_SWITCH)),)
    return ()


def branch_event(target: int | None) -> Event:
    """A taken branch."""
    return Event(BRANCH_DELAY_SLOTS, "branch", target)


def age(
    events: tuple[Event, ...], new: tuple[Event, ...]
) -> tuple[tuple[Event, ...], tuple[Event, ...]]:
    """(due now, still pending) after an instruction that started the events `new`."""
    if len(events) == 1:  # as nearly always, and the interpreter is slow enough
        (remaining, kind, target) = events[0]
        if remaining == 1:
            return events, new
        return (), (Event(remaining - 1, kind, target), *new)
    due = tuple(e for e in events if e.remaining == 1)
    later = tuple(e._replace(remaining=e.remaining - 1) for e in events if e.remaining > 1)
    return due, later + new
