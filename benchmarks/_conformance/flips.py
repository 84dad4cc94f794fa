"""Other choices of the table of unknowns, and what boards say to them.

A flip sets one row (or, to look at many at once, several) to another choice than its default. What
a suite then says otherwise either is or is not as on the boards, and so speaks for or against it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks._conformance.compare import FAILED, plain
from vc4lab.diagnostics.unknown import Unknown

Results = Mapping[str, str]
"""Results of tests by name."""
Board = Callable[[str], str]
"""What a board gives for a test: "pass", "fail", "crash", "flaky", "not run"; "" if that is not known."""


@dataclass(frozen=True, order=True)
class Flip:
    """Rows and their choices; none: the table as it is."""

    changes: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return " ".join(f"{row}={choice}" for row, choice in self.changes) or "as it is"

    @property
    def options(self) -> list[str]:
        """As vc4lab's commands take them."""
        return [part for row, choice in self.changes for part in ("--unknown", f"{row}={choice}")]

    @property
    def key(self) -> str:
        """For names of files."""
        return hashlib.sha256(repr(self.changes).encode()).hexdigest()[:16]


def flips_of(rows: Iterable[Unknown], names: Sequence[str] = ()) -> list[Flip]:
    """Every other choice of each open row; of the rows in `names` instead, be they settled or not."""
    chosen = [row for row in rows if row.name in names or (not names and not row.settled)]
    return [Flip(((row.name, choice),)) for row in chosen for choice in row.choices if choice != row.default]


def together(flips: Sequence[Flip]) -> Flip:
    """All of them at once. Their rows differ."""
    return Flip(tuple(sorted(change for flip in flips for change in flip.changes)))


def groups(flips: Sequence[Flip]) -> list[list[Flip]]:
    """Flips that can be made together: the first of each row, the second of each row and so on."""
    found: list[list[Flip]] = []
    count: dict[str, int] = {}
    for flip in flips:
        row = flip.changes[0][0]
        number = count[row] = count.get(row, -1) + 1
        found += [[]] if number == len(found) else []
        found[number].append(flip)
    return found


def changed(before: Results, after: Results) -> dict[str, tuple[str, str]]:
    """Tests that end otherwise, with what they gave before and give now."""
    return {
        test: (plain(before[test]), plain(result))
        for test, result in after.items()
        if test in before and plain(before[test]) != plain(result)
    }


Ask = Callable[[Sequence[tuple[Flip, Sequence[str]]]], Sequence[Results]]
"""Runs cases with a flip, for each of several pairs; the results of each, in that order."""


def screen(flips: Sequence[Flip], cases: Sequence[str], before: Results, ask: Ask) -> dict[Flip, Results]:
    """What each flip changes, without running every flip over every case.

    Flips of other rows are made together; where no result changes, none of them is visible, else
    each half of them is tried on the cases that changed, down to single ones. What two flips hide
    from each other is not found, which is why one that changes much is better looked at alone.

    Returns results that changed, by flip; those that changed none are there, too.
    """
    found: dict[Flip, Results] = {flip: {} for flip in flips}
    left = [(group, list(cases)) for group in groups(flips)]
    while left:
        came = ask([(together(group), asked) for group, asked in left])
        following: list[tuple[list[Flip], list[str]]] = []
        for (group, asked), results in zip(left, came, strict=True):
            other = {test: now for test, (_, now) in changed(before, results).items()}
            if len(group) == 1:
                found[group[0]] = other
            elif other:
                again = cases_of(other, asked)
                half = len(group) // 2
                following += [(group[:half], again), (group[half:], again)]
        left = following
    return found


def case_of(test: str, cases: Container[str]) -> str | None:
    """The case that has a test: itself, or a part of it, which is named after an @."""
    parts = test.split("@")
    names = ("@".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((name for name in names if name in cases), None)


def cases_of(tests: Iterable[str], cases: Sequence[str]) -> list[str]:
    """The cases that have these tests."""
    known = set(cases)
    found = {case_of(test, known) for test in tests}
    return [case for case in cases if case in found]


def sample_of(cases: Sequence[str], count: int, always: Callable[[str], bool] = lambda _: False) -> list[str]:
    """So many cases from all over the list, a larger sample with those of a smaller one."""
    order = sorted(cases, key=lambda case: hashlib.sha256(case.encode()).digest())
    chosen = {*order[:count], *filter(always, cases)}
    return [case for case in cases if case in chosen]


@dataclass
class Verdict:
    """What boards say to a flip, by tests of one suite. cases: how many were looked at, of how many."""

    flip: Flip
    suite: str
    cases: int
    all_cases: int
    against: list[str] = field(default_factory=list)
    """As on the boards only with the default."""
    for_it: list[str] = field(default_factory=list)
    """As on the boards only with the flip."""
    other: list[str] = field(default_factory=list)
    """It changes, and boards do not say, or agree with neither."""

    @property
    def word(self) -> str:
        """One of: contradicted, nearer, visible, not visible."""
        if self.against:
            return "contradicted"
        if self.for_it:
            return "nearer"
        return "visible" if self.other else "not visible"


def judge(verdict: Verdict, before: Results, after: Results, board: Board) -> Verdict:
    """Enters each test that ends otherwise where it belongs."""
    for test, (was, now) in sorted(changed(before, after).items()):
        due = board(test)
        if due == "flaky":
            continue
        if _as_due(was, due) == _as_due(now, due):
            verdict.other.append(test)
        elif _as_due(was, due):
            verdict.against.append(test)
        else:
            verdict.for_it.append(test)
    return verdict


def _as_due(here: str, due: str) -> bool:
    """Whether a result is the board's: one that is not supported says nothing."""
    if due == "pass":
        return here in ("pass", "warn")
    return due in FAILED and here in FAILED and (here == "fail") == (due == "fail")


def decided(row: Unknown, verdicts: Sequence[Verdict]) -> bool:
    """Whether boards contradict every choice of a row but its default."""
    against = {verdict.flip for verdict in verdicts if verdict.word == "contradicted"}
    return all(flip in against for flip in flips_of([row], [row.name]))
