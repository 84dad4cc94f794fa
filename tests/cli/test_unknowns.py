"""`vc4lab unknowns` and the page that is written from the same table."""

import json
from pathlib import Path

from typer.testing import CliRunner

from vc4lab.cli.main import app
from vc4lab.cli.unknowns_page import AREAS, NOT_DECIDED, write_page
from vc4lab.diagnostics.unknown import table

PAGE = Path(__file__).parents[2] / "docs" / "unknowns.md"


def test_the_page_is_what_the_table_says() -> None:
    """Write it anew with `python -m vc4lab.cli.unknowns_page > docs/unknowns.md`."""
    assert PAGE.read_text(encoding="utf-8") == write_page()


def test_the_page_has_every_row_once() -> None:
    names = [row.name for _, rows in AREAS for row in rows]
    assert sorted(names) == sorted(table())
    assert all(why for _, _, why in NOT_DECIDED)


def test_the_table_for_programs() -> None:
    result = CliRunner().invoke(app, ["unknowns", "--json"])
    rows = json.loads(result.output)
    assert {row["name"] for row in rows} == set(table())
    assert all(len(row["choices"]) > 1 for row in rows)
    for row in rows:
        assert row["default"] in row["choices"]
