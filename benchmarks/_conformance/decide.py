"""``make decide``: every open row of the table of unknowns, choice by choice, over what boards ran.

Recorded runs come first: which choices change a byte of what a recorded job leaves. Then each suite:
choices that do are looked at one by one over a sample of its cases, the others many at a time (see
`flips.screen`); with ``--whole`` those that boards have not contradicted yet over all cases. What
changes is run again before it counts. Stopped, the same command goes on.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks._conformance.chip import Causes, Chip
from benchmarks._conformance.flip_work import (
    PIGLIT,
    PROGRAMS,
    RECORDED,
    Came,
    Piece,
    Places,
    nothing_came,
    work,
)
from benchmarks._conformance.flips import (
    Board,
    Flip,
    Verdict,
    case_of,
    cases_of,
    changed,
    decided,
    flips_of,
    judge,
    sample_of,
    screen,
)
from benchmarks._conformance.runs import Results
from benchmarks._conformance.suites import Deqp, Missing
from vc4lab.cli.unknowns_page import AREAS
from vc4lab.diagnostics import flips as table
from vc4lab.timing.sweep.runner import NoScheduler, run_by_scheduler, run_here

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "out" / "conformance" / "decide"
SUITES = (RECORDED, PROGRAMS, *PIGLIT, Deqp.name)
AT_A_TIME = 25
"""Cases of a piece."""
SAMPLE = 200
SHOWN = 4
"""So many tests of a verdict are named."""
NOT_COMPLETE = 3


class NotComplete(Exception):  # noqa: N818 - the same command goes on
    """Cases have no result."""


@dataclass
class Table:
    """Runs cases with flips, by a pool or a scheduler, and keeps results on disk."""

    places: Places
    say: Callable[[str], None]
    processes: int = 1
    scheduler: str | None = None
    folder: Path = WORK
    work: Callable[[Piece], Came] = work
    kept: dict[str, Results] = field(default_factory=dict)

    def ask(
        self, suite: str, asked: Sequence[tuple[Flip, Sequence[str]]], turn: int = 0
    ) -> list[dict[str, str]]:
        """The results of each pair of a flip and cases; turn: 1 for those that are run again.

        Raises NotComplete, NoScheduler.
        """
        name = self.places.fingerprint(suite)
        pieces: dict[str, Piece] = {}
        for flip, cases in asked:
            left = self._results(name, flip, turn).missing(cases)
            for at in range(0, len(left), AT_A_TIME):
                some = tuple(left[at : at + AT_A_TIME])
                piece = Piece(suite, some, flip, self.places, f"{name}-{turn}")
                pieces[piece.key] = piece
        errors = []
        for number, came in enumerate(self._run(list(pieces.values())), 1):
            self._results(name, came.piece.flip, turn).add(dict(came.results))
            errors += [came.error] if came.error else []
            if number % 10 == 0 or number == len(pieces):
                self.say(f"{suite}: {number} of {len(pieces)} pieces")
        found = []
        for flip, cases in asked:
            results = self._results(name, flip, turn)
            if results.missing(cases):
                raise NotComplete(errors[0] if errors else f"{suite}: cases have no result")
            known = set(cases)
            found.append({test: r for test, r in results.by_name.items() if case_of(test, known)})
        return found

    def _results(self, name: str, flip: Flip, turn: int) -> Results:
        stem = f"{name}-{flip.key}{'-again' * turn}"
        if stem not in self.kept:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.kept[stem] = Results(self.folder / f"{stem}.jsonl")
        return self.kept[stem]

    def _run(self, pieces: Sequence[Piece]) -> Iterable[Came]:
        if self.scheduler is not None:
            return run_by_scheduler(self.work, pieces, nothing_came, self.scheduler)
        return run_here(self.work, pieces, nothing_came, self.processes)

    def look(
        self, suite: str, flips: Sequence[Flip], cases: Sequence[str], alone: bool
    ) -> dict[Flip, Verdict]:
        """What each flip changes in these cases. alone: one by one, else many at a time."""
        all_cases = len(self.places.cases(suite))
        if not flips:
            return {}
        (before,) = self.ask(suite, [(Flip(), cases)])
        if alone:
            came = self.ask(suite, [(flip, cases) for flip in flips])
            other = {flip: changed(before, results) for flip, results in zip(flips, came, strict=True)}
        else:
            seen = screen(flips, cases, before, lambda asked: self.ask(suite, asked))
            other = {flip: changed(before, results) for flip, results in seen.items()}
        board = board_of(suite)
        return {
            flip: self._judge(Verdict(flip, suite, len(cases), all_cases), cases_of(tests, cases), board)
            for flip, tests in other.items()
        }

    def _judge(self, verdict: Verdict, cases: Sequence[str], board: Board) -> Verdict:
        """Cases that change are run again, with the flip and without: only what changes twice counts."""
        if not cases:
            return verdict
        asked = [(Flip(), cases), (verdict.flip, cases)]
        before, after = self.ask(verdict.suite, asked)
        if verdict.suite != RECORDED:
            again = changed(*self.ask(verdict.suite, asked, 1))
            after = {test: r for test, r in after.items() if test in again}
        return judge(verdict, before, after, board)


def board_of(suite: str) -> Board:
    """What boards give for a suite's tests: public programs pass there, of recorded jobs nothing is known."""
    if suite == RECORDED:
        return lambda _: ""
    return (lambda _: "pass") if suite == PROGRAMS else Chip().result


def look_at_all(
    held: Table, suites: Sequence[str], flips: Sequence[Flip], only: Callable[[str, str], bool], count: int,
    whole: bool,
) -> list[Verdict]:  # fmt: skip
    """All verdicts, recorded runs first. only: whether a case of a suite is wanted."""
    found: list[Verdict] = []
    loud: set[Flip] = set()
    listed = [row for row in Causes().rows if row.text.startswith("fidelity")]
    for suite in suites:
        cases = [case for case in held.places.cases(suite) if only(suite, case)]
        if suite in (RECORDED, PROGRAMS):
            verdicts = held.look(suite, flips, cases, alone=False)
            loud |= {flip for flip, verdict in verdicts.items() if verdict.word != "not visible"}
        else:
            some = sample_of(cases, count, lambda case: any(row.tests.fullmatch(case) for row in listed))
            held.say(f"{suite}: a sample of {len(some)} of {len(cases)} cases")
            verdicts = held.look(suite, [flip for flip in flips if flip in loud], some, alone=True)
            verdicts |= held.look(suite, [flip for flip in flips if flip not in loud], some, alone=False)
            if whole:
                left = [flip for flip in flips if verdicts[flip].word != "contradicted"]
                verdicts |= held.look(suite, left, cases, alone=False)
        for verdict in verdicts.values():
            held.say(line_of(verdict))
        found += verdicts.values()
    return found


def line_of(verdict: Verdict) -> str:
    """A verdict with some of its tests."""
    counts = f"{len(verdict.against)} against, {len(verdict.for_it)} for, {len(verdict.other)} other"
    shown = (verdict.against or verdict.for_it or verdict.other)[:SHOWN]
    tests = f": {'; '.join(shown)}" if shown and verdict.suite != RECORDED else ""
    text = verdict.word if verdict.word == "not visible" else f"{verdict.word} ({counts}){tests}"
    return f"  {verdict.flip} | {verdict.suite}, {verdict.cases} of {verdict.all_cases} cases | {text}"


def flipped_of(verdict: Verdict, date: str) -> table.Flipped:
    """As the table of unknowns keeps it."""
    ((row, choice),) = verdict.flip.changes
    counts = (len(verdict.against), len(verdict.for_it), len(verdict.other))
    return table.Flipped(
        row, choice, verdict.suite, verdict.cases, verdict.all_cases, date, verdict.word, *counts
    )


def suites_of(places: Places, asked: Sequence[str], say: Callable[[str], None]) -> list[str]:
    """Those of the suites asked for, or of all, that can be run."""
    found = []
    for suite in [one for one in SUITES if one in asked or not asked]:
        try:
            places.cases(suite)
        except Missing as error:
            say(f"Left out: {suite}: {error}.")
        else:
            found.append(suite)
    return found


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="make decide", description=__doc__)
    made.add_argument("--driver", default="", metavar="DIR", help="folder with vc4_dri.so")
    made.add_argument("--deqp", default="", metavar="DIR", help="build tree of VK-GL-CTS")
    made.add_argument("--programs", default="", metavar="FILE", help="public programs that check themselves")
    made.add_argument(
        "--rows", nargs="*", default=[], metavar="ROW", help="these rows, be they settled or not"
    )
    made.add_argument(
        "--suites", nargs="*", default=[], choices=SUITES, metavar="NAME", help=f"of {', '.join(SUITES)}"
    )
    made.add_argument("--only", default="", metavar="REGEX", help="these cases")
    made.add_argument("--sample", type=int, default=SAMPLE, metavar="N", help="cases of each suite")
    made.add_argument(
        "--whole", action="store_true", help="all cases for what the sample does not contradict"
    )
    made.add_argument("--timeout", type=int, default=120, help="seconds for a case")
    made.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    made.add_argument("--scheduler", metavar="ADDRESS", help="have the workers of a Dask scheduler do it")
    made.add_argument(
        "--record", action="store_true", help="write what came of it into the table of unknowns"
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    options = parser().parse_args(arguments)
    folders = [str(Path(given).resolve()) if given else "" for given in
               (options.driver, options.deqp, options.programs)]  # fmt: skip
    places = Places(*folders, options.timeout)
    rows = [row for _, some in AREAS for row in some]
    unknown = set(options.rows) - {row.name for row in rows}
    if unknown:
        print(f"No such row: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    flips = flips_of(rows, options.rows)
    held = Table(places, _say, options.processes, options.scheduler)
    suites = suites_of(places, options.suites, _say)
    wanted = re.compile(options.only)
    try:
        verdicts = look_at_all(
            held, suites, flips, lambda suite, case: suite == RECORDED or bool(wanted.search(case)),
            options.sample, options.whole,
        )  # fmt: skip
    except (NotComplete, NoScheduler) as error:
        print(f"{error}\nThe same command goes on.", file=sys.stderr)
        return NOT_COMPLETE
    except KeyboardInterrupt:
        print("Stopped; the same command goes on.", file=sys.stderr)
        return 130
    if options.record:
        table.write(flipped_of(verdict, datetime.date.today().isoformat()) for verdict in verdicts)
        _say("The table was written; docs/unknowns.md is made of it: python -m vc4lab.cli.unknowns_page.")
    sure = [
        row.name for row in rows if any(f.changes[0][0] == row.name for f in flips) and decided(row, verdicts)
    ]
    _say(f"Rows whose other choices boards contradict: {', '.join(sure) or 'none'}")
    return 0


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
