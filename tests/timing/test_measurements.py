"""The model beside measurements on boards that small programs can repeat, and the cache rules."""

from math import ceil
from pathlib import Path

import pytest
from benchmarks.board_frames import page_differences
from tests.support import later_rows
from tests.support.compute import DATA
from tests.support.timing import cache, timed
from tests.support.timing_rows import ROWS, Row, gathers, resident, straight, table, uniforms_of

PAGE = Path(__file__).parents[2] / "docs" / "timing.md"


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_the_model_is_near_the_board(row: Row) -> None:
    assert row.met, f"{row.name}: {row.model():.5g} {row.unit}, on the board {row.measured:.5g}"


def test_the_page_has_these_rows() -> None:
    assert table() in PAGE.read_text()


def test_the_page_has_the_rows_of_later() -> None:
    """They are judged by the page: no figure was chosen with them in view."""
    assert later_rows.table() in PAGE.read_text()
    assert page_differences(PAGE.read_text()) in PAGE.read_text()


@pytest.mark.parametrize("qpus", [1, 4, 5, 12])
@pytest.mark.parametrize("instructions", [8, 33, 80])
def test_straight_code_misses_its_lines_once_a_slice(qpus: int, instructions: int) -> None:
    timing = timed(straight(instructions), qpus=qpus)
    caches = [cache(timing, "instruction_cache", slice_) for slice_ in range(3)]
    assert sum(one.hits for one in caches) == qpus * instructions
    assert sum(one.misses for one in caches) == ceil(qpus / 4) * ceil(instructions / 8)


@pytest.mark.parametrize("count", [0, 1, 14, 15, 30, 64, 200])
def test_two_uniforms_more_are_fetched_than_read(count: int) -> None:
    one = cache(timed(uniforms_of(count)), "uniform_cache")
    assert one.hits == count + 2
    assert one.misses == ceil(one.hits / 16)


def test_uniforms_of_four_qpus() -> None:
    one = cache(timed(uniforms_of(14), qpus=4), "uniform_cache")
    assert one.hits == 4 * (14 + 2)
    assert one.misses == ceil(one.hits / 16)


@pytest.mark.parametrize(("offset", "lines"), [(0, 1), (4, 2), (32, 2)])
def test_a_lookup_counts_16_accesses_and_misses_each_line(offset: int, lines: int) -> None:
    one = cache(timed(gathers(0), [[DATA + offset]]), "tmu")
    assert one.hits + one.misses == 16
    assert one.misses == lines


@pytest.mark.parametrize(
    ("lines", "stride", "stay"),
    [(64, 1, True), (65, 1, False), (32, 2, True), (33, 2, False), (8, 8, True), (2, 64, False)],
)
def test_lines_stay_while_they_fit_the_direct_mapped_cache(lines: int, stride: int, stay: bool) -> None:
    misses = cache(timed(resident(lines, stride), [[DATA]]), "tmu").misses
    assert (misses == lines) == stay


def test_all_qpus_of_a_slice_on_one_address_miss_once() -> None:
    timing = timed(gathers(0), [[DATA]], qpus=2)
    assert cache(timing, "tmu", 0).misses == 1


def test_both_tmus_miss_once_each() -> None:
    timing = timed(gathers(0, 1), [[DATA]])
    assert [cache(timing, "tmu", number).misses for number in (0, 1)] == [1, 1]
