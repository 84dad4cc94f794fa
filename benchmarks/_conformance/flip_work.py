"""A few cases of a suite with rows flipped: what the processes of `make decide` do.

Suites are piglit's profiles and dEQP-GLES2 through ``vc4lab drm``, recorded runs, of which each job's
result is a digest of the buffers that it leaves, and public programs that check themselves.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from benchmarks._conformance.chip import Chip
from benchmarks._conformance.flips import Flip
from benchmarks._conformance.runs import Results, RunFailed, Runner, fingerprint
from benchmarks._conformance.suites import PROFILES, Deqp, Missing, Piglit, Suite
from vc4lab.drm.setup.host_driver import DRIVER

ROOT = Path(__file__).resolve().parents[2]
RUNS = ROOT / "tests" / "data"
RECORDED = "recorded runs"
PROGRAMS = "public programs"
PIGLIT = tuple(f"piglit {profile}" for profile in PROFILES)
PATIENCE = 600
"""Seconds that a public program may take if its row does not say."""


@dataclass(frozen=True)
class Places:
    """Where suites are, as the user gave it; workers on other machines see them under the same paths."""

    driver: str = ""
    deqp: str = ""
    programs: str = ""
    timeout: int = 120
    """Seconds for a case of piglit."""

    def suite(self, name: str) -> Suite:
        """A suite that runs through the virtual device. Raises Missing."""
        if not self.driver or not (Path(self.driver) / DRIVER).is_file():
            raise Missing("the driver is missing: VC4_DRIVER=DIR is a folder with Mesa's vc4_dri.so")
        if name == Deqp.name:
            if not self.deqp:
                raise Missing("dEQP is missing: DEQP=DIR is a build tree of VK-GL-CTS")
            return _deqp(self.deqp)
        return _piglit(name.removeprefix("piglit "))

    def cases(self, name: str) -> list[str]:
        """The cases of a suite. Raises Missing."""
        if name == RECORDED:
            return recorded_runs()
        if name == PROGRAMS:
            return list(programs_of(self.programs))
        return self.suite(name).cases

    def fingerprint(self, name: str) -> str:
        """Results of two of them must not be mixed."""
        if name in (RECORDED, PROGRAMS):
            digest = hashlib.sha256(repr(self.cases(name)).encode())
            inputs = [Path(self.programs)] if name == PROGRAMS else sorted(RUNS.glob("vc4-*/*/*/*"))
            for path in (*sorted((ROOT / "src").rglob("*.py")), *inputs):
                digest.update(path.read_bytes())
            return f"{name.replace(' ', '-')}-{digest.hexdigest()[:12]}"
        return fingerprint(self.suite(name), Path(self.driver) / DRIVER, ROOT / "src")


@cache
def _piglit(profile: str) -> Suite:
    return Piglit(profile, Chip())


@cache
def _deqp(build: str) -> Suite:
    return Deqp(Path(build), Chip())


@dataclass(frozen=True)
class Piece:
    """Cases of a suite with a flip. fingerprint: of the suite, so that a key means one thing."""

    suite: str
    cases: tuple[str, ...]
    flip: Flip
    places: Places
    fingerprint: str

    @property
    def key(self) -> str:
        """What a scheduler knows it by."""
        parts = (self.fingerprint, self.flip.key, *self.cases)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Came:
    """What came of a piece: results by name, or why there are none."""

    piece: Piece
    results: Mapping[str, str] = field(default_factory=dict)
    error: str = ""


def nothing_came(piece: Piece, why: str) -> Came:
    """A piece without results."""
    return Came(piece, {}, why)


def work(piece: Piece) -> Came:
    """Runs a piece; what goes wrong is in the outcome."""
    try:
        if piece.suite == RECORDED:
            return Came(piece, {name: r for case in piece.cases for name, r in _replayed(case, piece.flip)})
        if piece.suite == PROGRAMS:
            known = programs_of(piece.places.programs)
            return Came(piece, {case: known[case].run(piece.flip) for case in piece.cases})
        return Came(piece, _through_the_device(piece))
    except (Missing, RunFailed, OSError) as error:
        return nothing_came(piece, str(error))


def _through_the_device(piece: Piece) -> dict[str, str]:
    places = piece.places
    with tempfile.TemporaryDirectory(prefix="decide-") as folder:
        results = Results(Path(folder) / "results.jsonl")
        driver = Path(places.driver)
        runner = Runner(driver, Path(folder), places.timeout, 1, options=tuple(piece.flip.options))
        runner.run(places.suite(piece.suite), results, piece.cases, lambda _: None)
        return results.by_name


def recorded_runs() -> list[str]:
    """The recorded runs of the tests, by folder and name."""
    folders = [RUNS / "vc4-jobs", RUNS / "vc4-conformance"]
    return [f"{path.parent.name}/{path.name}" for folder in folders for path in sorted(folder.glob("*/"))
            if (path / "job0001").is_dir()]  # fmt: skip


def _replayed(case: str, flip: Flip) -> list[tuple[str, str]]:
    """Each job with a digest of its buffers after it: of what the driver's program may look at."""
    from vc4lab.diagnostics import Reporter
    from vc4lab.diagnostics.unknown import Unknowns
    from vc4lab.drm.kernel.hardware import JobReports, run_job
    from vc4lab.drm.recorded.jobs import RecordedRun
    from vc4lab.options import GpuOptions
    from vc4lab.v3d.core import V3D

    reporter = Reporter()
    run = RecordedRun(RUNS / case, reporter)
    unknowns = Unknowns(dict(flip.changes))
    v3d = V3D(run.memory, JobReports(reporter), options=GpuOptions("jit", 1, unknowns))
    found = []
    for job in run.jobs:
        run_job(v3d, job.build(run.memory), job.name)
        digest = hashlib.sha256()
        for buffer in job.submit.buffers if job.submit is not None else ():
            digest.update(run.memory.view(buffer.address, buffer.size))
        found.append((f"{case}@{job.name}", digest.hexdigest()[:16]))
    whole = hashlib.sha256(repr(found).encode()).hexdigest()[:16]
    return [*found, (case, whole)]


@dataclass(frozen=True)
class Program:
    """A public program that checks itself: arguments of vc4lab, and what it says where it passes."""

    command: tuple[str, ...]
    says: str
    seconds: int = PATIENCE

    def run(self, flip: Flip) -> str:
        """ "pass", "fail" or "timeout"."""
        command = [sys.executable, "-m", "vc4lab", *self.command, *flip.options]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                timeout=self.seconds,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return "timeout"
        said = done.stdout.decode(errors="replace")
        return "pass" if re.search(self.says, said) else "fail"


def programs_of(path: str) -> dict[str, Program]:
    """Programs by name, of a TOML file: tables [NAME] with command (an array), says, seconds.

    Raises Missing.
    """
    if not path:
        raise Missing("public programs are missing: PROGRAMS=FILE.toml names commands and what they say")
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        return {
            name: Program(
                tuple(row["command"]), re.compile(row["says"]).pattern, row.get("seconds", PATIENCE)
            )
            for name, row in table.items()
        }
    except (OSError, ValueError, KeyError, TypeError, re.error) as error:
        raise Missing(f"{path}: {error}") from None
