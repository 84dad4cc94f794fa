"""Pipelines that come again are built thoroughly beside the frames; pictures stay the same."""

import ctypes
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.hardware import run_job
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.memory import host
from vc4lab.simd import native
from vc4lab.v3d.core import V3D
from vc4lab.v3d.draws import refining
from vc4lab.v3d.draws.pipeline_table import PipelineEntry
from vc4lab.v3d.fragment import pipeline as pipelines

JOBS = Path(__file__).parents[2] / "data" / "vc4-jobs"
SECONDS = 60.0
LOOK_AFTER = refining.LOOK_AFTER


class Drawn:
    """A run whose last job is drawn again and again."""

    def __init__(self, name: str = "kmscube_smooth", engine: str = "jit") -> None:
        self.run = RecordedRun(JOBS / name, Reporter())
        self.v3d = V3D(self.run.memory, Reporter(), engine=engine, threads=1)
        for job in self.run.jobs:
            self.job, self.submit = job.build(self.run.memory), job.submit
            run_job(self.v3d, self.job)

    @property
    def made(self) -> dict[int, Any]:
        return self.v3d.frames.preparer._draws.pipelines.made

    def again(self, frames: int) -> bytes:
        """Draws some frames; all buffers afterwards."""
        for _ in range(frames):
            run_job(self.v3d, self.job)
        assert self.submit is not None
        buffers = self.submit.buffers
        return b"".join(bytes(self.run.memory.read(b.address, b.size)) for b in buffers)

    def until(self, condition: Callable[[], bool]) -> bytes:
        """Draws until something holds, which must not take long."""
        end = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < end
            picture = self.again(1)
        return picture

    def all_thorough(self) -> bool:
        return all(made.pipeline.thorough for made in self.made.values())


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("VC4LAB_CACHE", str(tmp_path / "objects"))
    monkeypatch.setattr(refining, "LOOK_AFTER", (2,))
    monkeypatch.setattr(refining, "PAUSE", 0.01)
    monkeypatch.setattr(refining, "SETTLED", 0.0)
    monkeypatch.setattr(refining, "IDLE", 0.0)
    pipelines.PIPELINES.clear()
    yield
    for thread in threading.enumerate():
        if thread.name == refining.NAME:
            thread.join()
    pipelines.PIPELINES.clear()


@pytest.mark.parametrize("name", ["kmscube_smooth", "glmark2_bump_bump-render_normals"])
def test_what_comes_again_is_replaced_and_draws_the_same(name: str) -> None:
    drawn = Drawn(name)
    before = drawn.again(1)
    first = {place: made.pipeline for place, made in drawn.made.items()}
    assert not any(pipeline.thorough for pipeline in first.values())
    after = drawn.until(drawn.all_thorough)
    assert drawn.again(1) == after == before
    for place, made in drawn.made.items():
        entry = PipelineEntry.python.from_address(place)
        assert entry.function == made.pipeline.address != first[place].address
    found = drawn.v3d.frames.preparer.pipelines._known.values()
    assert all(pipeline.thorough for _, _, pipeline in found)
    # the next start begins with it
    pipelines.PIPELINES.clear()
    assert all(pipelines.fragment_pipeline(key.key).thorough for key in first.values())


def test_what_is_seen_once_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(refining._builder, "ask", lambda pipeline, _: asked.append(pipeline))
    monkeypatch.setattr(refining, "LOOK_AFTER", (8,))
    drawn = Drawn()
    frames = len(drawn.run.jobs)
    assert frames < 8
    drawn.again(8 - frames + 7)  # one look
    assert not asked
    drawn.again(8)
    assert asked
    count = len(asked)
    drawn.again(32)
    assert len(asked) == count, "each is asked for once"


def test_a_build_waits_until_no_frame_waits_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    since = [0.5]
    monkeypatch.setattr(refining, "SETTLED", 1.0)
    monkeypatch.setattr(refining, "seconds_since_build", lambda: since[0])
    drawn = Drawn()
    drawn.again(20)
    time.sleep(0.1)
    drawn.again(4)
    assert not drawn.all_thorough()
    since[0] = 1.5
    drawn.until(drawn.all_thorough)


def test_the_golden_interpreter_has_nothing_to_refine() -> None:
    drawn = Drawn("tri_arm64", engine="interpreter")
    drawn.again(6)
    assert drawn.all_thorough()


def test_a_build_that_fails_leaves_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = threading.Event()

    def fails(_key: object, compiled: object) -> None:
        tried.set()
        raise MemoryError

    monkeypatch.setattr(refining, "thorough_pipeline", fails)
    drawn = Drawn()
    before = drawn.again(1)
    assert drawn.until(tried.is_set) == before
    assert drawn.again(4) == before
    assert not drawn.all_thorough()


def test_long_code_is_not_optimised_further(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    efforts: list[bool] = []
    compile_ir = native.compile_ir

    def noting(ir: str, target: Any, combine: bool, quick: bool, thorough: bool = False) -> bytes:
        efforts.append(thorough)
        return compile_ir(ir, target, combine, quick, thorough)

    monkeypatch.setattr(native, "compile_ir", noting)
    drawn = Drawn("tri_arm64")
    key = next(iter(drawn.made.values())).pipeline.key
    pipelines.thorough_pipeline(key)
    assert efforts[-1]
    pipelines.PIPELINES.clear()
    monkeypatch.setenv("VC4LAB_CACHE", str(tmp_path / "empty"))
    monkeypatch.setattr(native, "THOROUGH_UP_TO", 100)
    pipelines.thorough_pipeline(key)
    assert not efforts[-1]


def test_a_v3d_asks_for_so_many_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(refining._builder, "ask", lambda pipeline, _: asked.append(pipeline))
    monkeypatch.setattr(refining, "MAX_ASKED", 0)
    drawn = Drawn()
    drawn.again(8)
    assert not asked


@pytest.mark.parametrize("frames", [1, 2, 10, 11, 12, 17, 23, 54, 60])
def test_every_frame_of_a_picture_is_seen(frames: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refining, "LOOK_AFTER", LOOK_AFTER)
    asked: list[Any] = []
    monkeypatch.setattr(refining._builder, "ask", lambda pipeline, _: asked.append(pipeline))
    picture: list[Any] = [SimpleNamespace(thorough=False) for _ in range(frames)]
    refiner = refining.Refiner()
    for number in range(150 * frames):
        refiner.left -= 1
        if not refiner.left:
            refiner.look([picture[number % frames]])
    assert len(asked) == frames


def test_what_was_seen_long_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(refining._builder, "ask", lambda pipeline, _: asked.append(pipeline))
    monkeypatch.setattr(refining, "MAX_SEEN", 3)
    many: list[Any] = [SimpleNamespace(thorough=False) for _ in range(4)]
    refiner = refining.Refiner()
    for each in (*many, many[0], many[3]):
        refiner.look([each])
    assert asked == [many[3]]


def test_replaced_code_is_given_back() -> None:
    drawn = Drawn()
    drawn.again(1)
    first = {made.pipeline for made in drawn.made.values()}
    code = [weakref.ref(pipeline.module) for pipeline in first]
    key = next(iter(first)).key
    del first
    drawn.until(drawn.all_thorough)
    drawn.again(1)
    end = time.monotonic() + SECONDS
    while any(module() is not None for module in code):
        assert time.monotonic() < end
        time.sleep(0.01)
    assert pipelines.fragment_pipeline(key).thorough, "a new V3D begins with what took its place"


def test_the_heap_is_given_back_after_a_build(monkeypatch: pytest.MonkeyPatch) -> None:
    given = threading.Event()
    monkeypatch.setattr(refining, "give_back", given.set)
    drawn = Drawn()
    drawn.until(given.is_set)


def anonymous() -> int:
    """Bytes of this process that are in no file."""
    for line in Path("/proc/self/smaps_rollup").read_text().split("\n"):
        if line.startswith("Anonymous:"):
            return 1024 * int(line.split()[1])
    raise AssertionError


def test_giving_back_makes_the_process_smaller() -> None:
    library = ctypes.CDLL(None)
    if not hasattr(library, "malloc_trim"):
        pytest.skip("the C library has no malloc_trim")
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
    library.free.argtypes = (ctypes.c_void_p,)
    size = 64 << 10  # less than what the C library maps for itself
    places = [library.malloc(size) for _ in range(512)]
    for place in places:
        ctypes.memset(place, 1, size)
    for place in places[:-1]:  # the last one keeps the end of the heap where it is
        library.free(place)
    before = anonymous()
    host.give_back()
    library.free(places[-1])
    assert before - anonymous() > 400 * size


@pytest.mark.parametrize("others", [0, 2])
def test_so_many_pipelines_are_remembered(monkeypatch: pytest.MonkeyPatch, others: int) -> None:
    monkeypatch.setattr(pipelines, "MAX_PIPELINES", 2)
    table = pipelines._Pipelines()
    made: list[Any] = [SimpleNamespace(key=number) for number in range(3)]
    for each in (made[0], *made[1 : 1 + others]):
        table.keep(each, None)
    assert (table.find(made[0].key, None) is None) == (others == 2)
    again: Any = SimpleNamespace(key=2)
    assert table.keep(again, None) is again is table.find(2, None)
    assert table.find(2, "another processor") is None
    table.find(1, None)
    table.keep(made[0], None)
    assert table.find(1, None) is (made[1] if others else None), "it was asked for last"
