"""Tables changed with the MMU on: a hint where the TLB was not invalidated, an error with --strict."""

import random
import struct
from pathlib import Path

import pytest

from vc4lab.diagnostics import Reporter, StrictStop
from vc4lab.soc.inspect.old_translations import long_meaning, short_meaning
from vc4lab.soc.machine import Machine

KERNELS = Path(__file__).parents[1] / "kernels"

LEAVE_HYP = (
    *(0xE10F0000, 0xE200101F, 0xE351001A, 0x1A000005),
    *(0xE3C0001F, 0xE38000D3, 0xE16FF000, 0xE28FE004, 0xE12EF30E, 0xE160006E),
)
MMU_ON = (
    *(0xE3A00901, 0xE3A01000, 0xE3012C0E),  # r0 = 0x4000; r1 = 0; movw r2, #0x1c0e: write-back sections
    *(0xE1823A01, 0xE7803101, 0xE2811001, 0xE3510A01, 0x3AFFFFFA),  # 4096 sections
    *(0xEE020F10, 0xE3A04000, 0xEE024F50, 0xE3E04000, 0xEE034F10),  # TTBR0, TTBCR, DACR
    *(0xEE080F17, 0xEE114F10, 0xE3844001, 0xEE014F10),  # TLBIALL, SCTLR.M
)
MOVED, DEVICE, INVALID, PRIVATE = 0x401C0E, 0x300C06, 0, 0x30140E
"""What becomes of section 3: another place, another kind, nothing, other rights."""
FLUSHES = {"all": 0xEE086F17, "address": 0xEE086F37, "on all cores": 0xEE086F13, "nothing": 0xE1A00000}
SLEEP = (0xE320F003, 0xEAFFFFFD)  # wfi; b .-4
END = (0xEAFFFFFE,)


def change(value: int, flush: str, entry: int = 3) -> tuple[int, ...]:
    """Write a descriptor (movw, movt, str), and what follows; r6 is the address."""
    movw, movt = value & 0xFFFF, value >> 16
    return (
        0xE3005000 | (movw & 0xF000) << 4 | movw & 0xFFF,
        0xE3405000 | (movt & 0xF000) << 4 | movt & 0xFFF,
        0xE5805000 | 4 * entry,
        0xE3A06603,  # r6 = 0x300000
        FLUSHES[flush],
    )


def run(tmp_path, words, board="pi2", **options) -> Machine:
    before = LEAVE_HYP if board == "pi2" else ()
    if board == "zero":  # no movw, movt
        words = tuple(0xE1A00000 if word >> 20 in (0xE30, 0xE34) else word for word in words)
    code = (*before, *words)
    name = {"pi2": "kernel7.img", "zero": "kernel.img"}[board]
    (tmp_path / name).write_bytes(struct.pack(f"<{len(code)}I", *code))
    machine = Machine(tmp_path, board, ram="zero", **options)
    machine.run(seconds=0.1)
    return machine


@pytest.mark.parametrize("flush", FLUSHES)
@pytest.mark.parametrize(
    ("value", "is_a_change"), [(MOVED, True), (DEVICE, True), (INVALID, False), (PRIVATE, False)]
)
def test_a_section(tmp_path, value, is_a_change, flush):
    machine = run(tmp_path, (*MMU_ON, *change(value, flush), *END))
    assert machine.reporter.has("SOC-115") == (is_a_change and flush == "nothing")


def test_what_it_says(tmp_path):
    item = run(tmp_path, (*MMU_ON, *change(MOVED, "nothing"), *END)).reporter.items[0]
    assert item.address == 0x400C
    assert "0x00300000 was changed" in item.message
    assert "from 0x301c0e to 0x401c0e" in item.message


def test_an_arm1176(tmp_path):
    """Its r5 is SCTLR.M's register's value: the entry becomes one of another place."""
    words = (*MMU_ON, 0xE3A05602, 0xE2855B07, 0xE285500E, 0xE580500C, *END)  # 0x201c0e
    words = (*words[:2], 0xE3A02B07, 0xE282200E, *words[3:])  # r2 = 0x1c0e
    assert run(tmp_path, words, "zero").reporter.has("SOC-115")


def test_an_entry_that_was_invalid_needs_nothing(tmp_path):
    words = (*MMU_ON, *change(INVALID, "all"), *change(MOVED, "nothing"), *END)
    assert not run(tmp_path, words).reporter.has("SOC-115")


def test_back_again(tmp_path):
    """The old entry is there again when it is looked at."""
    words = (*MMU_ON, *change(MOVED, "nothing"), *change(0x301C0E, "nothing"), *END)
    assert not run(tmp_path, words).reporter.has("SOC-115")


def test_while_the_program_goes_on(tmp_path):
    """What the engine's TLB forgets by itself at a vsync is no invalidation by the program."""
    count = (0xE3A07402, 0xE2577001, 0x1AFFFFFD)  # 33 million rounds
    machine = run(tmp_path, (*MMU_ON, *change(MOVED, "nothing"), *count, *END))
    assert machine.seconds > 0.05
    assert machine.reporter.has("SOC-115")
    late = (*MMU_ON, *change(MOVED, "nothing"), 0xE3A07001, *count[1:], FLUSHES["all"], *count, *END)
    assert not run(tmp_path, late).reporter.has("SOC-115")


def test_strict_and_forgiving(tmp_path):
    words = (*MMU_ON, *change(MOVED, "nothing"), *END)
    with pytest.raises(StrictStop):
        run(tmp_path, words, reporter=Reporter(strict=True))
    assert not run(tmp_path, words, forgiving=True).reporter.items


def test_long_descriptors(tmp_path):
    """AArch32's block of a GiB at 0 becomes one at 0x40000000."""
    tables = (
        *(0xE3A00901, 0xE3001405, 0xE3A02000, 0xE5801000),  # r0 = 0x4000; the block; write-back
        *(0xE5802000 | 4 * word for word in range(1, 8)),
        *(0xE30F3F00, 0xEE0A3F12, 0xE3A03102, 0xEE023F50, 0xEE020F10, 0xEE080F17),  # MAIR0, EAE, TTBR0
        *(0xEE114F10, 0xE3844001, 0xEE014F10),
    )
    for value, flush, found in ((0x401, "nothing", True), (0x401, "all", False), (0x445, "nothing", False)):
        machine = run(tmp_path, (*tables, *change(value, flush, entry=0), *END))
        assert machine.reporter.has("SOC-115") == found


def test_aarch64(tmp_path):
    words = [
        *(0xD2880000, 0xD28080A2, 0xF9000002),  # x0 = 0x4000; block; table at x0
        *(0xD29FE003, 0xD51CA203, 0xD2800323, 0xD51C2043),  # MAIR_EL2, TCR_EL2
        *(0xD51C2000, 0xD5033FDF, 0xD53C1003, 0xB2400063, 0xD51C1003, 0xD5033FDF),
        *(0xD2808022, 0xF9000002, 0xD503201F, 0x14000000),  # Device memory; nop; b .
    ]
    for word, found in ((0xD503201F, True), (0xD50C871F, False), (0xD50C831F, False)):  # alle2, alle2is
        words[-2] = word
        (tmp_path / "kernel8.img").write_bytes(struct.pack(f"<{len(words)}I", *words))
        machine = Machine(tmp_path, "pi3", ram="zero")
        machine.run(seconds=0.01)
        assert machine.reporter.has("SOC-115") == found


def test_meanings_of_any_word():
    """Rights are not among them; what is no entry means nothing."""
    noise = random.Random(3)
    for _ in range(2000):
        word, level = noise.getrandbits(64), noise.choice((1, 2, 3))
        assert bool(long_meaning(word, level)) <= bool(word & 1)
        if long_meaning(word, level):
            assert long_meaning(word ^ 0xC0, level) == long_meaning(word, level) or (level < 3 and word & 2)
        assert bool(short_meaning(word & 0xFFFFFFFF, 1 + level % 2)) == bool(word & 3)
    assert short_meaning(0x301C0E, 1) == short_meaning(0x30140E, 1)
    assert short_meaning(0x12345E3E, 2) != short_meaning(0x12346E3E, 2)


@pytest.mark.parametrize("for_all", [True, False])
def test_another_core(boot, for_all):
    """What is invalidated on all cores reaches their engines; what is not, stays theirs."""
    image = (KERNELS / "shared_tlb.img").read_bytes()
    on_all, own = struct.pack("<I", 0xEE081F33), struct.pack("<I", 0xEE081F37)
    assert image.count(on_all) == 1
    machine = boot(image if for_all else image.replace(on_all, own), ram="zero")
    machine.run(seconds=0.1)
    assert machine.memory.u32(0x500000) == 3
    assert machine.memory.u32(0x500004) == (0x44 if for_all else 0x33)
    reports = [item.message for item in machine.reporter.items if item.code == "SOC-115"]
    assert len(reports) == (not for_all)
    assert for_all or "the MMU of core 1" in reports[0]
