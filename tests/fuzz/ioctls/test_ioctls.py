"""Hostile programs for seconds in `make test`; a million of their ioctls in `make fuzz`."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.supervised import need_supervisor

ROOT = Path(__file__).parents[3]
LONG = os.environ.get("VC4LAB_FUZZ") == "long"
COUNT = int(os.environ.get("VC4LAB_FUZZ_IOCTLS", "1000000" if LONG else "6000"))
SEED = os.environ.get("VC4LAB_FUZZ_SEED", "1")


def test_hostile_programs_get_errnos_and_leave_nothing() -> None:
    need_supervisor()
    patience = 120 + COUNT / 500
    command = [
        *(sys.executable, "-m", "tests.fuzz.ioctls", "--count", str(COUNT)),
        *("--seed", SEED, "--patience", str(patience)),
    ]
    paths = [str(ROOT), *filter(None, sys.path)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=patience + 60, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )  # fmt: skip
    text = done.stdout + done.stderr
    assert done.returncode == 0, text[-8000:]
    assert "Traceback" not in text
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert sum(row["ioctls"] for row in rows) >= COUNT
    assert all(row["jobs"] for row in rows), "no job reached the GPU: the fuzzer is too wild"
    assert all(row["descriptors"] <= 1 for row in rows), "descriptors of devices are left"
