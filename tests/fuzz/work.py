"""What the fuzzers of one run have to do: one after the other, or several side by side."""

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

from tests.fuzz.runner import Failure, Outcome, Runner


@dataclass(frozen=True)
class Work:
    """What one fuzzer has to do."""

    name: str
    seed: int
    cases: int | None
    seconds: float | None
    units: int | None
    first: int

    def run(self) -> Outcome:
        """Here and now."""
        return Runner(self.name, self.seed).run(
            cases=self.cases, seconds=self.seconds, units=self.units, first=self.first
        )

    def command(self, result: str) -> list[str]:
        """The same as a process of its own."""
        given = {
            "seed": self.seed, "cases": self.cases, "seconds": self.seconds,
            "units": self.units, "first": self.first, "json": result,
        }  # fmt: skip
        options = [f"--{name}={value}" for name, value in given.items() if value is not None]
        return [sys.executable, "-m", "tests.fuzz.runner", self.name, *options, "--quiet"]


def in_turn(works: list[Work], quiet: bool) -> list[Outcome]:
    """One fuzzer after the other."""
    outcomes = []
    for work in works:
        outcomes.append(work.run())
        if not quiet:
            print(outcomes[-1].line(), flush=True)
    return outcomes


def side_by_side(works: list[Work], jobs: int) -> list[Outcome]:
    """Several at a time, the largest first; a runner that breaks is a failure of its fuzzer."""
    waiting = sorted(works, key=lambda work: -(work.units or 0))
    running: dict[str, tuple[subprocess.Popen[bytes], Work]] = {}
    done: dict[str, Outcome] = {}
    with tempfile.TemporaryDirectory() as folder:
        while waiting or running:
            while waiting and len(running) < jobs:
                work = waiting.pop(0)
                command = work.command(os.path.join(folder, work.name))
                running[work.name] = subprocess.Popen(command), work
            time.sleep(0.1)
            for name, (process, work) in list(running.items()):
                if process.poll() is None:
                    continue
                del running[name]
                outcome = done[name] = _outcome(os.path.join(folder, name), work)
                print(outcome.line(), flush=True)
    return [done[work.name] for work in works]


def _outcome(path: str, work: Work) -> Outcome:
    try:
        with open(path) as file:
            (row,) = json.load(file)
    except (OSError, ValueError):
        return Outcome(work.name, failures=[Failure(work.name, work.seed, -1, "no outcome")])
    failures = [Failure(work.name, work.seed, -1, text) for text in row.pop("failures")]
    return Outcome(**row, failures=failures)
