"""Traces: what they say, and that they change nothing."""

from __future__ import annotations

import pytest

from vc4lab.memory import GuestMemory
from vc4lab.soc.debug.trace import Tracer, UnknownCategory, parse_categories
from vc4lab.soc.debug.trace_text import describe_message


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
