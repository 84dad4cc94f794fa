"""Register blocks one by one, from the bus."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.guest_time import skip_to_event

from vc4lab.registers import Register
from vc4lab.soc.address.block import Block

HALT = bytes.fromhex("feffffea")
TIMER, IRQ, ARM_TIMER, GPIO, SMI = 0x3000, 0xB200, 0xB400, 0x200000, 0x600000
UART, AUX, PM, RNG = 0x201000, 0x215000, 0x100000, 0x104000


@pytest.fixture
def machine(boot):
    return boot(HALT, "fake_vsync_isr=1")


@pytest.fixture
def bus(machine):
    return machine.bus


def test_blocks_are_declared(bus):
    class Toy(Block):
        NAME = "toy"
        A = Register(0, reset=5)
        B = Register(4, access="r")
        C = Register(8, access="w")
        ROW = Register(0x10, count=3)

        def on_write_ROW(self, index: int, value: int) -> None:
            self.A = 100 * index + value

    toy = Toy()
    reads, writes = toy.read_handlers(), toy.write_handlers()
    assert reads[0]() == 5
    writes[0x18](7)
    assert toy.A == 207
    assert 4 not in writes
    assert 8 not in reads
    place = 0xF00000
    bus.attach(toy, place)
    for offset in (4, 8):
        bus.write(place + offset, 4, 1)
    assert (toy.B, toy.C) == (0, 1)
    assert (bus.read(place + 4, 4), bus.read(place + 8, 4)) == (0, 0)
    assert toy.register_at(0x14)[0] == "ROW[1]"
    with pytest.raises(TypeError, match="undeclared"):
        type("Bad", (Block,), {"on_read_NOTHING": lambda self: 0})


def test_system_timer_match(machine, bus):
    bus.write(TIMER + 0x10, 4, 500)
    assert bus.read(TIMER, 4) == 0
    machine.clock.skip(500_000)
    machine.clock.run_due()
    assert bus.read(TIMER, 4) == 2
    assert bus.read(IRQ + 4, 4) == 0
    bus.write(IRQ + 0x10, 4, 2)
    assert bus.read(IRQ + 4, 4) == 2
    assert bus.read(IRQ, 4) == 1 << 8
    bus.write(TIMER, 4, 2)
    assert (bus.read(TIMER, 4), bus.read(IRQ + 4, 4)) == (0, 0)


def test_vsync_line_and_acknowledge(machine, bus):
    bus.write(IRQ + 0x14, 4, 1 << 16)
    skip_to_event(machine.clock)
    machine.clock.run_due()
    assert bus.read(IRQ + 8, 4) == 1 << 16
    assert bus.read(IRQ, 4) == 1 << 9
    bus.write(SMI, 4, 0)
    assert bus.read(IRQ + 8, 4) == 0
    assert machine.smi.acknowledged == 1


def test_arm_timer_counts_down_and_interrupts(machine, bus):
    bus.write(ARM_TIMER + 0x1C, 4, 249)
    bus.write(ARM_TIMER, 4, 1000)
    bus.write(ARM_TIMER + 8, 4, 0x3E00A2)
    bus.write(IRQ + 0x18, 4, 1)
    machine.clock.skip(400_000)
    assert bus.read(ARM_TIMER + 4, 4) == 600
    machine.clock.skip(700_000)
    machine.clock.run_due()
    assert bus.read(ARM_TIMER + 0x14, 4) == 1
    assert bus.read(IRQ, 4) & 1
    bus.write(ARM_TIMER + 0xC, 4, 0)
    assert bus.read(ARM_TIMER + 0x10, 4) == 0
    assert bus.read(IRQ, 4) & 1 == 0


def test_gpio_log(machine, bus):
    bus.write(GPIO + 0x10, 4, 1 << 21)
    assert machine.gpio.function(47) == "output"
    bus.write(GPIO + 0x20, 4, 1 << 15)
    bus.write(GPIO + 0x2C, 4, 1 << 15)
    bus.write(GPIO + 0x1C, 4, 1 << 20)
    assert [(e.pin, e.level) for e in machine.gpio.log] == [(47, 1), (47, 0)]
    assert bus.read(GPIO + 0x34, 4) >> 20 & 1 == 0, "an input shows what drives it"
    bus.write(GPIO + 8, 4, 1)
    assert bus.read(GPIO + 0x34, 4) >> 20 & 1, "as an output it shows what was set"


def test_gpio_inputs_read_as_they_are_pulled_and_driven(machine, bus):
    assert bus.read(GPIO + 0x34, 4) == 0x1FF
    assert bus.read(GPIO + 0x38, 4) == 0x3F801C, "pin 46 is low while a monitor is connected"
    bus.write(GPIO + 0x94, 4, 2)
    bus.write(GPIO + 0x98, 4, 1 << 17)
    bus.write(GPIO + 0x94, 4, 1)
    bus.write(GPIO + 0x98, 4, 1)
    assert bus.read(GPIO + 0x34, 4) == 0x1FE | 1 << 17
    machine.gpio.drive(17, 0)
    machine.gpio.drive(18, 1)
    assert bus.read(GPIO + 0x34, 4) == 0x1FE | 1 << 18
    machine.gpio.drive(17, None)
    assert bus.read(GPIO + 0x34, 4) >> 17 & 1


def test_an_output_is_low_whatever_pulls_or_drives_it(machine, bus):
    machine.gpio.drive(1, 1)
    bus.write(GPIO, 4, 1 | 1 << 3)
    assert bus.read(GPIO + 0x34, 4) == 0x1FC
    bus.write(GPIO + 0x1C, 4, 2)
    assert bus.read(GPIO + 0x34, 4) == 0x1FE


@pytest.mark.parametrize(("pin", "line"), [(17, 49), (30, 50), (47, 51)])
def test_gpio_events_interrupt(machine, bus, pin, line):
    bank, bit = 4 * (pin // 32), 1 << pin % 32
    machine.gpio.drive(pin, 0)
    bus.write(IRQ + 0x14, 4, 1 << line - 32)
    bus.write(GPIO + 0x4C + bank, 4, bit)
    machine.gpio.drive(pin, 1)
    assert bus.read(GPIO + 0x40 + bank, 4) == bit
    assert bus.read(IRQ + 8, 4) == 1 << line - 32
    machine.gpio.drive(pin, 0)
    bus.write(GPIO + 0x40 + bank, 4, bit)
    assert (bus.read(GPIO + 0x40 + bank, 4), bus.read(IRQ + 8, 4)) == (0, 0)
    bus.write(GPIO + 0x70 + bank, 4, bit)
    bus.write(GPIO + 0x40 + bank, 4, bit)
    assert bus.read(GPIO + 0x40 + bank, 4) == bit, "a level is an event as long as it lasts"


def test_gpio_edges_of_outputs_are_events(machine, bus):
    bus.write(GPIO + 4, 4, 1 << 21)
    bus.write(GPIO + 0x88, 4, 1 << 17)
    bus.write(GPIO + 0x1C, 4, 1 << 17)
    assert bus.read(GPIO + 0x40, 4) == 0
    bus.write(GPIO + 0x28, 4, 1 << 17)
    assert bus.read(GPIO + 0x40, 4) == 1 << 17


def test_uart_interrupt_and_input(machine, bus):
    bus.write(UART + 0x38, 4, 1 << 4)
    bus.write(IRQ + 0x14, 4, 1 << 25)
    assert bus.read(UART + 0x18, 4) == 0x90
    machine.serial.type("ab")
    machine.uart.poll_input()
    assert bus.read(IRQ, 4) == 1 << 19
    assert (bus.read(UART, 4), bus.read(UART, 4)) == (ord("a"), ord("b"))
    assert bus.read(IRQ, 4) == 0
    bus.write(UART, 1, ord("x"))
    assert machine.uart.text == "x"


def test_serial_flood_is_bounded(machine, bus):
    total = (1 << 20) + 1000
    for _ in range(total):
        machine.serial.send(65)
    assert machine.serial.sent == total
    assert len(machine.uart.text) <= 1 << 20


def test_aux_identity_and_random(bus):
    assert bus.read(AUX + 0x10, 4) == 0x61757830
    bus.write(RNG, 4, 1)
    assert bus.read(RNG + 4, 4) >> 24
    assert bus.read(RNG + 8, 4) != bus.read(RNG + 8, 4)


def test_watchdog_reset(machine, bus):
    from vc4lab.soc.machine import Stop

    bus.write(PM + 0x24, 4, 0x5A00000A)
    bus.write(PM + 0x1C, 4, 0x5A000020)
    skip_to_event(machine.clock)
    machine.interrupts.on_write_ENABLE(0, 1)
    assert machine.run().reason in (Stop.RESET, Stop.HALTED)


def test_fiq_is_seen(machine, bus):
    bus.write(IRQ + 0xC, 4, 0x80 | 48)
    assert machine.interrupts.any_enabled
    machine.smi.vsync()
    assert machine.interrupts.pending_fiq


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    offset=st.integers(0, 0xFFFFFF)
    | st.sampled_from([TIMER, IRQ, ARM_TIMER, GPIO, SMI, UART, AUX, PM, 0xC00000, 0x101000]).flatmap(
        lambda base: st.integers(0, 0x100).map(lambda at: base + at)
    ),
    value=st.integers(0, 0xFFFFFFFF),
    size=st.sampled_from([1, 2, 4, 8]),
)
def test_any_access_is_survived(machine, offset, value, size):
    machine.bus.write(offset, size, value)
    read = machine.bus.read(offset, size)
    assert 0 <= read < 1 << 8 * size
    machine.local_bus.write(offset & 0xFFF, size, value)
    assert 0 <= machine.local_bus.read(offset & 0xFFF, size) < 1 << 8 * size
    skip_to_event(machine.clock)
    machine.clock.run_due()
