"""The core timer and the local timer of the block at 0x40000000, register by register."""

import pytest
from tests.support.guest_time import skip_to_event

from vc4lab.soc.machine import Machine
from vc4lab.soc.states.state import load_state, save_state

CONTROL, PRESCALER, LOW, HIGH = 0x00, 0x08, 0x1C, 0x20
ROUTING, LOCAL_CONTROL, LOCAL_CLEAR, IRQ_SOURCE, FIQ_SOURCE = 0x24, 0x34, 0x38, 0x60, 0x70
FIRED, CLEAR, RELOAD, INTERRUPT, ENABLE = 1 << 31, 1 << 31, 1 << 30, 1 << 29, 1 << 28
LOCAL_TIMER = 1 << 11
BY_TWO, APB = 1 << 9, 1 << 8
MILLISECOND = 1_000_000
PULSES = 38_400
"""Of the local timer in a millisecond."""


class Local:
    """The registers, and time that passes."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def __getitem__(self, offset: int) -> int:
        return self.machine.local_bus.peek(offset)

    def __setitem__(self, offset: int, value: int) -> None:
        self.machine.local_bus.poke(offset, value)

    @property
    def count(self) -> int:
        low = self[LOW]
        return self[HIGH] << 32 | low

    def wait(self, nanoseconds: int) -> None:
        clock = self.machine.clock
        end = clock.now + nanoseconds
        while clock.next_event <= end:
            skip_to_event(clock)
            clock.run_due()
        clock.skip(end - clock.now)

    def ticks(self, nanoseconds: int) -> int:
        before = self.count
        self.wait(nanoseconds)
        return self.count - before


@pytest.fixture
def local(boot) -> Local:
    return Local(boot("hello"))


@pytest.mark.parametrize(
    ("control", "prescaler", "in_a_millisecond"),
    [
        (0, 0x80000000, 19_200),
        (0, 0x40000000, 9_600),
        (0, 0x06AAAAAB, 1_000),
        (0, 0, 0),
        (BY_TWO, 0x80000000, 38_400),
        (APB, 0x80000000, 450_000),
        (APB | BY_TWO, 0x80000000, 900_000),
        (APB, 0x00800000, 1_757),
    ],
)
def test_rates_of_the_core_timer(local, control, prescaler, in_a_millisecond):
    local[CONTROL] = control
    local[PRESCALER] = prescaler
    assert local.ticks(MILLISECOND) == pytest.approx(in_a_millisecond, abs=1)
    assert local[CONTROL] == control
    assert local[PRESCALER] == prescaler


def test_a_new_pace_keeps_the_count(local):
    local[PRESCALER] = 0x80000000
    local.wait(10 * MILLISECOND)
    before = local.count
    for control, prescaler in ((APB, 0x80000000), (0, 1), (BY_TWO, 0x06AAAAAB), (0, 0)):
        local[CONTROL] = control
        local[PRESCALER] = prescaler
        assert local.count == before


def test_the_high_word_is_that_of_the_last_low_one(local):
    local[PRESCALER] = 0x80000000
    local[LOW] = 0xFFFFFFF0
    before = local.count
    local[HIGH] = 7
    assert before < 1 << 32, "the low word waits for the high one"
    assert local[LOW] == 0xFFFFFFF0
    local.wait(MILLISECOND)
    assert local[HIGH] == 7
    assert local[LOW] == 19_200 - 16
    assert local[HIGH] == 8


def test_all_cores_see_the_core_timer(local):
    local[PRESCALER] = 0x40000000
    local[LOW] = 0
    local[HIGH] = 5
    local.wait(MILLISECOND)
    timers = [cpu.links.timer for cpu in local.machine.cores]
    assert {timer.count for timer in timers} == {(5 << 32) + 9_600}
    timers[2].write_value(0, 9_600)
    timers[2].write_control(0, 1)
    local.wait(MILLISECOND // 2)
    assert not timers[2].level(0)
    local[CONTROL] = BY_TWO
    local.wait(MILLISECOND // 4)
    assert timers[2].level(0)


@pytest.mark.parametrize(
    ("route", "core", "source"),
    [(core | fast << 2, core, FIQ_SOURCE if fast else IRQ_SOURCE)
     for core in range(4) for fast in (0, 1)],
)  # fmt: skip
def test_the_local_timer_interrupts_one_core(local, route, core, source):
    local[ROUTING] = route
    local[LOCAL_CONTROL] = ENABLE | INTERRUPT | PULSES
    local.wait(MILLISECOND - 1000)
    assert local[source + 4 * core] == 0
    local.wait(2000)
    seen = [local[base + 4 * n] for base in (IRQ_SOURCE, FIQ_SOURCE) for n in range(4)]
    assert sorted(seen) == [0] * 7 + [LOCAL_TIMER]
    assert local[source + 4 * core] == LOCAL_TIMER
    local[LOCAL_CLEAR] = CLEAR
    assert local[source + 4 * core] == 0


def test_the_flag_does_not_need_the_interrupt(local):
    local[LOCAL_CONTROL] = ENABLE | PULSES
    local.wait(MILLISECOND + 1000)
    assert local[LOCAL_CONTROL] == FIRED | ENABLE | PULSES
    assert local[IRQ_SOURCE] == 0
    local[LOCAL_CONTROL] = ENABLE | INTERRUPT | PULSES
    assert local[IRQ_SOURCE] == LOCAL_TIMER, "the flag stays, and is heard now"
    local[LOCAL_CLEAR] = CLEAR
    assert local[LOCAL_CONTROL] == ENABLE | INTERRUPT | PULSES


def test_a_new_reload_value_waits_for_its_turn(local):
    local[LOCAL_CONTROL] = ENABLE | PULSES
    local.wait(MILLISECOND // 2)
    local[LOCAL_CONTROL] = ENABLE | 4 * PULSES
    local.wait(MILLISECOND // 2 + 1000)
    assert local[LOCAL_CONTROL] & FIRED
    local[LOCAL_CLEAR] = CLEAR
    local.wait(3 * MILLISECOND)
    assert not local[LOCAL_CONTROL] & FIRED
    local.wait(MILLISECOND)
    assert local[LOCAL_CONTROL] & FIRED


def test_reloading_puts_it_off_and_disabling_stops_it(local):
    local[LOCAL_CONTROL] = ENABLE | PULSES
    for _ in range(5):
        local.wait(MILLISECOND * 3 // 4)
        local[LOCAL_CLEAR] = RELOAD
    assert not local[LOCAL_CONTROL] & FIRED
    local[LOCAL_CONTROL] = PULSES
    local.wait(5 * MILLISECOND)
    assert not local[LOCAL_CONTROL] & FIRED
    local[LOCAL_CONTROL] = ENABLE
    local.wait(5 * MILLISECOND)
    assert not local[LOCAL_CONTROL] & FIRED, "a period of nothing is none"


def test_periods_do_not_drift(local):
    fired = []
    inner = local.machine.local._local_fired
    local.machine.local._local_fired = lambda: (fired.append(local.machine.clock.now), inner())
    local[LOCAL_CONTROL] = ENABLE | 1001
    began = local.machine.clock.now
    local.wait(10 * MILLISECOND)
    assert len(fired) == 10 * PULSES // 1001
    exact = [began + (n + 1) * 1001 * 625 // 24 for n in range(len(fired))]
    assert fired == pytest.approx(exact, abs=2)


def test_a_period_that_is_absurdly_short_lets_time_pass(local):
    local[LOCAL_CONTROL] = ENABLE | INTERRUPT | 1
    local.wait(MILLISECOND)
    assert local.machine.clock.events_run <= 201


def test_a_saved_state_keeps_them(boot, tmp_path):
    local = Local(boot("hello"))
    local[CONTROL] = APB | BY_TWO
    local[PRESCALER] = 0x80000000
    local[LOCAL_CONTROL] = ENABLE | INTERRUPT | 1001
    local.wait(MILLISECOND)
    assert local.count
    save_state(local.machine, tmp_path / "state")
    other = Local(boot("hello"))
    load_state(other.machine, tmp_path / "state")
    for each in (local, other):
        each.wait(MILLISECOND)
    assert local.count == other.count
    assert local[HIGH] == other[HIGH]
    assert local[LOCAL_CONTROL] == other[LOCAL_CONTROL] == FIRED | ENABLE | INTERRUPT | 1001
    assert local.machine.clock.events_run == other.machine.clock.events_run
