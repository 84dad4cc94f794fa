"""The PL011: FIFO triggers, timeout, loopback, and whether its line is connected."""

import struct

import pytest

from vc4lab.soc.states.state import load_state, save_state

HALT = bytes.fromhex("feffffea")
UART, IRQ, GPFSEL1 = 0x201000, 0xB200, 0x200004
DR, FR, LCRH, CR, IFLS, IMSC, RIS, MIS, ICR = 0, 0x18, 0x2C, 0x30, 0x34, 0x38, 0x3C, 0x40, 0x44
RX, TX, TIMEOUT = 1 << 4, 1 << 5, 1 << 6
PENDING = 1 << 19
"""The PL011's line in the basic pending register."""


@pytest.fixture
def machine(boot):
    return boot(HALT)


@pytest.fixture
def uart(machine):
    class Registers:
        def __getitem__(self, at):
            return machine.bus.read(UART + at, 4)

        def __setitem__(self, at, value):
            machine.bus.write(UART + at, 4, value)

    machine.bus.write(IRQ + 0x14, 4, 1 << 25)
    return Registers()


def arrives(machine, text):
    machine.serial.type(text)
    machine.uart.poll_input()
    return bool(machine.bus.read(IRQ, 4) & PENDING)


@pytest.mark.parametrize(("select", "trigger"), [(0, 2), (1, 4), (2, 8), (3, 12), (4, 14), (7, 14)])
def test_so_many_bytes_raise_the_receive_interrupt(machine, uart, select, trigger):
    uart[LCRH], uart[IFLS], uart[IMSC] = 0x70, select << 3, RX
    assert not arrives(machine, "x" * (trigger - 1))
    assert arrives(machine, "x")
    assert uart[DR] == ord("x")
    assert not machine.bus.read(IRQ, 4) & PENDING


def test_fewer_bytes_raise_the_timeout(machine, uart):
    uart[LCRH], uart[IMSC] = 0x70, TIMEOUT
    assert arrives(machine, "x")
    assert (uart[RIS], uart[MIS]) == (TIMEOUT, TIMEOUT)
    assert uart[DR] == ord("x")
    assert (uart[RIS], machine.bus.read(IRQ, 4) & PENDING) == (0, 0)


def test_without_the_fifo_each_byte_interrupts(machine, uart):
    uart[IMSC] = RX
    assert uart[FR] & 0x50 == 0x10
    assert arrives(machine, "x")
    assert uart[FR] & 0x50 == 0x40, "a FIFO of one byte is full"


def test_loopback(machine, uart):
    uart[CR] = 0x381
    for byte in b"abc":
        uart[DR] = byte
    assert machine.uart.text == ""
    assert bytes(uart[DR] for _ in range(3)) == b"abc"
    assert uart[FR] & 0x10


def hints(machine):
    return [item.message for item in machine.reporter.items if item.code == "SOC-058"]


def test_a_uart_that_is_not_enabled(machine, uart):
    uart[DR] = ord("x")
    uart[DR] = ord("y")
    assert [("not enabled" in text, "GPIO" in text) for text in hints(machine)] == [(True, False)]
    assert machine.uart.text == "xy"


def test_a_uart_whose_pin_does_something_else(machine, uart):
    uart[CR] = 0x301
    machine.bus.write(GPFSEL1, 4, 1 << 12)
    uart[DR] = ord("x")
    assert "GPIO 14 is output, not alt0" in hints(machine)[0]


def test_the_mini_uart_of_a_header_that_has_the_other(machine):
    machine.bus.write(0x215004, 4, 1)
    machine.bus.write(0x215040, 4, ord("x"))
    assert "GPIO 14 is alt0, not alt5" in hints(machine)[0]


@pytest.mark.parametrize(("board", "at"), [("pi2", UART), ("pi3", 0x215040)])
def test_enable_uart_makes_the_line_ready(boot, board, at):
    config = "enable_uart=1\narm_64bit=0\nkernel=kernel7.img"
    machine = boot(HALT, config, board=board)
    machine.bus.write(at, 4, ord("x"))
    assert machine.uart.text == "x"
    assert not hints(machine)


# -- the line's speed ------------------------------------------------------------------------------

IBRD, FBRD, DMACR = 0x24, 0x28, 0x48
FIFO_ON, ALL_ON = 0x70, 0x301
AUX_ENABLES, IO, LSR, BAUD = 0x215004, 0x215040, 0x215054, 0x215068
AUX_IER, AUX_IIR, AUX_STAT = 0x215044, 0x215048, 0x215064


@pytest.fixture
def sending(uart):
    uart[IBRD], uart[FBRD], uart[LCRH], uart[CR] = 26, 3, FIFO_ON, ALL_ON
    return uart


def codes(machine):
    found = (item.code for item in machine.reporter.items)
    return [code for code in found if code in ("SOC-130", "SOC-131")]


@pytest.mark.parametrize(("lcrh", "holds"), [(FIFO_ON, 16), (0x60, 1)])
def test_bytes_that_a_full_fifo_loses(machine, sending, lcrh, holds):
    sending[LCRH] = lcrh
    for _ in range(holds + 1):  # one of them is on the line
        sending[DR] = 65
    assert not codes(machine)
    for _ in range(40):
        sending[DR] = 65
    assert codes(machine) == ["SOC-130"]
    assert machine.serial.text == "A" * (holds + 41)


FULL, EMPTY, BUSY = 1 << 5, 1 << 7, 1 << 3
BYTE = 86_822
"""Nanoseconds at 115,200 baud."""


@pytest.mark.parametrize(("lcrh", "holds"), [(FIFO_ON, 16), (0x60, 1)])
def test_a_program_that_waits_for_room_loses_nothing(machine, sending, lcrh, holds):
    """The FIFO empties at the line's rate; time skips to the moment at which there is room."""
    sending[LCRH] = lcrh
    began = machine.clock.now
    for _ in range(100):
        while sending[FR] & FULL:
            pass
        sending[DR] = 65
    assert not codes(machine)
    took = machine.clock.now - began
    assert (99 - holds) * BYTE <= took < (99 - holds) * BYTE + 60_000
    assert sending[FR] & (FULL | EMPTY | BUSY) == FULL | BUSY
    while not sending[FR] & EMPTY:
        pass
    assert sending[FR] & BUSY, "the last byte is on the line"
    while sending[FR] & BUSY:
        pass
    assert 99 * BYTE <= machine.clock.now - began < 100 * BYTE + 60_000


def test_a_counted_wait_for_room_is_executed(boot):
    """A loop that counts its looks at FR counts as many as fit into the time of a byte."""
    code = (
        *(0xE59F003C, 0xE3A0201A, 0xE5802024, 0xE3A02003, 0xE5802028, 0xE3A02060, 0xE580202C),
        *(0xE59F2024, 0xE5802030, 0xE5802000, 0xE5802000, 0xE3A03000),
        *(0xE5902018, 0xE2833001, 0xE3120020, 0x1AFFFFFB, 0xEAFFFFFE, UART | 0x3F000000, 0x301),
    )
    machine = boot(struct.pack(f"<{len(code)}I", *code))
    machine.run(seconds=0.01)
    look = 50 + 4 * machine.board.ns_per_instruction
    assert machine.cpu.register(3) == pytest.approx(BYTE / look, rel=0.02)


@pytest.mark.parametrize(("select", "few"), [(0, 2), (2, 8), (4, 14)])
def test_the_transmit_interrupt_comes_when_few_bytes_are_left(machine, sending, select, few):
    sending[IFLS], sending[IMSC] = select, TX
    for _ in range(17):
        sending[DR] = 65
    assert not sending[RIS] & TX
    assert not machine.bus.read(IRQ, 4) & PENDING
    moment = machine.uart._queue.done - (few + 1) * BYTE
    machine.clock.skip(moment - machine.clock.now - 200)
    machine.clock.run_due()
    assert not sending[MIS] & TX
    machine.clock.skip(200)
    machine.clock.run_due()
    assert machine.bus.read(IRQ, 4) & PENDING
    assert sending[MIS] & TX
    sending[ICR] = TX
    assert not sending[RIS] & TX


def test_bytes_on_the_line_are_part_of_a_state(boot, machine, sending, tmp_path):
    for _ in range(10):
        sending[DR] = 65
    save_state(machine, tmp_path / "state")
    other = boot(HALT)
    load_state(other, tmp_path / "state")
    assert other.bus.read(UART + FR, 4) & BUSY
    assert other.uart.room() == machine.uart.room() == 7


def test_forgiving_bytes_are_gone_at_once(boot):
    machine = boot(HALT, forgiving=True)
    for at, value in ((IBRD, 26), (FBRD, 3), (CR, ALL_ON), *((DR, 65),) * 40):
        machine.bus.write(UART + at, 4, value)
    assert machine.bus.read(UART + FR, 4) & (FULL | EMPTY) == EMPTY
    assert not codes(machine)


def test_a_program_that_takes_its_time_loses_nothing(machine, sending):
    for _ in range(60):
        sending[DR] = 65
        machine.clock.skip(87_000)
    assert not codes(machine)


def test_dma_waits_for_room(machine, sending):
    sending[DMACR] = 2
    for _ in range(60):
        sending[DR] = 65
    assert not codes(machine)


@pytest.mark.parametrize(("look", "found"), [(True, []), (False, ["SOC-130"])])
def test_the_mini_uarts_fifo(machine, look, found):
    machine.bus.write(AUX_ENABLES, 4, 1)
    machine.bus.write(BAUD, 4, 270)
    for _ in range(30):
        while look and not machine.bus.read(LSR, 4) & 0x20:
            pass
        machine.bus.write(IO, 4, 66)
    assert codes(machine) == found
    assert machine.serial.text == "B" * 30
    status = machine.bus.read(LSR, 4), machine.bus.read(AUX_STAT, 4)
    assert (status[0] & 0x60, status[1] >> 24, status[1] & 0x322) == (0, 8, 0x20)
    machine.clock.skip(11 * 87_000)
    status = machine.bus.read(LSR, 4), machine.bus.read(AUX_STAT, 4)
    assert (status[0] & 0x60, status[1] >> 24, status[1] & 0x322) == (0x60, 0, 0x302)


def test_the_mini_uarts_transmit_interrupt(machine):
    """It comes when the FIFO is empty."""
    machine.bus.write(AUX_ENABLES, 4, 1)
    machine.bus.write(BAUD, 4, 270)
    machine.bus.write(AUX_IER, 4, 2)
    assert machine.bus.read(AUX_IIR, 4) & 7 == 2
    for _ in range(3):
        machine.bus.write(IO, 4, 66)
    assert machine.bus.read(AUX_IIR, 4) & 7 == 1
    assert not machine.mini_uart.on_read_IRQ()
    machine.clock.skip(2 * 87_000)
    machine.clock.run_due()
    assert machine.interrupts.lines >> 29 & 1
    assert machine.bus.read(AUX_IIR, 4) & 7 == 2


@pytest.mark.parametrize(
    ("divisors", "config", "found"),
    [
        ((26, 3), "", []),
        ((312, 32), "", []),
        ((1, 0), "", []),
        ((0, 0), "", []),
        ((1, 40), "", ["SOC-131"]),
        ((1, 40), "init_uart_clock=3000000\n", []),
        ((26, 3), "init_uart_clock=3000000\n", ["SOC-131"]),
        ((7, 0), "", ["SOC-131"]),
    ],
)
def test_rates_that_no_terminal_knows(boot, divisors, config, found):
    machine = boot(HALT, config=config)
    for at, value in zip((IBRD, FBRD, CR, DR, DR), (*divisors, ALL_ON, 65, 65), strict=True):
        machine.bus.read(UART + FR, 4)
        machine.bus.write(UART + at, 4, value)
    assert codes(machine) == found
    if divisors == (1, 40) and found:
        assert "115385 baud" in machine.reporter.items[-1].message
