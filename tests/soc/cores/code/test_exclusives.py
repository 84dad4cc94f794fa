"""ldrex and strex before the cache is on: they abort or never store, as on the cores."""

import struct
from pathlib import Path

import pytest

from vc4lab.diagnostics import Reporter, StrictStop
from vc4lab.soc.board_unknowns import DEFAULT_UNKNOWNS
from vc4lab.soc.machine import Machine, Stop

IMAGES = {"zero": "kernel.img", "pi2": "kernel7.img", "pi3": "kernel8.img"}
LOCK = 0x100000
AGAIN32, AGAIN64 = 0xEAFFFFFE, 0x14000000
ONCE32 = (0xE3A01601, 0xE3A03005, 0xE3A00009, 0xE1912F9F, 0xE1810F93, AGAIN32)
"""r1 = 0x100000, r3 = 5, r0 = 9; ldrex r2, [r1]; strex r0, r3, [r1]."""
ONCE64 = (0xD2A00201, 0xD28000A3, 0xD2800120, 0x885F7C22, 0x88007C23, AGAIN64)
FOREVER32 = (0xE3A01601, 0xE3A03005, 0xE1912F9F, 0xE1810F93, 0xE3500000, 0x1AFFFFFB, AGAIN32)
"""The same until strex has stored."""


def run(tmp_path: Path, board: str, words: tuple[int, ...], name: str = "", **options) -> Machine:
    (tmp_path / (name or IMAGES[board])).write_bytes(struct.pack(f"<{len(words)}I", *words))
    machine = Machine(tmp_path, board, ram="zero", **options)
    machine.result = machine.run(seconds=0.01)
    return machine


@pytest.mark.parametrize("board", ["zero", "pi2"])
def test_a_store_fails(tmp_path, board):
    machine = run(tmp_path, board, ONCE32)
    assert machine.cpu.register(0) == 1
    assert machine.memory.u32(LOCK) == 0
    assert [item.code for item in machine.reporter.items] == ["SOC-113"]
    machine = run(tmp_path, board, ONCE32, forgiving=True)
    assert machine.cpu.register(0) == 0
    assert machine.memory.u32(LOCK) == 5
    assert not machine.reporter.items


def test_a_loop_around_it_never_ends(tmp_path):
    machine = run(tmp_path, "pi2", FOREVER32)
    assert machine.result.reason is Stop.CRASH
    assert "never succeeds" in machine.result.message
    assert {item.code for item in machine.reporter.items} == {"SOC-113"}
    assert machine.memory.u32(LOCK) == 0
    assert run(tmp_path, "pi2", FOREVER32, forgiving=True).result.reason is Stop.HALTED


def test_a_load_aborts_on_a_cortex_a53(tmp_path):
    """In both states, with the status that the core's manual names."""
    machine = run(tmp_path, "pi3", ONCE64)
    assert [item.code for item in machine.reporter.items] == ["SOC-113", "SOC-042"]
    esr_el2, far_el2 = (5, 2, 3, 4, 0), (6, 0, 3, 4, 0)
    assert machine.cpu.system_register(esr_el2) & 0x3F == 0x35
    assert machine.cpu.system_register(far_el2) == LOCK
    assert not run(tmp_path, "pi3", ONCE64, forgiving=True).reporter.items
    (tmp_path / "kernel8.img").unlink()
    machine = run(tmp_path, "pi3", ONCE32, name="kernel7.img")
    assert [item.code for item in machine.reporter.items] == ["SOC-113", "SOC-042"]


def test_what_a_cortex_a7_does_is_a_choice(tmp_path):
    unknowns = DEFAULT_UNKNOWNS.with_(exclusive_without_monitor="abort")
    machine = run(tmp_path, "pi2", ONCE32, unknowns=unknowns)
    assert "takes a data abort" in machine.reporter.items[0].message


WRITE_BACK, NOT_CACHED, DEVICE = 0xE3012C0E, 0xE3012C02, 0xE3002C06
"""movw r2, #...: a section with access for all."""


@pytest.mark.parametrize(
    ("cache", "section", "stores"),
    [(1, WRITE_BACK, True), (0, WRITE_BACK, False), (1, NOT_CACHED, False), (1, DEVICE, False)],
)
def test_with_the_mmu_on_the_cache_and_the_page_decide(tmp_path, cache, section, stores):
    """Without SCTLR.C no monitor watches, nor over memory that the tables make uncached."""
    leave_hyp = (
        *(0xE10F0000, 0xE200101F, 0xE351001A, 0x1A000005),
        *(0xE3C0001F, 0xE38000D3, 0xE16FF000, 0xE28FE004, 0xE12EF30E, 0xE160006E),
    )
    tables = (
        *(0xE3A00901, 0xE3A01000, section),  # mov r0, #0x4000; mov r1, #0; movw r2, #...
        *(0xE1823A01, 0xE7803101, 0xE2811001, 0xE3510A01, 0x3AFFFFFA),  # 4096 sections
        *(0xEE020F10, 0xE3A00000, 0xEE020F50, 0xE3E00000, 0xEE030F10),  # TTBR0, TTBCR, DACR
        *(0xEE080F17, 0xEE110F10, 0xE3800005 if cache else 0xE3800001, 0xEE010F10, 0xF57FF06F),
    )
    # once before and once after: the instruction is the same
    words = (*leave_hyp, *tables, *ONCE32)
    machine = run(tmp_path, "pi2", words)
    assert machine.cpu.register(0) == (0 if stores else 1)
    assert machine.reporter.counts["SOC-113"] == (0 if stores else 1)
    if cache and not stores:
        assert "in memory that the tables do not make cacheable" in machine.reporter.items[0].message


@pytest.mark.parametrize("attribute", [0xFF, 0x44, 0x04])
def test_long_descriptors_decide(tmp_path, attribute):
    """AArch32's: one block of a GiB, whose attributes are MAIR0's first."""
    leave_hyp = (
        *(0xE10F0000, 0xE200101F, 0xE351001A, 0x1A000005),
        *(0xE3C0001F, 0xE38000D3, 0xE16FF000, 0xE28FE004, 0xE12EF30E, 0xE160006E),
    )
    tables = (
        *(0xE3A00901, 0xE3001701, 0xE3A02000, 0xE5801000),  # r0 = 0x4000; the block, inner shareable
        *(0xE5802000 | 4 * word for word in range(1, 8)),
        *(0xE3A03000 | attribute, 0xEE0A3F12, 0xE3A03102, 0xEE023F50, 0xEE020F10),  # MAIR0, EAE, TTBR0
        *(0xEE080F17, 0xEE110F10, 0xE3800005, 0xEE010F10, 0xF57FF06F),
    )
    machine = run(tmp_path, "pi2", (*leave_hyp, *tables, *ONCE32))
    assert machine.cpu.register(0) == (0 if attribute == 0xFF else 1)
    assert machine.reporter.has("SOC-113") == (attribute != 0xFF)


@pytest.mark.parametrize(("attribute", "aborts"), [(0xFF, False), (0x44, True), (0x00, True)])
def test_aarch64s_tables_decide(tmp_path, attribute, aborts):
    """One block of a GiB in EL2's table, whose attributes are MAIR_EL2's first."""
    mmu_on = (
        *(0xD2A00400, 0xD280E421, 0xF9000001, 0xD2888000 | (0x4400 | attribute) << 5 & 0x1FFFE0 | 1),
        *(0xD51CA201, 0xD286A321, 0xF2B01001, 0xD51C2041, 0xD51C2000, 0xD5033FDF),
        *(0xD53C1001, 0xB27E0021, 0xB2400021, 0xD51C1001, 0xD5033FDF),
    )
    machine = run(tmp_path, "pi3", (*mmu_on, *ONCE64))
    assert machine.reporter.has("SOC-113") == aborts
    assert machine.memory.u32(LOCK) == (0 if aborts else 5)


def test_thumb_code_fails_alike(tmp_path):
    # ldrex r2, [r1]; strex r0, r3, [r1]; b .
    thumb = struct.pack("<5H", 0xE851, 0x2F00, 0xE841, 0x3000, 0xE7FE) + bytes(2)
    words = (0xE3A01601, 0xE3A03005, 0xE28F0001, 0xE12FFF10, *struct.unpack("<3I", thumb))
    machine = run(tmp_path, "pi2", words)
    assert machine.cpu.register(0) == 1
    assert machine.memory.u32(LOCK) == 0


def test_strict_stops_at_the_store(tmp_path):
    with pytest.raises(StrictStop) as stop:
        run(tmp_path, "pi2", FOREVER32, reporter=Reporter(strict=True))
    assert stop.value.diagnostic.code == "SOC-113"
