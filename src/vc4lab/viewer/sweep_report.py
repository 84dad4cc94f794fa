"""A sweep in a terminal, as plots and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vc4lab.timing.sweep.table import Row, names_of
from vc4lab.viewer.page import heading, page, paragraph, table
from vc4lab.viewer.svg_plots import Series, line_plot, number_text

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 120
MAX_ROWS = 5000
"""Rows of the page's table."""


def short_names(rows: Sequence[Row]) -> dict[str, str]:
    """The runs by the last parts of their paths, as many as make them differ."""
    runs = list(dict.fromkeys(row.run for row in rows))
    parts = {run: run.rstrip("/").split("/") for run in runs}
    count = 1
    while count < 8 and len({tuple(p[-count:]) for p in parts.values()}) < len(runs):
        count += 1
    return {run: "/".join(p[-count:]) for run, p in parts.items()}


def print_rows(rows: Sequence[Row], console: Console | None = None) -> None:
    """Print the table."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    names, runs = names_of(rows), short_names(rows)
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    shown.add_column("run", overflow="fold")
    for name in (*names, "clocks", "ms", "frames/s", "times as fast"):
        shown.add_column(name, justify="right")
    for row in rows:
        values = [number(row.set[name]) if name in row.set else "" for name in names]
        if row.error:
            shown.add_row(runs[row.run], *values, row.error)
            continue
        shown.add_row(
            runs[row.run], *values, str(row.clocks), f"{row.milliseconds:.4g}", f"{row.rate:.4g}",
            f"{row.speedup:.3f}" if row.speedup else "",
        )  # fmt: skip
    if console is None:
        console = Console()
        console = console if console.is_terminal else Console(width=WIDTH)
    console.print(shown)


def number(value: float | bool) -> str:
    """A value as tables show it."""
    return str(value).lower() if isinstance(value, bool) else number_text(value)


def plots(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """A plot for each figure that has several values: its name and the SVG."""
    found = []
    runs = short_names(rows)
    for name in names_of(rows):
        lines: dict[str, list[tuple[float, float]]] = {}
        for row in rows:
            if name not in row.set or row.error or not row.speedup:
                continue
            others = ", ".join(f"{k}={number(v)}"
                               for k, v in row.set.items() if k != name)  # fmt: skip
            line = runs[row.run] if len(runs) > 1 else ""
            line = ", ".join(part for part in (line, others) if part) or runs[row.run]
            lines.setdefault(line, []).append((float(row.set[name]), row.speedup))
        if any(len(points) > 1 for points in lines.values()):
            series = [Series(line, tuple(points)) for line, points in lines.items()]
            found.append((name, line_plot(series, name, "times as fast as the chip is")))
    return found


def sweep_page(rows: Sequence[Row], chip: str, board: str) -> str:
    """The page: plots and the table."""
    names, runs = names_of(rows), short_names(rows)
    parts = [
        paragraph(
            f"{chip} on {board}. Each point is a run of the model on every recorded frame; times "
            "as fast: against the chip as its file has it.",
            "faint",
        )
    ]
    for name, plot in plots(rows):
        parts += [heading(name), plot]
    cells = [
        (
            runs[row.run],
            *[number(row.set[name]) if name in row.set else "" for name in names],
            row.clocks,
            row.milliseconds,
            row.rate,
            row.speedup,
            row.error,
        )
        for row in rows[:MAX_ROWS]
    ]
    head = ["run", *names, "clocks", "ms", "frames/s", "times as fast", ""]
    parts += [heading("Table"), table(head, cells)]
    return page("Sweep", parts)
