"""The table of undocumented behaviour and its switches."""

from pathlib import Path

import pytest

import vc4lab.soc.unknowns  # its rows are in the table, too
from vc4lab.diagnostics.unknown import register, table
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS, ROWS, Unknowns


@pytest.mark.parametrize("name", sorted(table()))
def test_rows_are_complete(name: str) -> None:
    row = table()[name]
    assert "?" in row.question
    assert row.decided_by
    assert row.reference
    assert DEFAULT_UNKNOWNS[name] == row.default


def test_settings_compare_and_digest() -> None:
    deep = DEFAULT_UNKNOWNS.with_(sublist_depth="1")
    assert deep["sublist_depth"] == "1"
    assert deep != DEFAULT_UNKNOWNS
    assert deep.digest() != DEFAULT_UNKNOWNS.digest()
    back = deep.with_(sublist_depth="2")
    assert back == DEFAULT_UNKNOWNS
    assert hash(back) == hash(Unknowns())
    assert deep.changed() == {"sublist_depth": "1"}


def test_wrong_names_and_values() -> None:
    with pytest.raises(KeyError, match="sublist_depth"):
        DEFAULT_UNKNOWNS["sublistdepth"]
    with pytest.raises(ValueError, match="not one of"):
        DEFAULT_UNKNOWNS.with_(sublist_depth="3")


def test_rooms_register_their_rows_once() -> None:
    for row in vc4lab.soc.unknowns.ROWS:
        assert table()[row.name] is row
    before = dict(table())
    with pytest.raises(ValueError, match="twice"):
        register(ROWS[:1])
    assert dict(table()) == before


def test_every_switch_is_looked_at() -> None:
    """A row with alternatives names a setting that code asks for; one without has no switch."""
    root = Path(vc4lab.soc.unknowns.__file__).parents[1]
    texts = [p.read_text() for p in root.rglob("*.py") if not p.name.endswith("unknowns.py")]
    for name, row in table().items():
        asked = any(f'["{name}"]' in text for text in texts)
        assert asked == (len(row.choices) > 1), name
