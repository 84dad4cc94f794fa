"""`make bench-compare`: when a row counts as worse. Times are made up, none is measured."""

from pathlib import Path

import pytest
from benchmarks import _compare
from benchmarks._compare import Comparison, compare, interval, is_rate, main

STEADY = (10.0, 10.1, 9.9, 10.0, 10.05, 9.95, 10.0)


def scaled(factor: float) -> tuple[float, ...]:
    return tuple(value * factor for value in STEADY)


@pytest.mark.parametrize(
    ("unit", "factor", "verdict"),
    [
        ("ms/frame", 1.10, "worse"),
        ("ms/frame", 0.90, "better"),
        ("M instr/s", 1.10, "better"),
        ("M instr/s", 0.90, "worse"),
        ("ms", 1.02, ""),  # the intervals do not overlap, but 2 % is too little
        ("%", 1.04, "worse"),
        ("MiB", 1.0, ""),
    ],
)
def test_verdict(unit: str, factor: float, verdict: str) -> None:
    assert Comparison("row", unit, STEADY, scaled(factor)).verdict == verdict


def test_intervals_that_overlap_say_nothing() -> None:
    noisy = (10.0, 8.0, 12.0, 11.9, 8.1, 11.0, 11.5)
    row = Comparison("row", "ms", STEADY, noisy)
    assert row.change == pytest.approx(0.10)
    assert row.verdict == ""


def test_one_slow_run_does_not_widen_the_interval() -> None:
    assert interval((1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 900.0)) == (2.0, 6.0)


def test_units() -> None:
    assert is_rate("G lane-op/s")
    assert not is_rate("ms/frame")
    assert not is_rate("CPU ms/frame")


def test_rows_that_both_have() -> None:
    base = {("a", "ms"): [1.0] * 7, ("gone", "ms"): [1.0] * 7, ("b", "ms"): [1.0] * 6}
    new = {("a", "ms"): [2.0] * 7, ("added", "ms"): [1.0] * 7, ("b", "ms"): [1.0] * 7}
    assert [row.name for row in compare(base, new)] == ["a"]


def test_runs_alternate_and_the_first_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def measure(tree: Path, module: str) -> list[dict[str, object]]:
        order.append(tree.name)
        return [
            {"name": "row", "unit": "ms", "value": float(len(order))},
            {"name": "row", "unit": "ms", "value": -1.0},  # a second peer of the same row
        ]

    monkeypatch.setattr(_compare, "measure", measure)
    base, new = _compare.sample((Path("base"), Path("new")), "qpu", 3)
    assert order == ["new", "base", "base", "new", "new", "base", "base", "new"]
    assert base == {("row", "ms"): [3.0, 6.0, 7.0]}
    assert new == {("row", "ms"): [4.0, 5.0, 8.0]}


@pytest.mark.parametrize("arguments", [["HEAD", "--runs", "3"], ["no-such-commit"], []])
def test_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "bench-compare: error" in capsys.readouterr().err
