"""piglit through ``vc4lab gl``: ``make conformance-gl``.

Each test runs twice: here, and with llvmpipe after the same protocol (Debian's
``virgl_test_server``);
what boards do comes from the lists in ``data/``. Writes its part of docs/conformance.md, only when
every test has both results.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks._conformance.chip import DATA, Causes, Chip
from benchmarks._conformance.gl_page import GL_MARK, Outcomes, part
from benchmarks._conformance.page import replace_part
from benchmarks._conformance.runs import Results, RunFailed, Runner, fingerprint
from benchmarks._conformance.suites import Missing, Piglit, Suite

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "conformance.md"
WORK = ROOT / "out" / "conformance-gl"
MESA = Path("/usr/lib/x86_64-linux-gnu/dri/swrast_dri.so")
NOT_COMPLETE = 3
PARTS = {
    "quick_shader": r"spec@glsl-(1\.10|1\.20|es-1\.00)@",
    "quick_gl": r"shaders@|spec@oes_(fixed|vertex_half|compressed_etc1|packed).*|spec@egl 1\.4@"
    r"|spec@!opengl es 2\.0@|spec@!opengl 2\.[01]@|spec@(ext_texture|arb_framebuffer)_srgb@"
    r"|spec@!opengl 1\.1@.*(clear|depth|stencil|scissor|blend|copytex|texsub|read)",
}
"""What is run of each profile: the parts that a device of OpenGL 2.1 and OpenGL ES 2.0 has."""


class GlPiglit(Piglit):
    """A part of a profile, with an X server."""

    def __init__(self, profile: str, tests: str, chip: Chip, display: str) -> None:
        super().__init__(profile, chip)
        every = len(self.cases)
        self.cases = [case for case in self.cases if re.match(tests, case)]
        self.left_out["they need other versions of OpenGL, or extensions"] = every - len(self.cases)
        self.environment = {
            "PIGLIT_PLATFORM": "x11_egl",
            "PIGLIT_NO_FAST_SKIP": "1",
            "PYTHONWARNINGS": "ignore",
            "DISPLAY": display,
        }


@dataclass(frozen=True)
class GlRunner(Runner):
    """Through ``vc4lab gl``."""

    def wrapper(self) -> list[str]:
        return [*self.simulator, "gl", "--headless", "--engine", self.engine, "--"]


@dataclass(frozen=True)
class PeerRunner(Runner):
    """Through Debian's server, which draws with llvmpipe."""

    def wrapper(self) -> list[str]:
        return [sys.executable, "-m", "benchmarks._conformance.peer", "--"]


@contextlib.contextmanager
def x_server() -> Iterator[str]:
    """An X server of our own; its display. Raises Missing."""
    program = shutil.which("Xvfb")
    if program is None:
        raise Missing("Xvfb is missing: Debian has it in the package xvfb")
    read, write = os.pipe()
    command = [program, "-displayfd", str(write), "-noreset", "-screen", "0", "1024x768x24"]
    process = subprocess.Popen(command, pass_fds=[write], stderr=subprocess.DEVNULL)
    try:
        os.close(write)
        with open(read, "rb") as file:
            number = file.readline().decode().strip()
        if not number:
            raise Missing("Xvfb did not start")
        yield f":{number}"
    finally:
        process.terminate()
        process.wait()


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="make conformance-gl", description=__doc__)
    parser.add_argument("--only", metavar="REGEX", help="these tests; no page is written")
    parser.add_argument("--shards", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeout", type=int, default=120, help="seconds for a test")
    parser.add_argument("--engine", default="jit", choices=["jit", "interpreter"])
    options = parser.parse_args(arguments)
    if shutil.which("virgl_test_server") is None:
        print("virgl_test_server is missing: Debian's package virgl-server", file=sys.stderr)
        return 2
    WORK.mkdir(parents=True, exist_ok=True)
    kinds: Mapping[str, type[Runner]] = {"here": GlRunner, "llvmpipe": PeerRunner}
    chip = Chip()
    done: list[tuple[Suite, Outcomes]] = []
    try:
        with x_server() as display:
            for profile, tests in PARTS.items():
                suite = GlPiglit(profile, tests, chip, display)
                results = {
                    name: run(kind(MESA, WORK, options.timeout, max(options.shards, 1),
                                   options.engine), suite, options.only, name)
                    for name, kind in kinds.items()
                }  # fmt: skip
                done.append((suite, Outcomes(results["here"], results["llvmpipe"])))
    except Missing as error:
        print(f"{error}.", file=sys.stderr)
        return 2
    except RunFailed as failure:
        print(f"A run ended before its first test: {failure}", file=sys.stderr)
        return NOT_COMPLETE
    except KeyboardInterrupt:
        print("Stopped; the same command goes on.", file=sys.stderr)
        return 130
    text = part(done, chip, Causes(DATA / "causes-gl.toml"))
    if options.only is not None:
        print(text)
        return 0
    if any(case not in one.here or case not in one.peer for suite, one in done
           for case in suite.cases):  # fmt: skip
        print("Tests have no result: no page was written.", file=sys.stderr)
        return NOT_COMPLETE
    PAGE.write_text(replace_part(PAGE.read_text(encoding="utf-8"), GL_MARK, text), "utf-8")
    print(f"{PAGE} was written.")
    return 0


def run(runner: Runner, suite: Suite, only: str | None, name: str) -> dict[str, str]:
    """The results of a suite's tests, those kept from before among them."""
    sources = ROOT / "src" if isinstance(runner, GlRunner) else Path(__file__).parent
    results = Results(runner.work / f"{name}-{fingerprint(suite, MESA, sources)}.jsonl")
    cases = [case for case in suite.cases if only is None or re.search(only, case)]
    say: Callable[[str], None] = lambda line: print(f"{name}: {line}", flush=True)  # noqa: E731
    runner.run(suite, results, cases, say)
    return results.by_name


if __name__ == "__main__":
    sys.exit(main())
