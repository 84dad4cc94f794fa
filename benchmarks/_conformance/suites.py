"""The suites: where they are, which cases they have, how a few cases are run, what came out."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import html
import json
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks._conformance.chip import Chip

PIGLIT_FOLDERS = "/usr/lib/*/piglit"
PROFILES = ("quick_shader", "quick_gl")
"""What the boards ran."""
NO_WINDOW_SYSTEM = ("glx@", "wgl@")
"""Tests of window systems that are not there on gbm."""
LISTS = "external/openglcts/data/**/aosp_mustpass/*/gles2-*.txt"
_NAME = re.compile(r"<Test [^>]*?name=(?:\"([^\"]*)\"|'([^']*)')")
_CASE = re.compile(
    r"^#beginTestCaseResult (\S+)$(.*?)^(?:#endTestCaseResult|#terminateTestCaseResult (\S+))$", re.M | re.S
)
_STATUS = re.compile(r'<Result StatusCode="(\w+)"')
_DEQP = {"Pass": "pass", "NotSupported": "skip", "QualityWarning": "warn", "CompatibilityWarning": "warn"}


class Missing(Exception):  # noqa: N818 - nothing went wrong
    """Something that a suite needs is not there; the message says what."""


@dataclass(frozen=True)
class Outcome:
    """What a run of cases left: results by name, the case it was at when it ended, if any."""

    results: dict[str, str]
    at: str | None = None
    said: dict[str, str] = field(default_factory=dict)
    """What failed cases said."""


class Suite(ABC):
    """One conformance suite. `cases` are those that boards ran and that can be run here."""

    name: str
    cases: list[str]
    per_run: int
    """Cases of one run of the suite's program."""
    left_out: dict[str, int]
    """Why cases of the suite are not in `cases`, and how many they are."""
    environment: dict[str, str]

    @abstractmethod
    def command(self, cases: list[str], folder: Path, timeout: int) -> list[str]:
        """The program that runs `cases` and leaves what came out in `folder`."""

    @abstractmethod
    def outcome(self, folder: Path) -> Outcome:
        """What a run left in `folder`, whether it came to its end or not."""

    @abstractmethod
    def progress(self, folder: Path) -> object:
        """Anything that changes whenever a case begins or ends."""


class Piglit(Suite):
    """One of piglit's profiles, on gbm, each test in a process of its own."""

    per_run = 200

    def __init__(self, profile: str, chip: Chip) -> None:
        found = [Path(path) for path in sorted(Path("/").glob(PIGLIT_FOLDERS[1:]))]
        program = shutil.which("piglit")
        if program is None or not found:
            raise Missing("piglit is missing: Debian has it as the package piglit")
        if shutil.which("wflinfo") is None:
            raise Missing("wflinfo is missing: Debian has it in the package waffle-utils")
        self.program, self.profile = program, profile
        self.name = f"piglit {profile}"
        text = gzip.decompress((found[0] / "tests" / f"{profile}.xml.gz").read_bytes()).decode()
        names = sorted({html.unescape(a or b) for a, b in _NAME.findall(text)})
        if f'count="{len(names)}"' not in text[:500]:
            raise Missing(f"{found[0]}/tests/{profile}.xml.gz is not a list of piglit's tests")
        ran = chip.ran(names)
        self.cases = [name for name in ran if not name.startswith(NO_WINDOW_SYSTEM)]
        self.left_out = {
            "boards skip them": len(names) - len(ran),
            "they need another window system": len(ran) - len(self.cases),
        }
        self.environment = {"PIGLIT_PLATFORM": "gbm"}

    def command(self, cases: list[str], folder: Path, timeout: int) -> list[str]:
        listed = folder / "cases.txt"
        listed.write_text("\n".join(cases) + "\n", encoding="utf-8")
        # Without this a test runs beside another one, which may take all memory of the device: some
        # of those with multisampled windows do, here and on boards, until they crash.
        alone = "--no-concurrency"
        command = [self.program, "run", "--overwrite", "--log-level", "dummy", alone]
        command += ["--timeout", str(timeout), "--test-list", str(listed)]
        return [*command, self.profile, str(folder / "piglit")]

    def outcome(self, folder: Path) -> Outcome:
        results: dict[str, str] = {}
        said: dict[str, str] = {}
        at = None
        for tests in self._found(folder / "piglit"):
            for name, test in tests.items():
                if test["result"] == "incomplete":
                    at = name
                    continue
                results[name] = test["result"]
                if test["result"] not in ("pass", "skip"):
                    said[name] = f"{test.get('out', '')}\n{test.get('err', '')}".strip()
                parts = test.get("subtests", {})
                results.update({f"{name}@{part}": parts[part] for part in parts if part[0] != "_"})
        return Outcome(results, at, said)

    @staticmethod
    def _found(folder: Path) -> Iterator[dict[str, Any]]:
        """Results by name: one file at the end, one a test before."""
        whole = folder / "results.json.bz2"
        if whole.is_file():
            yield json.loads(bz2.decompress(whole.read_bytes()))["tests"]
            return
        for path in sorted((folder / "tests").glob("*.json")):
            with contextlib.suppress(ValueError):  # the last one may be half
                yield json.loads(path.read_text(encoding="utf-8"))

    def progress(self, folder: Path) -> object:
        tests = folder / "piglit" / "tests"
        return len(list(tests.iterdir())) if tests.is_dir() else 0


class Deqp(Suite):
    """dEQP-GLES2's mustpass list, off screen, as the boards ran it."""

    name = "dEQP-GLES2"
    per_run = 500
    options = (
        "--deqp-surface-type=pbuffer",
        "--deqp-gl-config-name=rgba8888d24s8ms0",
        "--deqp-surface-width=256",
        "--deqp-surface-height=256",
        "--deqp-log-images=disable",
        "--deqp-log-shader-sources=disable",
    )

    def __init__(self, build: Path, chip: Chip) -> None:
        self.program = build / "modules" / "gles2" / "deqp-gles2"
        if not self.program.is_file():
            raise Missing(f"dEQP is missing: there is no {self.program}; DEQP=DIR is a build tree")
        names = self._mustpass(build).read_text(encoding="utf-8").split()
        self.cases = chip.ran(names)
        self.left_out = {"boards skip them": len(names) - len(self.cases)}
        self.environment = {"EGL_PLATFORM": "surfaceless"}

    @staticmethod
    def _mustpass(build: Path) -> Path:
        """The list is in the sources; the build tree says where they are."""
        cache = build / "CMakeCache.txt"
        text = cache.read_text(encoding="utf-8") if cache.is_file() else ""
        home = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.+)$", text, re.M)
        lists = sorted(Path(home[1]).glob(LISTS)) if home else []
        lists = [path for path in lists if path.stem in ("gles2-main", "gles2-master")]
        if not lists:
            raise Missing(f"the mustpass list of dEQP is missing: {cache} leads to no sources")
        return lists[-1]

    def command(self, cases: list[str], folder: Path, timeout: int) -> list[str]:
        listed = folder / "cases.txt"
        listed.write_text("\n".join(cases) + "\n", encoding="utf-8")
        log = f"--deqp-log-filename={folder / 'log.qpa'}"
        inside = f'cd "{self.program.parent}" && exec ./{self.program.name} "$@"'
        return ["sh", "-c", inside, "sh", f"--deqp-caselist-file={listed}", log, *self.options]

    def outcome(self, folder: Path) -> Outcome:
        log = folder / "log.qpa"
        text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
        results = {}
        for name, body, ended in _CASE.findall(text):
            status = _STATUS.search(body)
            if ended or status is None:
                results[name] = "timeout" if ended == "Timeout" else "crash"
            else:
                results[name] = _DEQP.get(status[1], "fail")
        begun = re.findall(r"^#beginTestCaseResult (\S+)$", text, re.M)
        return Outcome(results, next((name for name in begun if name not in results), None))

    def progress(self, folder: Path) -> object:
        log = folder / "log.qpa"
        return log.stat().st_size if log.is_file() else 0
