"""Units that several QPUs share and that take one piece after the other at equal distances.

A QPU runs ahead of the event scheduler while it meets nothing that could change what it does, so turns of
a unit are not asked for in the order of their clocks. The unit keeps which of its turns are taken;
who asks gets the first one at or after a clock. Turns begin at multiples of their length; the first
piece after a pause may begin within its turn.
"""

from __future__ import annotations

from vc4lab.simd import Value, const, i32, i64, load, max_, staged, store
from vc4lab.timing.graphics.shaders.state import SLOTS


@staged
def take_turn(turns: Value, interval: Value, clock: Value) -> Value:
    """The clock of the first free turn at or after a clock; it is taken now."""
    turn = clock.udiv(interval)
    place = turns + ((turn & (SLOTS - 1)) << 3)
    left = const(i32, SLOTS)
    while (load(i64, place, 8) == turn + 1) & (left > 0):
        turn = turn + 1
        place = turns + ((turn & (SLOTS - 1)) << 3)
        left = left - 1
    store(place, turn + 1, 8)
    return max_(clock, turn * interval)
