"""The rendering side of frames, with simple modules in the place of QPUs and vertex shading."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.support import frame_jobs
from tests.support.frame_vertices import TaskFeed, step_nothing
from tests.timing.frames.recorded import Drawn

from vc4lab.timing.boards import speeds_of
from vc4lab.timing.changes import changed
from vc4lab.timing.chip import Chip, load_chip
from vc4lab.timing.declare import StandsStill
from vc4lab.timing.frames.frame import Frame
from vc4lab.timing.graphics.model import FrameModel
from vc4lab.timing.graphics.result import FrameTiming
from vc4lab.timing.graphics.topology import Part
from vc4lab.timing.graphics.vertices.state import VertexCache
from vc4lab.timing.graphics.work import Choices, rendering

RUNS = ("glmark2_ideas", "glmark2_loop_fragment-uniform_true", "kmscube_smooth", "tri_arm64")
CHIP = load_chip("videocore4")
SPEED = speeds_of(CHIP).of_board["pi3"]


@cache
def frames(name: str) -> tuple[Frame, ...]:
    return tuple(Drawn(name, True).frames[0])


def model() -> FrameModel:
    return FrameModel(CHIP, SPEED, TaskFeed(CHIP, 1))


@cache
def timed(name: str) -> tuple[FrameTiming, ...]:
    return tuple(model().run(frames(name)))


# -- tables


@pytest.mark.parametrize("choices", [Choices(), Choices(kept=2, across=False, early_z=False)])
@pytest.mark.parametrize("name", RUNS)
def test_tables_have_every_piece_once(name: str, choices: Choices) -> None:
    for frame in frames(name):
        found = rendering(frame, choices)
        totals = frame.totals()
        assert len(found.primitives) == totals["covered_primitives"]
        assert found.primitives["quads"].sum() == totals["covered_quads"]
        assert found.primitives["vectors"].sum() == len(found.vectors)
        assert found.vectors["quads"].sum() == len(found.quads)
        for table in (found.primitives, found.lists):
            for column in ("reversed", "empty"):
                assert (table[column] >= 0).all()
        hidden = sum(
            int(table[column].sum())
            for table in (found.primitives, found.lists)
            for column in ("reversed", "empty")
        )
        assert hidden + len(found.primitives) == totals["primitives"]
        away = found.primitives["reversed"].sum() + found.lists["reversed"].sum()
        assert away == totals["primitives_reversed"]


@pytest.mark.parametrize("name", RUNS)
def test_no_batch_is_given_back_while_it_is_needed(name: str) -> None:
    for frame in frames(name):
        found = rendering(frame)
        for table in (found.primitives, found.lists):
            assert (np.diff(table["batch"]) >= 0).all()
            assert (np.diff(table["release"]) >= 0).all()
            later = np.append(table["batch"][1:], len(found.batches.sizes))
            assert (table["release"] <= later).all()
        if len(found.lists):
            assert found.lists["release"][-1] == len(found.batches.sizes)


@pytest.mark.parametrize("name", RUNS)
def test_lists_are_read_to_the_byte(name: str) -> None:
    for frame in frames(name):
        steps = rendering(frame).steps
        assert steps["bytes"].sum() == frame.records["bytes"].sum()
        assert steps["records"].sum() == len(frame.records)
        assert (steps["lines"] * 64 + 64 >= steps["bytes"]).all()


# -- clocks


@pytest.mark.parametrize("name", RUNS)
def test_every_piece_is_processed_once(name: str) -> None:
    for frame, timing in zip(frames(name), timed(name), strict=True):
        totals = frame.totals()
        assert timing.tiles == len(frame.tiles)
        assert timing.primitives == totals["covered_primitives"]
        assert timing.quads == totals["covered_quads"]
        assert not timing.notes
        batches = rendering(frame).batches
        assert sum(draw.batches for draw in timing.draws) == len(batches.sizes)
        assert sum(draw.clocks for draw in timing.draws) <= timing.rendering
        busy = next(m.busy for m in timing.modules if m.module == "front_end")
        assert sum(draw.busy for draw in timing.draws) <= busy


@pytest.mark.parametrize("name", RUNS)
def test_two_runs_have_the_same_clocks(name: str) -> None:
    assert tuple(model().run(frames(name))) == timed(name)


@pytest.mark.parametrize("name", RUNS)
def test_queues_are_empty_at_the_end(name: str) -> None:
    chip = model()
    for _ in chip.run(frames(name)):
        for queues in chip.machine.queues.values():
            for queue in queues:
                assert (queue.count, queue.writes) == (0, queue.reads)
        assert not any(chip.figures.threads)
        assert list(chip.figures.scoreboard.holders) == [0] * 4


@pytest.mark.parametrize("name", RUNS)
def test_a_frame_alone_is_little_faster_than_with_others(name: str) -> None:
    """Nothing is left over from the frame before; the one after it is binned meanwhile."""
    for frame, timing in zip(frames(name), timed(name), strict=True):
        (alone,) = model().run([frame])
        assert 0.9 * timing.rendering < alone.rendering < 1.001 * timing.rendering
        assert alone.clocks == alone.binning + alone.rendering


def test_a_clear_stores_each_pixel_once() -> None:
    (timing,) = model().run([frame_jobs.clear()])
    assert timing.memory_bytes["tile_stores"] == 640 * 360 * 2
    assert timing.tiles == 60
    assert timing.tile_clocks["storing"] <= timing.rendering
    assert timing.tile_clocks["loading"] == 0


def _slower(chip: Chip = CHIP, **changes: Any) -> float:
    frame = frame_jobs.fill(2)
    plain, other = (
        next(iter(FrameModel(chip, SPEED, TaskFeed(chip, 1, **k)).run([frame]))).rendering
        for k in ({}, changes)
    )
    return other / plain


def test_each_varying_of_a_triangle_is_set_up() -> None:
    """Triangles in more than one tile are set up in each of them."""
    plain, other = (
        next(iter(model().run([frame_jobs.tiny(2000, varyings)]))).rendering for varyings in (1, 5)
    )
    each = CHIP.real("setup", "varying_clocks")
    assert 4 * each <= (other - plain) / 2000 < 1.1 * 4 * each


def test_a_lock_that_is_kept_for_long_holds_the_others_up() -> None:
    """If there are only three; those that cover other quads do not mind it."""
    three = changed(CHIP, {("tile_buffer", "locks"): 3})
    assert _slower(three, held=60) > 2
    assert _slower(three, before=60) < 1.6
    quads = changed(CHIP, {("tile_buffer", "square"): 2})
    assert _slower(quads, held=60) < 1.7


def test_vectors_wait_for_others_in_the_same_square() -> None:
    """Of several vectors each: what the scoreboard's squares are for. Bigger ones make more wait."""
    slower = [_slower(changed(CHIP, {("tile_buffer", "square"): side}), held=60) for side in (2, 4, 8, 64)]
    assert slower == sorted(slower)
    assert slower[0] < 1.7 < slower[1] < slower[-1]


def test_vectors_that_nobody_waits_for_do_not_end_before_their_clocks() -> None:
    assert _slower(before=1000) > 10


class _NoVertices(TaskFeed):
    name = TaskFeed.name + " without vertices"
    parts: Mapping[str, Part] = {
        **TaskFeed.parts, "vertex_cache": Part(step_nothing, VertexCache)
    }  # fmt: skip


def test_a_model_that_stands_still_says_who_waits() -> None:
    with pytest.raises(StandsStill) as caught:
        list(FrameModel(CHIP, SPEED, _NoVertices(CHIP)).run([frame_jobs.triangle()]))
    text = str(caught.value)
    assert "binning_list: record" in text
    assert "waits for batches" in text
    assert "queue binning_groups 0: 1 pieces, read by vertex_cache 0" in text


def test_what_is_not_timed_as_it_was_is_noted() -> None:
    frame = frame_jobs.triangle()
    draws = frame.draws.copy()
    draws["reference"] = True
    (timing,) = model().run([replace(frame, draws=draws, lost=3)])
    assert "3 records of what was drawn found no room" in timing.notes[0]
    assert "1 draws were drawn by the interpreter" in timing.notes[1]
