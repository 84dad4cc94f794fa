"""The floors of the house: what a folder may import (CONTRIBUTING.md, rule 2)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import vc4lab

SOURCES = Path(vc4lab.__file__).parent
FLOORS = (
    {"bits", "diagnostics", "files", "images", "memory", "ranges", "simd"},
    {"qpu", "records"},
    {"v3d"},
    {"drm", "soc"},
    {"cli", "examples", "pytest_plugin", "viewer"},
)
LEVELS = {name: level for level, names in enumerate(FLOORS) for name in names}
FREE = {"__init__", "__main__"}
"""The package itself, from which users import."""
FOLDERS = sorted(
    path.stem
    for path in SOURCES.iterdir()
    if path.suffix == ".py" or (path / "__init__.py").is_file()
)


def imports(path: Path) -> Iterator[str]:
    """The first folder of each module of vc4lab that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "vc4lab":
            names = [f"vc4lab.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        for name in names:
            package, _, rest = name.partition(".")
            if package == "vc4lab" and rest:
                yield rest.split(".")[0]


@pytest.mark.parametrize("folder", [name for name in FOLDERS if name not in FREE])
def test_imports_only_point_down(folder: str) -> None:
    level = LEVELS[folder]
    files = [SOURCES / f"{folder}.py", *(SOURCES / folder).rglob("*.py")]
    upward = {
        f"{path.relative_to(SOURCES)}: vc4lab.{target}"
        for path in files
        if path.exists()
        for target in imports(path)
        if target in LEVELS and target != folder
        if LEVELS[target] > level or (LEVELS[target] == level > 0 and level < 4)
    }
    assert not upward
