"""What real Raspberry Pi 3 boards make of each test."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parent / "data"


def _lines(name: str) -> list[str]:
    return (DATA / name).read_text(encoding="utf-8").split("\n")[:-1]


def _key(name: str) -> str:
    return name.lower().replace(",", "-")


class Chip:
    """The published expectations: "fail", "crash", "flaky", "not run" or "pass".

    Names are compared without regard to case: piglit writes those of subtests in lower case. A
    comma in a name is a hyphen in the lists.
    """

    def __init__(self) -> None:
        pairs = [line.rsplit(",", 1) for line in _lines("fails.txt")]
        self._names = {_key(name): name for name, _ in pairs}
        self.fails = {_key(name): result.lower() for name, result in pairs}
        self.flakes = {_key(name) for name in _lines("flakes.txt")}
        self._skips = re.compile("|".join(f"(?:{line})" for line in _lines("skips.txt")))

    def result(self, test: str) -> str:
        """What a board gives, as far as the lists say."""
        key = _key(test)
        if key in self.flakes:
            return "flaky"
        if key in self.fails:
            return self.fails[key]
        return "not run" if self._skips.match(test) else "pass"

    def unseen(self, tests: Iterable[str]) -> list[str]:
        """Failures of the boards that are none of `tests`."""
        seen = {_key(test) for test in tests}
        return sorted(name for key, name in self._names.items() if key not in seen)

    def ran(self, tests: Iterable[str]) -> list[str]:
        """Those of `tests` that boards run."""
        return [test for test in tests if not self._skips.match(test)]


def suite_of(test: str) -> str:
    """ "dEQP" or "piglit": whose names are written so."""
    return "dEQP" if test.startswith("dEQP-") else "piglit"


class Unsupported:
    """Tests that asked for something that the device lacks when `unsupported.txt` was recorded.

    The boards' lists do not distinguish such tests from passed ones: without this list a device
    that loses a capability would agree with them. A row is a name, or the group of tests (see
    `group_of`) of which none was supported, with "@*" or ".*" after it. Without a list nothing is
    compared, nor is a suite of which it has no row: it was recorded without that one.
    """

    def __init__(self, path: Path = DATA / "unsupported.txt") -> None:
        self.path = path
        self.recorded = path.is_file()
        rows = path.read_text(encoding="utf-8").split("\n")[:-1] if self.recorded else []
        self._names = {_key(row) for row in rows if not row.endswith("*")}
        self._groups = tuple(_key(row[:-1]) for row in rows if row.endswith("*"))
        self._suites = {suite_of(row) for row in rows}

    def has(self, test: str) -> bool:
        """Whether the device lacked what a test asks for."""
        key = _key(test)
        return suite_of(test) not in self._suites or key in self._names or key.startswith(self._groups)

    def record(self, results: Iterable[Mapping[str, str]], group_of: Callable[[str], str]) -> None:
        """Write what these results, a mapping for each suite, say, and keep what the list has of others."""
        results = [suite for suite in results if suite]
        now = {suite_of(test) for suite in results for test in suite}
        old = self.path.read_text(encoding="utf-8").split("\n")[:-1] if self.path.is_file() else []
        rows = {row for row in old if suite_of(row) not in now}
        for suite in results:
            runs = {group_of(test) for test, result in suite.items() if result != "skip"}
            for test in (test for test, result in suite.items() if result == "skip"):
                group = group_of(test)
                sign = test[len(group) : len(group) + 1]
                rows.add(test if group in runs or not sign else f"{group}{sign}*")
        self.path.write_text("".join(f"{row}\n" for row in sorted(rows)), encoding="utf-8")


@dataclass(frozen=True)
class Cause:
    """Why tests differ: a pattern that matches whole names, and a sentence."""

    here: str
    tests: re.Pattern[str]
    text: str


@dataclass(frozen=True)
class Settled:
    """What boards decided: a sentence, and the tests that hang on it."""

    what: str
    tests: re.Pattern[str]


class Causes:
    """``causes.toml``: the first row that matches a test and what became of it here counts."""

    def __init__(self, path: Path = DATA / "causes.toml") -> None:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        self.rows = [
            Cause(row["here"], re.compile(row["tests"]), row["text"]) for row in table.get("cause", [])
        ]
        self.settled = [Settled(row["what"], re.compile(row["tests"])) for row in table.get("settled", [])]

    def of(self, test: str, here: str) -> str:
        """The sentence; "unexplained" where the table has none."""
        for row in self.rows:
            if re.fullmatch(row.here, here) and row.tests.fullmatch(test):
                return row.text
        return "unexplained"
