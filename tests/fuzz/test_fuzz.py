"""A few cases of every fuzzer in `make test`; with VC4LAB_FUZZ=long ten million mutated bytes for
the V3D alone, in one run, and a share for the assembler and the board.

Everything runs in processes of its own, so that a crash is a failed test and not the end of all.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.fuzz import FUZZERS

ROOT = Path(__file__).parents[2]
LONG = os.environ.get("VC4LAB_FUZZ") == "long"
SEED = os.environ.get("VC4LAB_FUZZ_SEED", "1")
BYTES = os.environ.get("VC4LAB_FUZZ_BYTES", "10000000")
"""Mutated bytes of a long run, all fuzzers of the V3D together."""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the runner says of each fuzzer."""
    result = tmp_path_factory.mktemp("fuzz") / "outcomes.json"
    command = [sys.executable, "-m", "tests.fuzz.runner", "--seed", SEED, "--json", str(result)]
    if LONG:
        command += ["--bytes", BYTES, "--own-cache", "--jobs", str(os.cpu_count() or 1)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), *sys.path]))}
    subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=not LONG)
    assert result.exists(), "the runner itself failed"
    return {row["name"]: row for row in json.loads(result.read_text())}


@pytest.mark.parametrize("name", FUZZERS)
def test_nothing_breaks(name: str, outcomes: dict[str, Any]) -> None:
    row = outcomes[name]
    assert row["cases"] >= 1
    assert not row["failures"], "\n\n".join(row["failures"])


def test_the_runner_notices_what_it_is_for() -> None:
    """A fuzzer that raises, dies by a signal and hangs: three failures, reported and minimised."""
    code = (
        "import os, signal, ctypes\n"
        "from tests.fuzz import runner\n"
        "from tests.fuzz.fuzzer import Fuzzer, Plan, fuzzer\n"
        "runner.CPU_LIMIT = 0.3\n"
        "@fuzzer\n"
        "class Bad(Fuzzer):\n"
        "    name = 'bad'\n"
        "    def plan(self, rng):\n"
        "        return Plan('x', tuple(range(rng.randrange(5, 9))) + (99,), {}, 1)\n"
        "    def run(self, plan):\n"
        "        if 99 not in plan.edits: return\n"
        "        if 7 in plan.edits: ctypes.memset(16, 0, 1)\n"
        "        if 6 in plan.edits:\n"
        "            while True: pass\n"
        "        if 5 in plan.edits: raise ValueError('found')\n"
        "out = runner.Runner('bad', 1).run(cases=24)\n"
        "text = '\\n'.join(map(str, out.failures))\n"
        "assert 'SIGSEGV' in text and 'CPU time' in text and 'found' in text, text\n"
        "assert 'edits [7, 99]' in text and 'edits [6, 99]' in text and 'edits [5, 99]' in text\n"
        "assert len(out.failures) < 24 and out.cases < 24\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), *sys.path]))}
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr[-2000:]


def test_side_by_side_tells_the_same(tmp_path: Path) -> None:
    """Two fuzzers in processes of their own: the outcomes of a run in turn."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), *sys.path]))}
    rows = []
    for jobs in ("1", "2"):
        result = tmp_path / jobs
        command = [
            sys.executable, "-m", "tests.fuzz.runner", "assembler", "words",
            "--cases", "20", "--jobs", jobs, "--json", str(result),
        ]  # fmt: skip
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        assert done.stdout.count("assembler ") == 1
        rows.append([(o["name"], o["cases"], o["units"]) for o in json.loads(result.read_text())])
    assert rows[0] == rows[1]
    assert [cases for _, cases, _ in rows[0]] == [20, 20]
