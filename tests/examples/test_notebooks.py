"""The notebooks of the examples: their cells run, and give what is stored in them."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

import vc4lab

FOLDER = vc4lab.examples() / "notebooks"
TOOL = Path(__file__).parents[2] / "tools" / "notebooks.py"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def texts(notebook: dict[str, Any]) -> list[Any]:
    """What the code cells show, pictures left out: their bytes depend on the library that packs them."""
    found = []
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            found.append(output.get("text"))
            found.append({kind: data for kind, data in output.get("data", {}).items() if kind != "image/png"})
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_give_what_is_stored(path: Path) -> None:
    if not TOOL.exists():
        pytest.skip("the tools of the checkout are not here")
    spec = importlib.util.spec_from_file_location("notebooks_tool", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert texts(tool.run(path)) == texts(stored), f"python tools/notebooks.py {path}"
    assert len(texts(stored)) > 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_they_are_notebooks_of_version_4(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    names = [cell["id"] for cell in notebook["cells"]]
    assert len(set(names)) == len(names)
    assert path.stat().st_size < 40_000


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) == 4
