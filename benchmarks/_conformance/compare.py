"""The results beside the boards': counts by group, and what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks._conformance.chip import Causes, Chip, Unsupported

FAILED = {"fail", "crash", "timeout"}
"""A warning is no failure in the boards' lists."""
KINDS = {
    "fails here": "Fails here, passes on the chip",
    "passes here": "Fails on the chip, passes here",
    "not run here": "Fails on the chip, not run here",
    "ends otherwise": "Fails on both, on one of them by a crash",
    "not supported": "Not supported any more",
}
"""How a test can differ → the heading over such tests."""


def plain(result: str) -> str:
    """piglit's and dEQP's words for results → pass, fail, crash, timeout, warn, skip."""
    result = result.removeprefix("dmesg-")
    return {"notrun": "skip", "success": "pass"}.get(result, result)


@dataclass(frozen=True)
class Difference:
    """A test that ends otherwise than on the boards."""

    test: str
    here: str
    chip: str
    kind: str
    cause: str


class Comparison:
    """One suite's results against the chip's lists."""

    def __init__(
        self, results: dict[str, str], chip: Chip, causes: Causes, unsupported: Unsupported | None = None
    ) -> None:
        self.results = {test: plain(result) for test, result in results.items()}
        self.chip = chip
        self.unsupported = Unsupported() if unsupported is None else unsupported
        self.differences = sorted(self._differences(causes), key=lambda one: one.test)

    def _differences(self, causes: Causes) -> Iterable[Difference]:
        for test, here in self.results.items():
            chip = self.chip.result(test)
            if chip in ("flaky", "not run"):
                continue
            kind = _kind(here, chip)
            if here == "skip" and not kind and not self.unsupported.has(test):
                kind = "not supported"
            if kind:
                yield Difference(test, here, chip, kind, causes.of(test, kind))

    def unexpected(self) -> list[str]:
        """Tests that fail here only; parts of tests are named by their test."""
        names = {one.test for one in self.differences if one.kind == "fails here"}
        return sorted(names)

    def groups(self) -> list[tuple[str, Counter[str]]]:
        """Each group of tests with its counts.

        Results by name; "ran" are those that are supported, "agree" those of them that end as on
        the boards, "differ" all differences.
        """
        groups: dict[str, Counter[str]] = {}
        differ = {one.test for one in self.differences}
        for test, here in self.results.items():
            count = groups.setdefault(group_of(test), Counter())
            count[here] += 1
            count["ran"] += here != "skip"
            if test in differ:
                count["differ"] += 1
            elif here != "skip" and self.chip.result(test) != "flaky":
                count["agree"] += 1
        return sorted(groups.items())

    def total(self) -> Counter[str]:
        """The counts of all groups together."""
        return sum((count for _, count in self.groups()), Counter())


def _kind(here: str, chip: str) -> str:
    """The kind of difference; "" if both agree. Boards' lists count "not supported" as passed."""
    if here in FAILED:
        if chip == "pass":
            return "fails here"
        return "ends otherwise" if (here == "fail") != (chip == "fail") else ""
    if chip == "pass":
        return ""
    return "passes here" if here in ("pass", "warn") else "not run here"


def group_of(test: str) -> str:
    """`dEQP-GLES2.functional.texture`, `spec@glsl-1.10`, `shaders`."""
    if test.startswith("dEQP"):
        return ".".join(test.split(".")[:3])
    parts = test.split("@")
    return "@".join(parts[:2]) if parts[0] == "spec" else parts[0]
