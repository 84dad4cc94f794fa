"""The table of undocumented behaviour and its switches."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from tests.support.unknown_tests import TESTS

import vc4lab.drm.cpu_memory.cpu_memory_unknowns
import vc4lab.scanout.display_unknowns
import vc4lab.soc.board_unknowns  # their rows are in the table, too
from vc4lab.diagnostics.unknown import register, table
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS, LIST_UNKNOWNS, Unknowns


@pytest.mark.parametrize("name", sorted(table()))
def test_rows_are_complete(name: str) -> None:
    row = table()[name]
    assert "?" in row.question
    assert row.decided_by
    assert row.reference
    assert DEFAULT_UNKNOWNS[name] == row.default
    assert len(row.choices) > 1, "a question with one answer is no switch"


def test_rows_of_the_v3d_name_their_place_in_the_reference() -> None:
    others = vc4lab.soc.board_unknowns.BOARD_UNKNOWNS + vc4lab.scanout.display_unknowns.DISPLAY_UNKNOWNS
    others = others + vc4lab.drm.cpu_memory.cpu_memory_unknowns.CPU_MEMORY_UNKNOWNS
    board = {row.name for row in others}
    for row in table().values():
        assert row.name in board or re.search(r"reference \d", row.reference), row.name


SHOWN = [
    (choice, file, test)
    for file, tests in TESTS.items()
    for test, choices in tests.items()
    for choice in choices
]


def test_every_choice_has_its_test() -> None:
    """tests/support/unknown_tests.py says which test shows that a choice is obeyed."""
    wanted = {
        f"{row.name}={choice}" for row in table().values() for choice in row.choices if choice != row.default
    }
    listed = [choice for choice, _, _ in SHOWN]
    assert sorted(listed) == sorted(wanted)


@pytest.mark.parametrize(("choice", "file", "test"), SHOWN, ids=[item[0] for item in SHOWN])
def test_the_test_of_a_choice_is_there_and_names_it(choice: str, file: str, test: str) -> None:
    """In its own text, or in a constant or helper of its file that it uses."""
    name, _, value = choice.partition("=")
    text = _text_of(Path(__file__).parents[2] / file, test)
    assert re.search(rf"\b{name}\b", text)
    assert f'"{value}"' in text


def _text_of(path: Path, test: str) -> str:
    parts, names = _parts(path)
    texts, todo = [], [test]
    seen: set[str] = set()
    while todo:
        part = todo.pop()
        if part in parts and part not in seen:
            seen.add(part)
            texts.append(parts[part])
            todo += names[part]
    return "\n".join(texts)


@cache
def _parts(path: Path) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Texts of a file's functions and constants, and the names that each of them uses."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    parts: dict[str, str] = {}
    names: dict[str, list[str]] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            found = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            first = node.lineno
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found = [target.id for target in targets if isinstance(target, ast.Name)]
        else:
            continue
        for name in found:
            parts[name] = "\n".join(lines[first - 1 : node.end_lineno])
            names[name] = [item.id for item in ast.walk(node) if isinstance(item, ast.Name)]
    return parts, names


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
    for row in vc4lab.soc.board_unknowns.BOARD_UNKNOWNS:
        assert table()[row.name] is row
    before = dict(table())
    with pytest.raises(ValueError, match="twice"):
        register(LIST_UNKNOWNS[:1])
    assert dict(table()) == before


def test_every_switch_is_looked_at() -> None:
    """Each row is a setting that code asks for."""
    root = Path(vc4lab.soc.board_unknowns.__file__).parents[1]
    texts = [p.read_text() for p in root.rglob("*.py") if not p.name.endswith("unknowns.py")]
    for name in table():
        assert any(f'["{name}"]' in text for text in texts), name
