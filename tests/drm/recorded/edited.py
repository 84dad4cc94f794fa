"""A recorded run with something in it changed: fields, buffers, the binning list."""

import json
from pathlib import Path
from typing import Any


def edit(run: Path, **changes: Any) -> None:
    path = run / "job0001" / "submit.json"
    table = json.loads(path.read_text())
    for name, value in changes.items():
        table[name] = value(table[name]) if callable(value) else value
    path.write_text(json.dumps(table))


def surface(**fields: int) -> Any:
    return lambda old: {**old, **fields}


def bos(index: int, **fields: Any) -> Any:
    return lambda old: [{**b, **fields} if n == index else b for n, b in enumerate(old)]


def change_list(run: Path, data: bytes) -> None:
    (run / "job0001" / "bin_cl.bin").write_bytes(data)
    edit(run, bin_cl_size=len(data))
