"""What pieces of functions assign, change and read: branches and loops are rewritten by that."""

import ast
import textwrap

import pytest

from vc4lab.simd.syntax import bound, exposed, item_roots, jumps


def statements(text: str) -> list[ast.stmt]:
    return ast.parse(textwrap.dedent(text)).body


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("b = 1\na, *c = b = d", ["b", "a", "c"]),
        ("if a:\n    while b:\n        c = 1", ["c"]),
        ("for a in b:\n    c[a] = d.e = 1", ["a"]),
        ("with a as b, c as (d, e):\n    f += 1", ["b", "d", "e", "f"]),
        ("a = [b for b in c for d, e in b]", ["a"]),
        ("a = {(b := c): d for d in e}", ["a", "b"]),
        ("def a(b):\n    c = 1\n    return c\nclass d:\n    e = 1", ["a", "d"]),
        ("a = lambda b: (c := b)", ["a"]),
        ("import a.b, c.d as e\nfrom f import g, h as i", ["a", "e", "g", "i"]),
        ("try:\n    a = 1\nexcept b as c:\n    d = 1", ["a", "c", "d"]),
        ("match a:\n    case [b, *c] if d:\n        e = 1", ["b", "c", "e"]),
    ],
)
def test_names_that_are_bound(text: str, due: list[str]) -> None:
    assert bound(statements(text)) == due


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("a[1] = b[2]", ["a"]),
        ("if a:\n    b.c[1][d[2]] += 1", ["b.c"]),
        ("del a[1]", ["a"]),
        ("a().b[1] = 1", []),
        ("def a():\n    b[1] = 1", []),
        ("a[0], (b[1], c) = d", ["a", "b"]),
    ],
)
def test_roots_of_items_that_are_assigned(text: str, due: list[str]) -> None:
    assert [ast.unparse(root) for root in item_roots(statements(text))] == due


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("if a:\n    for b in c:\n        break", True),
        ("while a:\n    continue", True),
        ("with a:\n    return", True),
        ("def a():\n    return 1", False),
        ("a = 1", False),
    ],
)
def test_jumps(text: str, due: bool) -> None:
    assert jumps(statements(text)) is due


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("a = 1\nb = a", ""),
        ("b = a\na = 1", "a"),
        ("a += 1", "a"),
        ("if a:\n    b = 1\nelse:\n    c = 1\nd = b", "ab"),
        ("if a:\n    b = 1\nelse:\n    b = 2\nd = b", "a"),
        ("if a:\n    b = 1\nelse:\n    return\nd = b", "a"),
        ("while a:\n    b = 1\nd = b", "ab"),
        ("for a in c:\n    b = a", "c"),
        ("with a as b:\n    c = b\nd = c", "a"),
        ("return a\nb = c", "a"),
    ],
)
def test_names_that_are_read_before_they_are_assigned(text: str, due: str) -> None:
    assert exposed(statements(text)) == set(due)
