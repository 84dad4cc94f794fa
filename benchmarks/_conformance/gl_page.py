"""What piglit does through ``vc4lab gl`` beside llvmpipe and the boards: its part of the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks._conformance.chip import Causes, Chip
from benchmarks._conformance.compare import FAILED, group_of, plain
from benchmarks._conformance.page import COLUMNS, FOLD
from benchmarks._conformance.suites import Suite

GL_MARK = "# OpenGL by vc4lab's own driver"
HEAD = f"""{GL_MARK}

piglit through `vc4lab gl`: Mesa's virpipe, and this repository's driver and compiler, each test
beside llvmpipe after the same protocol (`virgl_test_server`) and beside what the boards' lists
say. Written by `make conformance-gl`, only when every test has both results; *why* comes from
`causes-gl.toml`.
"""
KINDS = {
    ("pass", "pass"): "Fails here, passes on the chip and with llvmpipe",
    ("pass", "fail"): "Fails here and with llvmpipe, passes on the chip",
    ("fail", "pass"): "Fails here and on the chip, passes with llvmpipe",
    ("other", "pass"): "Fails here, passes with llvmpipe; boards skip it or it is flaky there",
}
"""Chip and llvmpipe → the heading over tests that fail here. Others fail everywhere."""


@dataclass(frozen=True)
class Outcomes:
    """Results of both runs, by name."""

    here: dict[str, str]
    peer: dict[str, str]


def part(done: Sequence[tuple[Suite, Outcomes]], chip: Chip, causes: Causes) -> str:
    """The whole part."""
    return "\n".join(_lines(done, chip, causes)) + "\n"


def _lines(done: Sequence[tuple[Suite, Outcomes]], chip: Chip, causes: Causes) -> Iterator[str]:
    yield HEAD
    yield "| suite | tests | results | pass | fail, crash, timeout | skip | llvmpipe fails |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for suite, one in done:
        here = Counter(plain(result) for result in one.here.values())
        peer = Counter(plain(result) for result in one.peer.values())
        yield (
            f"| {suite.name} | {len(suite.cases)} | {here.total()} | {here['pass'] + here['warn']} "
            f"| {sum(here[name] for name in FAILED)} | {here['skip']} "
            f"| {sum(peer[name] for name in FAILED)} |"
        )
    for suite, one in done:
        yield from _suite_lines(suite, one, chip, causes)


def _suite_lines(suite: Suite, one: Outcomes, chip: Chip, causes: Causes) -> Iterator[str]:
    yield f"\n## {suite.name} through `vc4lab gl`"
    kinds: dict[tuple[str, str], list[str]] = {}
    for test, result in sorted(one.here.items()):
        if plain(result) in FAILED:
            kinds.setdefault(_kind(test, one.peer.get(test), chip), []).append(test)
    for kind, title in KINDS.items():
        tests = kinds.pop(kind, [])
        if not tests:
            continue
        yield f"\n### {title}: {len(tests)}\n"
        yield from _by_cause(tests, causes, "fails here")
    rest = sum(len(tests) for tests in kinds.values())
    if rest:
        yield f"\n### Fails here, on the chip and with llvmpipe: {rest}\n"
        yield from _by_cause([test for tests in kinds.values() for test in tests], causes, "")
    skipped = sorted(
        test
        for test, result in one.here.items()
        if plain(result) == "skip" and plain(one.peer.get(test, "skip")) != "skip"
    )
    if skipped:
        yield f"\n### Not run here, run by llvmpipe: {len(skipped)}\n"
        yield from _by_cause(skipped, causes, "not run here")
    yield "\n### Counts by group, through `vc4lab gl`\n"
    yield "| group | " + " | ".join(COLUMNS) + " | fails, llvmpipe passes |"
    yield "| --- |" + " --- |" * (len(COLUMNS) + 1)
    groups: dict[str, Counter[str]] = {}
    for test, result in one.here.items():
        count = groups.setdefault(group_of(test), Counter())
        count[plain(result)] += 1
        if plain(result) in FAILED and plain(one.peer.get(test, "skip")) not in FAILED:
            count["more"] += 1
    for group, count in sorted(groups.items()):
        cells = " | ".join(str(count[name] or "") for name in (*COLUMNS, "more"))
        yield f"| {group} | {cells} |"


def _kind(test: str, peer: str | None, chip: Chip) -> tuple[str, str]:
    expected = chip.result(test)
    if expected in FAILED:
        expected = "fail"
    elif expected != "pass":
        expected = "other"
    return expected, "fail" if peer is None or plain(peer) in FAILED else "pass"


def _by_cause(tests: Sequence[str], causes: Causes, kind: str) -> Iterator[str]:
    by_cause: dict[str, list[str]] = {}
    for test in tests:
        by_cause.setdefault(causes.of(test, kind) if kind else "", []).append(test)
    for cause, found in by_cause.items():
        text = f": {cause}" if cause else ""
        if len(found) <= FOLD:
            yield f"* {', '.join(f'`{test}`' for test in found)}{text}"
            continue
        yield f"* {len(found)} tests{text}"
        yield "  <details><summary>names</summary>\n"
        yield from (f"  `{test}`  " for test in found)
        yield "  </details>"
