"""`make decide`: which cases are run with which choices, what counts, what is kept. No suite is run."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from benchmarks._conformance import decide as command
from benchmarks._conformance.decide import NotComplete, Table, flipped_of, line_of, suites_of
from benchmarks._conformance.flip_work import (
    RECORDED,
    Came,
    Piece,
    Places,
    nothing_came,
    programs_of,
    recorded_runs,
    work,
)
from benchmarks._conformance.flips import (
    Flip,
    Verdict,
    cases_of,
    decided,
    flips_of,
    groups,
    judge,
    sample_of,
    screen,
    together,
)
from benchmarks._conformance.runs import Runner
from benchmarks._conformance.suites import Missing

from vc4lab.diagnostics.flips import Flipped, read, sentences, write
from vc4lab.diagnostics.unknown import Unknown

ROWS = [
    Unknown("a", "?", {"1": "", "2": "", "3": ""}, "1", "m", "r"),
    Unknown("b", "?", {"x": "", "y": ""}, "y", "m", "r"),
    Unknown("c", "?", {"x": "", "y": ""}, "x", "m", "r", "a board"),
]
A2, A3, B = Flip((("a", "2"),)), Flip((("a", "3"),)), Flip((("b", "x"),))
CASES = [f"t{number}" for number in range(64)]
BEFORE = dict.fromkeys(CASES, "pass")


def test_open_rows_are_flipped_choice_by_choice() -> None:
    assert flips_of(ROWS) == [A2, A3, B]
    assert flips_of(ROWS, ["c"]) == [Flip((("c", "y"),))], "a settled one where it is asked for"
    assert groups([A2, A3, B]) == [[A2, B], [A3]], "one choice of a row at a time"
    assert together([B, A2]) == Flip((("a", "2"), ("b", "x")))
    assert A2.options == ["--unknown", "a=2"]
    assert str(Flip()) == "as it is"


class Chips:
    """Pretended results: which changes change which cases."""

    def __init__(self, seen: Mapping[Flip, Mapping[str, str]]) -> None:
        self.seen = {flip.changes[0]: results for flip, results in seen.items()}
        self.asked: list[tuple[Flip, int]] = []

    def one(self, flip: Flip, cases: Sequence[str]) -> dict[str, str]:
        self.asked.append((flip, len(cases)))
        results = {case: BEFORE[case] for case in cases}
        for change in flip.changes:
            results |= {case: r for case, r in self.seen.get(change, {}).items() if case in results}
        return results

    def ask(self, asked: Sequence[tuple[Flip, Sequence[str]]]) -> list[dict[str, str]]:
        return [self.one(flip, cases) for flip, cases in asked]


def test_many_flips_are_looked_at_together() -> None:
    flips = [Flip(((f"row{number}", "other"),)) for number in range(40)]
    chips = Chips({flips[3]: {"t5": "fail"}, flips[17]: {"t5": "crash", "t60": "fail"}})
    found = screen(flips, CASES, BEFORE, chips.ask)
    assert list(found) == flips
    assert {flip: seen for flip, seen in found.items() if seen} == {
        flips[3]: {"t5": "fail"}, flips[17]: {"t5": "crash", "t60": "fail"},
    }  # fmt: skip
    assert sum(cases for _, cases in chips.asked) < 2 * len(CASES), "in place of 40 times all cases"
    nothing = Chips({})
    assert not any(screen(flips, CASES, BEFORE, nothing.ask).values())
    assert len(nothing.asked) == 1


def test_cases_of_parts() -> None:
    cases = ["s@x", "s@x@y", "d.e.f"]
    assert cases_of(["s@x@y@part@of a part", "d.e.f", "other"], cases) == ["s@x@y", "d.e.f"]
    assert cases_of(["s@x@part"], cases) == ["s@x"]


def test_a_larger_sample_has_the_smaller_one() -> None:
    small, large = sample_of(CASES, 8), sample_of(CASES, 20, lambda case: case == "t0")
    assert len(small) == 8
    assert set(small) < set(large)
    assert "t0" in large
    assert small == sorted(small, key=CASES.index)


@pytest.mark.parametrize(
    ("due", "was", "now", "word"),
    [
        ("pass", "pass", "fail", "contradicted"), ("fail", "fail", "pass", "contradicted"),
        ("fail", "fail", "crash", "contradicted"), ("pass", "fail", "pass", "nearer"),
        ("fail", "pass", "dmesg-fail", "nearer"), ("pass", "fail", "crash", "visible"),
        ("flaky", "pass", "fail", "not visible"), ("pass", "pass", "pass", "not visible"),
        ("pass", "warn", "pass", "visible"), ("fail", "skip", "fail", "nearer"),
        ("not run", "pass", "fail", "visible"), ("", "1f", "2e", "visible"),
    ],
)  # fmt: skip
def test_what_boards_say_to_a_change(due: str, was: str, now: str, word: str) -> None:
    verdict = judge(Verdict(A2, "s", 1, 1), {"t": was}, {"t": now}, lambda _: due)
    assert verdict.word == word
    assert word in line_of(verdict)
    flipped = flipped_of(verdict, "2026-01-01")
    assert (flipped.row, flipped.choice, flipped.came) == ("a", "2", word)


def test_a_row_is_decided_where_all_its_other_choices_are_contradicted() -> None:
    against = [Verdict(flip, "s", 1, 1, against=["t"]) for flip in (A2, A3)]
    assert decided(ROWS[0], against)
    assert not decided(ROWS[0], against[:1])
    assert not decided(ROWS[1], against)


class Pretended(Places):
    """A suite whose cases are CASES."""

    def cases(self, name: str) -> list[str]:
        return CASES

    def fingerprint(self, name: str) -> str:
        return name


class Work:
    """Results of pieces, and which were asked for."""

    def __init__(self) -> None:
        self.done: list[Piece] = []
        self.broken = False

    def __call__(self, piece: Piece) -> Came:
        self.done.append(piece)
        if self.broken and len(self.done) > 2:
            return nothing_came(piece, "the disk is full")
        results = dict.fromkeys(piece.cases, "pass")
        if A2.changes[0] in piece.flip.changes:
            results |= {case: "fail" for case in ("t1", "t2") if case in results}
            if piece.fingerprint.endswith("-1") and "t2" in results:
                results["t2"] = "pass"  # it failed once
        return Came(piece, results)


def held(tmp_path: Path, pretended: Work) -> Table:
    return Table(Pretended(), lambda _: None, folder=tmp_path, work=pretended)


def test_what_changes_is_run_again_and_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "board_of", lambda _: lambda _: "pass")
    pretended = Work()
    verdicts = held(tmp_path, pretended).look("s", [A2, B], CASES, alone=True)
    assert verdicts[A2].against == ["t1"]
    assert verdicts[B].word == "not visible"
    count = len(pretended.done)
    again = held(tmp_path, pretended).look("s", [A2, B], CASES, alone=True)
    assert again == verdicts
    assert len(pretended.done) == count, "all of it is on disk"
    screened = held(tmp_path, pretended).look("s", [A2, B], CASES, alone=False)
    assert screened == verdicts


def test_what_was_interrupted_goes_on(tmp_path: Path) -> None:
    pretended = Work()
    pretended.broken = True
    with pytest.raises(NotComplete, match="the disk is full"):
        held(tmp_path, pretended).ask("s", [(Flip(), CASES)])
    pretended.broken = False
    pretended.done.clear()
    (results,) = held(tmp_path, pretended).ask("s", [(Flip(), CASES)])
    assert results == BEFORE
    assert sum(len(piece.cases) for piece in pretended.done) == 64 - 2 * command.AT_A_TIME


def test_keys_of_pieces() -> None:
    pieces = [
        Piece("s", cases, flip, Places(), name)
        for cases in (("a",), ("a", "b")) for flip in (A2, B) for name in ("s-0", "s-1")
    ]  # fmt: skip
    assert len({piece.key for piece in pieces}) == 8


@pytest.mark.filterwarnings("default")
def test_workers_of_a_scheduler_do_it(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        table = held(tmp_path, Work())
        table.scheduler = cluster.scheduler_address
        (results,) = table.ask("s", [(A2, CASES)])
    assert results == BEFORE | {"t1": "fail", "t2": "fail"}


def test_a_flip_reaches_the_virtual_device() -> None:
    runner = Runner(Path("d"), Path(), 1, 1, options=tuple(A2.options))
    assert runner.wrapper()[-3:] == ["--unknown", "a=2", "--"]


def test_a_recorded_run_shows_a_flip() -> None:
    def results(*changes: tuple[str, str]) -> Mapping[str, str]:
        came = work(Piece(RECORDED, (case,), Flip(changes), Places(), ""))
        assert not came.error
        return came.results

    case = "vc4-conformance/border565"
    assert case in recorded_runs()
    before = results()
    assert set(before) == {case, f"{case}@job0001"}
    assert results(("hvs_filter", "nearest")) == before
    other = results(("tmu_filter_weights", "7"), ("tmu_filter_rounding", "truncate"))
    assert other.keys() == before.keys()
    assert other[case] != before[case]


def test_public_programs_check_themselves(tmp_path: Path) -> None:
    file = tmp_path / "programs.toml"
    file.write_text(
        '[shows]\ncommand = ["unknowns", "fill_rule"]\nsays = "top-left"\n'
        '[other]\ncommand = ["unknowns", "fill_rule"]\nsays = "^all tests passed"\n'
    )
    programs = programs_of(str(file))
    assert [programs[name].run(Flip()) for name in ("shows", "other")] == ["pass", "fail"]
    for text in ("[", "[a]\ncommand = 3\n", '[a]\ncommand = []\nsays = "("\n', "a = 1\n"):
        file.write_text(text)
        with pytest.raises(Missing, match=r"programs\.toml"):
            programs_of(str(file))


def test_what_is_missing_is_said_and_left_out() -> None:
    said: list[str] = []
    assert suites_of(Places(), [], said.append) == [RECORDED]
    assert len(said) == len(command.SUITES) - 1
    assert not suites_of(Places(driver=sys.prefix), ["piglit quick_gl"], said.append)


def test_no_such_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--rows", "fill_rul"]) == 2
    assert "No such row: fill_rul" in capsys.readouterr().err


def flipped(choice: str, cases: int, came: str = "not visible", against: int = 0) -> Flipped:
    return Flipped("a", choice, "s", cases, 9, "2026-01-01", came, against, 0, 0)


def test_the_table_keeps_what_more_cases_said(tmp_path: Path) -> None:
    path = tmp_path / "flips.csv"
    first = [flipped("2", 9, "contradicted", 4), flipped("3", 2)]
    write(first, path)
    assert read(path) == first
    write([flipped("2", 3), flipped("3", 5)], path)
    write([flipped("3", 4)], path)
    assert read(path) == [first[0], flipped("3", 5)]
    seen = flipped("3", 1, "nearer")
    write([flipped("2", 8), seen], path)
    assert read(path) == [first[0], seen], "a stronger word stays"
    write([flipped("2", 9)], path)
    assert read(path) == [flipped("2", 9), seen], "all cases (9) say it"


def test_what_came_of_it_in_words() -> None:
    unseen = Flipped("a", "2", "u", 3, 9, "d", "not visible", 0, 0, 0)
    rows = [flipped("2", 9, "contradicted", 4), flipped("3", 9), unseen]
    assert sentences(rows) == [
        "s (9 cases, 2026-01-01): `2` contradicted (results of boards: 4 against, 0 for it); `3` not visible",
        "No other choice is visible in u (3 of 9 cases, d)",
    ]
    assert not sentences([])
