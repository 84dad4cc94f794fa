"""The model beside measurements of frames on a board."""

from pathlib import Path

import pytest
from tests.support.frame_rows import ROWS, table
from tests.support.timing_rows import FITTED, Row

PAGE = Path(__file__).parents[3] / "docs" / "timing.md"


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_the_model_is_near_the_board(row: Row) -> None:
    """Rows that were kept back are judged by the page, where their reasons are."""
    if row.group == FITTED:
        assert row.met, f"{row.name}: {row.model():.5g} {row.unit}, on the board {row.measured:.5g}"


def test_the_page_has_these_rows() -> None:
    assert table() in PAGE.read_text()
