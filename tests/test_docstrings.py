"""A docstring is a sentence with a verb, and one after a field a noun phrase: some words begin neither."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import vc4lab

SOURCES = Path(vc4lab.__file__).parent
FRAGMENT = re.compile(r"\s*(?:What|Of|Where|The same)\b")


def fragments(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text: of docstrings, and of strings after fields and constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = node.value.value
            if isinstance(text, str) and FRAGMENT.match(text):
                yield node.lineno, text.strip().splitlines()[0]


def test_no_docstring_is_a_fragment() -> None:
    found = [
        f"{path.relative_to(SOURCES)}:{line}: {text}"
        for path in sorted(SOURCES.rglob("*.py"))
        for line, text in fragments(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not found, "\n".join(["rewrite as sentences, or noun phrases after fields:", *found])


def test_fragments_are_found_wherever_they_are() -> None:
    source = (
        '"""Of a module."""\nclass A:\n    """The same."""\n    x = 1\n    """Where it is."""\n'
        'def f():\n    """Offers nothing."""\n    if f:\n        """\n        What it is."""\n'
    )
    texts = [text for _, text in fragments(ast.parse(source))]
    assert sorted(text.split()[0] for text in texts) == ["Of", "The", "What", "Where"]
