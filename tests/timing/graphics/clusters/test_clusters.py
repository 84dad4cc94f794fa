"""Chips of clusters: the work of recorded frames is done once, in no more time, and adds up."""

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.frame_timings import recorded
from tests.timing.frames.recorded import Drawn

from vc4lab.timing.boards import speeds_of
from vc4lab.timing.changes import changed
from vc4lab.timing.chip import BadChip, Chip, load_chip
from vc4lab.timing.figures import ALL_QUEUES
from vc4lab.timing.frame_times import model_of
from vc4lab.timing.graphics.model import FrameModel
from vc4lab.timing.graphics.result import FrameTiming

CHIPS = {1: "cluster", 2: "cluster-2", 4: "cluster-4"}
RUNS = (
    "glmark2_build_use-vbo_false",
    "glmark2_effect2d_kernel_0_1_0_1_-4_1_0_1_0_",
    "glmark2_conditionals_fragment-steps_5",
    "glmark2_ideas",
    "glmark2_shading_shading_phong",
    "glmark2_texture_texture-filter_mipmap",
    "kmscube_smooth",
    "sdl_testdraw2",
    "tri_arm64",
)
NEAR = 0.15
"""How far one frame may be outside: it shares the memory with the binning of the next one, and
several clusters share it among each other: textures with mipmaps are bounded by it (up to 13 %)."""


def model(chip: Chip) -> FrameModel:
    return model_of(chip, speeds_of(chip).of_board["pi3"])


def with_clusters(count: int) -> Chip:
    return changed(load_chip("cluster"), {("clusters", "count"): count})


@cache
def timed(run: str, count: int) -> tuple[FrameModel, tuple[FrameTiming, ...]]:
    found = model(load_chip(CHIPS[count]) if count in CHIPS else with_clusters(count))
    return found, tuple(found.run(recorded(run)))


def total(found: FrameModel, module: str, field: str) -> int:
    return sum(int(getattr(state, field)) for state in found.machine.states[module])


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_each_vertex_primitive_and_quad_is_processed_once(run: str, count: int) -> None:
    frames = recorded(run)
    found, _ = timed(run, count)
    tables = [found.feed.tables(frame) for frame in frames]
    batches = sum(len(t.binned["batches"]) + len(t.rendered["batches"]) for t in tables)
    in_memory = sum(
        int((side["batches"]["shader"] < 0).sum()) for t in tables for side in (t.binned, t.rendered)
    )
    vectors = sum(len(t.rendered["vectors"]) for t in tables)
    quads = sum(frame.totals()["covered_quads"] for frame in frames)
    assert total(found, "front_end", "quads") == quads
    assert total(found, "front_end", "vectors") == vectors
    assert total(found, "shader_scheduler", "vectors") == vectors
    assert total(found, "shader_scheduler", "batches") == batches - in_memory
    assert sum(int(n) for qpu in found.machine.states["qpu"] for n in qpu.tasks) == (
        batches - in_memory + vectors
    )
    drawn = sum(len(t.rendered["primitives"]) for t in tables)
    assert total(found, "front_end", "primitives") == drawn
    hidden = total(found, "setup", "reversed") + total(found, "setup", "empty")
    lists = [list_ for frame in frames for list_ in frame.lists if list_["drawn"]]
    assert total(found, "setup", "primitives") + hidden == max(
        sum(int(list_["primitives"]) for list_ in lists), drawn
    )
    chunks = [found.feed.tables(frame).vertices for frame in frames]
    binned = sum(int(part.binning.chunks["primitives"].sum()) for part in chunks if part)
    assert total(found, "binner", "primitives") == binned


def test_each_vector_and_batch_is_done_by_one_cluster() -> None:
    """By their numbers: pieces that clusters took are those of the frame, none of them twice."""
    (frame,) = recorded("glmark2_ideas")[2:3]
    found = model(with_clusters(4))
    tables = found.feed.tables(frame)
    found._stage(tables, None)
    assert (tables.binned["batches"]["done"] == 1).all()
    shares = Counter(tables.binned["batches"]["cluster"].tolist())
    assert set(shares) == {0, 1, 2, 3}
    assert max(shares.values()) - min(shares.values()) <= 1 + len(tables.binned["batches"]) // 8
    found._stage(None, tables)
    assert (tables.rendered["vectors"]["ended"] == 1).all()
    assert (tables.rendered["batches"]["done"] == 1).all()
    dealers = found.machine.states["global_scheduler"]
    assert sum(dealers[0].dealt) == 0  # of the last stage, in which nothing is binned
    assert sum(dealers[1].dealt) == len(frame.tiles)
    owners = np.array([int(tile.tiles) for tile in found.machine.states["tile_buffer"]])
    assert owners.sum() == len(frame.tiles)
    assert (owners > 0).all()


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("count", [2, 3, 4])
def test_clusters_take_between_a_share_and_all_of_the_clocks_of_one(run: str, count: int) -> None:
    _, one = timed(run, 1)
    _, several = timed(run, count)
    whole, found = (sum(timing.clocks for timing in times) for times in (one, several))
    assert whole / count <= found <= whole
    for before, after in zip(one, several, strict=True):
        assert (1 - NEAR) / count <= after.clocks / before.clocks <= 1 + NEAR
        same = ("tiles", "vectors", "quads", "primitives", "batches")
        assert [getattr(before, name) for name in same] == [getattr(after, name) for name in same]


def test_one_cluster_takes_as_long_as_a_chip_without_a_global_scheduler() -> None:
    for run in RUNS:
        clocks = [timing.clocks for timing in model(load_chip("videocore4")).run(recorded(run))]
        _, dealt = timed(run, 1)
        found = [timing.clocks for timing in dealt]
        assert sum(found) == pytest.approx(sum(clocks), rel=0.01)
        assert found == pytest.approx(clocks, rel=0.025)


def balance(found: FrameModel) -> None:
    """What was written to a queue was read, and its occupancy is not less than the pieces were in
    it.
    """
    for name, queues in found.machine.queues.items():
        for queue in queues:
            assert queue.writes == queue.reads, name
            assert queue.count == queue.waiting == 0, name
            assert queue.peak <= queue.capacity, name
            assert 0 <= queue.full <= found.machine.engine.clock


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_queue_totals_balance(count: int) -> None:
    for run in RUNS:
        found, times = timed(run, count)
        balance(found)
        pieces = sum(use.pieces for one in times for use in one.queues if use.queue == "vectors")
        assert pieces == sum(timing.vectors for timing in times)


def plain(times: Any) -> list[Any]:
    return [timing.to_json() for timing in times]


@pytest.mark.parametrize("count", [1, 4])
def test_the_same_cycles_in_two_runs_with_any_number_of_threads(count: int) -> None:
    chip = load_chip(CHIPS[count])
    several = [Drawn("glmark2_ideas", True, threads=threads).frames[0] for threads in (1, 2, 4)]
    found = [plain(model(chip).run(frames)) for frames in several]
    assert found[0] == found[1] == found[2]
    assert found[0] == plain(model(chip).run(several[0]))


def test_a_chip_with_clusters_is_made_of_a_chip_without() -> None:
    """`--set clusters=2` on videocore4 is cluster-2."""
    frames = recorded("glmark2_ideas")
    mine = changed(load_chip("videocore4"), {("clusters", "count"): 2})
    theirs = [timing.clocks for timing in model(load_chip("cluster-2")).run(frames)]
    assert [timing.clocks for timing in model(mine).run(frames)] == theirs


def test_figures_of_clusters_are_assumed() -> None:
    for name in CHIPS.values():
        figures = [f for keys in load_chip(name).figures.values() for f in keys.values()]
        assert all(f.source and not f.fitted for f in figures)
        assert sum(f.source == "assumed: as videocore4" for f in figures) > 100


@pytest.mark.parametrize("slices", [1, 4])
@pytest.mark.parametrize("latency", [1, 400])
def test_other_figures_of_clusters_move(slices: int, latency: int) -> None:
    chip = changed(
        load_chip("cluster-4"),
        {
            ("slices", "count"): slices,
            ("global_scheduler", "latency"): latency,
            ("global_scheduler", "interval"): 40,
            ("queues.commands", "depth"): 1,
            ("queues.binning_groups", "depth"): 1,
            ("rendering_list", "tiles"): 1,
        },
    )
    found = model(chip)
    times = list(found.run(recorded("glmark2_ideas")))
    assert [one.vectors for one in times] == [one.vectors for one in timed("glmark2_ideas", 4)[1]]
    balance(found)


@pytest.mark.parametrize("queue", ["tile_done", "memory_answers", "l2_answers", "tmu_results"])
def test_circles_that_cannot_move_are_named_with_file_line_and_key(tmp_path: Path, queue: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'like = "cluster-4"\n[queues.{queue}]\nreserved = false\n')
    with pytest.raises(BadChip) as error:
        model(load_chip(path))
    assert f"mine.toml:3: [queues.{queue}] reserved" in str(error.value)
    assert "cannot move" in str(error.value)
    assert "must have its room reserved" in str(error.value)


def test_a_chip_that_nothing_is_known_of() -> None:
    with pytest.raises(BadChip, match=r"clusters: no chip and no file.*did you mean cluster"):
        load_chip("clusters")


@pytest.mark.parametrize("queue", [name for name in ALL_QUEUES if name != "programs"])
def test_every_queue_may_hold_one_piece_only(queue: str) -> None:
    """A module that finds room before it is called must not be called instead of one that waits.

    Of ideas two frames, the rendering of one beside the binning of the next.
    """
    for run, frames in (("glmark2_effect2d_kernel_0_1_0_1_-4_1_0_1_0_", 1), ("glmark2_ideas", 2)):
        for chip in ("videocore4", "cluster-4"):
            narrow = changed(load_chip(chip), {(f"queues.{queue}", "depth"): 1})
            times = list(model(narrow).run(recorded(run)[-frames:]))
            assert [one.vectors for one in times] == [one.vectors for one in timed(run, 1)[1][-frames:]]
