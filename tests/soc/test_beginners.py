"""Mistakes of beginners that end in something else: the message names the mistake itself."""

import struct

import pytest

from vc4lab.soc.boot.instruction_set import seems_wide

HALT = bytes.fromhex("feffffea")
TIMER = 0x3000
WIDE = "arm_64bit=1\nkernel=kernel7.img\n"


def words(*code: int) -> bytes:
    return struct.pack(f"<{len(code)}I", *code)


PUSH = words(0xE92D4070, 0xE8BD4070)  # push {r4-r6, lr}; pop {r4-r6, lr}
FLOAT = words(0xED9F0A00)  # vldr s0, [pc]
START_32 = words(
    0xE10F0000, 0xE200101F, 0xE351001A, 0x1A000005, 0xE3C0001F, 0xE38000D3, 0xE16FF000, 0xE59FD010,
    0xE3A02000, 0xE59F000C, 0xE59F100C, 0xEB000100,
)  # fmt: skip
START_64 = words(
    0xD53800A1, 0x92400421, 0xB4000061, 0xD503205F, 0x17FFFFFF, 0x58000161, 0x9100003F, 0x58000161,
    0x18000162, 0x34000082, 0xF800843F, 0x51000442, 0x35FFFFA2, 0x940001F0,
)  # fmt: skip


def said(machine, code):
    return next(item.message for item in machine.reporter.items if item.code == code)


def test_a_stack_pointer_that_was_never_set(boot):
    machine = boot(PUSH + HALT)
    machine.run()
    assert "the stack pointer was 0" in said(machine, "SOC-003")


def test_other_addresses_above_ram_are_no_stack(boot):
    machine = boot(words(0xE3A004FC, 0xE5800000) + HALT)  # mov r0, #0xFC000000; str r0, [r0]
    machine.run()
    assert "stack" not in said(machine, "SOC-003")


def test_floating_point_without_its_unit(boot):
    machine = boot(FLOAT + HALT)
    machine.run()
    text = said(machine, "SOC-042")
    assert "vldr" in text
    assert "the floating-point unit is off: give access to coprocessors 10 and 11" in text


def test_a_register_of_el3_in_el2(boot):
    machine = boot(words(0xD51E1100), config=WIDE, board="pi3")  # msr scr_el3, x0
    machine.run()
    assert "kernel_old=1 in config.txt" in said(machine, "SOC-042")
    other = boot(words(0), config=WIDE, board="pi3")
    other.run()
    assert "kernel_old" not in said(other, "SOC-042")


@pytest.mark.parametrize("instruction", [0xE7F000F0, 0xE7FFFFFF])
def test_other_undefined_instructions(boot, instruction):
    machine = boot(words(instruction) + HALT)
    machine.run()
    assert "floating-point" not in said(machine, "SOC-042")


def waits_for_memory(boot, mask):
    """A program that enables the interrupt of timer 1, and then waits for a word to change."""
    code = words(
        mask,
        0xE59F0024,  # ldr r0, =timer
        0xE3A01064, 0xE5801010,  # compare register 1: 100
        0xE59F001C,  # ldr r0, =interrupt enable
        0xE3A01002, 0xE5801000,
        0xE3A02A02,  # mov r2, #0x2000
        0xE5923000, 0xE3530000, 0x0AFFFFFC,  # wait until the word there is not 0
        0xEAFFFFFE, 0x3F003000, 0x3F00B210,
    )  # fmt: skip
    machine = boot(code)
    machine.run()
    return said(machine, "SOC-040")


def test_an_interrupt_that_the_core_masks(boot):
    text = waits_for_memory(boot, 0xF10C0080)  # cpsid i
    assert "an interrupt is pending (timer 1), but the core masks interrupts: cpsie i" in text


def test_no_interrupt_is_pending(boot):
    machine = boot(words(0xE3A02A02, 0xE5923000, 0xE3530000, 0x0AFFFFFC) + HALT)
    machine.run()
    assert "interrupt" not in said(machine, "SOC-040")


@pytest.mark.parametrize(("channel", "told"), [(0, True), (1, False), (2, True), (3, False)])
def test_compare_registers_of_the_firmware(boot, channel, told):
    machine = boot(HALT)
    machine.bus.write(TIMER + 0x0C + 4 * channel, 4, 1000)
    assert machine.reporter.has("SOC-132") == told


# -- code for the other instruction set ------------------------------------------------------------


@pytest.mark.parametrize(
    ("image", "wide"),
    [(START_32, False), (START_64, True), (START_32[:28], None), (bytes(256), None), (b"", None)],
)
def test_which_instruction_set_an_image_has(image, wide):
    assert seems_wide(image) is wide
    assert seems_wide(b"\0" * 64 + image) is wide


@pytest.mark.parametrize(
    ("image", "board", "config", "text"),
    [
        (START_64, "pi2", "", "a Raspberry Pi 2 cannot run it"),
        (START_64, "pi3", "arm_64bit=0\n", "call it kernel8.img"),
        (START_64, "pi3", WIDE, None),
        (START_32, "pi3", WIDE, "write arm_64bit=0"),
        (START_32, "pi2", "", None),
    ],
)
def test_a_kernel_for_the_other_instruction_set(boot, image, board, config, text):
    machine = boot(image, config=config, board=board)
    assert machine.reporter.has("BOOT-034") == (text is not None)
    if text is not None:
        assert text in said(machine, "BOOT-034")
