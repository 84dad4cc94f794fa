"""Hints about frames of real programs, and about frames that were changed to deserve one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.support.frame_timings import recorded

from vc4lab.diagnostics import catalogue
from vc4lab.qpu.text.assembler import assemble
from vc4lab.timing.frames.frame import Frame
from vc4lab.timing.profile import hints
from vc4lab.timing.profile.hints import Facts, Question, facts_of, hints_of, run_hints
from vc4lab.timing.profile.late_scoreboard import late_words
from vc4lab.timing.profile.tiled import requests_of, with_tiled
from vc4lab.v3d.tiles.job import OP_LOAD, OP_STORE
from vc4lab.v3d.tmu.texture_state import LevelLayout

TEXTURE = "glmark2_texture_texture-filter_linear"


@pytest.fixture(scope="module")
def frame() -> Frame:
    return recorded(TEXTURE)[-1]


def codes(question: Frame | Question) -> list[str]:
    asked = question if isinstance(question, Question) else Question(question, 1000)
    return [hint.code for hint in hints_of(asked)]


def with_column(table: Any, name: str, values: Any) -> Any:
    changed = table.copy()
    changed[name] = values
    return changed


def raster(frame: Frame) -> Frame:
    return replace(frame, textures=with_column(frame.textures, "layout", LevelLayout.RASTER))


def test_every_rule_has_its_code_in_the_catalogue() -> None:
    known = {code for code in catalogue() if code.startswith("PERF-")}
    named = {f"PERF-{number:03}" for number in range(1, len(known) + 1)}
    assert known == named
    assert len(hints.RULES) + 3 == len(known)  # vertices have two; two are about runs


def test_a_frame_without_blocks_has_no_hints(frame: Frame) -> None:
    assert codes(replace(frame, lost=1)) == []


def test_a_raster_texture_is_timed_again_as_tiled(frame: Frame) -> None:
    asked: list[int] = []

    def run(other: Frame) -> int:
        asked.append(len(other.lines))
        return 400

    found = [h for h in hints_of(Question(raster(frame), 1000, run)) if h.code == "PERF-001"]
    assert len(found) == 1
    assert "tiled, the frame would be 2.50 times as fast" in found[0].message
    assert found[0].clocks == 400
    assert asked == [len(with_tiled(frame, frame.textures).lines)]
    assert "PERF-001" not in codes(Question(raster(frame), 1000, lambda _: 990))
    assert "PERF-001" not in codes(frame)


def test_tiled_lines_are_as_many_requests_with_fewer_lines(frame: Frame) -> None:
    other = with_tiled(frame, frame.textures)
    assert len(other.requests) == len(frame.requests)
    assert int(other.requests["lines"].sum()) == len(other.lines) <= len(frame.lines)
    mine = requests_of(frame, int(frame.textures["draw"][0]), int(frame.textures["number"][0]))
    assert (other.requests["lines"][mine] >= 1).all()


def test_a_scoreboard_that_is_taken_too_early_is_timed_again_as_late() -> None:
    bump = recorded("glmark2_bump_bump-render_high-poly")[-1]
    asked: list[Frame] = []

    def run(other: Frame) -> int:
        asked.append(other)
        return 800

    found = [hint for hint in hints_of(Question(bump, 1000, run)) if hint.code == "PERF-002"]
    assert len(found) == 1  # draws with the same program are said once
    assert "then the frame would be 1.25 times as fast" in found[0].message
    number = int(bump.draws["program"][found[0].draw])
    before, after = bump.programs[number], asked[0].programs[number]
    assert sorted(before) == sorted(after)
    assert late_words(after) == after
    assert "PERF-002" not in codes(Question(bump, 1000, lambda _: 1000))


def test_what_comes_before_a_load_of_pixels_stays_before_it() -> None:
    lines = ("mov tlbz, r0", "mov r1, 1", "mov r2, 2", "nop ; nop ; loadc", "mov tlbc, r4",
             "nop ; nop ; thrend", "nop", "nop")  # fmt: skip
    text = "\n".join(lines)
    words = assemble(text).words
    assert late_words(words) == (*words[1:3], words[0], *words[3:])
    branch = assemble("mov tlbz, r0\nbra -, 0\nnop\nnop\nnop\nmov tlbc, r0").words
    assert late_words(branch) == branch


def test_vertices_that_are_named_too_late_are_shaded_again(frame: Frame) -> None:
    part = frame.binnings[-1]
    assert "PERF-004" not in codes(frame)
    ordered = np.tile(np.arange(256, dtype=np.uint32), 3)
    draws = part.draws[:1].copy()
    draws["first_vertex"], draws["vertices"] = 0, len(ordered)
    late = replace(part, draws=draws, vertices=ordered)
    assert "PERF-004" in codes(replace(frame, binnings=(late,)))


def test_loads_and_threads(frame: Frame) -> None:
    assert "PERF-007" not in codes(frame)
    ops = frame.ops.copy()
    ops["kind"][ops["kind"] == OP_STORE] = OP_LOAD
    assert "PERF-007" in codes(replace(frame, ops=ops))
    alone = replace(frame, draws=with_column(frame.draws, "threads", 1))
    assert "PERF-010" in codes(alone)


def test_hidden_quads_without_early_z(frame: Frame) -> None:
    assert "PERF-009" not in codes(frame)
    blocks = frame.blocks.copy()
    blocks["passed"] = 0
    late = with_column(frame.draws, "early_z", False)
    assert "PERF-009" in codes(replace(frame, blocks=blocks, draws=late))
    early = with_column(frame.draws, "early_z", True)
    assert "PERF-009" not in codes(replace(frame, blocks=blocks, draws=early))


def test_runs_of_small_jobs_and_depth_that_is_never_loaded() -> None:
    small = Facts(2, frozenset(), 0, frozenset())
    large = Facts(100, frozenset({16}), 4096, frozenset({32}))
    again = Facts(100, frozenset(), 0, frozenset({16}))
    assert [h.code for h in run_hints([small] * 4)] == ["PERF-003"]
    assert run_hints([small] * 3) == ()
    assert [h.code for h in run_hints([large])] == ["PERF-008"]
    assert run_hints([large, again]) == ()


def test_facts_of_a_recorded_frame(frame: Frame) -> None:
    facts = facts_of(frame)
    assert facts.primitives == int(frame.draws["primitives"].sum())
    assert not facts.loaded


@pytest.mark.parametrize("name", ["glmark2_clear", "glmark2_ideas", "tri_arm64", TEXTURE])
def test_real_frames_have_hints_that_can_be_printed(name: str) -> None:
    for frame in recorded(name):
        for hint in hints_of(Question(frame, 1000)):
            assert hint.code in str(hint)
            assert hint.draw < len(frame.draws)
