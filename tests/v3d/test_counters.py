"""The performance counters: registers against a hand-made model, and counts of a real frame."""

from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.hardware import run_job
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.v3d.core import V3D
from vc4lab.v3d.counters import SOURCES, PerformanceCounters, counts, table
from vc4lab.v3d.registers import BY_NAME

JOBS = Path(__file__).parents[1] / "data" / "vc4-jobs"
ENABLE = 1 << 31


@pytest.fixture
def events() -> Counter[str]:
    return Counter()


@pytest.fixture
def counters(events: Counter[str]) -> PerformanceCounters:
    return PerformanceCounters(Reporter(), lambda: events)


def test_table_is_complete() -> None:
    assert [source.id for source in SOURCES] == list(range(30))
    assert all(source.modelled != bool(source.note) for source in SOURCES)
    lines = table({3: 17})
    assert len(lines) == 30
    assert lines[3].split()[:3] == ["3", "FEP", "17"]
    assert "not modelled" in lines[16]


def test_counts_only_while_enabled(counters: PerformanceCounters, events: Counter[str]) -> None:
    counters.on_write_PCTRS(2, 11)
    events["clipped"] += 5
    counters.on_write_PCTRE(ENABLE | 1 << 2)
    assert counters.on_read_PCTR(2) == 0
    events["clipped"] += 3
    assert counters.on_read_PCTR(2) == 3
    counters.on_write_PCTRE(0)
    events["clipped"] += 100
    assert counters.on_read_PCTR(2) == 3
    counters.on_write_PCTRE(ENABLE | 1 << 2)
    events["clipped"] += 1
    assert counters.on_read_PCTR(2) == 4
    counters.on_write_PCTRC(1 << 1)
    assert counters.on_read_PCTR(2) == 4
    counters.on_write_PCTRC(1 << 2)
    events["clipped"] += 1
    assert counters.on_read_PCTR(2) == 1
    counters.on_write_PCTR(2, 0xFFFFFFFF)
    events["clipped"] += 2
    assert counters.on_read_PCTR(2) == 1, "32 bits wrap"


def test_source_changes_keep_the_count(counters: PerformanceCounters, events: Counter[str]) -> None:
    counters.on_write_PCTRS(0, 11)
    counters.on_write_PCTRE(ENABLE | 1)
    events["clipped"] += 2
    counters.on_write_PCTRS(0, 0xE0 | 10)
    assert counters.on_read_PCTRS(0) == 10
    events["rejected"] += 3
    events["outside"] += 1
    events["clipped"] += 50
    assert counters.on_read_PCTR(0) == 6
    assert counters.selected == {10}


def test_bit_31_is_missing(counters: PerformanceCounters, events: Counter[str]) -> None:
    counters.on_write_PCTRE(0xFFFF)
    events["rejected"] += 1
    assert counters.on_read_PCTR(0) == 0
    assert counters.on_read_PCTRE() == 0xFFFF
    assert "bit 31" in counters.reporter.items[0].message


def test_what_is_not_modelled_is_said_once(counters: PerformanceCounters) -> None:
    counters.on_write_PCTRS(0, 3)
    counters.on_write_PCTRS(1, 17)
    counters.on_write_PCTRS(2, 31)
    for _ in range(3):
        counters.on_write_PCTRE(ENABLE | 7)
    messages = [item.message for item in counters.reporter.items]
    assert len(messages) == 2
    assert "stalled on TMUs" in messages[0]
    assert "no such source" in messages[1]
    counters.on_write_PCTRS(1, 12)
    counters.on_write_PCTRS(1, 28)
    assert len(counters.reporter.items) == 3


def test_details_are_counted_only_when_selected(counters: PerformanceCounters) -> None:
    assert not counters.detailed
    counters.on_write_PCTRS(4, 6)
    assert not counters.detailed
    counters.on_write_PCTRE(ENABLE | 1 << 4)
    assert counters.detailed
    counters.on_write_PCTRS(4, 3)
    assert not counters.detailed, "valid quads are always counted"
    counters.sources[4] = 6  # as a saved state puts it there
    assert counters.detailed
    counters.on_write_PCTRE(0)
    counters.everything = True
    assert counters.detailed


def test_a_driver_reads_counters() -> None:
    """As Linux programs them: sources, clear, enable; the cube has 12 triangles, 6 face away."""
    run = RecordedRun(JOBS / "kmscube_smooth", Reporter(strict=True))
    v3d = V3D(run.memory, run.reporter)
    for number, source in enumerate((3, 12, 10, 11)):
        v3d.write(BY_NAME[f"PCTRS{number}"].offset, source)
    built = run.jobs[1].build(run.memory)
    v3d.write(BY_NAME["PCTRC"].offset, 0xF)
    v3d.write(BY_NAME["PCTRE"].offset, ENABLE | 0xF)
    assert run_job(v3d, built)
    values = [v3d.read(BY_NAME[f"PCTR{number}"].offset) for number in range(5)]
    v3d.write(BY_NAME["PCTRE"].offset, 0)
    assert values[0] == counts(v3d.events())[3] > 1000
    assert values[1] >= 6
    assert values[2:] == [0, 0, 0]


def test_command_prints_them() -> None:
    import typer

    from vc4lab.cli.groups import spread
    from vc4lab.cli.replay import replay

    app = typer.Typer()
    app.command()(spread(replay))
    arguments = [str(JOBS / "kmscube_smooth"), "--counters", "--job", "2"]
    result = CliRunner().invoke(app, arguments)
    assert "job0002: performance counters" in result.output
    assert "job0001" not in result.output
    values = {
        int(words[0]): int(words[2])
        for words in map(str.split, result.output.splitlines())
        if len(words) > 3 and words[1][0].isupper() and words[2].isdigit()
    }
    assert set(values) == {source.id for source in SOURCES if source.modelled}
    assert values[3] == values[8] == values[9] > 1000
    assert values[1] > values[0] > 0
    assert values[12] > 0
