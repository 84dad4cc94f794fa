"""The queue of events: their order, and events that are taken back."""

import random
from collections.abc import Callable

import pytest

from vc4lab.soc.clock import MANY
from vc4lab.soc.machine import Machine

TIMERS = 0x3010, 0xB400, 0x100024
"""System timer's compare 1, ARM timer, watchdog: offsets of the peripherals."""
PASSWORD = 0x5A000000
HALT = bytes.fromhex("feffffea")


def test_events_come_in_their_order_whatever_is_taken_back(boot: Callable[..., Machine]) -> None:
    clock = boot(HALT).hardware.clock
    rng = random.Random(4)
    ran: list[int] = []
    events = []
    for number in range(3000):
        moment = rng.randrange(1, 10**9)
        events.append((moment, number, clock.at(moment, lambda n=number: ran.append(n))))  # type: ignore[misc]
        if rng.random() < 0.7:
            events.pop(rng.randrange(len(events)))[2].cancel()
    clock.skip(2 * 10**9)
    clock.run_due()
    left = sorted(entry[:2] for entry in events)
    assert ran == [number for _moment, number in left]
    assert 500 < len(ran) < 1500


def test_a_timer_that_is_set_again_and_again_needs_no_more_room(boot: Callable[..., Machine]) -> None:
    machine = boot(HALT)
    queue = machine.hardware.clock._queue
    machine.bus.write(0xB408, 4, 0xA2)
    for number in range(1000):
        for timer in TIMERS:
            machine.bus.write(timer, 4, PASSWORD | 0xFFFFF - number)
    assert len(queue) <= 2 * MANY + len(TIMERS)


@pytest.mark.parametrize(("ahead", "wait"), [(0, 1 << 32), (1, 1), (-1, (1 << 32) - 1)])
def test_a_compare_register_matches_when_the_counter_comes_to_it(
    boot: Callable[..., Machine], ahead: int, wait: int
) -> None:
    """What the counter has already passed, or is, comes after it has gone round."""
    machine = boot(HALT)
    clock = machine.hardware.clock
    clock.skip(5_000_000)
    now = machine.bus.read(0x3004, 4)
    machine.bus.write(0x3010, 4, (now + ahead) & 0xFFFFFFFF)
    for count, matched in ((wait - 1, 0), (1, 1)):
        clock.skip(count * 1000)
        clock.run_due()
        assert machine.bus.read(0x3000, 4) >> 1 & 1 == matched
