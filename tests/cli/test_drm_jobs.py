"""`vc4lab drm --record-jobs` and `--counters`: what a recording replays to, and how it ends."""

import inspect
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PIL import Image
from tests.support.drm_client import CLIENT
from tests.support.live_jobs import Live, prepare
from tests.support.supervised import need_supervisor
from typer.testing import CliRunner

from vc4lab.cli.main import app

LOOP = """
import sys
live = Live(sys.argv[1])
for _ in range(int(sys.argv[2])):
    live.finish(live.submit())
    print("drawn", flush=True)
"""


@pytest.fixture(autouse=True)
def _possible() -> None:
    need_supervisor()


def program(folder: Path, jobs: int) -> list[str]:
    """A client that hands a job in so many times."""
    prepare("tri_amd64", folder)
    script = folder / "client.py"
    script.write_text(f"{CLIENT}\n{inspect.getsource(Live)}\n{LOOP}")
    return [sys.executable, "-S", str(script), str(folder), str(jobs)]


def vc4lab(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "vc4lab", *arguments], capture_output=True, text=True, timeout=120, check=False
    )


def test_a_recording_is_replayed(tmp_path: Path) -> None:
    run = tmp_path / "run"
    result = vc4lab(
        "drm", "--record-jobs", str(run), "--counters", "--", *program(tmp_path, 3)
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stdout == "drawn\n" * 3
    assert f"{run}: 3 jobs recorded" in result.stderr
    assert result.stderr.count(": performance counters") == 3
    assert "job 3: performance counters" in result.stderr
    picture = tmp_path / "picture.png"
    shown = CliRunner().invoke(app, ["replay", str(run), "-o", str(picture)])
    assert "3 of 3 jobs drawn, 64x64" in shown.output
    with Image.open(picture) as image:
        assert image.size == (64, 64)
    lists = CliRunner().invoke(app, ["replay", str(run), "--lists", "--job", "2"])
    assert lists.exit_code == 0


def test_a_limit_is_said_and_the_program_goes_on(tmp_path: Path) -> None:
    run = tmp_path / "run"
    result = vc4lab(
        "drm", "--record-jobs", str(run), "--record-count", "2", "--", *program(tmp_path, 4)
    )  # fmt: skip
    assert result.returncode == 0
    assert result.stdout == "drawn\n" * 4
    assert result.stderr == f"{run}: 2 jobs recorded, the limit (--record-count)\n"


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "run" / "job0001").mkdir(parents=True)
    for folder in (tmp_path / "file", tmp_path / "run"):
        result = vc4lab("drm", "--record-jobs", str(folder), "--", "true")
        assert result.returncode == 5
        assert len(result.stderr.splitlines()) == 1
        assert str(folder) in result.stderr


def test_an_interrupted_recording_is_whole(tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = [sys.executable, "-m", "vc4lab", "drm", "--record-jobs", str(run), "--"]
    with subprocess.Popen(
        [*command, *program(tmp_path, 1_000_000)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "drawn\n"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    jobs = sorted(path.name for path in run.iterdir())
    assert jobs[0] == "blobs"
    assert len(jobs) > 1
    result = vc4lab("replay", str(run))
    assert result.returncode == 0, result.stderr
    count = len(jobs) - 1
    assert f"{count} of {count} jobs drawn" in result.stdout


def test_pictures_and_jobs_are_timed(tmp_path: Path) -> None:
    options = ["--timing", "--timing-board", "pi1"]
    result = vc4lab("drm", *options, "--", *program(tmp_path, 3))
    assert result.returncode == 0, result.stderr
    assert "timing: 3 frames take " in result.stderr
    assert "(videocore4 on pi1 at 250 MHz)" in result.stderr
    assert " frames a second, if the GPU bounds the program" in result.stderr


def test_fences_come_when_the_chip_would_be_done(tmp_path: Path) -> None:
    begin = time.monotonic()
    options = ["--timing", "--timing-slower", "50000"]
    result = vc4lab("drm", *options, "--", *program(tmp_path, 3))
    spent = time.monotonic() - begin
    assert result.returncode == 0, result.stderr
    taken = re.search(r"timing: 3 frames take ([0-9.]+) ms", result.stderr)
    assert taken is not None
    assert spent > 0.9 * 50 * float(taken[1]), "one after the other"
    assert "timing: the chip is made 50000 times slower" in result.stderr
    assert re.search(r"jobs \(3\)|of 3 jobs", result.stderr), "in time or not"
