"""Changed pages of code: any other word is noticed, and only its page is forgotten."""

import random

import pytest

from vc4lab.memory import GuestMemory
from vc4lab.soc.cores.code.page_sums import FIRST_ROOM, PAGE, PageSums

SYSTEM = 0xFFFFFFC000000000
"""Where a system has its pages."""


@pytest.fixture(scope="module")
def memory():
    memory = GuestMemory()
    memory.write(0, random.Random(3).randbytes(8 * PAGE))
    return memory


@pytest.fixture
def sums(memory):
    return PageSums(memory.base)


def test_each_word_counts(memory, sums):
    for word in range(0, PAGE, 4):
        sums.note(SYSTEM, 0)
        old = memory.u32(word)
        for new in (old ^ 1, old ^ 0x80000000):
            sums.note(SYSTEM, 0)
            memory.write(word, new.to_bytes(4, "little"))
            assert sums.take_changed() == [SYSTEM], hex(word)
            memory.write(word, old.to_bytes(4, "little"))
        assert sums.take_changed() == [], "it is not known any more"


def test_the_order_counts(memory, sums):
    first, second = memory.read(0x40, 4), memory.read(0x140, 4)
    sums.note(0, 0)
    memory.write(0x40, second)
    memory.write(0x140, first)
    assert sums.take_changed() == [0]


def test_what_changed_is_forgotten(memory, sums):
    pages = [SYSTEM + PAGE * n for n in range(8)]
    for number, page in enumerate(pages):
        sums.note(page, PAGE * number)
    changed = [0, 3, 6, 7]
    for number in changed:
        memory.write(PAGE * number + 100, bytes(4))
    assert sums.take_changed() == [pages[number] for number in changed]
    assert len(sums) == 4
    assert sums.take_changed() == []
    for number in range(8):
        memory.write(PAGE * number + 200, bytes(4))
    assert sorted(sums.take_changed()) == [pages[number] for number in (1, 2, 4, 5)]
    sums.note(pages[0], 0)
    sums.clear()
    memory.write(300, bytes(4))
    assert sums.take_changed() == []


def test_a_page_at_two_addresses_and_one_that_moves(memory, sums):
    sums.note(0x8000, 0)
    sums.note(SYSTEM, 0)
    sums.note(0x8000, 0x1000)
    memory.write(0x10, b"new!")
    assert sums.take_changed() == [SYSTEM]
    memory.write(0x1010, b"new!")
    assert sums.take_changed() == [0x8000]


def test_more_pages_than_there_was_room_for(memory, sums):
    count = 3 * FIRST_ROOM
    for number in range(count):
        sums.note(PAGE * number, PAGE * (number % 8))
    memory.write(5 * PAGE + 12, b"word")
    assert sums.take_changed() == [PAGE * number for number in range(count) if number % 8 == 5]
    assert len(sums) == count * 7 // 8
