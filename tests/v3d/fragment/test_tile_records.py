"""What each tile took: adds up to what the frame took, and nothing but the records is different."""

from pathlib import Path

import numpy as np
import pytest
from tests.support.frames import RED, Frame, solid
from tests.support.jobs import nv_vertex, viewport
from tests.v3d.fragment.scene import Scene, vertex
from tests.v3d.fragment.test_engines import COLOURED, random_scene

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.hardware import run_job
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.records.control import build
from vc4lab.v3d.core import V3D
from vc4lab.v3d.events import FrameDrawn
from vc4lab.v3d.job_time import JOB_CLOCKS, job_clocks
from vc4lab.v3d.state.tile_context import COUNTERS, DETAILED_COUNTERS, FragmentKey
from vc4lab.v3d.tiles.job import NativeFrame, tiles_drawn

JOBS = Path(__file__).parents[2] / "data" / "vc4-jobs"
RUNS = ("glmark2_ideas", "glmark2_bump_bump-render_normals", "kmscube_smooth", "tri_arm64")


def total(frames: list[FrameDrawn]) -> dict[str, int]:
    return {name: sum(tile.counters[name] for frame in frames for tile in frame.tiles) for name in COUNTERS}


@pytest.mark.parametrize("threads", [1, 2])
def test_tiles_add_up(threads: int) -> None:
    scene = random_scene()
    image = scene.render(threads=threads)
    counters = scene.counters
    assert (scene.render(threads=threads, record=True) == image).all()
    assert scene.counters == counters
    tiles = tiles_drawn(scene.frame)
    rows, columns = scene.grid
    places = [(column * 64, row * 64) for row, column in np.ndindex(rows, columns)]
    assert [(tile.x, tile.y) for tile in tiles] == places
    for name in COUNTERS:
        assert sum(tile.counters[name] for tile in tiles) == counters[name], name
    assert all(tile.clocks > 0 for tile in tiles)


@pytest.mark.parametrize("threads", [1, 2])
def test_tiles_drawn_again_count_once(threads: int) -> None:
    """A value that only the exact pipeline draws: what the fast one did in the tile is void."""
    scene = Scene(200, 80)
    for odd in (0.2, float("nan")):
        corners = [vertex(0, 0, 0.5, 1, odd, 0.4, 0.9), vertex(120, 0, 0.5, 1, 0.3, 0.1, 0.5)]
        corners.append(vertex(0, 79, 0.5, 1, 0.8, 0.9, 0.1))
        scene.add(FragmentKey(program=COLOURED, n_varyings=3), corners)
    image = scene.render(threads=threads)
    assert 0 < scene.result.exact_tiles < scene.frame.count
    counters = scene.counters
    assert (scene.render(threads=threads, record=True) == image).all()
    tiles = tiles_drawn(scene.frame)
    for name in COUNTERS:
        assert sum(tile.counters[name] for tile in tiles) == counters[name], name


def test_a_tile_that_is_named_again_is_one_tile() -> None:
    frame = Frame(100, 70)
    job = frame.job
    vertices = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in ((5, 5), (5, 60), (90, 5)))
    body = viewport(job) + frame.nv_shader(solid(RED), vertices)
    start, end, lists = job.binning(body + build(33, mode=4, length=3))
    dump, count = job.room(1 << 17), job.tiles[0] * job.tiles[1]
    data = build(113, address=frame.surface, width=100, height=70, format=1)
    for number in range(count):
        place = build(115, column=number % job.tiles[0], row=number // job.tiles[0])
        data += place + build(17, address=lists + 32 * number)
        data += build(26, address=dump, disable_clear=1) + place
        data += build(25 if number == count - 1 else 24)
    at = job.put(data)
    heard: list[FrameDrawn] = []
    frame.v3d.listeners.frame_drawn.subscribe(heard.append)
    job.run(frame.v3d, (start, end), (at, at + len(data)))
    (drawn,) = heard
    assert [(tile.x, tile.y) for tile in drawn.tiles] == [(0, 0), (64, 0), (0, 64), (64, 64)]
    amounts = total(heard)
    assert amounts["tiles_moved"] == 2 * count
    clocks = job_clocks(frame.v3d.frames.take_counts()) - JOB_CLOCKS
    assert abs(sum(tile.clocks for tile in drawn.tiles) - clocks) <= count


class Drawn:
    """A recorded run, drawn with or without a listener in each of its jobs."""

    def __init__(self, name: str, threads: int, *listens: bool, details: bool = False) -> None:
        run = RecordedRun(JOBS / name, Reporter())
        v3d = V3D(run.memory, Reporter(), threads=threads)
        v3d.counters.everything = details
        self.frames: list[list[FrameDrawn]] = []
        self.bytes: list[bytes] = []
        self.totals: list[dict[str, int]] = []
        for listen in listens:
            before = dict.fromkeys(COUNTERS, 0) | v3d.frames.events()
            heard: list[FrameDrawn] = []
            for job in run.jobs:
                subscription = v3d.listeners.frame_drawn.subscribe(heard.append)
                if not listen:
                    subscription.close()
                assert run_job(v3d, job.build(run.memory))
                subscription.close()
                for buffer in job.submit.buffers:
                    self.bytes.append(bytes(run.memory.read(buffer.address, buffer.size)))
            after = v3d.frames.events()
            self.totals.append({name: after[name] - before[name] for name in COUNTERS})
            self.frames.append(heard)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", RUNS)
def test_a_listener_changes_no_byte(name: str, threads: int) -> None:
    plain = Drawn(name, threads, False, False, False)
    mixed = Drawn(name, threads, False, True, False)
    assert plain.bytes == mixed.bytes
    assert plain.totals == mixed.totals
    assert not any(plain.frames)
    assert [bool(frames) for frames in mixed.frames] == [False, True, False]
    assert total(mixed.frames[1]) == mixed.totals[1]
    assert not any(total(mixed.frames[1])[name] for name in DETAILED_COUNTERS)


def test_details_count_with_performance_counters() -> None:
    drawn = Drawn("glmark2_ideas", 2, True, details=True)
    amounts = total(drawn.frames[0])
    assert amounts == drawn.totals[0]
    assert amounts["primitives_valid"] > 1000
    assert all(amounts[name] for name in ("quads_depth_passed", "quads_covered"))
    assert {"primitives_valid", "quads_depth_passed", "quads_covered"} < set(DETAILED_COUNTERS)


def test_threads_record_the_same() -> None:
    one, two = (Drawn("glmark2_ideas", threads, True).frames for threads in (1, 2))
    assert one == two


def test_nothing_is_recorded_without_a_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    def records(_frame: NativeFrame) -> None:
        raise AssertionError("records that no one wants")

    monkeypatch.setattr(NativeFrame, "provide_records", records)
    Drawn("tri_arm64", 2, False)
    with pytest.raises(AssertionError, match="no one wants"):
        Drawn("tri_arm64", 2, True)
