"""What goes into wheels and source distributions."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MADE = {".o", ".elf", ".d", ".pyc"}
"""Endings of what building or running an example leaves."""


@pytest.fixture(autouse=True)
def _checkout():
    if not (ROOT / "setup.py").exists():
        pytest.skip("the sources of the package are not here")


def test_all_of_the_examples_are_packed():
    tree = ast.parse((ROOT / "setup.py").read_text(encoding="utf-8"))
    (packed,) = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SOURCES"
    ]
    found = {path.suffix for path in (ROOT / "examples").rglob("*") if path.is_file()}
    assert found - MADE == packed


def test_sources_are_complete():
    manifest = (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines()
    for folder in ("tests", "docs", "examples", "benchmarks", "tools"):
        assert f"graft {folder}" in manifest
    for name in next(line for line in manifest if line.startswith("include ")).split()[1:]:
        assert (ROOT / name).is_file()


def test_the_licence_is_an_expression():
    """As a table it is deprecated and setuptools will refuse it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == "MIT"
    assert all((ROOT / name).is_file() for name in project["license-files"])


def test_the_files_of_pages_are_packed():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    package = ROOT / "src" / "vc4lab"
    packed = {path for pattern in settings["package-data"]["vc4lab"] for path in package.glob(pattern)}
    page = set((package / "viewer" / "inside" / "page").iterdir())
    assert page
    assert page <= packed
    assert {path.suffix for path in page} == {".html", ".css", ".js"}


IMPORTED_AS = {"Pillow": "PIL", "pygame-ce": "pygame"}
"""Names of modules that differ from those of their distributions."""


def imported(tree: ast.AST) -> Iterator[str]:
    """The modules that code imports when it runs: not those for types alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield str(node.module).partition(".")[0]
        yield from imported(node)


def test_what_is_imported_is_a_dependency_of_ours():
    """What a dependency needs today may be gone tomorrow: typer no longer brings click."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    wanted = [*project["dependencies"], *optional["window"], *optional["sweep"], *optional["debug"], "pytest"]
    names = [re.split(r"[<>=]", one)[0] for one in wanted]
    allowed = {IMPORTED_AS.get(name, name) for name in names} | {"vc4lab"}
    for path in (ROOT / "src").rglob("*.py"):
        found = set(imported(ast.parse(path.read_text(encoding="utf-8"))))
        assert found - sys.stdlib_module_names <= allowed, path
