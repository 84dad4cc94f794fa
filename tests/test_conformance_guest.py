"""`make conformance-linux` and `conformance-igt`: samples, results, pages. Nothing is booted."""

from pathlib import Path

import pytest
from benchmarks._conformance import igt, igt_page, linux, linux_page
from benchmarks._conformance.chip import Chip
from benchmarks._conformance.gl_page import GL_MARK
from benchmarks._conformance.page import further_parts, replace_part
from benchmarks._conformance.runs import Results
from benchmarks._conformance.suites import Missing
from tests.support.conformance import causes


@pytest.fixture
def chip() -> Chip:
    return Chip()


PROFILE = """<?xml version='1.0' encoding='utf-8'?>
<PiglitTestList count="4" name="quick_shader">
<Test type="shader" name="shaders@b"><option name="shader_version" value="1.2" />
<option name="command" value="['shader_runner', 'tests/b.shader_test']" /></Test>
<Test type="shader" name="shaders@a&quot;">
<option name="command" value="['shader_runner_gles2', 'tests/a.shader_test']" /></Test>
<Test type="shader" name="shaders@new"><option name="shader_version" value="1.3" />
<option name="command" value="['shader_runner', 'tests/new.shader_test']" /></Test>
<Test type="shader" name="spec@glsl-1.30@execution@anything">
<option name="command" value="['shader_runner', 'tests/c.shader_test']" /></Test>
</PiglitTestList>"""


def test_the_sample_for_the_guest_is_always_the_same(chip: Chip) -> None:
    tests = linux.tests_of(PROFILE, chip)
    assert [test.name for test in tests] == ['shaders@a"', "shaders@b"]
    assert tests[0].command("/p") == [
        "/p/bin/shader_runner_gles2", "/p/tests/a.shader_test", "-auto", "-fbo",
    ]  # fmt: skip
    assert linux.sample(tests) == tests
    many = [linux.Test(str(number), "", "") for number in range(1000)]
    assert [test.name for test in linux.sample(many, 4)] == ["0", "250", "500", "750"]
    assert len({*linux.sample(many[:999], 200)}) == 200


@pytest.mark.parametrize(
    ("output", "code", "wanted"),
    [
        ('x\nPIGLIT: {"result": "pass" }\n', 0, "pass"),
        ('PIGLIT: {"result": "skip" }\n', 0, "skip"),
        ('PIGLIT: {"result": "fail" }\n', 1, "fail"),
        ('PIGLIT: {"result": "pass" }\n', 139, "crash"),
        ("no such file", 127, "fail"),
        ("", None, "timeout"),
    ],
)
def test_what_became_of_a_test_in_the_guest(output: str, code: int | None, wanted: str) -> None:
    assert linux.verdict(output, code) == wanted


def test_the_page_about_the_guest_names_each_difference(tmp_path: Path) -> None:
    table = "[[cause]]\nhere = 'bytes differ'\ntests = 'shaders@bytes'\ntext = 'because'\n"
    outcome = linux_page.Outcome.of("pass 2 abc")
    assert str(outcome) == "pass 2 abc"
    pairs = {
        "shaders@same": (outcome, outcome),
        "shaders@bytes": (outcome, linux_page.Outcome("pass", 2, "def")),
        "spec@x@result": (outcome, linux_page.Outcome("fail", 2, "abc")),
    }
    text = linux_page.page(pairs, causes(tmp_path, table), "bookworm", "h")
    assert "| 3 | 2 | 1 | 1 | 1 | 6 |" in text
    assert "* `shaders@bytes`: bytes differ (guest pass, 2 jobs; device pass, 2): because" in text
    assert "* `spec@x@result`: result differs (guest pass, 2 jobs; device fail, 2): unexpl" in text
    assert "| shaders | 2 |" in text
    assert "| spec@x | 1 |" in text


IGT_OUTPUT = """IGT-Version: 2.2
Starting subtest: one
\x1b[1mSubtest one: SUCCESS (0.014s)\x1b[0m
Starting subtest: two
Starting dynamic subtest: pipe-A
Dynamic subtest pipe-A: FAIL (0.1s)
Subtest two: FAIL (0.100s)
Starting subtest: three
"""


def test_results_of_igts_programs() -> None:
    assert igt.results_of(IGT_OUTPUT, True) == {"one": "SUCCESS", "two": "FAIL"}
    assert igt.results_of(IGT_OUTPUT, False)["three"] == "NONE", "it never came back"
    assert igt.results_of("IGT-Version: 2.2\nSKIP (0.01s)\n", True) == {"-": "SKIP"}
    assert igt.results_of("killed", True) == {"-": "NONE"}


def test_builds_of_igt(tmp_path: Path) -> None:
    with pytest.raises(Missing, match="no build"):
        igt.builds_in(tmp_path)
    for name, programs in (("amd64", ["kms_one", "kms_two", "gem_x"]), ("arm64", ["kms_one"])):
        for program in (*programs, "vc4/vc4_wait_bo", "kms_one.p"):
            place = tmp_path / name / "tests" / program
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text("")
            place.chmod(0o644 if program.endswith(".p") else 0o755)
        (tmp_path / name / "lib").mkdir()
        (tmp_path / name / "lib" / "libigt.so.0").write_text("")
    builds = igt.builds_in(tmp_path)
    assert builds.programs == ["kms_one", "vc4_wait_bo"]
    place = builds.program(builds.arm64, "vc4_wait_bo")
    assert place == tmp_path / "arm64" / "tests" / "vc4" / "vc4_wait_bo"


def test_sub_tests_that_a_run_did_not_end_are_run_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(igt, "WORK", tmp_path)
    asked: list[tuple[str, str | None]] = []
    flaky = iter(("FAIL", "SUCCESS"))

    def one(name: str, test: str | None) -> igt.Ran:
        asked.append((name, test))
        if name == "kms_lost":  # the kernel gave up: not a word of what was printed
            found = {"-": "NONE"} if test is None else {test: "SUCCESS"}
        elif test is None:
            found = {"done": "SUCCESS", "flaky": "FAIL", "broken": "FAIL", "slow": "NONE"}
        elif test == "flaky":
            found = {"flaky": next(flaky)}
        else:
            found = {"broken": "FAIL"} if test == "broken" else {"-": "NONE"}
        return igt.Ran(found, f"output of {test}", True)

    def tests_of(name: str) -> list[str]:
        return ["a"] if name == "kms_lost" else ["done", "flaky", "broken", "slow", "never"]

    results = Results(tmp_path / "results.jsonl")
    igt.run("device", one, results, ["kms_a", "kms_lost"], tests_of, tries=3)
    alone = [test for name, test in asked if name == "kms_a" and test is not None]
    assert alone == ["flaky"] * 2 + ["broken"] * 2 + ["slow"] * 3 + ["never"] * 3
    expected = {
        "kms_a done": "SUCCESS", "kms_a flaky": "SUCCESS", "kms_a broken": "FAIL",
        "kms_a slow": "NONE", "kms_a never": "NONE", "kms_lost a": "SUCCESS",
    }  # fmt: skip
    pairs = igt.pairs_of(results.by_name, {}, ["kms_a", "kms_lost"])
    assert {name: result for name, (result, _) in pairs.items()} == expected
    assert igt.passed_later(results.by_name, pairs) == ["kms_a flaky"]
    assert "== flaky\noutput of flaky\n" in (tmp_path / "device" / "kms_a.txt").read_text()
    asked.clear()
    igt.run("device", one, results, ["kms_a", "kms_lost"], tests_of, tries=3)
    assert not asked, "what is known is not run again"
    half = Results(tmp_path / "half.jsonl")  # stopped after the whole run
    half.add({"kms_a done": "SUCCESS", "kms_a flaky": "SUCCESS", "kms_a": "begun"})
    igt.run("guest", one, half, ["kms_a"], tests_of)
    assert [test for _, test in asked] == ["broken", "slow", "never"]


def test_the_part_about_igt_explains_differences(tmp_path: Path) -> None:
    device = {"kms_a x": "SUCCESS", "kms_a y": "SKIP", "kms_a": "ran", "kms_ab z": "FAIL"}
    guest = {"kms_a x": "SUCCESS", "kms_a y": "SUCCESS", "kms_a": "ran"}
    pairs = igt.pairs_of(device, guest, ["kms_a"])
    assert pairs == {"kms_a x": ("SUCCESS", "SUCCESS"), "kms_a y": ("SKIP", "SUCCESS")}
    row = "[[cause]]\nhere = 'SKIP SUCCESS'\ntests = 'kms_a y'\ntext = 'one CRTC'\n"
    assert igt_page.differences(pairs, causes(tmp_path, row)) == [("kms_a y", "SKIP SUCCESS", "one CRTC")]
    assert igt_page.differences(pairs, causes(tmp_path))[0][2] == "unexplained"
    text = igt_page.part(pairs, causes(tmp_path, row), "6.1", "host")
    assert "| kms_a | 2 | 1 | 1 | 1 |  | 1 |" in text
    assert "* `kms_a y`: SKIP here, SUCCESS in the guest: one CRTC" in text
    assert "Not run" not in text
    some = igt_page.part(pairs, causes(tmp_path), "6.1", "host", ["kms_b", "kms_c"])
    assert "\nNot run this time: kms_b, kms_c.\n" in some
    told = igt_page.part(pairs, causes(tmp_path), "6.1", "host", (), ["kms_a x"], "At night.")
    assert "\nGuest: Linux 6.1. Host: host. At night.\n" in told
    assert "\nPassed here, alone, after having failed: `kms_a x`.\n" in told
    row = "[[cause]]\nhere = 'SKIP (FAIL|SUCCESS)'\ntests = 'kms_a y'\ntext = 'either'\n"
    assert igt_page.differences(pairs, causes(tmp_path, row))[0][2] == "either"


def test_a_part_in_the_middle_is_replaced_alone() -> None:
    old = f"# One\n\ntext\n\n{GL_MARK}\n\nold\n\n{igt_page.IGT_MARK}\n\nlast\n"
    new = replace_part(old, GL_MARK, f"{GL_MARK}\n\nnew\n")
    assert new == old.replace("old", "new")
    assert further_parts(new).startswith(GL_MARK)
