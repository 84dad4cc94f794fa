"""Points of a sweep on several processes and by a scheduler; the file with what came of them."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support import sweep_work

from vc4lab.timing.changes import grid, read_setting
from vc4lab.timing.chip import load_chip
from vc4lab.timing.sweep import runner
from vc4lab.timing.sweep.points import Outcome, Point, broken, outcome, points_of, read_outcomes
from vc4lab.timing.sweep.runner import NoScheduler, run_by_scheduler, run_here
from vc4lab.timing.sweep.table import rows_of, table_csv

CHIP = load_chip("videocore4")
JOBS = Path(__file__).parents[2] / "data" / "vc4-jobs"
NO_DASK = "Dask is not installed: make env, or pip install 'vc4lab[sweep]'"


def points(*texts: str, runs: int = 1) -> list[Point]:
    settings = [read_setting(text, CHIP) for text in texts]
    return points_of([(f"run{n}", f"{n}" * 64) for n in range(runs)], CHIP, grid(settings), "pi3")


class Started:
    """A program of Dask that runs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def address(self) -> str:
        """Where the scheduler listens, which it says first."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            found = re.search(r"Scheduler at:\s+(tcp://\S+)", line)
            if found:
                return found[1]
        raise AssertionError("the scheduler did not start")


@contextmanager
def started(*arguments: str) -> Iterator[Started]:
    command = [sys.executable, "-m", "dask", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield Started(process)
        finally:
            process.kill()


def sweep(*arguments: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "vc4lab", "sweep", *arguments],
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def fails(_point: Point) -> Outcome:
    raise ArithmeticError("too much")


def test_points_have_keys_of_all_that_counts() -> None:
    found = points("slices=1..4", runs=2)
    assert len(found) == 2 * (1 + 4)
    assert len({point.key for point in found}) == 2 * 4  # slices=3 is the chip as it is
    other = points_of([("run0", "9" * 64)], CHIP, [], "pi3")[0]
    board = points_of([("run0", "0" * 64)], CHIP, [], "pi1")[0]
    assert len({found[0].key, other.key, board.key}) == 3


@pytest.mark.parametrize("processes", [1, 2])
def test_all_points_are_run(processes: int) -> None:
    asked = points("slices=1..4", "l2.bytes=32k,64k")
    found = list(run_here(sweep_work.work, asked, broken, processes))
    assert {one.key for one in found} == {point.key for point in asked}
    rows = rows_of(asked, {one.key: one for one in found})
    assert [row.speedup for row in rows][:3] == pytest.approx([1, 1 / 3, 1 / 3])
    assert table_csv(rows).splitlines()[1].startswith("run0,,,400,")


def test_a_process_that_ends_is_said() -> None:
    found = list(run_here(sweep_work.end, points("slices=1..2"), broken, 2))
    assert found[-1].error == "its process ended"


def test_results_are_read_again_and_hostile_lines_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    asked = points("slices=1")
    good = sweep_work.work(asked[0])
    lines = [good.to_line(), outcome(asked[1], {}, "it broke").to_line()]
    odd = ["", "[]", "{}", "3", "null", '{"key": 1}', "[" * 100_000, '{"key": "x"']
    for before, after in (("400", '"400"'), ("400", "NaN"), ("400", "1e999"), ("{}", "[]")):
        assert before in lines[0]
        odd.append(lines[0].replace(before, after))
    path.write_bytes("\n".join([*odd, *lines]).encode() + b"\xff\n")
    found = read_outcomes(path)
    assert found == {asked[0].key: good}  # what broke is run again
    assert read_outcomes(tmp_path / "none") == {}


def test_make_env_installs_dask() -> None:
    """So the skips below are for environments that were made otherwise, or before the lock."""
    lock = (Path(__file__).parents[3] / "requirements.lock").read_text().splitlines()
    assert any(line.startswith("distributed==") for line in lock)


@pytest.mark.filterwarnings("default")
def test_a_scheduler_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason=NO_DASK)
    monkeypatch.setattr(runner, "TIMEOUT", 1)
    with pytest.raises(NoScheduler, match="--scheduler tcp://127"):
        list(run_by_scheduler(fails, points("slices=1"), broken, "tcp://127.0.0.1:1"))


def test_without_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(NoScheduler, match=r"pip install 'vc4lab\[sweep\]'"):
        list(run_by_scheduler(fails, points("slices=1"), broken, "127.0.0.1:1"))


@pytest.mark.filterwarnings("default")
def test_a_scheduler_has_its_workers_do_it() -> None:
    distributed = pytest.importorskip("distributed", reason=NO_DASK)
    asked = points("slices=1..4")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        address = cluster.scheduler_address
        found = {one.key: one for one in run_by_scheduler(sweep_work.work, asked, broken, address)}
        wrong = list(run_by_scheduler(fails, asked[:1], broken, address))
    assert [found[point.key].clocks for point in asked] == [400, 1200, 600, 400, 300]
    assert wrong[0].error == "ArithmeticError: too much"


@pytest.mark.filterwarnings("default")
def test_two_workers_in_processes_of_their_own_time_recorded_frames(tmp_path: Path) -> None:
    """`vc4lab sweep --scheduler ADDRESS`, as a user starts it, says what `--processes` says."""
    pytest.importorskip("distributed", reason=NO_DASK)
    asked = ["--set", "clusters=1,2", "--chip", "cluster", "--json"]
    run = str(JOBS / "tri_arm64")
    with started("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard") as first:
        address = first.address()
        worker = ("worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny")
        with started(*worker, "--name", "a"), started(*worker, "--name", "b"):
            far = sweep(run, *asked, "--results", str(tmp_path / "far"), "--scheduler", address)
    near = sweep(run, *asked, "--results", str(tmp_path / "near"), "--processes", "1")
    assert far == near
    assert [row["set"] for row in far] == [{}, {"clusters.count": 1}, {"clusters.count": 2}]
    assert all(row["clocks"] > 0 and not row["error"] for row in far)
