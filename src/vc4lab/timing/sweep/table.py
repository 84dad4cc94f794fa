"""The outcomes of a sweep as rows: each with its figures, and how much faster than the chip is."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from io import StringIO
from typing import Any

from vc4lab.timing.sweep.points import Outcome, Point


@dataclass(frozen=True)
class Row:
    """A run at a point. speedup: against the chip as it is, 0 where that is not known."""

    run: str
    set: Mapping[str, float | bool]
    clocks: int
    milliseconds: float
    frames: int
    rate: float
    speedup: float
    error: str = ""


def rows_of(points: Sequence[Point], outcomes: Mapping[str, Outcome]) -> list[Row]:
    """The rows in the order of the points, the chip as it is first."""
    base = {}
    for point in points:
        found = outcomes.get(point.key)
        if not point.changes and found is not None and found.clocks:
            base[point.run] = found.clocks
    rows = []
    for point in points:
        one = outcomes.get(point.key)
        if one is None:
            continue
        set_ = {f"{section}.{key}": value for (section, key), value in point.changes.items()}
        rows.append(
            Row(
                point.run,
                set_,
                one.clocks,
                one.milliseconds,
                len(one.frames),
                1000 * len(one.frames) / one.milliseconds if one.milliseconds else 0.0,
                base.get(point.run, 0) / one.clocks if one.clocks else 0.0,
                one.error,
            )
        )
    return rows


def names_of(rows: Sequence[Row]) -> list[str]:
    """The figures that change."""
    return list(dict.fromkeys(name for row in rows for name in row.set))


def table_csv(rows: Sequence[Row]) -> str:
    """The rows as CSV; the cells of figures are empty for the chip as it is."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = names_of(rows)
    writer.writerow(
        ["run", *names, "clocks", "milliseconds", "frames", "frames_per_second", "speedup", "error"]
    )
    for row in rows:
        writer.writerow(
            [
                row.run, *[_cell(row.set.get(name, "")) for name in names], row.clocks,
                f"{row.milliseconds:.6g}", row.frames, f"{row.rate:.6g}", f"{row.speedup:.6g}",
                row.error,
            ]
        )  # fmt: skip
    return out.getvalue()


def _cell(value: float | bool | str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else f"{value:.12g}"


def table_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows as plain values."""
    return [asdict(row) for row in rows]
