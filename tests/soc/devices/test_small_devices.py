"""Mini UART, ARM timer, random numbers, watchdog and clock manager, register by register."""

import pytest

from vc4lab.soc.machine import Stop

HALT = bytes.fromhex("feffffea")
AUX, IRQ, PM, CM, RNG, ARM_TIMER = 0x215000, 0xB200, 0x100000, 0x101000, 0x104000, 0xB400
IO, IER, IIR, LCR, LSR, CNTL, STAT, BAUD = 0x40, 0x44, 0x48, 0x4C, 0x54, 0x60, 0x64, 0x68


@pytest.fixture
def machine(boot):
    return boot(HALT)


@pytest.fixture
def aux(machine):
    class Aux:
        def __getitem__(self, at):
            return machine.bus.read(AUX + at, 4)

        def __setitem__(self, at, value):
            machine.bus.write(AUX + at, 4, value)

    registers = Aux()
    registers[4] = 1
    return registers


def codes(machine):
    return {item.code for item in machine.reporter.items}


def test_mini_uart_has_to_be_enabled(machine, aux):
    aux[4] = 0
    aux[IO] = ord("x")
    assert machine.uart.text == ""
    assert "SOC-054" in codes(machine)
    aux[4] = 0xFF
    assert aux[4] == 7
    aux[IO] = ord("y")
    assert machine.uart.text == "y"


def test_mini_uart_is_enabled_by_the_firmware(boot, tmp_path):
    (tmp_path / "kernel8.img").write_bytes(HALT)
    machine = boot(HALT, "enable_uart=1\narm_64bit=0\nkernel=kernel7.img", board="pi3")
    assert machine.bus.read(AUX + 4, 4) == 1


def test_mini_uart_holds_bytes_while_the_transmitter_is_off(machine, aux):
    aux[CNTL] = 1
    for byte in b"0123456789":
        aux[IO] = byte
    assert machine.uart.text == ""
    assert aux[LSR] == 0
    assert aux[STAT] >> 24 == 8
    aux[CNTL] = 3
    assert machine.uart.text == "01234567"
    assert aux[LSR] == 0x20
    machine.clock.skip(1_000_000)
    assert aux[LSR] == 0x60
    aux[CNTL] = 1
    aux[IO] = 65
    aux[IIR] = 4
    aux[CNTL] = 3
    assert machine.uart.text == "01234567"


def test_mini_uart_receives(machine, aux):
    machine.bus.write(IRQ + 0x10, 4, 1 << 29)
    aux[IER] = 1
    assert aux[IIR] == 0xC1
    machine.serial.type("abc")
    machine.mini_uart.poll_input()
    assert machine.bus.read(IRQ + 4, 4) == 1 << 29
    assert (aux[IIR], aux[0], aux[LSR] & 1) == (0xC4, 1, 1)
    assert aux[STAT] >> 16 & 15 == 3
    assert aux[IO] == ord("a")
    aux[CNTL] = 2
    assert (aux[LSR] & 1, aux[IO]) == (0, 0)
    aux[CNTL] = 3
    aux[IIR] = 2
    assert aux[LSR] & 1 == 0
    assert machine.bus.read(IRQ + 4, 4) == 0
    aux[IER] = 2
    assert (aux[IIR], aux[0]) == (0xC2, 1)


def test_mini_uart_divider_behind_lcr(machine, aux):
    aux[LCR] = 0x83
    aux[IO] = 0x0E
    aux[IER] = 1
    assert (aux[BAUD], aux[IO], aux[IER]) == (270, 0x0E, 1)
    aux[LCR] = 3
    assert aux[IER] == 0
    assert machine.uart.text == ""


def test_arm_timer_of_16_bits(machine):
    bus = machine.bus
    bus.write(ARM_TIMER + 8, 4, 0x3E0080)
    bus.write(ARM_TIMER, 4, 0x12345)
    assert bus.read(ARM_TIMER + 4, 4) == 0x2345
    bus.write(ARM_TIMER + 8, 4, 0x3E0082)
    bus.write(ARM_TIMER, 4, 0x12345)
    assert bus.read(ARM_TIMER + 4, 4) == 0x12345


def test_random_numbers_and_their_interrupt(machine):
    bus = machine.bus
    assert bus.read(RNG + 8, 4) == 0
    bus.write(IRQ + 0x14, 4, 1 << 29)
    bus.write(RNG + 4, 4, 0x40000)
    bus.write(RNG + 0x10, 4, 1)
    bus.write(RNG, 4, 1)
    assert bus.read(RNG + 4, 4) == 0x01040000
    assert bus.read(IRQ + 8, 4) == 0
    bus.write(RNG + 0x10, 4, 0)
    assert bus.read(IRQ + 8, 4) == 1 << 29
    assert bus.read(RNG + 8, 4) != 0


def test_watchdog_is_fed_and_bites(machine):
    bus = machine.bus
    bus.write(PM + 0x24, 4, 0x5A000000 | 65536)
    bus.write(PM + 0x1C, 4, 0x5A000020)
    machine.clock.skip(500_000_000)
    assert abs(bus.read(PM + 0x24, 4) - 32768) < 10
    bus.write(PM + 0x24, 4, 0x5A000000 | 65536)
    assert bus.read(PM + 0x24, 4) > 65500
    result = machine.run()
    assert result.reason is Stop.RESET
    assert 1.4 < result.seconds < 1.6


def test_halt_partition_switches_off(machine):
    bus = machine.bus
    bus.write(PM + 0x20, 4, 0x5A000555)
    bus.write(PM + 0x24, 4, 0x5A00000A)
    bus.write(PM + 0x1C, 4, 0x5A000020)
    result = machine.run()
    assert result.reason is Stop.HALTED
    assert "off" in result.message


def test_passwords(machine):
    bus = machine.bus
    bus.write(PM + 0x1C, 4, 0x20)
    assert not machine.power.armed
    assert "SOC-055" in codes(machine)
    bus.write(CM + 0xA4, 4, 0x5A002000)
    bus.write(CM + 0xA0, 4, 0x5A000011)
    assert bus.read(CM + 0xA0, 4) == 0x91
    assert bus.read(CM + 0xA4, 4) == 0x2000
