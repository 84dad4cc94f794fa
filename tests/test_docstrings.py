"""A docstring is a sentence with a verb, and one after a field a noun phrase: some words begin neither."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import vc4lab

SOURCES = Path(vc4lab.__file__).parent
PACKAGES = {"", "cache", "cli", "debug", "diagnostics", "drm", "jobs", "kernels", "qpu", "simd", "soc", "v3d"}
"""Folders of the sources; "": the modules directly in the package."""
FRAGMENT = re.compile(r"\s*(?:What|Of|Where|The same)\b")


@cache
def docstrings(path: Path) -> tuple[tuple[int, str], ...]:
    """Return the line and text of each string in a file that is a statement of its own."""
    return tuple(strings(ast.parse(path.read_text(encoding="utf-8"))))


def strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield them in a part of a file: docstrings, and the strings after fields and constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                yield node.lineno, node.value.value


def package(path: Path) -> str:
    """Return the folder of the sources that a file is in; "": directly in the package."""
    folder, *rest = path.relative_to(SOURCES).parts
    return folder if rest else ""


def test_the_packages_have_sources() -> None:
    assert {package(path) for path in SOURCES.rglob("*.py")} >= PACKAGES


def test_no_docstring_is_a_fragment() -> None:
    found = []
    for path in sorted(SOURCES.rglob("*.py")):
        if package(path) in PACKAGES:
            texts = [(line, text) for line, text in docstrings(path) if FRAGMENT.match(text)]
            found += [
                f"{path.relative_to(SOURCES)}:{line}: {text.strip().splitlines()[0]}" for line, text in texts
            ]
    assert not found, "\n".join(["rewrite as sentences, or noun phrases after fields:", *found])


def test_fragments_are_found_wherever_they_are() -> None:
    source = (
        '"""Of a module."""\nclass A:\n    """The same."""\n    x = 1\n    """Where it is."""\n'
        'def f():\n    """Offers nothing."""\n    if f:\n        """\n        What it is."""\n'
    )
    texts = [text for _, text in strings(ast.parse(source)) if FRAGMENT.match(text)]
    assert sorted(text.split()[0] for text in texts) == ["Of", "The", "What", "Where"]
