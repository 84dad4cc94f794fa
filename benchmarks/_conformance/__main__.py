"""``python -m benchmarks._conformance --driver DIR --deqp DIR``: run, compare, write the page."""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks._conformance.chip import Causes, Chip, Unsupported
from benchmarks._conformance.compare import FAILED, Comparison, group_of, plain
from benchmarks._conformance.page import Run, further_parts, page
from benchmarks._conformance.runs import Results, RunFailed, Runner, fingerprint
from benchmarks._conformance.suites import PROFILES, Deqp, Missing, Piglit, Suite
from vc4lab.drm.setup.host_driver import DRIVER

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "conformance.md"
WORK = ROOT / "out" / "conformance"
NOT_COMPLETE = 3
"""Exit code: cases are without a result, no page was written."""
LOST = 4
"""Exit code: tests are not supported any more."""
INCOMPLETE_OPTIONS = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="make conformance", description=__doc__)
    parser.add_argument("--driver", type=Path, metavar="DIR", help="folder with vc4_dri.so")
    parser.add_argument("--deqp", type=Path, metavar="DIR", help="build tree of VK-GL-CTS")
    parser.add_argument("--only", metavar="REGEX", help="these cases; no page is written")
    parser.add_argument(
        "--record-unsupported",
        action="store_true",
        help="tests that are not supported now are so from now on: write the list of them",
    )
    parser.add_argument("--shards", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeout", type=int, default=120, help="seconds for a case")
    parser.add_argument("--engine", default="jit", choices=["jit", "interpreter"])
    options = parser.parse_args(arguments)
    chip = Chip()
    suites, missing = find_suites(options.driver, options.deqp, chip)
    if missing:
        print("\n".join(missing), file=sys.stderr)
    if not suites:
        return INCOMPLETE_OPTIONS
    WORK.mkdir(parents=True, exist_ok=True)
    runner = Runner(options.driver.resolve(), WORK, options.timeout, max(options.shards, 1), options.engine)
    try:
        runs = [run_suite(suite, runner, chip, options.only, say) for suite in suites]
    except RunFailed as failure:
        print(f"A run ended before its first case: {failure}", file=sys.stderr)
        return NOT_COMPLETE
    except KeyboardInterrupt:
        print("Stopped; the same command goes on.", file=sys.stderr)
        return 130
    done = [run for run in runs if run is not None]
    if len(done) < len(runs):
        print("Cases have no result: no page was written.", file=sys.stderr)
        return NOT_COMPLETE
    if options.record_unsupported and options.only is None:
        Unsupported().record([run.comparison.results for run in done], group_of)
        print("unsupported.txt was written; the same command without --record-unsupported compares with it.")
        return 0
    if not Unsupported().recorded:
        print("unsupported.txt is not there: a capability that is lost does not show.")
    if options.only is not None or missing:
        for run in done:
            print(summary(run))
        print("Some cases only: no page was written.")
        return 0
    text = page(done, Causes().settled, driver_text(options.driver), host_text())
    kept = further_parts(PAGE.read_text(encoding="utf-8")) if PAGE.is_file() else ""
    PAGE.write_text(f"{text}\n{kept}" if kept else text, encoding="utf-8")
    print(f"{PAGE} was written.")
    lost = sum(one.kind == "not supported" for run in done for one in run.comparison.differences)
    if lost:
        print(f"{lost} tests are not supported any more: the page has them.", file=sys.stderr)
        return LOST
    return 0


def summary(run: Run) -> str:
    """A line with what a suite came to."""
    total = run.comparison.total()
    return (
        f"{run.suite.name}: {len(run.comparison.results)} results, {total['ran']} ran, "
        f"{total['agree']} of them as on the boards, {total['differ']} differ"
    )


def find_suites(driver: Path | None, deqp: Path | None, chip: Chip) -> tuple[list[Suite], list[str]]:
    """The suites that can be run, and what is missing, each in a sentence."""
    missing = []
    if driver is None:
        return [], ["The driver is missing: VC4_DRIVER=DIR is a folder with Mesa's vc4_dri.so."]
    if not (driver / DRIVER).is_file():
        return [], [f"The driver is missing: there is no {driver / DRIVER}."]
    makers: list[Callable[[], Suite]] = [
        *(lambda profile=profile: Piglit(profile, chip) for profile in PROFILES)  # type: ignore[misc]
    ]
    if deqp is None:
        missing.append("dEQP is missing: DEQP=DIR is a build tree of VK-GL-CTS.")
    else:
        makers.append(lambda: Deqp(deqp.resolve(), chip))
    suites = []
    for make in makers:
        try:
            suites.append(make())
        except Missing as error:
            missing.append(f"{error}.")
    return suites, list(dict.fromkeys(missing))


def run_suite(
    suite: Suite, runner: Runner, chip: Chip, only: str | None, tell: Callable[[str], None]
) -> Run | None:
    """Run a suite as far as results are missing; None if some still are."""
    name = fingerprint(suite, runner.driver / DRIVER, ROOT / "src") + f"-{runner.engine}"
    results = Results(runner.work / f"{name}.jsonl")
    cases = [case for case in suite.cases if only is None or re.search(only, case)]
    tell(f"{suite.name}: {len(cases)} cases, {len(results.missing(cases))} to run")
    runner.run(suite, results, cases, tell)
    if results.missing(cases):
        return None
    first = Comparison(results.by_name, chip, Causes())
    failed = [case for case in cases if any(of(case, test) for test in first.unexpected())]
    again = Results(runner.work / f"{name}-again.jsonl")
    alone = Runner(runner.driver, runner.work, runner.timeout, 1, runner.engine, runner.simulator)
    alone.run(suite, again, failed, tell)
    second = again.by_name
    flaky = [test for test in first.unexpected() if test in second and plain(second[test]) not in FAILED]
    comparison = Comparison(results.by_name | second, chip, Causes())
    for one in comparison.differences:
        tell(f"  {one.kind}: {one.test} ({one.here}; chip: {one.chip}): {one.cause}")
    return Run(suite, comparison, flaky)


def of(case: str, test: str) -> bool:
    """Whether a result is the case's own or that of a part of it."""
    return test == case or test.startswith(f"{case}@")


def driver_text(folder: Path) -> str:
    """What the driver says it is."""
    match = re.search(rb"Mesa (\d[\w.+~-]*)", (folder / DRIVER).resolve().read_bytes())
    return f"Mesa {match[1].decode()}'s vc4" if match else "Mesa's vc4"


def host_text() -> str:
    """The machine, and the commit that the simulator's sources are of."""
    commit = _git("log", "-1", "--format=%h", "--", "src") or "of no commit"
    changed = ", changed" if _git("status", "--porcelain", "--", "src") else ""
    return f"{platform.machine()}, Linux {platform.release()}; vc4lab {commit}{changed}"


def _git(*command: str) -> str:
    done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()


def say(line: str) -> None:
    """A line on the terminal, at once."""
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
