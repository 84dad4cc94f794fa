"""When rows of the table of unknowns were last flipped over what real boards ran, and what came of it.

`make decide DECIDE=--record` writes the file; `vc4lab unknowns` and docs/unknowns.md show it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path

FLIPS = Path(__file__).parents[1] / "data" / "unknowns" / "flips.csv"
"""A line for each choice and suite."""
WORDS = {
    "contradicted": "contradicted (results of boards: {against} against, {for_it} for it)",
    "nearer": "nearer to boards (results: {for_it})",
    "visible": "visible (results, undecided by boards: {other})",
    "not visible": "not visible",
}


@dataclass(frozen=True, order=True)
class Flipped:
    """A choice, all else at its default, over a suite.

    against: results that are as on boards with the default only; for_it: with the choice only;
    other: what changes besides. cases: how many were looked at, of all_cases.
    """

    row: str
    choice: str
    suite: str
    cases: int
    all_cases: int
    date: str
    came: str
    against: int
    for_it: int
    other: int

    @property
    def text(self) -> str:
        """Return what came of it, in words."""
        return WORDS[self.came].format(against=self.against, for_it=self.for_it, other=self.other)


def read(path: Path = FLIPS) -> list[Flipped]:
    """Return the rows of the file, in its order. Raises OSError, ValueError."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Flipped(
                row["row"], row["choice"], row["suite"], int(row["cases"]), int(row["all_cases"]),
                row["date"], row["came"], int(row["against"]), int(row["for_it"]), int(row["other"]),
            )
            for row in csv.DictReader(file)
        ]  # fmt: skip


def write(found: Iterable[Flipped], path: Path = FLIPS) -> None:
    """Write them, and keep what the file has of other choices and suites.

    Of the same one the stronger word stays, and of equal ones that of more cases; what all cases of a
    suite say replaces both.
    """
    kept = {(one.row, one.choice, one.suite): one for one in read(path)} if path.is_file() else {}
    for one in found:
        old = kept.get((one.row, one.choice, one.suite))
        if old is None or one.cases == one.all_cases or _strength(old) <= _strength(one):
            kept[one.row, one.choice, one.suite] = one
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Flipped)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(one) for one in sorted(kept.values()))


def _strength(one: Flipped) -> tuple[int, int]:
    return -list(WORDS).index(one.came), one.cases


@cache
def by_row() -> Mapping[str, list[Flipped]]:
    """Return the results that vc4lab comes with, by row."""
    found: dict[str, list[Flipped]] = {}
    for one in read() if FLIPS.is_file() else ():
        found.setdefault(one.row, []).append(one)
    return found


def sentences(flipped: Iterable[Flipped]) -> list[str]:
    """Describe a row: each suite with what came of its choices; suites that saw nothing in one sentence."""
    suites: dict[tuple[str, int, int, str], list[Flipped]] = {}
    for one in flipped:
        suites.setdefault((one.suite, one.cases, one.all_cases, one.date), []).append(one)
    lines, unseen = [], []
    for (suite, cases, of, date), rows in sorted(suites.items()):
        where = f"{suite} ({cases if cases == of else f'{cases} of {of}'} cases, {date})"
        if all(one.came == "not visible" for one in rows):
            unseen.append(where)
        else:
            lines.append(f"{where}: " + "; ".join(f"`{one.choice}` {one.text}" for one in rows))
    return [*lines, *([f"No other choice is visible in {', '.join(unseen)}"] if unseen else [])]
