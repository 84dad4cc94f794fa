"""A frame as it would be if a fragment program took the scoreboard later: the same instructions in
another order.

Writes of the tile buffer (depth, stencil) and waits for the scoreboard go down to the next read of
the tile buffer, or to the last write of it. That changes no value: only when pixels are waited for.
"""

from __future__ import annotations

from dataclasses import replace

from vc4lab.qpu.isa.accesses import TLB_LOADS, TLB_WRITE, Kind, accesses
from vc4lab.timing.frames.frame import Frame, Words

_FIXED = Kind.THREAD_SWITCH | Kind.PROGRAM_END | Kind.BRANCH | Kind.CONDITIONAL_BRANCH
"""Instructions that stay where they are; a program with branches stays as it is."""
_MOVED = TLB_WRITE | Kind.SCOREBOARD_WAIT
PIXELS = _MOVED | TLB_LOADS


def late_words(words: Words) -> Words:
    """A program that does the same, and waits for pixels as late as its own order allows."""
    kinds = [accesses(word).kinds for word in words]
    if any(kind & (Kind.BRANCH | Kind.CONDITIONAL_BRANCH) for kind in kinds):
        return words
    touching = [n for n, kind in enumerate(kinds) if kind & PIXELS]
    if not touching:
        return words
    loads = [n for n in touching if kinds[n] & TLB_LOADS]
    goal = min(loads, default=touching[-1])
    moved = [n for n in touching if n < goal and kinds[n] & _MOVED and not kinds[n] & _FIXED]
    order = [n for n in range(len(words)) if n not in moved]
    at = order.index(goal)
    return tuple(words[n] for n in (*order[:at], *moved, *order[at:]))


def with_late_scoreboard(frame: Frame, draw: int) -> Frame | None:
    """The frame with a draw's fragment program in that order; None if it is in it already."""
    number = int(frame.draws["program"][draw])
    if not 0 <= number < len(frame.programs):
        return None
    words = frame.programs[number]
    late = late_words(words)
    if late == words:
        return None
    programs = (*frame.programs[:number], late, *frame.programs[number + 1 :])
    return replace(frame, programs=programs)
