"""Traces: what they say, and that they change nothing."""

import pytest

from vc4lab.memory import GuestMemory
from vc4lab.soc.address.bus import RegisterAccess
from vc4lab.soc.debug.trace import Tracer, UnknownCategory, describe_message, parse_categories
from vc4lab.soc.devices.timers import SystemTimer


@pytest.fixture
def traced(boot):
    def run(kernel: str, categories: str, **options):
        machine = boot(kernel, **options)
        lines: list[str] = []
        tracer = Tracer(machine, parse_categories(categories), lines.append)
        result = machine.run()
        tracer.close()
        return machine, result, lines

    return run


def test_registers_by_name_with_fields_and_exact_addresses(traced):
    _machine, _result, lines = traced("hello", "mmio")
    assert lines[0].endswith("0x0000800c  mmio     read   uart0.FR = 0x00000090 (TXFE=1, RXFE=1)")
    assert lines[1].endswith("0x00008020  mmio     write  uart0.DR = 0x00000068")
    assert lines[1].startswith("0.00000")


@pytest.mark.parametrize("kernel", ["hello", "framebuffer", "irq", "wait", "v3d", "svc"])
def test_a_trace_changes_nothing(traced, boot, kernel):
    plain = boot(kernel)
    result = plain.run()
    machine, traced_result, lines = traced(kernel, "all")
    assert traced_result == result
    assert machine.counter.count == plain.counter.count
    assert machine.uart.text == plain.uart.text
    assert lines


def test_polls_are_counted(traced):
    _machine, _result, lines = traced("wait", "mmio")
    assert any("more times" in line for line in lines)


def test_messages_in_words(traced):
    _machine, _result, lines = traced("framebuffer", "mailbox")
    text = "\n".join(lines)
    assert "channel 8 (property tags)" in text
    assert "set physical size (width=64, height=48) -> (width=64, height=48)" in text


def test_interrupts(traced):
    _machine, _result, lines = traced("irq", "irq")
    text = "\n".join(lines)
    assert "line 1 (timer 1) up" in text
    assert "core 0 takes an exception: interrupt" in text
    assert "line 1 (timer 1) down" in text


def test_v3d(traced):
    _machine, _result, lines = traced("v3d", "v3d")
    text = "\n".join(lines)
    assert "v3d      write  CT1EA = 0x" in text
    assert "frame 1 is on the display" in text
    assert "uart" not in text


def test_registers_of_the_v3d_have_names_and_fields(boot):
    machine = boot("v3d")
    lines: list[str] = []
    tracer = Tracer(machine, parse_categories("mmio"), lines.append)
    bridge = machine.v3d_bridge.OFFSET
    machine.bus.write(bridge + 0x100, 4, 0x20)
    machine.v3d_bridge.switch("domain", True)
    machine.bus.read(bridge, 4)
    machine.bus.read(bridge + 0x684, 4)
    machine.bus.write(bridge + 0x200, 4, 5)
    tracer.close()
    machine.bus.read(bridge, 4)
    assert [line.split("  ", 2)[2] for line in lines] == [
        "v3d      write  CT0CS = 0x00000020 (CTRUN=1)",
        "v3d      read   IDENT0 = 0x02443356",
        "v3d      read   PCTRS0 = 0x00000000",
        "v3d      write  v3d+0x200 = 0x00000005",
    ]


def test_lines_are_named_when_they_change(boot):
    machine = boot("hello")
    lines: list[str] = []
    tracer = Tracer(machine, parse_categories("irq"), lines.append)
    interrupts = machine.interrupts
    interrupts.enabled = 1 << 29
    for level in (True, True, False, False):
        interrupts.set_basic(1, level)
        interrupts.set_line(29, level)
        interrupts.set_line(40, level)
    tracer.close()
    interrupts.set_line(29, True)
    assert [line.split("irq      ")[1] for line in lines] == [
        "ARM line 1 (ARM mailbox) up", "line 29 (mini UART) up", "line 40 up, not enabled",
        "ARM line 1 (ARM mailbox) down", "line 29 (mini UART) down", "line 40 down, not enabled",
    ]  # fmt: skip


def test_accesses_have_any_number_of_listeners(boot):
    machine = boot("hello")
    heard: list[RegisterAccess] = []
    bus, timer = machine.bus, SystemTimer.OFFSET
    one = bus.watch(heard.append)
    with bus.watch(heard.append):
        bus.write(timer + 0x10, 4, 500)
        assert bus.read(timer + 0x10, 4) == 500
    bus.peek(timer + 0x10)
    one.close()
    bus.read(timer + 0x10, 4)
    write = RegisterAccess(timer + 0x10, 500, is_write=True)
    read = RegisterAccess(timer + 0x10, 500, is_write=False)
    assert heard == [write, write, read, read, read]


def test_categories():
    assert parse_categories(" mmio, IRQ ") == {"mmio", "irq"}
    assert len(parse_categories("all")) == 4
    for text in ("", ",", "everything"):
        with pytest.raises(UnknownCategory):
            parse_categories(text)


def test_hostile_messages():
    memory = GuestMemory(1 << 20)
    memory.write(0x1000, b"\xff" * 4096)
    for address in (0x1000, (1 << 20) - 4, 0xFFFFFFF0, 0):
        assert describe_message(memory, address, answered=False) == []
    memory.write(0x1000, (0x40000000).to_bytes(4, "little") + bytes(4) + b"\1\0\0\0" * 600)
    assert len(describe_message(memory, 0x1000, answered=True)) <= 64
