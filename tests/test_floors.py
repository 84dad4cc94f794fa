"""The floors of the house: what a folder may import (CONTRIBUTING.md, rule 2), and no circles."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import vc4lab

SOURCES = Path(vc4lab.__file__).parent
FLOORS = (
    {"bits", "bounded", "cache", "capture", "diagnostics", "files", "images", "interruption"}
    | {"listeners", "memory", "optimisations", "options", "ranges", "registers", "scanout", "simd"}
    | {"temporary", "toml_files"},
    {"qpu", "records"},
    {"v3d"},
    {"timing"},
    {"jobs"},
    {"debug"},
    {"kernels", "mesa"},
    {"driver", "drm", "soc"},
    {"linux", "recordings"},
    {"cli", "examples", "pytest_plugin", "viewer"},
)
LEVELS = {name: level for level, names in enumerate(FLOORS) for name in names}
V3D_README = SOURCES / "v3d" / "README.md"
FREE = {"__init__", "__main__"}
"""The package itself, from which users import."""
FOLDERS = sorted(
    path.stem for path in SOURCES.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()
)


def imports(path: Path) -> tuple[str, ...]:
    """Each module of vc4lab or name in one that a file imports, wherever in it, without `vc4lab.`.

    `from vc4lab.a import b` gives a.b.
    """
    return both_imports(path)[0]


def run_time_imports(path: Path) -> tuple[str, ...]:
    """`imports` without those that only a type checker sees."""
    return both_imports(path)[1]


@cache
def both_imports(path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """`imports` and `run_time_imports` of a file that is parsed once."""
    tree = ast.parse(path.read_text())
    found = imported(tree)
    checked = [node for node in ast.walk(tree) if isinstance(node, ast.If) and _is_for_checkers(node.test)]
    for node in checked:
        node.body = []
    return found, imported(tree) if checked else found


def _is_for_checkers(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def imported(tree: ast.AST) -> tuple[str, ...]:
    """The names that a part of a file imports, see `imports`."""
    found = []
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            package, _, rest = name.partition(".")
            if package == "vc4lab" and rest:
                found.append(rest)
    return tuple(found)


@pytest.mark.parametrize("folder", [name for name in FOLDERS if name not in FREE])
def test_imports_only_point_down(folder: str) -> None:
    level = LEVELS[folder]
    files = [SOURCES / f"{folder}.py", *(SOURCES / folder).rglob("*.py")]
    upward = {
        f"{path.relative_to(SOURCES)}: vc4lab.{target}"
        for path in files
        if path.exists()
        for target in (name.split(".")[0] for name in imports(path))
        if target in LEVELS and target != folder
        if LEVELS[target] > level or (LEVELS[target] == level > 0 and level < len(FLOORS) - 1)
    }
    assert not upward


def test_only_the_driver_and_faces_know_mesa() -> None:
    """The protocol ends where the hardware begins; boards and the DRM device have none of it."""
    knowing = {
        module.split(".")[0]
        for module, targets in graph().items()
        if any(target.split(".")[0] == "mesa" for target in targets)
    }
    assert knowing <= {"mesa", "driver", "cli"}


@cache
def graph(of: Callable[[Path], tuple[str, ...]] = imports) -> dict[str, set[str]]:
    """Which modules each module imports, also for types only (`of`: or not)."""
    paths = {}
    for path in SOURCES.rglob("*.py"):
        parts = path.relative_to(SOURCES).with_suffix("").parts
        paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    found = {}
    for module, path in paths.items():
        names = of(path)
        targets = {name if name in paths else name.rpartition(".")[0] for name in names}
        found[module] = (targets & set(paths)) - {module, ""}
    return found


def reached(modules: dict[str, set[str]], start: str) -> set[str]:
    """The modules that are imported on the way, and on theirs."""
    found: set[str] = set()
    left = [start]
    while left:
        for target in modules[left.pop()] - found:
            found.add(target)
            left.append(target)
    return found


def circles(modules: dict[str, set[str]]) -> set[frozenset[str]]:
    """Groups of modules each of which reaches all others of its group."""
    all_reached = {module: reached(modules, module) for module in modules}
    return {
        frozenset(other for other in far if module in all_reached[other])
        for module, far in all_reached.items()
        if module in far
    }


def test_circles_are_found() -> None:
    modules = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set()}
    assert circles(modules) == {frozenset("abc")}


def test_imports_make_no_circles() -> None:
    found = circles(graph())
    assert not found, "; ".join(" and ".join(sorted(circle)) for circle in found)


def drawn_blocks(package: str) -> list[list[str]]:
    """The folders of a package, and the modules beside them, as its README draws them: the lowest first.

    A line with a deeper indent goes on with the one above it.
    """
    page = (SOURCES / package / "README.md").read_text()
    lines: list[list[str]] = []
    for line in page.split("imports which\n")[1].split("```")[1].strip("\n").splitlines():
        if not line.startswith("   "):
            lines.append([])
        lines[-1] += re.findall(r"\w+", line[:42])
    return lines[::-1]


@pytest.mark.parametrize(
    ("package", "counted"),
    [("v3d", imports), ("soc", imports), ("drm", run_time_imports), ("driver", run_time_imports)],
)
def test_folders_import_only_those_drawn_below(
    package: str, counted: Callable[[Path], tuple[str, ...]]
) -> None:
    blocks = drawn_blocks(package)
    levels = {name: level for level, names in enumerate(blocks) for name in names}
    assert len(levels) == sum(map(len, blocks))
    found = {
        module: targets for module, targets in graph(counted).items() if module.startswith(f"{package}.")
    }
    assert {module.split(".")[1] for module in found} == set(levels)
    upward = {
        f"{module} -> {target}"
        for module, targets in found.items()
        for target in targets
        if target.startswith(f"{package}.") and not target.endswith("unknowns")
        for one, other in [(module.split(".")[1], target.split(".")[1])]
        if one != other and levels[other] >= levels[one]
        if not levels[one] == levels[other] in (0, len(blocks) - 1)
    }
    assert not upward


def test_the_table_of_the_v3d_has_a_path_in_each_block() -> None:
    table = V3D_README.read_text().split("## Where is")[1]
    blocks = {path.parent.name for path in V3D_README.parent.glob("*/__init__.py")}
    assert blocks == set(re.findall(r"`(\w+)/\w+\.py`", table))


def test_folders_stay_small() -> None:
    folders = [
        folder
        for name in ("v3d", "qpu", "soc", "drm", "driver")
        for folder in (SOURCES / name, *(SOURCES / name).rglob("*"))
        if folder.is_dir() and folder.name != "__pycache__"
    ]
    sizes = {
        str(folder.relative_to(SOURCES)): len({*folder.glob("*.py")} - {folder / "__init__.py"})
        for folder in folders
    }
    assert not {name: size for name, size in sizes.items() if size > 15}
