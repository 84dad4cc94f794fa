"""The first exception is named, whatever its vector holds and leads to."""

from pathlib import Path

import pytest

from vc4lab.soc.cores.arm32_words import leads_to_nothing
from vc4lab.soc.machine import Stop

KERNELS = Path(__file__).parents[2] / "kernels"
RESTLESS = ("e1a00000", "eafffffd")
"""A nop and a branch to it."""
KINDS = {
    "undefined instruction": (0x04, ("e7f000f0",), 0x800C),
    "supervisor call": (0x08, ("ef000005",), 0x800C),
    "prefetch abort": (0x0C, ("e3e00003", "e12fff10"), 0xFFFFFFFC),
}
"""Title → vector, the words that cause it, where it happens (AArch32)."""
WIDE = {
    "data abort": (("928001e3", "f9000063"), 0x80014),
    "undefined instruction": (("d503201f", "00000000"), 0x80014),
    "supervisor call": (("d503201f", "d40000e1"), 0x80014),
    "prefetch abort": (("928001e0", "d61f0000"), 0xFFFFFFFFFFFFFFF0),
}
"""The same for AArch64."""


def code(*words: str) -> bytes:
    return b"".join(bytes.fromhex(word)[::-1] for word in words)


def garbage_32(vector: int, put: str, *words: str) -> bytes:
    """A program that stores r1 at a vector, and then the words."""
    return code(f"e3a000{vector:02x}", put, "e5801000", *words, *RESTLESS)


BOARDS = [("zero", "today"), ("pi1", "today"), ("pi2", "today"), ("pi2", "2015"), ("pi3", "today")]


@pytest.mark.parametrize(("board", "firmware"), BOARDS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_executed_at_a_vector(boot_32, kind, board, firmware):
    vector, words, at = KINDS[kind]
    machine = boot_32(garbage_32(vector, "e3e01000", *words), board, firmware)  # mvn r1, #0
    result = machine.run(seconds=1)
    assert result.reason is Stop.CRASH
    (item,) = [i for i in machine.reporter.items if i.code == "SOC-042"]
    assert item.message.startswith(kind)
    assert f"at 0x{at:08x}" in item.message
    assert f"its vector 0x{vector:08x} (where 0xffffffff is)" in item.message
    assert f"undefined instruction at 0x{vector:08x}" in item.message
    assert item.address == at


@pytest.mark.parametrize(("board", "firmware"), BOARDS)
@pytest.mark.parametrize("kind", KINDS)
def test_code_at_a_vector_that_leads_to_nothing(boot_32, kind, board, firmware):
    """Executed, it would go on to the program at 0x8000, which would begin again and again."""
    vector, words, at = KINDS[kind]
    machine = boot_32(garbage_32(vector, "e3a010e8", *words), board, firmware)  # mov r1, #0xe8
    assert machine.run(seconds=1).reason is Stop.CRASH
    (item,) = [i for i in machine.reporter.items if i.code == "SOC-042"]
    assert item.message.startswith(kind)
    assert f"at 0x{at:08x}" in item.message
    assert f"without a handler at its vector 0x{vector:08x} (where 0x000000e8 is)" in item.message


@pytest.fixture
def boot_32(boot, tmp_path):
    def make(image: bytes, board: str, firmware: str):
        (tmp_path / "kernel.img").write_bytes(image)
        return boot(image, "arm_64bit=0", board=board, firmware=firmware)

    return make


def boot_64(boot, tmp_path, garbage: str, *words: str):
    image = code("d2804001", *_loads(garbage), "b9000022", *words, "d503205f", "17ffffff")
    (tmp_path / "kernel8.img").write_bytes(image)
    return boot(b"", board="pi3")


def _loads(word: str) -> tuple[str, str]:
    """Movz and movk of w2."""
    value = int(word, 16)
    low, high = 0x52800002 | (value & 0xFFFF) << 5, 0x72A00002 | value >> 16 << 5
    return f"{low:08x}", f"{high:08x}"


@pytest.mark.parametrize("kind", WIDE)
def test_aarch64_before_vbar_is_set(boot, tmp_path, kind):
    words, at = WIDE[kind]
    machine = boot_64(boot, tmp_path, "00080ee8", *words)
    assert machine.run(seconds=1).reason is Stop.CRASH
    (item,) = machine.reporter.items
    assert item.code == "SOC-042"
    assert item.message.startswith(kind)
    assert f"at 0x{at:08x}" in item.message
    assert ("which accesses 0xfffffffffffffff0" in item.message) == (kind == "data abort")
    assert "its vector 0x00000200 (where 0x00080ee8 is)" in item.message
    assert item.address == at


def test_a_loop_at_a_vector(boot, tmp_path):
    """The program stands still there, which is no crash."""
    words, _at = WIDE["data abort"]
    result = boot_64(boot, tmp_path, "14000000", *words).run(seconds=1)
    assert result.reason is Stop.HALTED
    assert "a branch to itself at 0x00000200; before that: data abort at 0x00080014" in (result.message)


def test_an_exception_that_was_served_is_not_named(boot_32):
    """A handler of svc that returns, and later an undefined instruction without a handler."""
    program = code(
        "e3a00008",  # mov r0, #8
        "e59f1018",  # ldr r1, =0xe1b0f00e (movs pc, lr)
        "e5801000",  # str r1, [r0]
        "ef000001",  # svc #1
        "e59f3010",  # ldr r3, =12000
        "e2533001",  # 1: subs r3, r3, #1
        "1afffffd",  # bne 1b
        "e7f000f0",  # udf #0
        "eafffffe",  # b .
        "e1b0f00e",
        "00002ee0",
    )
    for board in ("zero", "pi2"):
        machine = boot_32(program, board, "2015" if board == "pi2" else "today")
        machine.run(seconds=1)
        (item,) = machine.reporter.items
        assert item.message.startswith("undefined instruction at 0x0000801c")
        assert "supervisor call" not in item.message


@pytest.mark.parametrize(
    ("kernel", "board", "cure"),
    [
        ("irq_zero", "zero", "copy the program's vectors to address 0, or set VBAR"),
        ("irq", "pi2", "copy the program's vectors to address 0, or set VBAR"),
    ],
)
def test_an_interrupt_without_vectors_names_the_cure(boot, tmp_path, kernel, board, cure):
    image = (KERNELS / f"{kernel}.img").read_bytes()
    set_vectors, nop = code("ee0c0f10"), code("e1a00000")
    assert set_vectors in image
    (tmp_path / "kernel.img").write_bytes(image.replace(set_vectors, nop))
    machine = boot(image.replace(set_vectors, nop), board=board)
    assert machine.run(seconds=1).reason is Stop.CRASH
    (item,) = [i for i in machine.reporter.items if i.code == "SOC-042"]
    assert item.message.startswith("interrupt at")
    assert cure in item.message


@pytest.mark.parametrize(
    ("words", "empty"),
    [
        ((0x00080EE8, *[0] * 20), True),
        ((0x6C6C6548, 0x6F57206F, *[0] * 20), True),
        ((0xE1A00000, 0xE1A00000, 0xEA000010, *[0] * 20), False),
        ((0xE59FF018, *[0] * 20), False),
        ((0xE25EF004, *[0] * 20), False),
        ((0xE8FD8000, *[0] * 20), False),
        ((0xE12FFF1E, *[0] * 20), False),
        ((0xE1A00000,) * 32, False),
    ],
)
def test_what_leads_to_nothing(words, empty):
    """Data; text (whose conditions are not met); b; ldr pc; subs pc, lr; ldm pc; bx; nops."""
    assert leads_to_nothing(words, 0x13) is empty
