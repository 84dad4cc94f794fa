"""Rows of slow.txt: each names a test that is there."""

import re
from functools import cache
from pathlib import Path

from tests.conftest import slow_rows

ROOT = Path(__file__).parents[1]


@cache
def functions(path: Path) -> set[str]:
    """The tests of a file."""
    return {*re.findall(r"^ *def (\w+)\(", path.read_text(), re.M)}


def test_each_row_names_a_test() -> None:
    missing = []
    rows = slow_rows()
    for row in sorted(rows):
        file, _, name = row.partition("::")
        if not (ROOT / file).is_file() or (name and name not in functions(ROOT / file)):
            missing.append(row)
    assert not missing
    assert len(rows) > 50
