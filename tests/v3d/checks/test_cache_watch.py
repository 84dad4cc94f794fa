"""The V3D's own caches: what must be cleared before a job reads what has changed."""

import pytest

from vc4lab.diagnostics import Reporter
from vc4lab.memory import GuestMemory
from vc4lab.v3d.checks.cache_watch import CacheWatch
from vc4lab.v3d.events import Use


@pytest.fixture
def watch() -> CacheWatch:
    return CacheWatch(GuestMemory(), Reporter())


@pytest.mark.parametrize("size", [64, 1 << 20])
@pytest.mark.parametrize("use", [Use.CODE, Use.UNIFORMS, Use.TEXTURE])
def test_what_must_be_cleared(watch: CacheWatch, use: Use, size: int) -> None:
    memory, reporter = watch._memory, watch._reporter

    def job(*clears: int) -> int:
        """The messages that a job causes whose data have changed."""
        before = sum(reporter.counts.values())
        memory.set_u32(0x1010, memory.u32(0x1010) + 1)
        for value in clears:
            if value == 4:
                watch.l2_cleared(value)
            else:
                watch.slices_cleared(value)
        watch.job()
        watch.reads(use, 0xC0001000, size)
        return sum(reporter.counts.values()) - before

    assert job() == 0, "the first time"
    assert job() == 1
    assert "slices' caches" in reporter.items[-1].message
    assert reporter.items[-1].address == (0x1010 if size == 64 else 0x1000)
    assert job(0x0F0F0F0F) == 1
    assert "L2CACTL" in reporter.items[-1].message
    assert job(0x0F0F0F0F, 4) == 0
    assert job(0x0F, 4) == (0 if use is Use.CODE else 1)
    watch.job()
    watch.reads(use, 0xC0001000, size)
    assert job(0x07070707, 4) == 0, "there are three slices"


def test_the_l2_can_be_off() -> None:
    watch = CacheWatch(GuestMemory(), Reporter(), l2_enabled=False)
    for value, told in ((1, 0), (2, 0), (3, 0), (4, 1)):
        if value == 4:
            watch.l2_cleared(1)
            watch.job()
            watch.reads(Use.CODE, 0x1000, 8)
        watch._memory.set_u32(0x1000, value)
        watch.slices_cleared(0x0F0F0F0F)
        watch.job()
        watch.reads(Use.CODE, 0x1000, 8)
        assert watch._reporter.counts["CACHE-006"] == told
