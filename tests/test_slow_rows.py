"""Rows of slow.txt: each names a test that is there."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.conftest import slow_rows

ROOT = Path(__file__).parents[1]


def functions(path: Path) -> set[str]:
    """The tests of a file."""
    return {node.name for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.FunctionDef)}  # fmt: skip


def test_each_row_names_a_test() -> None:
    missing = []
    rows = slow_rows()
    for row in sorted(rows):
        file, _, name = row.partition("::")
        if not (ROOT / file).is_file() or (name and name not in functions(ROOT / file)):
            missing.append(row)
    assert not missing
    assert len(rows) > 50
