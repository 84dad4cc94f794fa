"""The native side of the bus: what it answers itself is what the handlers would have said."""

import struct

import pytest
from tests.support.lost_accesses import lost_accesses

from vc4lab.diagnostics import Reporter
from vc4lab.registers import Poll, Register
from vc4lab.soc.address.block import Block
from vc4lab.soc.address.bus import Bus, answer_slot
from vc4lab.soc.address.polls import KNOWN, LAST_COUNT, PATIENT, SLOT, checked
from vc4lab.soc.clock import Clock
from vc4lab.soc.debug.trace import Tracer, parse_categories
from vc4lab.soc.native import SliceCounter

STEADY, TICKET, PLAIN, SOURCE = 0x00, 0x04, 0x08, 0x0C
TIMER = 0x3000


class Device(Block):
    """Registers of every kind, and how often their handlers were called."""

    NAME = "device"
    OFFSET = 0x10000
    SIZE = 0x2000
    STATUS = Register(STEADY, access="r", steady=True)
    TAKE = Register(TICKET, access="r")
    VALUE = Register(PLAIN)
    INPUT = Register(SOURCE, access="r", poll=Poll.INPUT, steady=True)

    def __init__(self) -> None:
        super().__init__()
        self.status = 1
        self.taken = self.calls = 0

    def on_read_STATUS(self) -> int:
        self.calls += 1
        return self.status

    def on_read_TAKE(self) -> int:
        self.taken += 1
        self.status += 1
        return self.taken

    def on_read_INPUT(self) -> int:
        self.calls += 1
        return self.calls

    def on_write_VALUE(self, value: int) -> None:
        self.VALUE = value
        self.status = value

    def is_steady(self, offset: int) -> bool:
        return True

    def read_other(self, offset: int) -> int:
        self.calls += 1
        if offset == 0x1FFC:
            raise LookupError("nothing here")
        return 0xFFFFFFFF if offset == 0x1FF8 else offset


@pytest.fixture
def device():
    return Device()


@pytest.fixture
def bus(device):
    clock = Clock(SliceCounter(), 1)
    bus = Bus(0x3F000000, "P", clock, Reporter())
    bus.attach(device)
    return bus


def poll(bus, offset, times=20):
    return [bus.read(Device.OFFSET + offset, 4) for _ in range(times)]


def test_a_polled_register_is_answered_without_its_handler(bus, device):
    assert poll(bus, STEADY) == [1] * 20
    assert device.calls == 2
    assert bus.accesses == 20


@pytest.mark.parametrize("change", ["write", "poke", "other read", "event", "peek"])
def test_what_changes_a_register_makes_its_answer_old(bus, device, change):
    poll(bus, STEADY)
    if change == "write":
        bus.write(Device.OFFSET + PLAIN, 4, 7)
    elif change == "poke":
        bus.poke(Device.OFFSET + PLAIN, 7)
    elif change == "other read":
        bus.read(Device.OFFSET + TICKET, 4)
    elif change == "peek":
        bus.peek(Device.OFFSET + TICKET)
    else:
        device.status = 9
        bus.clock.something_happened()
    assert poll(bus, STEADY, 3) == [device.status] * 3
    assert device.status != 1


def test_a_register_with_side_effects_is_never_answered_natively(bus):
    assert poll(bus, TICKET) == list(range(1, 21))


def test_registers_that_share_a_place_keep_their_values(bus, device):
    twin = next(
        at for at in range(0x1000, 0x1FF0, 4) if answer_slot(Device.OFFSET + at) == answer_slot(Device.OFFSET)
    )
    for _ in range(10):
        assert bus.read(Device.OFFSET, 4) == 1
        assert bus.read(Device.OFFSET + twin, 4) == twin
    assert poll(bus, twin) == [twin] * 20


def test_who_waits_for_input_is_let_look_each_time(bus, device):
    values = poll(bus, SOURCE)
    assert values[-5:] == list(range(values[-5], values[-5] + 5))


def test_waiting_takes_time_and_reading_does_not(bus):
    clock = bus.clock
    clock.at(1_000_000, lambda: None)
    bus.read(Device.OFFSET, 4)
    assert clock.now == 50
    poll(bus, STEADY, 100)
    assert 1_000_000 <= clock.now < 1_000_000 + 100 * 50
    assert bus.polled == ("device.STATUS", Device.OFFSET, Poll.SOON)
    bus.write(Device.OFFSET + PLAIN, 4, 0)
    assert bus.polled is None


def test_no_event_is_jumped_over(bus):
    bus.clock.at(123_456, lambda: None)
    before = 0
    while bus.clock.now < 123_456:
        before = bus.clock.now
        bus.read(Device.OFFSET, 4)
    assert before < 123_456 <= bus.clock.now < 123_456 + 100


def test_a_cancelled_event_is_no_reason_to_stop(bus):
    clock = bus.clock
    clock.at(1_000_000, lambda: None)
    clock.at(100, lambda: None).cancel()
    assert clock.next_event == 1_000_000
    poll(bus, STEADY, 30)
    assert clock.now > 100_000


def test_in_company_a_core_wishes_instead_of_skipping(bus):
    clock = bus.clock
    clock.at(1_000_000, lambda: None)
    clock.company, clock.counter.limit = True, 1000
    poll(bus, STEADY, 15)
    assert clock.now == 15 * 50
    assert clock.wish == 20_000 + 15 * 50
    assert clock.counter.limit == 0


def test_each_core_polls_for_itself(bus):
    poll(bus, STEADY, 10)
    assert bus.polls.waits
    first = bus.polls.exchange(None)
    assert not bus.polls.waits
    second = bus.polls.exchange(first)
    assert bus.polls.waits
    bus.polls.exchange(second)
    assert not bus.polls.waits


def test_parts_and_pairs_of_words(bus):
    at = Device.OFFSET + 0x1FF8
    assert bus.read(at + 3, 1) == 0xFF
    assert bus.read(at + 2, 2) == 0xFFFF
    bus.write(Device.OFFSET + PLAIN, 8, 0x55_1234_5678)
    assert bus.read(Device.OFFSET + PLAIN, 4) == 0x12345678
    bus.write(Device.OFFSET + PLAIN + 1, 1, 0xABCD)
    assert bus.read(Device.OFFSET + PLAIN, 8) & 0xFFFFFFFF == 0xABCD00
    assert bus.read(Device.OFFSET + PLAIN + 1, 1) == 0xCD


def test_an_error_of_a_handler_comes_out(bus):
    with pytest.raises(LookupError):
        bus.read(Device.OFFSET + 0x1FFC, 4)
    assert bus.read(Device.OFFSET, 4) == 1


def test_saved_polls_are_taken_up(bus):
    poll(bus, STEADY, 10)
    saved = checked(bus.polls.kept)
    bus.write(Device.OFFSET + PLAIN, 4, 1)
    assert not bus.polls.waits
    bus.polls.kept = saved
    assert bus.polls.waits
    assert bus.polled == ("device.STATUS", Device.OFFSET, Poll.SOON)


@pytest.mark.parametrize(
    ("word", "value"), [(KNOWN, 9), (KNOWN, -1), (SLOT, 8), (PATIENT, 1 << 40), (LAST_COUNT, -(1 << 63))]
)
def test_saved_polls_from_strangers_are_refused(bus, word, value):
    saved = bytearray(bus.polls.kept)
    memoryview(saved).cast("q")[word] = value
    with pytest.raises(ValueError, match="poll"):
        checked(bytes(saved))
    with pytest.raises(ValueError, match="poll"):
        checked(b"odd")


LOOPS = {
    "CLO": "e3a0043f e2800a03 e5902004 e3520a32 3afffffc",
    "CLO and CHI": "e3a0043f e2800a03 e5901008 e5902004 e3520a32 3afffffb",
    "timer match": "e3a0043f e2800a03 e3a02a32 e5802010 e5902000 e3120002 0afffffc",
    "UART FR, CLO": "e3a0043f e2800a03 e2801602 e2411a02 e5913018 e5902004 e3520a32 3afffffb",
}
"""mov r0, #0x3f000000; add r0, r0, #0x3000; 1: ldr r2, [r0, #4]; cmp r2, #0x32000; blo 1b ..."""


@pytest.mark.parametrize("loop", LOOPS)
def test_guest_time_is_the_same_with_a_trace(boot, loop):
    words = [int(word, 16) for word in LOOPS[loop].split()]
    image = struct.pack(f"<{len(words) + 1}I", *words, 0xEAFFFFFE)
    seen = []
    lines: list[str] = []
    for traced in (False, True, False):
        machine = boot(image)
        if traced:
            Tracer(machine, parse_categories("mmio"), lines.append)
        machine.run(seconds=2)
        seen.append((machine.clock.now, machine.counter.count, machine.bus.accesses))
    assert seen[0] == seen[1] == seen[2]
    assert seen[0][0] >= 0x32000 * 1000
    assert lines


def test_the_trace_sees_every_access(boot):
    words = [int(word, 16) for word in LOOPS["CLO"].split()]
    machine = boot(struct.pack("<6I", *words, 0xEAFFFFFE))
    handler = machine.timer.on_read_CLO
    calls = []
    machine.timer.on_read_CLO = lambda: calls.append(1) or handler()
    Tracer(machine, parse_categories("mmio"), lambda _line: None)
    machine.run(seconds=2)
    assert len(calls) == machine.bus.accesses > 1000


def test_the_handler_of_the_timer_is_not_needed(boot):
    words = [int(word, 16) for word in LOOPS["CLO"].split()]
    machine = boot(struct.pack("<6I", *words, 0xEAFFFFFE))
    machine.timer.on_read_CLO = lambda: pytest.fail("called")
    machine.run(seconds=2)
    assert machine.bus.accesses > 1000


WILD = struct.pack("<4I", 0xE3A00205, 0xE5902000, 0xE3520001, 0x1AFFFFFC)
"""mov r0, #0x50000000; 1: ldr r2, [r0]; cmp r2, #1; bne 1b"""


def test_a_name_is_looked_for_again_when_a_block_is_attached(bus):
    start = 16 * Device.OFFSET
    assert bus.find(start + SOURCE) is None
    bus.attach(Device(), start)
    assert bus.find(start + SOURCE) == ("device.INPUT", Poll.INPUT)


def test_a_block_attached_later_counts_at_once(bus, device):
    device.status = 5
    assert bus.peek(Device.OFFSET + STEADY) == 5, "its page has been accessed"
    other = Device()
    bus.attach(other, Device.OFFSET)
    other.status = 7
    assert bus.peek(Device.OFFSET + STEADY) == 7
    bus.poke(Device.OFFSET + PLAIN, 9)
    assert (device.status, other.status) == (5, 9)


def test_a_block_on_two_pages_leaves_the_other_one_alone(bus, device):
    class Neighbour(Block):
        NAME = "neighbour"
        OFFSET = Device.OFFSET + 0x1000
        WORD = Register(0x00, reset=3)

    bus.attach(Neighbour())
    assert bus.peek(Device.OFFSET + STEADY) == 1
    assert bus.peek(Neighbour.OFFSET) == 3, "declared by the later one"
    assert bus.peek(Neighbour.OFFSET + 4) == 0x1004, "by none of them"


def test_where_nothing_is_only_the_first_access_is_said(boot):
    machine = boot(WILD)
    machine.run(seconds=0.01)
    said = [item for item in machine.reporter.items if item.code == "SOC-002"]
    assert len(said) == machine.reporter.counts["SOC-002"] == 1
    assert "0x50000000.. is read" in said[0].message
    assert lost_accesses(machine) > 100_000


def test_an_error_of_a_listener_comes_out(boot):
    machine = boot(WILD)
    machine.reporter.listeners.append(lambda item: (_ for _ in ()).throw(LookupError(item.code)))
    with pytest.raises(LookupError, match="SOC-002"):
        machine.run(seconds=0.01)
