"""The tables of thread 0 and of vertices: what is read, what is shaded, what is binned."""

from typing import Any

import numpy as np
import pytest
from tests.timing.frames.recorded import Drawn
from tests.timing.graphics.vertices.vertex_frames import draw_of, frame_of

from vc4lab.timing.compute.model import NotTimed
from vc4lab.timing.frames import columns as cols
from vc4lab.timing.frames.frame import Frame
from vc4lab.timing.frames.vertex_batches import collect_batches
from vc4lab.timing.graphics.vertices import vertex_work
from vc4lab.timing.graphics.vertices.binning_work import binning_work, primitives_of
from vc4lab.timing.graphics.vertices.state import RecordKind
from vc4lab.timing.graphics.vertices.vertex_work import fetches_of, rendering_vertices

RUNS = (
    "glmark2_ideas",
    "glmark2_bump_bump-render_normals",
    "glmark2_loop_fragment-uniform_true",
    "kmscube_smooth",
    "sdl_testdraw2",
    "tri_arm64",
)


def defined_reads(vertices: list[int], arrays: list[tuple[int, int, int]]) -> set[tuple[int, int]]:
    """The reads of a batch: line by line, from the first byte that is wanted to the last."""
    lines: dict[int, list[int]] = {}
    for vertex in vertices:
        for address, size, stride in arrays:
            start = (address + vertex * stride) & 0x3FFFFFFF
            for byte in range(start, start + size):
                lines.setdefault(byte >> 6, []).append(byte)
    return {(min(found), max(found) + 1 - min(found)) for found in lines.values()}


@pytest.mark.parametrize(
    "arrays",
    [
        [(0x1000, 12, 12)],
        [(0x1000, 12, 32), (0x100C, 16, 32), (0x5004, 8, 8)],
        [(0x1030, 200, 255)],
        [(0x3FFFFFF0, 16, 16)],
        [(0x1000, 16, 0)],
        [(0x1000, 12, 0xFFFFFFE8)],  # extended records have 32 bits for it
        [],
    ],
)
def test_reads_are_the_lines_that_hold_attributes(arrays: list[tuple[int, int, int]]) -> None:
    rng = np.random.default_rng(3)
    vertices = np.concatenate([np.arange(50), rng.integers(0, 60000, 70)]).astype(np.uint32)
    found = collect_batches(vertices, np.array([0, 40, len(vertices)], np.int32))
    rows = [(draw, n, *array) for draw in (0, 1) for n, array in enumerate(arrays)]
    attributes = np.array(rows, cols.ATTRIBUTE)
    draws = np.repeat(np.arange(2), np.diff(found.first_batch)).astype(np.int32)
    fetches, first = fetches_of(found, draws, attributes, 2)
    ends = np.cumsum(found.sizes)
    for batch, end in enumerate(ends):
        mine = fetches[first[batch] : first[batch + 1]]
        members = found.members[end - found.sizes[batch] : end].tolist()
        reads = set(zip(mine["location"].tolist(), mine["bytes"].tolist(), strict=True))
        assert len(reads) == len(mine)
        assert reads == defined_reads(members, arrays)


def test_members_are_what_batches_hold() -> None:
    vertices = np.array([5, 5, 6, 7, 5, *range(20), 3], np.uint32)
    found = collect_batches(vertices, np.array([0, 5, 5, 26], np.int32))
    assert found.sizes.tolist() == [3, 16, 5]
    assert found.members.tolist() == [5, 6, 7, *range(16), 16, 17, 18, 19, 3]
    assert found.begins.tolist() == [0, 5, 21, 26]


@pytest.mark.parametrize(
    ("mode", "vertices", "count"),
    [(0, 5, 5), (1, 5, 2), (2, 5, 4), (3, 5, 4), (4, 8, 2), (5, 8, 6), (6, 2, 0), (4, 0, 0)],
)
def test_primitives_of_vertices(mode: int, vertices: int, count: int) -> None:
    assert primitives_of(np.array([mode]), np.array([32]), np.array([vertices])).tolist() == [count]


def test_a_triangle_waits_for_its_last_vertex() -> None:
    work = binning_work(frame_of([draw_of(range(48), entries=16, blocks=4)]))
    draws = work.chunks[:-1]
    assert draws["batch"].tolist() == [0, 1, 2]
    assert draws["primitives"].tolist() == [5, 5, 6]  # 16 vertices, 32, 48
    assert draws["entries"].tolist() == [5, 5, 6]
    assert draws["writes"].tolist() == [1, 1, 2]
    assert draws["keep"].tolist() == [1, 2, 3]
    assert work.chunks[-1]["tiles"] == 2


def test_a_line_loop_closes() -> None:
    work = binning_work(frame_of([draw_of(range(5), mode=2)]))
    assert work.chunks["primitives"].tolist() == [5, 0]


def test_indices_are_read_before_their_batch() -> None:
    work = binning_work(frame_of([draw_of(range(100), index_bytes=2)]))
    batches = work.vertices.batches
    reads = work.reads["location"][batches["list_read"]]
    last = 0x4000 + 2 * np.cumsum(batches["named"]) - 1
    assert (reads == last >> 6 << 6).all()
    assert work.records["kind"].tolist() == [int(RecordKind.DRAW), int(RecordKind.FLUSH)]
    assert work.records["until"].tolist() == [7, 0]


def test_vertices_in_memory_have_no_shader() -> None:
    frame = frame_of([draw_of(range(3))], [range(3)], in_memory=True, arrays=[(0, 24, 24)])
    vertices = rendering_vertices(frame)
    assert vertices.batches["shader"].tolist() == [-1]
    assert vertices.batches["rows"].tolist() == [6]
    assert vertices.batches["shaded_rows"].tolist() == [0]
    assert vertices.batches["words"].tolist() == [18]


def test_too_many_reads_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vertex_work, "MAX_FETCHES", 10)
    with pytest.raises(NotTimed, match="read more than 10 times"):
        binning_work(frame_of([draw_of(range(3000))]))


@pytest.fixture(scope="module", params=RUNS)
def frames(request: Any) -> list[Frame]:
    return Drawn(request.param, True).frames[0]


def test_everything_of_a_frame_is_there_once(frames: list[Frame]) -> None:
    for frame in frames:
        work = binning_work(frame)
        draws = [binning.draws for binning in frame.binnings]
        chunks = work.chunks
        flushes = chunks["tiles"] > 0
        for name, column in (("entries", "entries"), ("clipped", "clipped"), ("blocks", "writes")):
            assert chunks[column][~flushes].sum() == sum(part[name].sum() for part in draws)
        assert flushes.sum() == len(frame.binnings)
        assert work.vertices.batches["vertices"].sum() == len(work.vertices.found.members)
        assert work.vertices.batches["named"].sum() == sum(len(b.vertices) for b in frame.binnings)
        used = chunks["batch"][chunks["batch"] >= 0]
        assert used.tolist() == list(range(len(work.vertices.batches)))
        assert (work.records["last_read"] < len(work.reads)).all()
        assert (np.diff(work.records["last_read"]) >= 0).all()
        assert (work.vertices.batches["list_read"] < len(work.reads)).all()
        listed = sum(int(binning.records["bytes"].sum()) for binning in frame.binnings)
        indices = sum(int((part["vertices"] * part["index_bytes"]).sum()) for part in draws)
        assert listed <= work.reads["bytes"].sum() + 64 <= listed + indices + 128
        rendering = rendering_vertices(frame)
        assert rendering.batches["named"].sum() == len(frame.vertices)
        assert (rendering.batches["fetches"] > 0).all()
