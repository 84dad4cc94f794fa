"""What translation tables say about caching: sections, pages, remapping, tables that are noise."""

import random

import numpy as np
import pytest

from vc4lab.memory import GuestMemory
from vc4lab.soc.caches.cache_lines import READ_ALLOCATE, UNCACHED, WRITE_BACK, WRITE_THROUGH
from vc4lab.soc.caches.page_tables import Mapping32, Mapping64
from vc4lab.soc.cores.engine.memory_types import first_table, long_control

SECTION = 0xC02


def attributes32(words: dict[int, int], old: bool = False, **registers: int) -> np.ndarray:
    memory = GuestMemory()
    for place, word in words.items():
        memory.set_u32(place, word)
    defaults = {"SCTLR": 5, "TTBR0": 0x4000, "TTBR1": 0, "TTBCR": 0, "PRRR": 0, "NMRR": 0}
    result = np.ones(1 << 20, np.uint8)
    walk = Mapping32(memory, defaults | registers, old_core=old)
    walk.fill(result)
    return result


@pytest.mark.parametrize(
    ("bits", "old", "kind"),
    [
        (0x0, False, UNCACHED),  # strongly ordered
        (0x4, False, UNCACHED),  # device
        (0x8, False, UNCACHED),  # write-through: the A7 does not cache it
        (0x8, True, WRITE_THROUGH),
        (0xC, False, WRITE_BACK),
        (0xC, True, READ_ALLOCATE),
        (0x1000, False, UNCACHED),
        (0x100C, False, WRITE_BACK),
        (0x1000C, False, WRITE_BACK),  # shared
        (0x1000C, True, UNCACHED),
        (0x5004, False, WRITE_BACK),  # outer and inner write-back, write-allocate
        (0x2000, False, UNCACHED),  # device, not shared
    ],
)
def test_sections(bits: int, old: bool, kind: int) -> None:
    found = attributes32({0x4000 + 4 * 3: 5 << 20 | SECTION | bits}, old)
    assert (found[0x500:0x600] == kind).all()
    assert found.sum() == 256 * kind


def test_pages_and_other_registers() -> None:
    tables = {0x4000: 0x8001, 0x8000: 0x123000 | 0xE, 0x8004: 0x40000 | 0xD, 0x4010: 0x1000000 | 0x4000E}
    found = attributes32(tables)
    assert found[0x123] == WRITE_BACK
    assert (found[0x40:0x50] == WRITE_BACK).all()
    assert (found[0x1000:0x2000] == WRITE_BACK).all(), "a supersection"
    assert not attributes32(tables, SCTLR=1).any()
    assert not attributes32(tables, SCTLR=4).any()
    remapped = attributes32({0x4000: SECTION | 4}, SCTLR=5 | 1 << 28, PRRR=2 << 2, NMRR=1 << 2)
    assert (remapped[:256] == WRITE_BACK).all()
    both = attributes32({0x4000: SECTION | 0xC, 0x4004: SECTION})
    assert not both.any(), "mapped twice: the uncached mapping counts"
    split = attributes32({0x8000 + 4 * 4095: SECTION | 0xC}, TTBCR=1, TTBR1=0x8000)
    assert (split[:256] == WRITE_BACK).all()


@pytest.mark.parametrize(
    ("low", "high", "first", "cached"),
    [
        (0, 0, (0x4020, 1, 4), [0]),  # no sizes: TTBR1 is not used
        (1, 0, (0x4020, 1, 2), [0, 0x40000]),
        (1, 1, (0x4020, 1, 2), [0, 0x40000, 0x80000]),  # TTBR1's table begins with the upper half
        (2, 0, (0x4000, 2, 512), [0, 0x40000]),  # a GiB: its first table is one of the second level
    ],
)
def test_long_descriptors_of_aarch32(low, high, first, cached) -> None:
    memory = GuestMemory()
    memory.set_u64(0x4020, 0x401)  # a GiB at 0
    memory.set_u64(0x5000, 0x80000401 if high else 0)
    memory.set_u64(0x5008, 0x40000401)
    control = long_control(1 << 31 | low | high << 16)
    registers = {"SCTLR": 5, "TTBR0": 0x4020, "TTBR1": 0x5000, "TCR": control, "MAIR": 0xFF}
    result = np.zeros(1 << 20, np.uint8)
    Mapping64(memory, registers, two_halves=True).fill(result)
    assert first_table(0x4020, control & 63) == first
    assert [page for page in range(0, 1 << 20, 0x40000) if result[page] == WRITE_BACK] == cached


def test_tables_in_a_circle_end() -> None:
    memory = GuestMemory()
    for entry in range(512):
        memory.set_u64(0x4000 + 8 * entry, 0x4003)
    registers = {"SCTLR": 5, "TTBR0": 0x4000, "TTBR1": 0x4000, "TCR": 16, "MAIR": 0xFF}
    result = np.zeros(1 << 20, np.uint8)
    Mapping64(memory, registers, two_halves=True).fill(result)
    assert result[4] == WRITE_BACK


def test_random_tables_and_ranges_do_no_harm() -> None:
    noise = random.Random(7)
    memory = GuestMemory()
    memory.write(0, noise.randbytes(1 << 20))
    result = np.zeros(1 << 20, np.uint8)
    for _ in range(40):
        names = ("SCTLR", "TTBR0", "TTBR1", "TTBCR", "PRRR", "NMRR")
        words = {name: noise.getrandbits(32) for name in names} | {"TTBR0": noise.getrandbits(20)}
        words["SCTLR"] |= 5
        Mapping32(memory, words, old_core=noise.random() < 0.5).fill(result)
        names = ("SCTLR", "TTBR0", "TTBR1", "TCR", "MAIR")
        words = {name: noise.getrandbits(64) for name in names} | {"TTBR0": noise.getrandbits(20)}
        words["SCTLR"] |= 5
        Mapping64(memory, words, two_halves=True).fill(result)
