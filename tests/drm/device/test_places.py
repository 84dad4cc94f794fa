"""Places for the lists of jobs that wait: never over one another, the lowest free one first."""

import random

from vc4lab.drm.device.vc4 import _Places
from vc4lab.drm.objects.memory import LISTS, LISTS_SIZE
from vc4lab.drm.uapi.submit import PAGE


def test_an_idle_device_uses_the_same_pages_again() -> None:
    places = _Places()
    assert [places.take(5000, n, n - 1) for n in range(1, 4)] == [LISTS] * 3
    assert places.take(1, 4, 2) == LISTS + 2 * PAGE
    assert places.take(1, 5, 3) == LISTS


def test_places_of_waiting_jobs_stay_apart() -> None:
    choose = random.Random(1)
    places = _Places()
    held: dict[int, range] = {}
    finished = full = 0
    for seqno in range(1, 2000):
        finished = max(finished, seqno - choose.randrange(1, 40))
        held = {number: place for number, place in held.items() if number > finished}
        size = choose.choice((1, PAGE, PAGE + 1, 40 << 20, 100 << 20))
        start = places.take(size, seqno, finished)
        if start is None:
            full += 1
            assert held
            continue
        place = range(start, start + size)
        assert start % PAGE == 0
        assert LISTS <= start <= LISTS + LISTS_SIZE - size
        assert not any(overlap(place, other) for other in held.values())
        held[seqno] = place
    assert full


def overlap(one: range, other: range) -> bool:
    """Whether two ranges have something in common."""
    return one.start < other.stop and other.start < one.stop
