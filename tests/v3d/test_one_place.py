"""What a choice of an unknown means is asked in one place, which all others call."""

import ast
from collections import Counter
from pathlib import Path

import vc4lab

SOURCES = Path(vc4lab.__file__).parent / "v3d"


def asked(path: Path) -> list[tuple[str, str]]:
    """(unknown, choice) of each `unknowns["unknown"] == "choice"`, or !=, in a file."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not (isinstance(node, ast.Compare) and isinstance(node.left, ast.Subscript)):
            continue
        table, key, choice = node.left.value, node.left.slice, node.comparators[0]
        name = table.attr if isinstance(table, ast.Attribute) else getattr(table, "id", "")
        if name.endswith("unknowns") and isinstance(key, ast.Constant):
            found.append((str(key.value), str(getattr(choice, "value", ast.dump(choice)))))
    return found


def test_no_choice_is_asked_in_two_places() -> None:
    times = Counter(pair for path in SOURCES.rglob("*.py") for pair in asked(path))
    assert len(times) > 30
    assert not [pair for pair, count in times.items() if count > 1]
