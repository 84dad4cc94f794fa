"""Running a suite: a few hundred cases at a time through ``vc4lab drm``, in shards, resumable.

Each finished run appends its results to a file, so that whatever ends the tool costs a few minutes.
A case at which a run ended (crash) or stood still (timeout) is written down as such, and the rest
of the run's cases go into another.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from benchmarks._conformance.suites import Suite

LOOKS = 1.0
"""Seconds between two looks at a run."""
PATIENCE = 3
"""A run that stands still for so many times a case's timeout is ended."""


REPORTED = "vc4lab, in the run of those above"
MAX_REPORTS = 200
_REPORT = re.compile(r"\b[A-Z]{3}-\d{3}( \[\w+\])?( at 0x[0-9a-f]+)?: ")


class RunFailed(Exception):  # noqa: N818 - it may be the host
    """A run ended before its first case: not a matter of the case."""


class Results:
    """Results on disk: a line per test, the last one of a name counts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self.by_name: dict[str, str] = {}
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                # The last line may be half: the disk was full, or the power went.
                with contextlib.suppress(ValueError):
                    name, result = json.loads(line)
                    self.by_name[name] = result

    def add(self, results: dict[str, str]) -> None:
        """Keep these, on disk first."""
        lines = "".join(json.dumps(pair) + "\n" for pair in results.items())
        with self._lock:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(lines)
            self.by_name.update(results)

    def keep_said(self, said: dict[str, str]) -> None:
        """What failed cases said, beside the results."""
        with self._lock, self.path.with_suffix(".said.txt").open("a", encoding="utf-8") as file:
            file.writelines(f"== {name}\n{text}\n" for name, text in said.items())

    def missing(self, cases: Sequence[str]) -> list[str]:
        """Those of `cases` without a result."""
        return [case for case in cases if case not in self.by_name]


def reports(output: Path) -> str:
    """What vc4lab reported in a run, the first so many lines: it may explain a failed case."""
    with output.open(encoding="utf-8", errors="replace") as file:
        return "".join(islice((line for line in file if _REPORT.search(line)), MAX_REPORTS))


def fingerprint(suite: Suite, driver: Path, sources: Path) -> str:
    """Changes with the simulator, the driver and the cases: results of two must not be mixed."""
    digest = hashlib.sha256()
    for path in sorted(sources.rglob("*.py")):
        digest.update(str(path.relative_to(sources)).encode() + b"\0" + path.read_bytes())
    about = driver.stat()
    digest.update(f"{driver.resolve()} {about.st_size} {about.st_mtime_ns}".encode())
    digest.update("\n".join(suite.cases).encode())
    return f"{suite.name.replace(' ', '-')}-{digest.hexdigest()[:12]}"


@dataclass(frozen=True)
class Runner:
    """How cases are run: the driver, seconds a case may take, how many runs at once."""

    driver: Path
    work: Path
    timeout: int
    shards: int
    engine: str = "jit"
    simulator: tuple[str, ...] = (sys.executable, "-m", "vc4lab")
    options: tuple[str, ...] = ()
    """More options of `vc4lab drm`."""
    stop: threading.Event = field(default_factory=threading.Event)
    """Set when it is over: runs that go on are ended."""

    def wrapper(self) -> list[str]:
        """What a suite's program is run by."""
        device = ["--driver", str(self.driver), "--unpaced", "--engine", self.engine]
        return [*self.simulator, "drm", *device, *self.options, "--"]

    def run(self, suite: Suite, results: Results, cases: Sequence[str], say: Callable[[str], None]) -> None:
        """Run those of `cases` that have no result yet."""
        todo = results.missing(cases)
        chunks = [todo[at : at + suite.per_run] for at in range(0, len(todo), suite.per_run)]
        started = time.monotonic()
        done = 0

        def one(number: int) -> None:
            nonlocal done
            self._chunk(suite, results, chunks[number], self.work / f"{suite.name}-{number}")
            done += len(chunks[number])
            spent = time.monotonic() - started
            say(f"{suite.name}: {done} of {len(todo)}, {spent / 60:.0f} min")

        with ThreadPoolExecutor(self.shards) as pool:
            futures = [pool.submit(one, number) for number in range(len(chunks))]
            try:
                for future in as_completed(futures):
                    future.result()
            except BaseException:
                self.stop.set()
                pool.shutdown(cancel_futures=True)
                raise

    def _chunk(self, suite: Suite, results: Results, cases: list[str], folder: Path) -> None:
        todo = cases
        while todo:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            stood = self._once(suite, todo, folder)
            outcome = suite.outcome(folder)
            found = dict(outcome.results)
            if outcome.at in todo and outcome.at not in found:
                found[str(outcome.at)] = "timeout" if stood else "crash"
            rest = [case for case in todo if case not in found]
            if len(rest) == len(todo):
                end = (folder / "output.txt").read_text(encoding="utf-8", errors="replace")[-600:]
                raise RunFailed(f"no result of {len(todo)} cases from {todo[0]} on\n{end}")
            if outcome.said:
                reported = reports(folder / "output.txt")
                results.keep_said({**outcome.said, **({REPORTED: reported} if reported else {})})
            results.add(found)
            todo = rest
        shutil.rmtree(folder, ignore_errors=True)

    def _once(self, suite: Suite, cases: list[str], folder: Path) -> bool:
        """One run of the suite's program. True if it stood still and was ended."""
        command = [*self.wrapper(), *suite.command(cases, folder, self.timeout)]
        environment = dict(os.environ, **suite.environment)
        with (folder / "output.txt").open("wb") as output:
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                return self._watch(suite, process, folder)
            finally:
                _end(process)

    def _watch(self, suite: Suite, process: subprocess.Popen[bytes], folder: Path) -> bool:
        seen, since = suite.progress(folder), time.monotonic()
        while process.poll() is None:
            if self.stop.wait(LOOKS):
                raise RunFailed("another one failed, or it was stopped")
            now = suite.progress(folder)
            if now != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since > PATIENCE * self.timeout:
                return True
        return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """End what is left of a run. vc4lab's keeper ends the programs that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
