"""Executes notebooks and stores what their cells give: `python tools/notebooks.py FILE…`.

Needs no Jupyter. Cells run in one namespace, in the notebook's folder; what they print, and the value of a
last expression (as text, HTML or a picture, whatever it knows how to be), become their outputs.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import linecache
import os
import re
import sys
from pathlib import Path
from typing import Any

FORMATS = {"text/html": "_repr_html_", "image/png": "_repr_png_"}


def shown(value: object) -> dict[str, Any]:
    """A value in the formats that a notebook can show."""
    data: dict[str, Any] = {"text/plain": re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(value))}
    for name, method in FORMATS.items():
        made = getattr(value, method, None)
        found = made() if callable(made) else None
        if isinstance(found, bytes):
            found = base64.b64encode(found).decode()
        if found is not None:
            data[name] = found
    return data


def execute(cells: list[dict[str, Any]], name: str) -> None:
    """Run the code cells in order and replace their outputs."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        count += 1
        source = "".join(cell["source"])
        file = f"<{name} {count}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        tree = ast.parse(source)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
            last = ast.Expression(tree.body.pop().value)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, file, "exec"), namespace)
            value = eval(compile(last, file, "eval"), namespace) if last is not None else None
        outputs: list[dict[str, Any]] = []
        if printed.getvalue():
            text = printed.getvalue().splitlines(keepends=True)
            outputs.append({"name": "stdout", "output_type": "stream", "text": text})
        if value is not None:
            data = {kind: _lines(kind, text) for kind, text in shown(value).items()}
            result = {"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"}
            outputs.append(result)
        cell.update(execution_count=count, outputs=outputs)


def _lines(kind: str, text: str) -> Any:
    return text if kind.startswith("image/") else text.splitlines(keepends=True)


def run(path: Path) -> dict[str, Any]:
    """The notebook with fresh outputs."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    before = Path.cwd()
    os.chdir(path.parent)
    try:
        execute(notebook["cells"], path.stem)
    finally:
        os.chdir(before)
    return notebook


def main(names: list[str]) -> None:
    for name in names:
        text = json.dumps(run(Path(name)), indent=1, ensure_ascii=False, sort_keys=True)
        Path(name).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
