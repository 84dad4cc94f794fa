"""`make conformance`: lists of the boards, resuming, what may be written. No suite is run."""

import json
import re
import sys
import time
from pathlib import Path

import pytest
from benchmarks._conformance import __main__ as command
from benchmarks._conformance.chip import DATA, Causes, Chip, Settled, Unsupported
from benchmarks._conformance.compare import KINDS, Comparison, group_of, plain
from benchmarks._conformance.gl_page import GL_MARK, Outcomes, part
from benchmarks._conformance.page import Run, further_parts, page, replace_part
from benchmarks._conformance.runs import Results, RunFailed, Runner
from benchmarks._conformance.suites import Deqp, Missing, Outcome, Piglit, Suite
from tests.support.conformance import causes

FAILS = "spec@!opengl 1.1@clipflat"
PART = (
    "spec@!opengl 1.1@clipflat@glbegin/end(gl_polygon), glfrontface(gl_ccw), "
    "glpolygonmode(gl_fill), quadrant: center bottom pv: first"
)
"""As piglit writes it: in lower case and with commas."""
SKIPPED = "spec@glsl-1.30@execution@anything"
FLAKY = "shaders@glsl-vs-loop"
PASSES = "shaders@anything else"


@pytest.fixture
def chip() -> Chip:
    return Chip()


def unsupported(tmp_path: Path, text: str = "a\nspec@x@*\n") -> Unsupported:
    path = tmp_path / "unsupported.txt"
    path.write_text(text)
    return Unsupported(path)


def test_what_boards_do(chip: Chip) -> None:
    assert [chip.result(test) for test in (FAILS, PART, SKIPPED, FLAKY, PASSES)] == [
        "fail", "fail", "not run", "flaky", "pass",
    ]  # fmt: skip
    assert chip.result("dEQP-GLES2.functional.shaders.loops.for_dynamic_iterations.x_vertex") == ("not run")
    assert chip.ran([FAILS, SKIPPED]) == [FAILS]
    assert FAILS not in chip.unseen([FAILS, PART])
    assert PART not in (name.lower() for name in chip.unseen([PART]))
    assert FAILS in chip.unseen([PART])


def test_causes_are_patterns_for_a_kind_of_difference(tmp_path: Path) -> None:
    table = causes(tmp_path, "[[cause]]\nhere = 'fails here'\ntests = 'a@.*'\ntext = 'because'\n")
    assert table.of("a@b", "fails here") == "because"
    assert table.of("a@b", "passes here") == table.of("xa@b", "fails here") == "unexplained"


def test_the_table_of_causes_is_sound() -> None:
    rows = Causes().rows
    assert rows
    for row in rows:
        assert row.here in KINDS
        assert row.text
        assert not row.text.endswith(".")


def test_differences_in_either_direction(chip: Chip, tmp_path: Path) -> None:
    results = {FAILS: "pass", PART: "notrun", PASSES: "dmesg-fail", FLAKY: "fail", "a": "skip"}
    compared = Comparison(results | {"b": "warn"}, chip, causes(tmp_path), unsupported(tmp_path))
    assert [(one.test, one.kind, one.here) for one in compared.differences] == [
        (PASSES, "fails here", "fail"), (FAILS, "passes here", "pass"),
        (PART, "not run here", "skip"),
    ]  # fmt: skip
    assert compared.unexpected() == [PASSES]
    counts = dict(compared.groups())
    assert counts["shaders"]["differ"] == 1
    assert counts["shaders"]["agree"] == 0  # the flaky one is not compared


def test_to_fail_and_to_crash_differ(chip: Chip, tmp_path: Path) -> None:
    crashes = next(name for name, result in chip.fails.items() if result == "crash")
    results = {FAILS: "crash", PART: "timeout", crashes: "fail"}
    compared = Comparison(results, chip, causes(tmp_path), unsupported(tmp_path))
    assert {one.test: one.kind for one in compared.differences} == dict.fromkeys(results, "ends otherwise")
    results = {FAILS: "fail", PART: "dmesg-fail", crashes: "crash"}
    assert not Comparison(results, chip, causes(tmp_path), unsupported(tmp_path)).differences


def test_a_capability_that_is_lost_shows(chip: Chip, tmp_path: Path) -> None:
    results = {"a": "skip", "spec@X@y": "skip", "spec@z@new": "notrun", "b": "pass"}
    listed = unsupported(tmp_path)
    compared = Comparison(results, chip, causes(tmp_path), listed)
    assert [(one.test, one.kind) for one in compared.differences] == [("spec@z@new", "not supported")]
    assert compared.total()["ran"] == 1
    assert compared.total()["agree"] == 1
    suites = [{name: plain(result) for name, result in results.items()}, {"spec@X@z": "skip"}]
    listed.record(suites, group_of)
    assert listed.path.read_text() == "a\nspec@X@*\nspec@z@*\n"
    suites[0]["spec@z@runs"] = "fail"
    listed.record(suites, group_of)
    assert listed.path.read_text() == "a\nspec@X@*\nspec@z@new\n"
    again = Unsupported(listed.path)
    assert Unsupported(tmp_path / "none").has("spec@z@new"), "nothing is compared without a list"
    assert again.has("dEQP-GLES2.a.b"), "nor a suite that it was recorded without"
    again.record([{"dEQP-GLES2.a.b.c": "skip", "dEQP-GLES2.a.d.e": "pass"}], group_of)
    assert again.path.read_text() == "a\ndEQP-GLES2.a.b.*\nspec@X@*\nspec@z@new\n", "others stay"
    assert not Unsupported(again.path).has("dEQP-GLES2.a.d.e")
    assert not Comparison(results, chip, causes(tmp_path), again).differences


def test_groups() -> None:
    assert group_of("dEQP-GLES2.functional.texture.size.2d") == "dEQP-GLES2.functional.texture"
    assert group_of(PART) == "spec@!opengl 1.1"
    assert group_of(PASSES) == "shaders"


class Pretended(Suite):
    """A program that stops at "crash", stands still at "hang" and says nothing at "mute"."""

    name = "pretended"
    per_run = 3
    left_out: dict[str, int] = {}  # noqa: RUF012
    environment: dict[str, str] = {}  # noqa: RUF012
    program = """
import sys, time
for case in sys.argv[2:]:
    if case == "mute":
        sys.exit(0)
    with open(sys.argv[1] + "/log", "a") as log:
        log.write(f"begin {case}\\n")
        log.flush()
        if case == "hang":
            time.sleep(60)
        if case == "crash":
            sys.exit(1)
        log.write(f"end {case}\\n")
"""

    def __init__(self, cases: list[str]) -> None:
        self.cases = cases
        self.runs: list[list[str]] = []

    def command(self, cases: list[str], folder: Path, timeout: int) -> list[str]:
        self.runs.append(cases)
        return [sys.executable, "-c", self.program, str(folder), *cases]

    def outcome(self, folder: Path) -> Outcome:
        log = folder / "log"
        lines = log.read_text().splitlines() if log.exists() else []
        ended = {line[4:]: "pass" for line in lines if line.startswith("end ")}
        begun = [line[6:] for line in lines if line.startswith("begin ")]
        return Outcome(ended, next((case for case in begun if case not in ended), None))

    def progress(self, folder: Path) -> object:
        return self.outcome(folder)


def runner(tmp_path: Path, timeout: int = 1) -> Runner:
    """Runs what stands after `--`, without vc4lab."""
    inside = "import subprocess, sys; at = sys.argv.index('--'); "
    inside += "sys.exit(subprocess.call(sys.argv[at + 1 :]))"
    return Runner(tmp_path, tmp_path, timeout, 2, simulator=(sys.executable, "-c", inside))


def test_a_case_that_ends_a_run_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    suite = Pretended(["a", "crash", "b", "c", "d"])
    results = Results(tmp_path / "results")
    runner(tmp_path, 20).run(suite, results, suite.cases, lambda _: None)
    assert results.by_name == {"a": "pass", "crash": "crash", "b": "pass", "c": "pass", "d": "pass"}
    assert sorted(suite.runs) == [["a", "crash", "b"], ["b"], ["c", "d"]]
    again = Results(tmp_path / "results")  # another start finds everything
    assert again.by_name == results.by_name
    assert not again.missing(suite.cases)


class Reported(Pretended):
    """Each case fails, and the simulator reports something."""

    program = """
import sys
print("a line of the program's own")
print("DRM-016 [DRM]: p[7] job 3: no frame ended", file=sys.stderr)
"""

    def outcome(self, folder: Path) -> Outcome:
        return Outcome(dict.fromkeys(self.cases, "fail"), None, dict.fromkeys(self.cases, "black"))


def test_what_the_simulator_reported_stands_beside_failed_cases(tmp_path: Path) -> None:
    suite = Reported(["a"])
    results = Results(tmp_path / "results")
    runner(tmp_path).run(suite, results, suite.cases, lambda _: None)
    said = (tmp_path / "results.said.txt").read_text()
    assert said == (
        "== a\nblack\n== vc4lab, in the run of those above\nDRM-016 [DRM]: p[7] job 3: no frame ended\n\n"
    )


def test_a_case_that_hangs_times_out(tmp_path: Path) -> None:
    suite = Pretended(["hang", "a"])
    results = Results(tmp_path / "results")
    runner(tmp_path).run(suite, results, suite.cases, lambda _: None)
    assert results.by_name == {"hang": "timeout", "a": "pass"}


def test_a_run_without_any_result_is_no_result(tmp_path: Path) -> None:
    suite = Pretended(["mute"])
    results = Results(tmp_path / "results")
    with pytest.raises(RunFailed, match="no result of 1 cases from mute on"):
        runner(tmp_path).run(suite, results, suite.cases, lambda _: None)
    assert results.missing(suite.cases) == ["mute"]


def test_the_others_end_with_a_run_that_failed(tmp_path: Path) -> None:
    suite = Pretended(["hang", "a", "b", "mute"])
    results = Results(tmp_path / "results")
    began = time.monotonic()
    with pytest.raises(RunFailed):
        runner(tmp_path, 60).run(suite, results, suite.cases, lambda _: None)
    assert time.monotonic() - began < 30
    assert not results.by_name


def test_a_half_line_is_as_none(tmp_path: Path) -> None:
    path = tmp_path / "results"
    path.write_text('["a", "pass"]\n["b", "pa')
    assert Results(path).by_name == {"a": "pass"}


def test_results_of_piglit(tmp_path: Path) -> None:
    tests = tmp_path / "piglit" / "tests"
    tests.mkdir(parents=True)
    parts = {"X": "fail", "__type__": "Subtests"}
    (tests / "0.json").write_text(json.dumps({"a": {"result": "fail", "out": "why", "subtests": parts}}))
    (tests / "1.json").write_text(json.dumps({"b": {"result": "incomplete"}}))
    (tests / "2.json").write_text('{"c": {"res')
    outcome = Piglit.outcome(Piglit.__new__(Piglit), tmp_path)
    assert outcome == Outcome({"a": "fail", "a@X": "fail"}, "b", {"a": "why"})


def test_results_of_deqp(tmp_path: Path) -> None:
    log = "\n".join(
        [
            "#beginTestCaseResult x.a", '<Result StatusCode="Pass">Pass</Result>',
            "#endTestCaseResult", "#beginTestCaseResult x.b",
            '<Result StatusCode="QualityWarning">Low</Result>', "#endTestCaseResult",
            "#beginTestCaseResult x.c", "#terminateTestCaseResult Timeout",
            "#beginTestCaseResult x.d", "<TestCase",
        ]
    )  # fmt: skip
    (tmp_path / "log.qpa").write_text(log)
    outcome = Deqp.outcome(Deqp.__new__(Deqp), tmp_path)
    assert outcome == Outcome({"x.a": "pass", "x.b": "warn", "x.c": "timeout"}, "x.d")


def test_what_is_missing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command.main([]) == 2
    said = capsys.readouterr().err
    assert "The driver is missing: VC4_DRIVER=DIR" in said
    assert command.main(["--driver", str(tmp_path), "--deqp", str(tmp_path)]) == 2
    assert f"there is no {tmp_path}/vc4_dri.so" in capsys.readouterr().err
    (tmp_path / command.DRIVER).touch()
    assert command.main(["--driver", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "piglit is missing" in said
    assert "dEQP is missing: DEQP=DIR" in said
    assert command.main(["--driver", str(tmp_path), "--deqp", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert f"there is no {tmp_path}/modules/gles2/deqp-gles2" in said


def test_deqp_without_its_sources(tmp_path: Path, chip: Chip) -> None:
    program = tmp_path / "modules" / "gles2" / "deqp-gles2"
    program.parent.mkdir(parents=True)
    program.touch()
    with pytest.raises(Missing, match="the mustpass list of dEQP is missing"):
        Deqp(tmp_path, chip)


def test_one_suite_alone_runs_without_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = Pretended(["a", "b"])
    (tmp_path / command.DRIVER).write_bytes(b"Mesa 22.3.6")
    monkeypatch.setattr(command, "find_suites", lambda *_: ([suite], ["dEQP is missing: …."]))
    monkeypatch.setattr(command, "WORK", tmp_path)
    monkeypatch.setattr(command, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(command, "fingerprint", lambda *_: "pretended")
    monkeypatch.setattr(
        Runner, "run", lambda _, suite, results, cases, say: results.add({"a": "pass", "b": "fail"})
    )
    assert command.main(["--driver", str(tmp_path)]) == 0
    assert not (tmp_path / "page.md").exists()
    printed = capsys.readouterr().out
    assert "pretended: 2 results, 2 ran, 1 of them as on the boards, 1 differ" in printed
    assert "Some cases only: no page was written." in printed


@pytest.mark.parametrize("complete", [True, False])
def test_no_page_when_cases_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, complete: bool
) -> None:
    suite = Pretended(["a", "b"])
    (tmp_path / command.DRIVER).write_bytes(b"... Mesa 22.3.6 ...")
    monkeypatch.setattr(command, "find_suites", lambda *_: ([suite], []))
    monkeypatch.setattr(command, "WORK", tmp_path)
    monkeypatch.setattr(command, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(command, "fingerprint", lambda *_: "pretended")

    def run(self: Runner, suite: Suite, results: Results, cases: list[str], tell: object) -> None:
        results.add(dict.fromkeys(cases[: len(cases) if complete else 1], "pass"))

    monkeypatch.setattr(Runner, "run", run)
    code = command.main(["--driver", str(tmp_path), "--deqp", str(tmp_path)])
    assert (code, (tmp_path / "page.md").exists()) == ((0, True) if complete else (3, False))
    if complete:
        assert "Driver: Mesa 22.3.6's vc4." in (tmp_path / "page.md").read_text()
    # Some cases are never a page.
    (tmp_path / "page.md").unlink(missing_ok=True)
    command.main(["--driver", str(tmp_path), "--deqp", str(tmp_path), "--only", "a"])
    assert not (tmp_path / "page.md").exists()


def test_the_page(chip: Chip, tmp_path: Path) -> None:
    suite = Pretended([FAILS, PASSES])
    results = {FAILS: "pass", PASSES: "pass", "spec@x@y": "skip", FLAKY: "pass"}
    results |= {f"shaders@n{number}": "fail" for number in range(9)}
    run = Run(suite, Comparison(results, chip, causes(tmp_path), unsupported(tmp_path)), ["f"])
    rows = [Settled("that", re.compile("shaders@.*|spec@x@y"))]
    text = page([run], rows, "d", "h")
    assert "| that | 10 | 1 |" in text  # nine fail, one is flaky on boards, one not supported
    assert "### Fails here, passes on the chip: 9" in text
    assert "* 9 tests: unexplained" in text
    assert f"* `{FAILS}`: unexplained" in text
    assert "passed when run again alone: `f`" in text
    assert "| 1 groups without a supported test ||||||1 ||" in text
    assert re.search(r"^\| pretended \| 2 \| 13 \| 12 \| 1 \| 10 \|", text, re.M)


def test_the_data_say_where_they_are_from() -> None:
    assert "MIT" in (DATA / "README.md").read_text()
    for name in ("fails.txt", "flakes.txt", "skips.txt"):
        lines = (DATA / name).read_text().splitlines()
        assert lines == sorted(set(lines))
        assert not any(line.startswith("#") for line in lines)


def test_the_part_about_gl_is_kept_and_replaced() -> None:
    old = "# One\n\ntext\n\n# OpenGL by vc4lab's own driver\n\nold\n"
    assert further_parts(old) == "# OpenGL by vc4lab's own driver\n\nold\n"
    new = replace_part(old, GL_MARK, f"{GL_MARK}\n\nnew\n")
    assert new == "# One\n\ntext\n\n# OpenGL by vc4lab's own driver\n\nnew\n"
    assert further_parts("# One\n") == ""
    assert replace_part("# One\n", GL_MARK, "part\n") == "# One\n\npart\n"


def test_the_part_about_gl_lists_what_only_fails_here(chip: Chip, tmp_path: Path) -> None:
    table = "[[cause]]\nhere = 'not run here'\ntests = 'shaders@skipped'\ntext = 'no such feature'\n"
    here = {PASSES: "fail", FAILS: "crash", "shaders@both": "fail", "shaders@skipped": "skip"}
    peer = {PASSES: "pass", FAILS: "pass", "shaders@both": "fail", "shaders@skipped": "pass"}
    text = part([(Pretended(list(here)), Outcomes(here, peer))], chip, causes(tmp_path, table))
    assert "| pretended | 4 | 4 | 0 | 3 | 1 | 1 |" in text
    assert f"passes on the chip and with llvmpipe: 1\n\n* `{PASSES}`: unexplained" in text
    assert f"Fails here and on the chip, passes with llvmpipe: 1\n\n* `{FAILS}`" in text
    assert "Fails here and with llvmpipe, passes on the chip: 1\n\n* `shaders@both`" in text
    assert "Not run here, run by llvmpipe: 1\n\n* `shaders@skipped`: no such feature" in text


def test_no_test_of_piglit_runs_beside_another_one(tmp_path: Path) -> None:
    """They would share the memory of one device, and some take all of it."""
    suite = Piglit.__new__(Piglit)
    suite.program, suite.profile = "piglit", "quick_gl"
    command = suite.command(["a", "b"], tmp_path, 5)
    assert "--no-concurrency" in command
    assert command[command.index("--test-list") + 1] == str(tmp_path / "cases.txt")
