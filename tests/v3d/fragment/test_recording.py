"""Pieces of work that pipelines record: all of them once, and nothing else is different."""

from collections.abc import Callable

import numpy as np
import pytest
from tests.v3d.fragment.scene import Scene, vertex
from tests.v3d.fragment.test_early_depth import TESTED
from tests.v3d.fragment.test_engines import COLOURED, random_scene, textured_scene

from vc4lab.qpu.text.assembler import assemble
from vc4lab.timing.frames.columns import Table, table_of
from vc4lab.timing.frames.frame import count_bits, quads_of
from vc4lab.v3d.state.frame_mode import TileLayout
from vc4lab.v3d.state.tile_context import LIST_COUNTERS, BlockWork, FragmentKey, ListWork, RequestWork
from vc4lab.v3d.tiles import job


def lines_scene() -> Scene:
    rng = np.random.default_rng(3)
    scene = Scene(100, 70)
    corners = [vertex(*rng.uniform(-10, 110, 2), 0.5, 1.0, 0.1, 0.5, 0.9) for _ in range(24)]
    for primitive in ("lines", "points"):
        key = FragmentKey(program=COLOURED, primitive=primitive, n_varyings=3)
        scene.add(key, corners, line_width=3.0, point_size=7.0)
    return scene


def samples_scene() -> Scene:
    scene = random_scene()
    scene.layout, scene.tile = TileLayout(True, False), (32, 32)
    return scene


def exact_scene() -> Scene:
    """A value that only the exact pipeline draws: what the fast one did in the tile is void."""
    scene = Scene(200, 80)
    for odd in (0.2, float("nan")):
        corners = [vertex(0, 0, 0.5, 1, odd, 0.4, 0.9), vertex(120, 0, 0.5, 1, 0.3, 0.1, 0.5)]
        corners.append(vertex(0, 79, 0.5, 1, 0.8, 0.9, 0.1))
        scene.add(FragmentKey(program=COLOURED, n_varyings=3), corners)
    return scene


SCENES: dict[str, Callable[[], Scene]] = {
    "coloured": random_scene,
    "textured": lambda: textured_scene(0, 0),
    "lines and points": lines_scene,
    "four samples": samples_scene,
    "drawn again": exact_scene,
}


def tables(scene: Scene) -> tuple[Table, Table, Table]:
    """Lists, blocks, requests."""
    kinds = {"lists": ListWork, "blocks": BlockWork, "requests": RequestWork}
    lists, blocks, requests = (table_of(scene.recorded[k], kinds[k]) for k in kinds)
    return lists, blocks, requests


@pytest.mark.parametrize("name", SCENES)
def test_the_picture_is_the_same_and_counts_add_up(name: str) -> None:
    scene = SCENES[name]()
    image = scene.render()
    assert (scene.render(works=True) == image).all()
    lists, blocks, requests = tables(scene)
    for number, counter in enumerate(LIST_COUNTERS):
        assert int(lists["counters"][:, number].sum()) == scene.counters[counter], counter
    assert int(count_bits(quads_of(blocks["covered"])).sum()) == scene.counters["quads_valid"]
    assert int(lists["blocks"].sum()) == len(blocks)
    assert int(blocks["requests"].sum()) == len(requests)
    assert int(requests["lines"].sum()) * 4 == len(scene.recorded["lines"])
    assert (len(requests) > 0) == (name == "textured")
    rows, columns = scene.grid
    assert len(lists) == rows * columns * len(scene.draws)
    assert (scene.result is not None and scene.result.exact_tiles > 0) == (name == "drawn again")
    recorded = scene.recorded
    scene.render(works=True, threads=2)
    assert scene.recorded == recorded
    scene.render("exact", works=True)
    assert scene.recorded == recorded


@pytest.mark.parametrize("name", SCENES)
def test_primitives_are_numbered(name: str) -> None:
    scene = SCENES[name]()
    scene.render(works=True)
    lists, blocks, _ = tables(scene)
    place = 0
    for one in lists:
        mine = blocks["primitive"][place : place + one["blocks"]]
        place += int(one["blocks"])
        counts = dict(zip(LIST_COUNTERS, one["counters"].tolist(), strict=True))
        drawn = counts["primitives_valid"] - counts["primitives_empty"]
        assert np.unique(mine).tolist() == list(range(drawn))
        assert (np.diff(mine) >= 0).all()


def test_what_passes_the_depth_test() -> None:
    """The same triangle twice, the second time farther away, then nearer."""
    program = tuple(assemble(TESTED).words)
    key = FragmentKey(program=program, n_varyings=1, depth_function=1, z_update=True)
    scene = Scene(64, 64)
    for z in (0.5, 0.7, 0.3):
        corners = [vertex(x, y, z, 1.0, 0.5) for x, y in ((2, 2), (40, 3), (5, 50))]
        scene.add(key, corners, uniforms=(0xFF00FF,))
    scene.render(works=True)
    lists, blocks, _ = tables(scene)
    first, second, third = np.split(blocks, np.cumsum(lists["blocks"])[:-1])
    assert len(first) == len(second) == len(third) > 50
    assert (first["passed"] == first["flags"]).all()
    assert (first["flags"] == first["covered"]).all()
    assert not second["passed"].any()
    assert (third["passed"] == third["flags"]).all()
    assert (blocks["instructions"] == len(program)).all()


def test_without_room_the_picture_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = textured_scene(0, 0)
    image = scene.render()
    for name in job.ROOM:
        with monkeypatch.context() as patch:
            patch.setitem(job.ROOM, name, 4096 if name != "lists" else 64)
            assert (scene.render(works=True) == image).all()
        assert scene.lost > 0, name
    scene.render(works=True)
    assert not scene.lost
