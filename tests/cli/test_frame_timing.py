"""`--timing` of frames, `profile` and `sweep`: what they print and write, what they refuse."""

import json
from pathlib import Path

import pytest
from tests.support.frame_timings import JOBS, FakeModel
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.live_timing import JobCounters
from vc4lab.cli.main import app
from vc4lab.timing.declare import StandsStill

JOB = JOBS / "tri_arm64"


@pytest.fixture(autouse=True)
def _model(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("frame_times", "profile.profiler"):
        monkeypatch.setattr(f"vc4lab.timing.{module}.model_of", FakeModel)


def vc4lab(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.output


def bad_chip(folder: Path) -> Path:
    path = folder / "mine.toml"
    path.write_text('like = "videocore4"\n[tmu]\nlatancy = 3\n')
    return path


def test_replay_says_how_long_the_chip_takes(tmp_path: Path) -> None:
    plain, timed = tmp_path / "plain.png", tmp_path / "timed.png"
    assert vc4lab("replay", JOB, "-o", plain)[0] == ExitCode.OK
    code, text = vc4lab("replay", JOB, "-o", timed, "--timing", "--board", "pi1")
    assert code == ExitCode.OK
    assert "1250 clocks (videocore4 on pi1), binning 250, rendering 1000; busiest: qpu" in text
    assert "pi1 0.005 ms, 2e+05 frames a second" in text
    assert plain.read_bytes() == timed.read_bytes()


def test_counters_are_whole_with_the_model() -> None:
    code, text = vc4lab("replay", JOB, "--counters")
    assert code == ExitCode.OK
    assert "           -  idle clocks of all QPUs (clocks are not modelled; see --timing)" in text
    code, text = vc4lab("replay", JOB, "--counters", "--timing")
    assert code == ExitCode.OK
    assert "         777  idle clocks of all QPUs\n" in text
    assert "--timing" not in text
    code, text = vc4lab("replay", JOB, "--counters", "--timing", "--json")
    (counted,) = json.loads(text)["counters"].values()
    assert counted["13"] == 777
    assert set(map(int, counted)) == set(range(30))


def counters_of(*frames: int, last: int) -> list[dict[int, int]]:
    """What each job of so many frames gets, if those up to the last one were timed."""
    found: list[dict[int, int]] = []
    jobs = JobCounters()
    for number in range(frames[0]):
        jobs.timed({13: 1 << number})
    for end in frames:
        jobs.add(end, lambda values: found.append(dict(values)))
    for number in range(frames[0], last):
        jobs.timed({13: 1 << number})
    jobs.end()
    return found


def test_counters_of_jobs_with_several_frames() -> None:
    assert counters_of(1, 3, 3, 4, last=4) == [{13: 1}, {13: 6}, {}, {13: 8}]
    assert counters_of(2, 3, 5, last=4) == [{13: 3}, {13: 4}, {13: 8}]  # the model gave up
    assert counters_of(0, 1, last=1) == [{}, {13: 1}]


def test_replay_as_json() -> None:
    code, text = vc4lab("replay", JOB, "--timing", "--json")
    table = json.loads(text)
    assert (code, table["drawn"], table["board"]) == (ExitCode.OK, table["jobs"], "pi3")
    assert table["frames"][0]["clocks"] == 1250
    assert table["frames"][0]["modules"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--chip", "x"], "--chip goes with --timing"),
        (["--board", "pi1"], "--board goes with --timing"),
        (["--json"], "--json goes with --timing"),
        (["--timing", "--chip", "nowhere.toml"], "nowhere.toml: no such file"),
        (["--timing", "--board", "pi9"], "videocore4 is on pi0, pi1, pi2, pi3"),
    ],
)
def test_replay_options_that_do_not_go_together(options: list[str], words: str) -> None:
    code, text = vc4lab("replay", JOB, *options)
    assert code == ExitCode.BAD_INPUT
    assert words in text.lower() or words in text


def test_a_profile_as_text_json_trace_and_page(tmp_path: Path) -> None:
    trace, page = tmp_path / "new" / "t.json", tmp_path / "p.html"
    code, text = vc4lab("profile", JOB, "--perfetto", trace, "--html", page)
    assert code == ExitCode.OK
    assert "bounded by qpu" in text
    assert "1.60 times as fast" in text
    assert json.loads(trace.read_text())["traceEvents"]
    assert "<svg" in page.read_text()
    code, text = vc4lab("profile", JOB, "--json", "--no-what-if")
    table = json.loads(text)
    assert code == ExitCode.OK
    assert table["frames"][0]["what_if"] == []


@pytest.mark.parametrize("command", ["profile", "sweep"])
def test_a_run_without_jobs(command: str, tmp_path: Path) -> None:
    options = ["--set", "slices=1", "--results", tmp_path / "r"] if command == "sweep" else []
    code, text = vc4lab(command, tmp_path, *options)
    assert code == ExitCode.BAD_INPUT
    assert "DRM-001" in text


@pytest.mark.parametrize("command", ["replay", "profile", "sweep"])
def test_a_chip_that_is_none(command: str, tmp_path: Path) -> None:
    options = {
        "replay": ["--timing"],
        "profile": [],
        "sweep": ["--set", "slices=1", "--results", tmp_path / "r"],
    }[command]
    code, text = vc4lab(command, JOB, *options, "--chip", bad_chip(tmp_path))
    assert code == ExitCode.BAD_INPUT
    assert "mine.toml:3: [tmu] latancy: there is no such figure; did you mean latency?" in text


def test_what_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for option in ("--perfetto", "--html"):
        code, text = vc4lab("profile", JOB, option, tmp_path / "file" / "x", "--no-what-if")
        assert code == ExitCode.OUTPUT
        assert "file/x: " in text


def sweep(folder: Path, *options: str | Path) -> tuple[int, str]:
    return vc4lab("sweep", JOB, "--results", folder / "r.jsonl", "--processes", "1", *options)


def test_a_sweep_goes_on_where_it_was(tmp_path: Path) -> None:
    code, text = sweep(tmp_path, "--set", "slices=1..2")
    assert code == ExitCode.OK
    lines = (tmp_path / "r.jsonl").read_text().splitlines()
    assert [json.loads(line)["clocks"] for line in lines] == [1250, 3750, 1875]
    assert [json.loads(line)["set"] for line in lines][1:] == [
        {"slices.count": 1}, {"slices.count": 2},
    ]  # fmt: skip
    with (tmp_path / "r.jsonl").open("a") as file:
        file.write('{"key": "cut o')
    code, text = sweep(tmp_path, "--set", "slices=1..4")
    assert code == ExitCode.OK
    assert "3 points are in" in text
    after = (tmp_path / "r.jsonl").read_text().splitlines()
    assert len(after) == 5  # slices=3 is the chip as it is; one was cut off
    code, text = sweep(tmp_path, "--set", "slices=1..4")
    assert (tmp_path / "r.jsonl").read_text().splitlines() == after


def test_a_sweep_as_tables_and_plots(tmp_path: Path) -> None:
    code, text = sweep(
        tmp_path, "--set", "slices=1..4", "--set", "l2.bytes=32k,64k", "--json",
        "--csv", tmp_path / "t.csv", "--html", tmp_path / "t.html", "--svg", tmp_path / "plots",
    )  # fmt: skip
    assert code == ExitCode.OK
    rows = json.loads(text)
    assert len(rows) == 9
    assert rows[0]["speedup"] == 1
    assert rows[1]["set"] == {"slices.count": 1, "l2.bytes": 32768}
    assert rows[1]["speedup"] == pytest.approx(1 / 3)
    csv = (tmp_path / "t.csv").read_text().splitlines()
    assert csv[0].startswith("run,slices.count,l2.bytes,clocks,")
    assert len(csv) == 10
    assert (tmp_path / "t.html").read_text().count("<svg") == 2
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == [
        "l2.bytes.svg", "slices.count.svg",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "nothing to change"),
        (["--set", "slices.count=7"], "slices of QPUs: from 1 to 4, not 7"),
        (["--set", "l3.bytes=7"], "l3: there is no such section; there are clusters"),
        (["--set", "slices=1", "--board", "pi9"], "videocore4 is on pi0"),
        (["--set", "slices=1", "--scheduler", "nowhere"], "--scheduler"),
    ],
)
def test_sweeps_that_are_none(options: list[str], words: str, tmp_path: Path) -> None:
    code, text = sweep(tmp_path, *options)
    assert code == ExitCode.BAD_INPUT
    assert words in text


def test_results_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").mkdir()
    code, text = sweep(tmp_path, "--set", "slices=1")
    assert code == ExitCode.OUTPUT
    assert "r.jsonl: " in text
    (tmp_path / "file").write_text("")
    code, text = vc4lab("sweep", JOB, "--set", "slices=1", "--results", tmp_path / "file" / "r")
    assert code == ExitCode.OUTPUT
    assert "file/r: " in text


def test_what_goes_wrong_at_a_point_is_said_and_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object) -> int:
        raise ValueError("queue vectors is full")

    monkeypatch.setattr("vc4lab.timing.sweep.time_frames.clocks_of", broken)
    code, text = sweep(tmp_path, "--set", "slices=1")
    assert code == ExitCode.BAD_INPUT
    assert "2 of 2 points failed: queue vectors is full" in text
    monkeypatch.undo()
    monkeypatch.setattr("vc4lab.timing.frame_times.model_of", FakeModel)
    assert sweep(tmp_path, "--set", "slices=1")[0] == ExitCode.OK


GEARS = Path(__file__).parents[2] / "examples" / "gears" / "sdcard"


def test_boot_times_each_frame_on_its_board() -> None:
    code, text = vc4lab("boot", GEARS, "--frames", "2", "--headless", "--timing")
    assert code == ExitCode.OK
    assert "frame 1: 1250 clocks, 0.005 ms on pi2" in text
    assert "frame 2: 1000 clocks, 0.004 ms on pi2" in text
    assert "timing: 2 frames take 0.009 ms of the V3D (videocore4 on pi2 at 250 MHz)" in text
    assert "2.222e+05 frames a second, if the GPU bounds the program" in text


def test_boot_goes_on_when_a_model_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    def still(*_arguments: object) -> None:
        raise StandsStill("queue vectors is full:\nqpu 3 waits")

    monkeypatch.setattr(FakeModel, "run", still)
    options = ("--frames", "2", "--headless", "--timing", "--timing-board", "pi1")
    code, text = vc4lab("boot", GEARS, *options)
    assert code == ExitCode.OK
    assert "timing: 2 frames not timed: queue vectors is full: qpu 3 waits" in text
    assert "timing: no frame was timed" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--chip", "x"], "--chip goes with --timing"),
        (["--timing-board", "pi1"], "--timing-board goes with --timing"),
        (["--timing", "--timing-board", "pi9"], "videocore4 is on pi0, pi1, pi2, pi3"),
        (["--timing", "--chip", "nowhere"], "nowhere: no chip and no file has this name"),
    ],
)
@pytest.mark.parametrize(
    "command", [["boot", GEARS], ["drm", "--", "true"], ["gl", "--", "true"]], ids=["boot", "drm", "gl"]
)
def test_options_of_programs_that_run(command: list[str | Path], options: list[str], words: str) -> None:
    code, text = vc4lab(command[0], *options, *command[1:])
    assert code == ExitCode.BAD_INPUT
    assert words in text


def test_a_model_that_stands_still_is_said_after_the_pictures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def still(*_arguments: object) -> None:
        raise StandsStill("queue vectors is full")

    monkeypatch.setattr(FakeModel, "run", still)
    code, text = vc4lab("replay", JOB, "--timing", "-o", tmp_path / "p.png")
    assert code == ExitCode.BAD_INPUT
    assert "not timed: queue vectors is full" in text
    assert (tmp_path / "p.png").exists()
    for command in (["profile", JOB], ["sweep", JOB, "--set", "slices=3", "--results", tmp_path / "r"]):
        code, text = vc4lab(*command)
        assert code == ExitCode.BAD_INPUT
        assert "queue vectors is full" in text


CAPTURE = JOBS.parent / "captures" / "small.vc4cap"


def test_captures_of_our_driver_are_profiled(tmp_path: Path) -> None:
    code, text = vc4lab("profile", CAPTURE, "--no-what-if", "--json")
    assert code == ExitCode.OK
    table = json.loads(text)
    assert {one["name"].split(" job ")[0] for one in table["frames"]} == {"frame 1", "frame 2"}
    code, text = vc4lab("profile", CAPTURE, "--job", "1")
    assert code == ExitCode.BAD_INPUT
    assert "is a capture: --job is for recorded jobs" in text
    (tmp_path / "bad.vc4cap").write_bytes(b"no archive")
    code, text = vc4lab("profile", tmp_path / "bad.vc4cap")
    assert code == ExitCode.BAD_INPUT
    assert "See vc4lab explain CAP-" in text


def test_captures_and_jobs_are_swept_together(tmp_path: Path) -> None:
    code, _ = sweep(tmp_path, "--set", "slices=1", str(CAPTURE))
    assert code == ExitCode.OK
    lines = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert len(lines) == 4
    assert {Path(line["run"]).name for line in lines} == {JOB.name, CAPTURE.name}
    assert all(not line["error"] and line["clocks"] for line in lines)
    (tmp_path / "bad.vc4cap").write_bytes(b"no archive")
    code, text = sweep(tmp_path, "--set", "slices=1", str(tmp_path / "bad.vc4cap"))
    assert code == ExitCode.BAD_INPUT
    assert "See vc4lab explain CAP-" in text
