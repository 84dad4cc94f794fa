"""Runs every benchmark, prints one table and writes ``benchmarks/latest.json``.

A module of this package with a function ``run() -> list[dict]`` is a benchmark. A row has
``name``, ``value``, ``unit`` and, where there is a peer measured in the same run, ``peer``,
``peer_value`` and ``ratio`` (above 1: we are ahead). Name modules on the command line to run only
those.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import benchmarks


def main(arguments: list[str]) -> int:
    console = Console(width=None if sys.stdout.isatty() else 120)
    names = arguments or sorted(
        module.name for module in pkgutil.iter_modules(benchmarks.__path__) if not module.name.startswith("_")
    )
    rows: list[dict[str, Any]] = []
    for name in names:
        console.print(f"[dim]{name} …[/dim]")
        rows.extend(importlib.import_module(f"benchmarks.{name}").run())
    table = Table("benchmark", "value", "unit", "peer", "peer value", "ratio")
    for row in rows:
        ratio = f"{row['ratio']:.2f}" if "ratio" in row else ""
        peer_value = f"{row['peer_value']:.4g}" if "peer_value" in row else ""
        value = f"{row['value']:.4g}"
        table.add_row(row["name"], value, row["unit"], row.get("peer", ""), peer_value, ratio)
    console.print(table)
    target = Path(__file__).with_name("latest.json")
    target.write_text(json.dumps(rows, indent=1) + "\n")
    console.print(f"written: {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
