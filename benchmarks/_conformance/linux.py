"""piglit in a booted Debian beside the virtual device: ``make conformance-linux``.

A fixed sample of 200 tests of quick_shader runs twice, each test in a process of its own: in the
guest of ``vc4lab linux``, on vc4.ko, and on the virtual DRM device of ``vc4lab drm``. Programs,
Mesa and tests are the same packages of arm64 (``vc4lab linux --setup -- piglit``). Writes
docs/linux_piglit.md, only when every test has both results.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from ast import literal_eval
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from benchmarks._conformance.__main__ import host_text, say
from benchmarks._conformance.chip import DATA, Causes, Chip
from benchmarks._conformance.linux_page import Outcome, differences, page
from benchmarks._conformance.runs import Results
from benchmarks._conformance.suites import Missing
from vc4lab import DrmDevice
from vc4lab.drm.device.host import why_not
from vc4lab.drm.setup.places import MULTIARCH, Brought, find_brought
from vc4lab.linux.boots import BootFailed, LinuxPlan
from vc4lab.linux.jobs import Jobs
from vc4lab.linux.root import RootFailed
from vc4lab.linux.running import Linux, LinuxStopped

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "linux_piglit.md"
WORK = ROOT / "out" / "conformance-linux"
PIGLIT = f"{MULTIARCH}/piglit"
SETUP = "vc4lab linux --setup -- piglit"
RUNNERS = ("shader_runner", "shader_runner_gles2")
OPENED = ("libEGL.so.1", "libGL.so.1", "libGLESv2.so.2", "libudev.so.1")
"""What piglit's window library opens without naming it, besides Mesa's."""
LANGUAGE = 1.2
"""Tests of newer shading languages are left out: the driver skips them all."""
SAMPLE = 200
GUEST_SECONDS = 60.0
"""Guest time within which a test has to end."""
SECONDS = 120
"""The same on the virtual device, on the wall."""
OPTIONS = ("-auto", "-fbo")
NOT_COMPLETE = 3
_VERDICT = re.compile(r'^PIGLIT: \{"result": "(\w+)" ?\}', re.MULTILINE)


@dataclass(frozen=True)
class Test:
    """A test of the sample: the program that runs it, and its file below piglit's folder."""

    name: str
    runner: str
    file: str

    def command(self, folder: str) -> list[str]:
        """What runs it, with piglit's folder at that place."""
        return [f"{folder}/bin/{self.runner}", f"{folder}/{self.file}", *OPTIONS]


def tests_of(text: str | bytes, chip: Chip) -> list[Test]:
    """Of a profile: those that boards run, of shading languages that the driver has, by name."""
    found = []
    for element in ElementTree.fromstring(text):
        options = {one.get("name"): one.get("value") or "" for one in element}
        runner, file = literal_eval(options["command"])[:2]
        if runner in RUNNERS and float(options.get("shader_version") or 0) <= LANGUAGE:
            found.append(Test(element.get("name") or "", runner, file))
    ran = set(chip.ran(test.name for test in found))
    return sorted((test for test in found if test.name in ran), key=lambda test: test.name)


def sample(tests: Sequence[Test], count: int = SAMPLE) -> list[Test]:
    """So many of them, at equal distances."""
    count = min(count, len(tests))
    return [tests[at * len(tests) // count] for at in range(count)]


def verdict(output: str, code: int | None) -> str:
    """piglit's word for what became of a test; None as code: it was given up."""
    if code is None:
        return "timeout"
    said = _VERDICT.findall(output)
    if code > 128 or code < 0:
        return "crash"
    return said[-1] if said else "fail"


def digest_of(jobs: Jobs) -> str:
    """Of all that the V3D has stored."""
    text = "".join(f"{job.width}x{job.height} {job.failed} {job.digest}\n" for job in jobs)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def in_the_guest(linux: Linux, test: Test) -> Outcome:
    """Run a test on vc4.ko."""
    jobs = linux.jobs()
    line = "PIGLIT_PLATFORM=gbm " + " ".join(f"'{word}'" for word in test.command(f"/{PIGLIT}"))
    try:
        done = linux.run(line, seconds=GUEST_SECONDS)
        code, output = done.code, done.output
    except LinuxStopped:
        code, output = None, ""
        linux.interrupt()
    jobs.close()
    return Outcome(verdict(output, code), len(jobs), digest_of(jobs))


def on_the_device(device: DrmDevice, brought: Brought, test: Test) -> Outcome:
    """Run a test on the virtual device."""
    jobs = Jobs()
    jobs.watch(device.v3d)
    environment = dict(os.environ, PIGLIT_PLATFORM="gbm")
    command = ["timeout", "--signal=INT", str(SECONDS), str(brought.names_folder / test.runner)]
    command += test.command(str(brought.tree / PIGLIT))[1:]
    with tempfile.TemporaryFile("w+") as file:
        result = device.run(
            command, arm64=brought.suite, environment=environment,
            stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
        )  # fmt: skip
        file.seek(0)
        output = file.read()
    jobs.close()
    code = None if result.exit_code == 124 else result.exit_code  # timeout's own
    return Outcome(verdict(output, code), len(jobs), digest_of(jobs))


def find_piglit() -> tuple[Brought, list[Test]]:
    """The packages, and the sample. Raises Missing."""
    brought = find_brought()
    profile = None if brought is None else brought.tree / PIGLIT / "tests/quick_shader.xml.gz"
    if brought is None or profile is None or not profile.is_file():
        raise Missing(f"piglit for arm64 is missing: {SETUP}")
    return brought, sample(tests_of(gzip.decompress(profile.read_bytes()), Chip()))


def plan_of(tests: Sequence[Test]) -> LinuxPlan:
    """A root with the tests in it."""
    files = [f"{MULTIARCH}/{name}" for name in OPENED]
    files += sorted(f"{PIGLIT}/{test.file}" for test in tests)
    return LinuxPlan(programs=RUNNERS, files=tuple(files))


@contextmanager
def guest_side(tests: Sequence[Test]) -> Iterator[Callable[[Test], Outcome]]:
    """What runs a test in the guest, booted once for all."""
    linux = Linux.booted(plan_of(tests), show=say)
    yield lambda test: in_the_guest(linux, test)


@contextmanager
def device_side(brought: Brought) -> Iterator[Callable[[Test], Outcome]]:
    """What runs a test on the virtual device."""
    with DrmDevice(paced=False) as device:
        yield lambda test: on_the_device(device, brought, test)


def fingerprint(tests: Sequence[Test]) -> str:
    """Changes with the simulator and the sample."""
    digest = hashlib.sha256(repr(tests).encode())
    for path in sorted((ROOT / "src").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def run(name: str, side: Callable[[Test], Outcome], results: Results, tests: Sequence[Test]) -> None:
    """Run the tests that have no result on one side yet."""
    todo = [test for test in tests if test.name not in results.by_name]
    for number, test in enumerate(todo, 1):
        outcome = side(test)
        results.add({test.name: str(outcome)})
        say(f"{name} {number} of {len(todo)}: {test.name}: {outcome}")


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 when both sides agree in every test."""
    parser = argparse.ArgumentParser(prog="make conformance-linux", description=__doc__)
    parser.add_argument("--only", metavar="REGEX", help="these tests; no page is written")
    options = parser.parse_args(arguments)
    if why_not():
        print(f"Programs cannot run on a virtual GPU here: {why_not()}", file=sys.stderr)
        return 2
    try:
        brought, tests = find_piglit()
    except Missing as error:
        print(f"{error}.", file=sys.stderr)
        return 2
    WORK.mkdir(parents=True, exist_ok=True)
    mark = fingerprint(tests)
    guest, device = (Results(WORK / f"{side}-{mark}.jsonl") for side in ("guest", "device"))
    chosen = [test for test in tests if options.only is None or re.search(options.only, test.name)]
    try:
        with device_side(brought) as side:
            run("device", side, device, chosen)
        with guest_side(tests) as side:
            run("guest", side, guest, chosen)
    except (BootFailed, RootFailed, LinuxStopped, OSError) as error:
        print(f"Linux does not run: {error}", file=sys.stderr)
        return NOT_COMPLETE
    except KeyboardInterrupt:
        print("Stopped; the same command goes on.", file=sys.stderr)
        return 130
    pairs = {
        test.name: (Outcome.of(guest.by_name[test.name]), Outcome.of(device.by_name[test.name]))
        for test in chosen
    }
    text = page(pairs, Causes(DATA / "causes-linux.toml"), brought.suite, host_text())
    if options.only is None:
        PAGE.write_text(text, encoding="utf-8")
        print(f"{PAGE} was written.")
    else:
        print(text)
    return int(bool(differences(pairs)))


if __name__ == "__main__":
    sys.exit(main())
