"""Two commits in one run: ``make bench-compare BASE=COMMIT``, what became slower and what faster.

The base is laid out beside the working tree with an environment of its own. Module by module, both
run their own benchmarks in turn (base, new, new, base, …), each time in a new process and without
the peers. Rows that both have are compared by name.

A row counts as worse (or better) if the medians differ by 3 % or more and the intervals do not
overlap. An interval leaves out the fastest and the slowest run: with 7 runs it holds the true
median with a probability of 87 %.
"""

from __future__ import annotations

import argparse
import json
import os
import pkgutil
import statistics
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import benchmarks

ROOT = Path(__file__).resolve().parent.parent
LEAST_RUNS = 7
THRESHOLD = 0.03

Samples = dict[tuple[str, str], list[float]]
"""(name, unit) of a row → its value in each run."""


@dataclass(frozen=True)
class Comparison:
    """One row measured in both trees. `change` is relative: +0.05 is 5 % more time (or rate)."""

    name: str
    unit: str
    base: tuple[float, ...]
    new: tuple[float, ...]

    @property
    def change(self) -> float:
        return statistics.median(self.new) / statistics.median(self.base) - 1

    @property
    def verdict(self) -> str:
        """ "worse", "better", or "" where the runs show no difference."""
        base, new = interval(self.base), interval(self.new)
        overlap = base[0] <= new[1] and new[0] <= base[1]
        if overlap or abs(self.change) < THRESHOLD:
            return ""
        return "better" if (self.change > 0) == is_rate(self.unit) else "worse"


def is_rate(unit: str) -> bool:
    """Whether more is better: so many of something a second. All other units are costs."""
    return unit.endswith("/s")


def interval(values: tuple[float, ...]) -> tuple[float, float]:
    """The range of the runs without the lowest and the highest. Needs three values or more."""
    ordered = sorted(values)
    return ordered[1], ordered[-2]


def compare(base: Samples, new: Samples) -> list[Comparison]:
    """The rows that both trees have with a value in every run, in the order of the new one."""
    return [
        Comparison(*key, tuple(base[key]), tuple(values))
        for key, values in new.items()
        if key in base and len(base[key]) == len(values) and statistics.median(base[key]) > 0
    ]


def lay_out(commit: str) -> Path:
    """The commit's files in out/bench-compare/COMMIT with an environment; made once."""
    name = _output("git", "rev-parse", "--verify", f"{commit}^{{commit}}").strip()
    place = ROOT / "out" / "bench-compare" / name[:12]
    if not (place / "Makefile").exists():
        place.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(["git", "archive", name], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", str(place)], input=archive, check=True)
    subprocess.run(["make", "-s", "-C", str(place), "env"], check=True, stdout=subprocess.DEVNULL)
    return place


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def measure(tree: Path, module: str) -> list[dict[str, Any]]:
    """The rows of one run of one benchmark in a new process. Raises CalledProcessError."""
    python = tree / ".venv" / "bin" / "python"
    environment = {**os.environ, "PATH": str(python.parent)}  # no peer is found there
    environment.pop("PYTHONPATH", None)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # else each start compiles the Python sources
    command = [str(python), "-m", "benchmarks", module]
    subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True)
    rows: list[dict[str, Any]] = json.loads((tree / "benchmarks" / "latest.json").read_text())
    return rows


def sample(trees: tuple[Path, Path], module: str, runs: int) -> tuple[Samples, Samples]:
    """Both trees in turn, after a run of each that fills the caches and is not counted."""
    found: tuple[Samples, Samples] = ({}, {})
    for number in range(runs + 1):
        order = (0, 1) if number % 2 else (1, 0)
        for which in order:
            rows = measure(trees[which], module)
            if number == 0:
                continue
            values = {(row["name"], row["unit"]): row["value"] for row in reversed(rows)}
            for key, value in reversed(values.items()):
                found[which].setdefault(key, []).append(value)
    return found


def report(console: Console, rows: list[Comparison]) -> None:
    """A table of all rows, the different ones marked."""
    table = Table("benchmark", "unit", "base", "interval", "new", "interval", "change", "")
    for row in rows:
        cells = [row.name, row.unit]
        for values in (row.base, row.new):
            low, high = interval(values)
            cells += [f"{statistics.median(values):.4g}", f"{low:.4g} … {high:.4g}"]
        style = {"worse": "red", "better": "green"}.get(row.verdict)
        table.add_row(*cells, f"{row.change:+.1%}", row.verdict, style=style)
    console.print(table)


def main(arguments: list[str]) -> int:
    """Exit code 1 if a row is worse."""
    modules = sorted(
        module.name for module in pkgutil.iter_modules(benchmarks.__path__) if not module.name.startswith("_")
    )
    parser = argparse.ArgumentParser(prog="bench-compare", description=__doc__)
    parser.add_argument("base", help="the commit to compare the working tree with")
    parser.add_argument("modules", nargs="*", help="only these benchmarks")
    parser.add_argument("--runs", type=int, default=LEAST_RUNS, help="of each tree (7 or more)")
    chosen = parser.parse_args(arguments)
    if chosen.runs < LEAST_RUNS:
        parser.error(f"{chosen.runs} runs say too little: {LEAST_RUNS} is the least")
    console = Console(width=None if sys.stdout.isatty() else 160)
    try:
        trees = (lay_out(chosen.base), ROOT)
    except subprocess.CalledProcessError as error:
        parser.error(f"{chosen.base}: {' '.join(error.cmd)} failed")
    rows: list[Comparison] = []
    for module in chosen.modules or modules:
        console.print(f"[dim]{module}: {chosen.runs} runs of each …[/dim]")
        try:
            samples = sample(trees, module, chosen.runs)
        except subprocess.CalledProcessError as error:
            said = (error.stderr or b"").decode(errors="replace").strip().splitlines()
            console.print(f"{module}: left out, a run failed: {said[-1] if said else error}")
            continue
        rows += compare(*samples)
    report(console, rows)
    counts = Counter(row.verdict for row in rows)
    console.print(
        f"{len(rows)} rows: {counts['worse']} worse, {counts['better']} better, "
        f"{counts['']} without a difference that shows"
    )
    return 1 if counts["worse"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
