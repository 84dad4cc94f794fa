"""docs/conformance.md from results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks._conformance.chip import Settled
from benchmarks._conformance.compare import KINDS, Comparison, Difference
from benchmarks._conformance.suites import Suite

FOLD = 6
"""So many tests of one kind and cause are listed in the text; of more the names follow below."""
HEAD = """# Conformance: Mesa's vc4 here and on a Raspberry Pi 3

piglit and dEQP-GLES2 through `vc4lab drm` with Mesa's vc4 driver, each test compared with what real
Raspberry Pi 3 boards do (the lists of Mesa 22.3.6's continuous integration, in
`benchmarks/_conformance/data`). Written by `make conformance VC4_DRIVER=DIR DEQP=DIR`, only when
every case has a result; *why* comes from `causes.toml` beside the lists.

A test is listed below whenever it ends otherwise than on the boards; to fail and to crash are not
the same. The boards' lists do not distinguish tests that are not supported from passed ones: "ran"
counts those that are. A test that was supported when `unsupported.txt` was recorded and is not any
more is a difference. Tests that are flaky on the boards are not compared.
"""
COLUMNS = ("pass", "fail", "crash", "timeout", "warn", "skip")


@dataclass(frozen=True)
class Run:
    """One suite that was run to its end."""

    suite: Suite
    comparison: Comparison
    flaky: Sequence[str]
    """Tests that failed once and passed when run again."""


def page(runs: Sequence[Run], settled: Sequence[Settled], driver: str, host: str) -> str:
    """The whole page."""
    return "\n".join(_lines(runs, settled, driver, host)) + "\n"


def replace_part(page_text: str, mark: str, text: str) -> str:
    """A page whose part with the heading `mark`, up to the next such heading, is another text."""
    at = page_text.find(f"\n{mark}\n")
    before = page_text if at < 0 else page_text[:at]
    after = further_parts(page_text[at + 1 :]) if at >= 0 else ""
    return before.rstrip("\n") + "\n\n" + text + (f"\n{after}" if after else "")


def further_parts(page_text: str) -> str:
    """A page from its second heading of the first level on; "" if it has none."""
    at = page_text.find("\n# ")
    return page_text[at + 1 :] if at >= 0 else ""


def _lines(runs: Sequence[Run], settled: Sequence[Settled], driver: str, host: str) -> Iterator[str]:
    yield HEAD
    yield f"Driver: {driver}. Host: {host}."
    yield ""
    yield "| suite | cases | results | ran | agree, of those that ran | differ | left out |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for run in runs:
        total = run.comparison.total()
        left_out = [(number, why) for why, number in run.suite.left_out.items() if number]
        out = "; ".join(f"{number}: {why}" for number, why in left_out)
        yield (
            f"| {run.suite.name} | {len(run.suite.cases)} | {len(run.comparison.results)} "
            f"| {total['ran']} | {total['agree']} | {total['differ']} | {out} |"
        )
    yield ""
    yield "piglit's results are more than its cases: parts of a test count, too."
    if settled:
        yield from _settled_lines(runs, settled)
    for run in runs:
        yield from _suite_lines(run)
    yield from _unseen_lines(runs)


def _unseen_lines(runs: Sequence[Run]) -> Iterator[str]:
    """What the boards' lists name and no suite here has."""
    seen = [test for run in runs for test in run.comparison.results]
    unseen = runs[0].comparison.chip.unseen(seen) if runs else []
    if unseen:
        yield f"\n## Failures of the boards that are no case here: {len(unseen)}\n"
        yield "Tests of window systems, of other suites, or of a newer piglit."
        yield "<details><summary>names</summary>\n"
        yield from (f"`{test}`  " for test in unseen)
        yield "</details>"


def _settled_lines(runs: Sequence[Run], settled: Sequence[Settled]) -> Iterator[str]:
    yield "\n## What boards settled\n"
    yield "Tests that hang on each of them; unsupported ones and those that are flaky left out.\n"
    yield "| what | tests | as on the boards |"
    yield "| --- | --- | --- |"
    for row in settled:
        tests = agree = 0
        for comparison in (run.comparison for run in runs):
            differ = {one.test for one in comparison.differences}
            for test, here in comparison.results.items():
                if here != "skip" and row.tests.fullmatch(test):
                    if comparison.chip.result(test) not in ("flaky", "not run"):
                        tests += 1
                        agree += test not in differ
        yield f"| {row.what} | {tests} | {agree} |"


def _suite_lines(run: Run) -> Iterator[str]:
    yield f"\n## {run.suite.name}"
    for kind, title in KINDS.items():
        chosen = [one for one in run.comparison.differences if one.kind == kind]
        if not chosen:
            continue
        yield f"\n### {title}: {len(chosen)}\n"
        causes = dict.fromkeys(one.cause for one in chosen)
        for cause in causes:
            yield from _difference_lines([one for one in chosen if one.cause == cause], cause)
    if run.flaky:
        yield f"\nFailed once and passed when run again alone: {_names(run.flaky)}.\n"
    yield "\n### Counts by group\n"
    yield "| group | " + " | ".join(COLUMNS) + " | differ |"
    yield "| --- |" + " --- |" * (len(COLUMNS) + 1)
    unsupported = []
    for group, count in run.comparison.groups():
        if not count["ran"] and not count["differ"]:
            unsupported.append(count["skip"])
            continue
        cells = " | ".join(str(count[name] or "") for name in (*COLUMNS, "differ"))
        yield f"| {group} | {cells} |"
    if unsupported:
        yield f"| {len(unsupported)} groups without a supported test ||||||{sum(unsupported)} ||"


def _difference_lines(differences: Sequence[Difference], cause: str) -> Iterator[str]:
    tests = [one.test for one in differences]
    if len(tests) <= FOLD:
        yield f"* {_names(tests)}: {cause}"
        return
    yield f"* {len(tests)} tests: {cause}"
    yield "  <details><summary>names</summary>\n"
    yield from (f"  `{test}`  " for test in tests)
    yield "  </details>"


def _names(tests: Sequence[str]) -> str:
    return ", ".join(f"`{test}`" for test in tests)
