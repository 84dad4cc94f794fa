"""Real time: sleeps when the guest is ahead, gives up lost time, changes nothing for the guest."""

from vc4lab.soc.slices.pace import Pace

MS = 1_000_000


def test_sleeps_when_ahead_and_forgives_when_far_behind():
    wall = [1000 * MS]
    slept: list[float] = []

    def sleep(seconds: float, _descriptors: list[int]) -> None:
        slept.append(seconds)
        wall[0] += int(seconds * 1e9)

    pace = Pace(lambda: wall[0], sleep)
    pace.keep(0)
    pace.keep(16 * MS)
    assert slept == [0.016]
    wall[0] += 100 * MS
    pace.keep(32 * MS)
    assert len(slept) == 1, "a little behind: it catches up"
    pace.keep(150 * MS)
    assert len(slept) == 2
    wall[0] += 900 * MS
    pace.keep(166 * MS)
    pace.keep(182 * MS)
    assert slept[2] == 0.016, "far behind: the lost time is gone"


def test_a_run_is_the_same_with_pace(boot):
    plain, paced = boot("vsync", "fake_vsync_isr=1\n"), boot("vsync", "fake_vsync_isr=1\n")
    paced.pace = Pace(lambda: 0, lambda _seconds, _descriptors: None)
    plain.run()
    paced.run()
    assert plain.clock.now == paced.clock.now
