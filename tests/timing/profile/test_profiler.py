"""Profiles: shares, what a free module would bring, timelines, and the trace for Perfetto."""

import json
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from tests.support.frame_timings import FakeMachine, FakeModel, frame_timing, recorded

from vc4lab.timing.boards import BoardSpeed
from vc4lab.timing.chip import load_chip
from vc4lab.timing.figures import MODULES
from vc4lab.timing.profile import trace as traces
from vc4lab.timing.profile.profiler import Profiler
from vc4lab.timing.profile.result import Profile, WhatIf, shares_of
from vc4lab.timing.profile.timeline import Sampler
from vc4lab.timing.profile.trace import trace, trace_json
from vc4lab.timing.profile.what_if import TIMES, free_changes, what_ifs

CHIP = load_chip("videocore4")


@pytest.fixture
def profile(monkeypatch: pytest.MonkeyPatch) -> Profile:
    for module in ("frame_times", "profile.profiler"):
        monkeypatch.setattr(f"vc4lab.timing.{module}.model_of", FakeModel)
    profiler = Profiler("videocore4", "pi1")
    for frame in recorded("tri_arm64"):
        profiler.add("job0000", frame)
    return profiler.profile("a run")


def test_shares_are_of_all_modules_of_a_kind() -> None:
    shares = {one.module: one for one in shares_of(frame_timing(1000))}
    assert list(shares) == ["sdram", "qpu", "front_end"]  # the host never worked
    assert (shares["qpu"].count, shares["qpu"].busy, shares["qpu"].starved) == (12, 0.9, 0.1)
    assert shares["front_end"].blocked == pytest.approx(0.667)


@pytest.mark.parametrize("module", ["qpu", "sdram", "l2", "tmu", "loader"])
def test_a_free_module_has_its_best_figures(module: str) -> None:
    changes = free_changes(CHIP, module)
    assert changes
    for (section, key), value in changes.items():
        spec = MODULES[section][key]
        assert value == (spec.least if spec.unit in TIMES else spec.most)


def test_a_free_module_has_more_under_way_and_no_other_size() -> None:
    assert free_changes(CHIP, "attributes")["attributes", "ahead"] == 64
    for module in ("l2", "tmu", "vertex_cache", "slices"):
        keys = {key for _, key in free_changes(CHIP, module)}
        assert not keys & {"bytes", "ways", "count", "rows", "per_slice", "arbitration"}


def test_what_ifs_are_runs_of_the_model() -> None:
    found = what_ifs(
        CHIP, BoardSpeed(3e8, 3.6e9), ["qpu", "sdram", "nothing"], 1000,
        lambda chip, speed: chip.whole("qpu", "slot") * 100 + (speed.memory > 1e12) * 50,
    )  # fmt: skip
    assert [(one.module, one.clocks) for one in found] == [("qpu", 100), ("sdram", 450)]
    assert found[0].speedup == 10
    assert "qpu.slot=1" in found[0].changes


def test_the_critical_module_is_the_one_that_saves_most(profile: Profile) -> None:
    frame = profile.frames[0]
    assert frame.critical == "qpu"
    assert frame.timing.clocks == 1000
    assert frame.what_if[0].clocks == 625
    assert replace(frame, what_if=()).critical == "qpu"
    little = (WhatIf("sdram", "", 990, 1.01),)
    assert replace(frame, what_if=little).critical == "qpu"  # the busiest
    much = (*little, WhatIf("front_end", "", 900, 1.11))
    assert replace(frame, what_if=much).critical == "front_end"
    assert frame.board("pi1").milliseconds == pytest.approx(0.004)
    assert frame.board("pi1").rate == pytest.approx(250_000)
    assert profile.total("pi3") == pytest.approx(1 / 300)


def test_it_is_plain_json(profile: Profile) -> None:
    table = json.loads(json.dumps(profile.to_json()))
    frame = table["frames"][0]
    assert frame["critical"] == "qpu"
    assert [one["board"] for one in frame["boards"]] == ["pi0", "pi1", "pi2", "pi3"]
    assert frame["boards"][1]["frames_per_second"] == pytest.approx(250_000)
    assert frame["timing"]["modules"][1]["module"] == "qpu"


def test_samples_are_bounded_and_add_up() -> None:
    machine: Any = FakeMachine()
    with Sampler(machine, samples=10) as sampler:
        for _ in range(1000):
            machine.step(7, 3)
    line = sampler.timeline(7000)
    assert 5 <= len(line.clocks) <= 22
    assert line.clocks[-1] == 7000
    assert list(line.clocks) == sorted(set(line.clocks))
    starts = (0, *line.clocks)
    busy = sum(
        share * (end - start)
        for share, start, end in zip(line.modules["qpu"], starts, line.clocks, strict=False)
    )
    assert busy == pytest.approx(3000)
    assert all(value == pytest.approx(2) for value in line.queues["vectors"])
    assert machine.on_turn is None


def test_a_machine_that_never_moves_has_no_timeline() -> None:
    with Sampler(FakeMachine()) as sampler:  # type: ignore[arg-type]
        pass
    assert sampler.timeline(9).clocks == ()


PHASES = {"M": {"args"}, "X": {"ts", "dur", "cat"}, "C": {"ts", "args"}}
"""What an event of each phase has, besides name, ph, pid and tid (Trace Event Format)."""


def test_the_trace_is_what_the_format_says(profile: Profile) -> None:
    table = json.loads(trace_json(profile))
    assert table["displayTimeUnit"] in ("ms", "ns")
    events = table["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X", "C"}
    for event in events:
        assert {"name", "ph", "pid", "tid"} <= set(event)
        assert PHASES[event["ph"]] <= set(event)
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0
        if event["ph"] == "C":
            assert all(isinstance(value, int | float) for value in event["args"].values())
    named = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {"frames", "thread 0: binning", "thread 1: rendering", "qpu"} <= set(named.values())
    assert {event["tid"] for event in events if event["ph"] == "X"} <= set(named)


def spans_of(profile: Profile) -> dict[int, list[tuple[int, int]]]:
    """First and last nanosecond of the slices of each track."""
    tracks: dict[int, list[tuple[int, int]]] = {}
    for event in json.loads(trace_json(profile))["traceEvents"]:
        if event["ph"] == "X":
            begin, length = round(1000 * event["ts"]), round(1000 * event["dur"])
            assert begin == pytest.approx(1000 * event["ts"], abs=1e-3)
            tracks.setdefault(event["tid"], []).append((begin, begin + length))
    return tracks


@cache
def real_profile() -> Profile:
    profiler = Profiler("cluster-2", "pi3", ask=False)
    for number, frame in enumerate(recorded("glmark2_ideas")):
        profiler.add(f"job{number:04}", frame)
    return profiler.profile("glmark2_ideas")


@pytest.mark.parametrize("hertz", [250e6, 300e6, 333e6])
def test_slices_of_a_track_do_not_overlap(hertz: float) -> None:
    """Perfetto drops slices of a track that overlap and do not lie in each other."""
    tracks = spans_of(replace(real_profile(), hertz=hertz))
    assert sum(map(len, tracks.values())) > 1000
    for spans in tracks.values():
        spans.sort()
        assert all(start >= end for (_, end), (start, _) in pairwise(spans))


def test_a_slice_is_where_its_clocks_are(profile: Profile) -> None:
    plain = replace(profile, hertz=1e6)  # a clock is a microsecond
    events = trace(plain)["traceEvents"]
    (frame,) = [event for event in events if event.get("cat") == "frame"]
    timing = profile.frames[0].timing
    assert (frame["ts"], frame["dur"]) == (0, timing.clocks)
    draws = [event for event in events if event.get("cat") == "draw"]
    assert [(d["ts"], d["ts"] + d["dur"]) for d in draws] == [
        (draw.first, draw.last) for draw in timing.draws
    ]


def test_the_trace_is_bounded(profile: Profile) -> None:
    timing = frame_timing(100_000, draws=traces.MAX_DRAWS + 500)
    frame = replace(profile.frames[0], timing=timing)
    many = replace(profile, frames=(frame,) * 3)
    slices = [e for e in trace(many)["traceEvents"] if e.get("cat") == "draw"]
    assert len(slices) <= 3 * traces.MAX_DRAWS
