"""Unaligned loads and stores: faults where a core faults, the old way of an ARM1176."""

import gc
import struct
from pathlib import Path

import pytest

from vc4lab.diagnostics import Reporter, StrictStop
from vc4lab.soc.board_unknowns import DEFAULT_UNKNOWNS
from vc4lab.soc.cores.engine import alignment
from vc4lab.soc.machine import Machine, Stop

IMAGES = {"zero": "kernel.img", "pi2": "kernel7.img", "pi3": "kernel8.img"}
DATA = 0x100000
PATTERN = bytes(range(1, 65))
AGAIN32, AGAIN64 = 0xEAFFFFFE, 0x14000000
"""A branch to itself."""
BASE32 = (0xE3A01601,)  # mov r1, #0x100000
BASE64 = (0xD2A00201,)  # mov x1, #0x100000
FLOATS32 = (0xEE110F50, 0xE380060F, 0xEE010F50, 0xF57FF06F, 0xE3A00101, 0xEEE80A10)
FLOATS64 = (0xD2BFFE00, 0xD5181040, 0xD5033FDF)  # CPACR_EL1; at EL2 nothing traps them
CONTROL32 = {"A": (0xEE110F10, 0xE3800002, 0xEE010F10)}
LEAVE_HYP = (
    *(0xE10F0000, 0xE200101F, 0xE351001A, 0x1A000005),
    *(0xE3C0001F, 0xE38000D3, 0xE16FF000, 0xE28FE004, 0xE12EF30E, 0xE160006E),
)
ARM = {  # instruction → its word, the smallest aligned offset
    "ldr r2, [r1]": (0xE5912000, 4),
    "str r2, [r1]": (0xE5812000, 4),
    "ldrh r2, [r1]": (0xE1D120B0, 2),
    "ldrsh r2, [r1]": (0xE1D120F0, 2),
    "strh r2, [r1]": (0xE1C120B0, 2),
    "ldrd r2, r3, [r1]": (0xE1C120D0, 4),
    "strd r2, r3, [r1]": (0xE1C120F0, 4),
    "ldm r1, {r2, r3}": (0xE891000C, 4),
    "stm r1, {r2, r3}": (0xE881000C, 4),
    "vldr d0, [r1]": (0xED910B00, 4),
    "vldr s0, [r1]": (0xED910A00, 4),
    "vstr d0, [r1]": (0xED810B00, 4),
    "vstm r1, {d0, d1}": (0xEC810B04, 4),
    "vld1.32 {d0}, [r1]": (0xF421078F, 4),
    "vst1.16 {d0}, [r1]": (0xF401074F, 2),
    "vld1.8 {d0}, [r1]": (0xF421070F, 1),
    "vst1.8 {d0-d3}, [r1]": (0xF401020F, 1),
    "vld1.64 {d0}, [r1]": (0xF42107CF, 8),
    "vld1.32 {d0[1]}, [r1]": (0xF4A1088F, 4),
    "ldrb r2, [r1]": (0xE5D12000, 1),
    "ldrex r2, [r1]": (0xE1912F9F, 4),
}
ALWAYS = ("ldrd", "strd", "ldm", "stm", "vldr", "vstr", "vstm", "ldrex")
"""Those that need words in any memory."""
THUMB = {  # instruction → its half words, the smallest aligned offset
    "ldr r2, [r1]": ((0x680A,), 4),
    "ldr.w r2, [r1]": ((0xF8D1, 0x2000), 4),
    "ldrh r2, [r1]": ((0x880A,), 2),
    "ldmia r1!, {r2, r3}": ((0xC90C,), 4),
    "ldmia.w r1, {r2, r3}": ((0xE891, 0x000C), 4),
    "ldrd r2, r3, [r1]": ((0xE9D1, 0x2300), 4),
    "vldr d0, [r1]": ((0xED91, 0x0B00), 4),
    "vld1.8 {d0}, [r1]": ((0xF921, 0x070F), 1),
    "vst1.16 {d0}, [r1]": ((0xF901, 0x074F), 2),
    "strb r2, [r1]": ((0x700A,), 1),
}
WIDE = {
    "ldr x2, [x1]": (0xF9400022, 8),
    "ldr w2, [x1]": (0xB9400022, 4),
    "str w2, [x1]": (0xB9000022, 4),
    "ldrh w2, [x1]": (0x79400022, 2),
    "strh w2, [x1]": (0x79000022, 2),
    "ldrsw x2, [x1]": (0xB9800022, 4),
    "ldp x2, x3, [x1]": (0xA9400C22, 8),
    "stp w2, w3, [x1]": (0x29000C22, 4),
    "ldr q0, [x1]": (0x3DC00020, 16),
    "str q0, [x1]": (0x3D800020, 16),
    "ldur q0, [x1]": (0x3CC00020, 16),
    "ldp q0, q1, [x1]": (0xAD400420, 16),
    "ldr d0, [x1]": (0xFD400020, 8),
    "ldr s0, [x1]": (0xBD400020, 4),
    "ldp d0, d1, [x1]": (0x6D400420, 8),
    "ld1 {v0.16b}, [x1]": (0x4C407020, 1),
    "ld1 {v0.4s}, [x1]": (0x4C407820, 4),
    "st1 {v0.8h}, [x1]": (0x4C007420, 2),
    "ld1 {v0.2d}, [x1]": (0x4C407C20, 8),
    "ld1 {v0.s}[1], [x1]": (0x0D409020, 4),
    "ldrb w2, [x1]": (0x39400022, 1),
    "str q0, [x1, x4]": (0x3CA46820, 16),
}


def _run(tmp_path: Path, board: str, code: bytes, **options) -> Machine:
    (tmp_path / IMAGES[board]).write_bytes(code)
    machine = Machine(tmp_path, board, **options)
    machine.memory.write(DATA, PATTERN)
    machine.run(seconds=0.001)
    return machine


def _words(*words: int) -> bytes:
    return struct.pack(f"<{len(words)}I", *words)


def _faulted(machine: Machine) -> bool:
    codes = [item.code for item in machine.reporter.items]
    # with the MMU on, the core goes on at its vector, where there is nothing
    expected = ([], ["SOC-110", "SOC-042"], ["SOC-110", "SOC-048"])
    assert codes in expected, machine.reporter.summary()
    ended = machine.run(seconds=0.002).reason
    assert ended is (Stop.CRASH if codes else Stop.HALTED)
    return bool(codes)


def _arm(offset: int, *words: int) -> bytes:
    # r1 = 0x100000 + offset
    return _words(*FLOATS32, *BASE32, 0xE2811000 | offset, *words, AGAIN32)


@pytest.mark.parametrize("text", ARM)
def test_an_arm_instruction_with_the_mmu_off(tmp_path, text):
    word, align = ARM[text]
    for offset in (1, 2, 4, 8):
        machine = _run(tmp_path, "pi2", _arm(offset, word))
        assert _faulted(machine) == (offset % align != 0), offset
    machine = _run(tmp_path, "pi2", _arm(1, word), forgiving=True)
    if "ldrex" not in text:
        assert not _faulted(machine)


@pytest.mark.parametrize("text", THUMB)
def test_a_thumb_instruction(tmp_path, text):
    halves, align = THUMB[text]
    thumb = struct.pack(f"<{len(halves) + 1}H", *halves, 0xE7FE)
    for offset in (1, 2, 4):
        code = _words(*FLOATS32, *BASE32, 0xE2811000 | offset, 0xE28F0001, 0xE12FFF10) + thumb
        assert _faulted(_run(tmp_path, "pi2", code)) == (offset % align != 0), offset


@pytest.mark.parametrize("text", WIDE)
def test_an_aarch64_instruction(tmp_path, text):
    word, align = WIDE[text]
    for offset in (1, 2, 4, 8, 16):
        # add x1, x1, #offset
        code = _words(*FLOATS64, *BASE64, 0x91000021 | offset << 10, word, AGAIN64)
        assert _faulted(_run(tmp_path, "pi3", code)) == (offset % align != 0), offset
    code = _words(*FLOATS64, *BASE64, 0x91000421, word, AGAIN64)
    assert not _faulted(_run(tmp_path, "pi3", code, forgiving=True))


def test_clearing_a_line_with_the_mmu_off(tmp_path):
    """dc zva needs Normal memory, at any address."""
    code = _words(*BASE64, 0xD50B7421, AGAIN64)
    machine = _run(tmp_path, "pi3", code)
    assert _faulted(machine)
    machine = _run(tmp_path, "pi3", code, forgiving=True)
    assert not _faulted(machine)
    assert not any(machine.memory.read(DATA, 64))


def _tables(machine_words: tuple[int, ...], section: int, other: tuple[int, int] | None = None) -> bytes:
    """Code that leaves HYP mode, maps all memory by sections and switches the MMU on.

    other: number and descriptor of one section that is different.
    """
    more = ()
    if other is not None:
        number, value = other
        more = (
            0xE3002000 | (value & 0xF000) << 4 | value & 0xFFF,  # movw r2
            0xE3402000 | value >> 12 & 0xF0000 | value >> 16 & 0xFFF,  # movt r2
            0xE5802000 | 4 * number,  # str r2, [r0, #4 * number]
        )
    return _words(
        *LEAVE_HYP,
        *(0xE3A00901, 0xE3A01000),  # mov r0, #0x4000; mov r1, #0
        *(0xE3002000 | (section & 0xF000) << 4 | (section & 0xFFF),),  # movw r2, #section
        *(0xE1823A01, 0xE7803101, 0xE2811001, 0xE3510A01, 0x3AFFFFFA),  # 4096 sections
        *more,
        *(0xEE020F10, 0xE3A00000, 0xEE020F50, 0xE3E00000, 0xEE030F10),  # TTBR0, TTBCR, DACR
        *(0xEE080F17, 0xEE110F10, 0xE3800001, 0xEE010F10, 0xF57FF06F),  # TLBIALL, SCTLR.M, isb
        *machine_words,
        AGAIN32,
    )


NORMAL, DEVICE = 0x1C0E, 0x0C06
"""Sections with full access: write-back memory, and Device memory (shareable)."""


@pytest.mark.parametrize("text", [text for text in ARM if not text.startswith("v")])
def test_normal_memory(tmp_path, text):
    """With the MMU on, only those that need words anywhere fault."""
    word, _align = ARM[text]
    machine = _run(tmp_path, "pi2", _tables((*BASE32, 0xE2811001, word), NORMAL))
    assert _faulted(machine) == text.startswith(ALWAYS)


@pytest.mark.parametrize("text", [text for text in ARM if not text.startswith(("v", "ldrex"))])
def test_device_memory_with_the_mmu_on(tmp_path, text):
    """Tables that make RAM Device memory: what faults with the MMU off faults."""
    word, align = ARM[text]
    for offset in (1, 4):
        code = _tables((*BASE32, 0xE2811000 | offset, word), DEVICE)
        assert _faulted(_run(tmp_path, "pi2", code)) == (offset % align != 0)


@pytest.mark.parametrize("device", [True, False])
def test_one_page_of_device_memory(tmp_path, device):
    """Only accesses to it fault; the other ones go on."""
    # the section at 0x200000 becomes Device memory before the MMU is on
    normal, other = 0xE5912001, 0xE5922001  # ldr r2, [r1, #1]; ldr r2, [r2, #1]
    words = (*BASE32, normal, 0xE3A02602 if device else 0xE3A02603, other)
    code = _tables(words, NORMAL, (2, 0x200000 | DEVICE))
    assert _faulted(_run(tmp_path, "pi2", code)) == device


def _long_tables(index: int, rest: tuple[int, ...]) -> bytes:
    """AArch32 with long descriptors: the first GiB as one block with attribute `index` (1: write-back)."""
    attributes, split = (0xE30F3F00, 0xEE0A3F12), (0xE3A03102, 0xEE023F50)  # MAIR0, TTBCR.EAE
    return _words(
        *LEAVE_HYP,
        *(0xE3A00901, 0xE3001401 | index << 2, 0xE3A02000, 0xE5801000),  # r0 = 0x4000; the block
        *(0xE5802000 | 4 * word for word in range(1, 8)),
        *(*attributes, *split, 0xEE020F10, 0xEE080F17),  # TTBR0, TLBIALL
        *(0xEE110F10, 0xE3800001, 0xEE010F10, 0xF57FF06F),  # SCTLR.M, isb
        *rest,
        AGAIN32,
    )


@pytest.mark.parametrize("index", [0, 1])
def test_long_descriptors(tmp_path, index):
    """Attribute 0 makes RAM Device memory."""
    code = _long_tables(index, (*BASE32, 0xE2811001, ARM["ldr r2, [r1]"][0]))
    machine = _run(tmp_path, "pi2", code)
    assert machine.cpu.system_register((15, 0, 0, 1, 0, 0, 0)) & 1
    assert _faulted(machine) == (index == 0)


def _tables64(index: int) -> tuple[int, ...]:
    """EL2: the first GiB as one block with attribute `index`: 0 is Device, 1 write-back memory."""
    return (
        *(0xD2880000, 0xD2808022 | index << 7, 0xF9000002),  # x0 = 0x4000; block; table at x0
        *(0xD29FE003, 0xD51CA203),  # MAIR_EL2 = 0xff00
        *(0xD2800323, 0xD51C2043),  # TCR_EL2: T0SZ = 25
        *(0xD51C2000, 0xD5033FDF, 0xD53C1003, 0xB2400063, 0xD51C1003, 0xD5033FDF),
    )


@pytest.mark.parametrize("index", [0, 1])
def test_aarch64_tables(tmp_path, index):
    word, _align = WIDE["ldr x2, [x1]"]
    code = _words(*_tables64(index), *BASE64, 0x91000421, word, AGAIN64)
    machine = _run(tmp_path, "pi3", code)
    assert machine.cpu.system_register((1, 0, 3, 4, 0)) & 1
    assert _faulted(machine) == (index == 0)


def test_alignment_checks_asked_for(tmp_path):
    """SCTLR.A faults with the MMU on, and on an ARM1176 as well."""
    word, _align = ARM["ldr r2, [r1]"]
    words = (*CONTROL32["A"], *BASE32, 0xE2811001, word)
    assert _faulted(_run(tmp_path, "pi2", _tables(words, NORMAL)))
    machine = _run(tmp_path, "zero", _words(*words, AGAIN32))
    assert "SCTLR.A" in machine.reporter.items[0].message
    assert _faulted(machine)


def _old(tmp_path: Path, offset: int, word: int, **options) -> Machine:
    code = _words(*BASE32, 0xE2811000 | offset, 0xE3A020AA, word, AGAIN32)
    return _run(tmp_path, "zero", code, **options)


def test_an_arm1176_rotates(tmp_path):
    """As the core's manual has it for U = 0 (4.2.4)."""
    load, store, half = 0xE5912000, 0xE5812000, 0xE1D120B0
    machine = _old(tmp_path, 1, load)
    assert [item.code for item in machine.reporter.items] == ["SOC-111"]
    assert machine.cpu.register(2) == 0x01040302
    assert _old(tmp_path, 2, load).cpu.register(2) == 0x02010403
    assert _old(tmp_path, 4, load).cpu.register(2) == 0x08070605
    assert _old(tmp_path, 3, half).cpu.register(2) == 0x0403
    machine = _old(tmp_path, 6, store)
    assert machine.memory.u32(DATA + 4) == 0xAA
    assert machine.memory.u32(DATA + 8) == 0x0C0B0A09
    machine = _old(tmp_path, 2, 0xE891000C)  # ldm r1, {r2, r3}
    assert (machine.cpu.register(2), machine.cpu.register(3)) == (0x04030201, 0x08070605)


def test_an_arm1176_as_armv6(tmp_path):
    """With SCTLR.U words may be anywhere, but ldm and ldrd need words."""
    unknowns = DEFAULT_UNKNOWNS.with_(arm1176_unaligned="armv6")
    load = 0xE5912000
    for options in ({"unknowns": unknowns}, {"forgiving": True}):
        machine = _old(tmp_path, 1, load, **options)
        assert not machine.reporter.items
        assert machine.cpu.register(2) == 0x05040302
    assert _faulted(_old(tmp_path, 1, 0xE891000C, unknowns=unknowns))
    # the program sets the bit itself
    code = _words(0xEE110F10, 0xE3800501, 0xEE010F10, *BASE32, 0xE2811001, load, AGAIN32)
    machine = _run(tmp_path, "zero", code)
    assert not machine.reporter.items
    assert machine.cpu.register(2) == 0x05040302


def test_the_fault_says_what_and_where(tmp_path):
    """DFSR and DFAR; the message names the instruction that faulted."""
    machine = _run(tmp_path, "pi2", _words(*LEAVE_HYP, *BASE32, 0xE5912001, AGAIN32))
    first = machine.reporter.items[0]
    assert (first.code, first.address) == ("SOC-110", 0x8000 + 4 * len(LEAVE_HYP) + 4)
    assert "0x00100001" in first.message
    assert "the MMU is off" in first.message
    assert machine.cpu.system_register((15, 0, 0, 5, 0, 0, 0)) == 1
    assert machine.cpu.system_register((15, 0, 0, 6, 0, 0, 0)) == DATA + 1


def test_a_forgiving_machine_beside_another(tmp_path):
    """Both in one process, one after the other, in one thread."""
    word, _align = ARM["ldr r2, [r1]"]
    for forgiving in (True, False, True, False):
        machine = _run(tmp_path, "pi2", _arm(1, word), forgiving=forgiving)
        assert _faulted(machine) != forgiving


def test_what_is_known_of_a_core_goes_with_its_machine(boot):
    """The engine's functions look at the core that ran last in a thread; it may be no more."""
    first = boot("svc")
    first.run(seconds=0.001)
    place = alignment._running_words.tolist().index(first.cpu.alignment.address)
    second = boot("svc")
    second.cpu.translate(0x8000)
    assert alignment._running_words[place] == first.cpu.alignment.address, "the first one goes on"
    del first
    gc.collect()
    assert alignment._running_words[place] == 0
    second.cpu.translate(0x8000)


def test_strict_stops_at_the_access(tmp_path):
    """What follows has nothing to do with the mistake."""
    load = 0xE5912000
    with pytest.raises(StrictStop) as old:
        _old(tmp_path, 1, load, reporter=Reporter(strict=True))
    with pytest.raises(StrictStop) as fault:
        _run(tmp_path, "pi2", _arm(1, load), reporter=Reporter(strict=True))
    found = [stop.value.diagnostic.code for stop in (old, fault)]
    assert found == ["SOC-111", "SOC-110"]
