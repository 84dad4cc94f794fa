"""Images linked for address 0 that are loaded elsewhere: named, with the lines for config.txt."""

import struct

import pytest

from vc4lab.soc.boot.linked_for_zero import has_literals_for_zero
from vc4lab.soc.machine import Machine, Stop

CURE = "kernel_old=1 and disable_commandline_tags=1"
MESSAGE = struct.pack("<16I", 64, 0, 0x10002, 4, 0, 0, *[0] * 10)
STRUCTURE = struct.pack("<16I", 64, 48, 64, 48, 0, 32, *[0] * 10)


def code(*words: str) -> bytes:
    return b"".join(bytes.fromhex(word)[::-1] for word in words)


def asks(channel: int, data: bytes) -> bytes:
    """Sends the message at 0x80, then waits for the first word after it to change."""
    program = code(
        "e3a00080",  # mov r0, #0x80
        f"e380000{channel:x}",  # orr r0, r0, #channel
        "e3a0143f",  # mov r1, #0x3f000000
        "e2811cb8",  # add r1, r1, #0xb800
        "e58100a0",  # str r0, [r1, #0xa0]
        "e3a02080",  # mov r2, #0x80
        "e5923014",  # 1: ldr r3, [r2, #0x14]
        "e3530000",  # cmp r3, #0
        "0afffffc",  # beq 1b
        "eafffffe",  # b .
    )
    return program + bytes(0x80 - len(program)) + data + bytes(64)


@pytest.mark.parametrize(("channel", "data"), [(8, MESSAGE), (1, STRUCTURE)])
def test_a_message_below_the_image(boot, channel, data):
    machine = boot(asks(channel, data))
    result = machine.run()
    (item,) = [i for i in machine.reporter.items if i.code == "SOC-011"]
    assert "it is 0x8000 bytes higher" in item.message
    assert CURE in item.message
    if channel == 8:
        assert result.reason is Stop.HANG
        (item,) = [i for i in machine.reporter.items if i.code == "SOC-040"]
        assert CURE in item.message
    machine = boot(asks(channel, data), f"{CURE.replace(' and ', chr(10))}")
    machine.run(seconds=0.01)
    assert not machine.reporter.has("SOC-011")


def test_a_bad_message_on_the_stack_is_only_that(boot):
    """It lies below the image, too, but the image has no message at that place."""
    machine = boot(asks(8, bytes(64)))
    machine.run()
    (item,) = [i for i in machine.reporter.items if i.code == "SOC-011"]
    assert CURE not in item.message


def literals(*values: int) -> bytes:
    """A program that loads each value and then runs into nothing, in 0x400 bytes."""
    count = len(values)
    words = [0xE59F0000 | 4 * count - 4 for _value in values]  # ldr r0, [pc, #n]
    words += [0xEA3FFFFE, *values]  # b far away
    return struct.pack(f"<{len(words)}I", *words).ljust(0x400, b"\0")


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ((0x100, 0x3F00B880, 0x200), True),
        ((0x100, 0x100), False),  # one number may be anything
        ((0x100, 0x200, 0x8100), False),
        ((0x101, 0x202), False),
        ((0x4000, 0x5000), False),  # beyond the image
        ((0x4, 0x8), False),
    ],
)
def test_literals(boot, values, found):
    image = literals(*values)
    assert has_literals_for_zero(image, 0x8000, wide=False) is found
    machine = boot(image)
    result = machine.run()
    assert result.reason is Stop.CRASH
    assert (CURE in result.message) is found


def test_literals_of_aarch64(tmp_path):
    words = [0x58000080, 0x580000A1, 0x14400000, 0xD503201F, 0x100, 0, 0x200, 0]
    image = struct.pack("<8I", *words).ljust(0x400, b"\0")
    assert has_literals_for_zero(image, 0x80000, wide=True)
    assert not has_literals_for_zero(image, 0x80000, wide=False)
    (tmp_path / "kernel8.img").write_bytes(image)
    result = Machine(tmp_path, "pi3").run()
    assert result.reason is Stop.CRASH
    assert CURE in result.message
    assert "0x80000" in result.message
