"""Interrupts that are enabled in the wrong register: SOC-068."""

import struct

import pytest

from vc4lab.soc.devices.interrupts import InterruptController
from vc4lab.soc.inspect.wrong_bank import wrong_bank

UNMASKED, MASKED = 0xF1080080, 0xF10C0080
"""cpsie i, cpsid i."""
TIMER_1, UART, ARM_TIMER = 1, 57, 64


def controller(enabled: dict[int, int], basic: int = 0, raised: tuple[int, ...] = ()):
    """Banks → bits that are set; lines that are up."""
    found = InterruptController(lambda: None)
    for bank, bits in enabled.items():
        found.on_write_ENABLE(bank, bits)
    found.on_write_ENABLE_BASIC(basic)
    for line in raised:
        if line < 64:
            found.set_line(line, True)
        else:
            found.set_basic(line - 64, True)
    return found


@pytest.mark.parametrize(
    ("enabled", "basic", "raised", "pair"),
    [
        ({1: 1 << 1}, 0, (TIMER_1,), (TIMER_1, 33)),
        ({0: 1 << 25}, 0, (UART,), (UART, 25)),
        ({0: 1}, 0, (ARM_TIMER,), (ARM_TIMER, 0)),
        ({}, 1 << 1, (TIMER_1,), (TIMER_1, 65)),
        ({0: 1 << 1}, 0, (TIMER_1,), None),
        ({1: 1 << 3}, 0, (TIMER_1,), None),
        ({1: 1 << 1}, 0, (), None),
        ({0: 1 << 9, 1: 1 << 25}, 0, (UART, 9), None),
        ({1: 1 << 1}, 0, (33, TIMER_1), None),  # what is enabled has asked as well
    ],
)
def test_pairs_of_lines(enabled, basic, raised, pair):
    assert wrong_bank(controller(enabled, basic, raised)) == pair


def test_a_line_that_is_the_fiq_is_enabled():
    found = controller({1: 1 << 1}, raised=(TIMER_1,))
    found.values[0x0C] = 0x80 | TIMER_1
    assert wrong_bank(found) is None


@pytest.mark.parametrize(("register", "reported"), [("214", True), ("210", False)])
def test_a_program_that_waits_for_the_timer(boot, tmp_path, register, reported):
    """It enables line 1 by ENABLE_IRQS_2, and does not unmask: nothing else happens."""
    words = (
        "e3a0443f",  # mov r4, #0x3f000000
        "e2845a03",  # add r5, r4, #0x3000
        "e5950004",  # ldr r0, [r5, #4]
        "e2800ffa",  # add r0, r0, #1000
        "e5850010",  # str r0, [r5, #0x10]
        "e2846cb0",  # add r6, r4, #0xb000
        "e3a00002",  # mov r0, #2
        f"e5860{register}",  # str r0, [r6, #0x210 or #0x214]
        "e1a00000",  # 1: nop
        "eafffffd",  # b 1b
    )
    machine = boot(b"".join(bytes.fromhex(word)[::-1] for word in words))
    machine.run(seconds=0.01)
    assert machine.reporter.has("SOC-068") is reported
    if reported:
        (item,) = [i for i in machine.reporter.items if i.code == "SOC-068"]
        assert "line 1 (timer 1)" in item.message
        assert "ENABLE_IRQS_1 (0xB210)" in item.message


@pytest.mark.parametrize(
    ("routes", "control", "masks", "told"),
    [
        (0, 1, 0xF1080080, True),
        (2, 1, 0xF1080080, False),
        (0, 3, 0xF1080080, False),
        (0, 1, 0xF10C0080, False),
    ],
)
def test_a_core_timer_that_nothing_hears(boot, routes, control, masks, told):
    """Set, and then wfi; bit 1 of `control` masks the timer itself."""
    code = (
        *(0xE59F0018, 0xE3A01000 | routes, 0xE5801000, 0xE3A01000 | control),  # r0 = 0x40000040
        *(0xEE0E1F32, masks, 0xE320F003, 0xEAFFFFFD, 0x40000040),  # CNTV_CTL is c14, c3, 1
    )
    machine = boot(struct.pack("<9I", *code))
    machine.run(seconds=0.01)
    found = [item.message for item in machine.reporter.items if item.code == "SOC-118"]
    assert len(found) == told
    assert not told or "core 0's own timer" in found[0]
