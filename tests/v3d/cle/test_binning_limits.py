"""Binning lists at limits, by both engines: memory that ends, large numbers, draws out of order."""

import ctypes
import struct

import pytest
from tests.support.binning_scene import Scene, all_modes, both, copies
from tests.support.frames import RED, Frame, solid
from tests.support.jobs import BFC, CT0CA, CT0EA, nv_vertex, viewport

from vc4lab.memory import MEMORY_SIZE
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records.control import build
from vc4lab.v3d.ptb.context import STATE_LIMIT
from vc4lab.v3d.state.render_state import MAX_LENGTH
from vc4lab.v3d.tile_lists.scan_context import MAX_VERTICES


def test_memory_that_runs_out() -> None:
    def run(scene: Scene) -> None:
        body = scene.shader(scene.copy) + all_modes(scene)
        scene.bin(body)
        scene.bin(body, memory=2048)

    fast = both(run)
    assert fast.frame.reporter.has("CLE-028")


@pytest.mark.parametrize("choice", ["stop", "skip"])
def test_an_index_above_the_maximum(choice: str) -> None:
    def run(scene: Scene) -> None:
        scene.bin(scene.shader(scene.copy) + scene.indexed(4, 99))
        scene.bin(scene.shader(scene.copy) + scene.indexed(4, 99, maximum_index=90) + all_modes(scene))

    fast = both(run, choices={"index_error": choice})
    assert fast.frame.reporter.has("CLE-014")


ODD_DRAWS = (
    {"length": 0},
    {"length": 1},
    {"length": 0xFFFFFFFF},
    {"length": MAX_LENGTH - 10},
    {"length": 0x80000000},
    {"mode": 7},
    {"mode": 15},
    {"index_type": 2},
    {"index_type": 15},
    {"address": MEMORY_SIZE - 3},
    {"address": 0xFFFFFFFF, "index_type": 0},
    {"address": 0x7E000000},
)


@pytest.mark.parametrize("fields", ODD_DRAWS)
def test_absurd_draws(fields: dict[str, int]) -> None:
    def run(scene: Scene) -> None:
        draw = scene.indexed(4, 30)
        odd = scene.indexed(**({"mode": 5, "length": 12} | fields))
        scene.bin(scene.shader(scene.copy) + draw + odd + draw + odd)

    both(run)


@pytest.mark.parametrize(
    ("first", "length"), [(0, 0x10000), (0xFFFF, 1), (0xFFF0, 15), (5, 0), (0xFFFFFFFF, 9)]
)
def test_arrays_at_the_limit(first: int, length: int) -> None:
    def run(scene: Scene) -> None:
        body = scene.shader(scene.copy, stride=0) + build(33, mode=4, length=9, first=0)
        scene.bin(body + 3 * build(33, mode=4, length=length, first=first))

    both(run)


@pytest.mark.parametrize(
    ("first", "length", "reported"), [(0, 0xFFFF, 0), (0, 0x10000, 1), (0xFFFE, 1, 0), (0xFFFF, 1, 1)]
)
def test_arrays_beyond_the_limit_are_reported(first: int, length: int, reported: int) -> None:
    scene = Scene()
    scene.bin(scene.shader(scene.copy, stride=0) + build(33, mode=4, length=length, first=first))
    assert scene.frame.reporter.counts.get("CLE-015", 0) == reported


def test_ranges_that_end_outside_the_memory_are_reported() -> None:
    """Though native code knows the page where they begin."""
    scene = Scene()
    counts = scene.frame.reporter.counts
    indices, vertices = MEMORY_SIZE - 64, MEMORY_SIZE - 40
    shader = scene.shader(scene.copy)
    scene.bin(shader + scene.indexed(4, 30, address=indices))
    assert counts.get("MEM-001", 0) == 0
    scene.bin(shader + scene.indexed(4, 48, address=indices))
    assert counts["MEM-001"] == 1
    ready = struct.pack("<BBBBIII", 1, 12, 0, 0, scene.fragment, 0, vertices)
    ready = build(65, address=scene.frame.job.put(ready))
    scene.bin(ready + build(33, mode=4, length=3))
    assert counts["MEM-001"] == 1
    scene.bin(ready + build(33, mode=4, length=4))
    assert counts["MEM-001"] == 2


def test_a_line_by_another_alias_in_a_page_of_both_is_reported() -> None:
    """Native code looks at pages; in one with lines of both kinds Python looks at each."""
    scene = Scene()
    job, counts = scene.frame.job, scene.frame.reporter.counts
    page = job.room(4096)
    for place in (page, page + 0x200):
        job.memory.write(place, job.memory.read(scene.shorts, 64))
    shader = scene.shader(scene.copy)
    for alias, place, reported in ((1, 0, 0), (3, 0x200, 0), (1, 0, 0), (1, 0x200, 1)):
        for _ in range(2):
            scene.bin(shader + scene.indexed(4, 30, address=alias << 30 | page + place))
            assert counts.get("CLE-023", 0) == reported


def test_draws_of_a_list_have_a_limit_together() -> None:
    scene, zeros = Scene(), 0x8000000
    draws = scene.indexed(5, MAX_LENGTH - 30, address=zeros) + scene.indexed(4, 30)
    scene.bin(scene.shader(scene.copy) + draws)
    assert not scene.frame.reporter.has("VTX-001")
    scene.bin(scene.shader(scene.copy) + draws + 2 * scene.indexed(4, 3))
    assert scene.frame.reporter.counts["VTX-001"] == 2


def test_a_path_has_a_limit() -> None:
    """What is beyond it is left out; here it is zeros, and so without area."""
    for length, reported in ((MAX_LENGTH, 0), (MAX_LENGTH + 3, 1), (0xFFFFFFFF, 1)):
        frame = Frame()
        points = struct.pack("<6h", 160, 160, 160, 640, 640, 160)
        frame.job.memory.write(0x8000000, points)
        path = build(41, type=4, length=length, address=0x8000000)
        state = viewport(frame.job) + frame.vg_shader(solid(RED))
        assert (frame.bin(state + path) == RED).any()
        assert frame.reporter.counts.get("VTX-001", 0) == reported
        assert frame.v3d.read(BFC) == 1


@pytest.mark.parametrize("paths", [False, True])
def test_changes_of_state_have_a_limit(paths: bool) -> None:
    """A change counts if something was drawn since the last one. Paths of two kinds take turns: the
    format of the tiles' lists changes.
    """
    for changes, reported in ((STATE_LIMIT - 4, 0), (STATE_LIMIT + 4, 1), (STATE_LIMIT + 500, 1)):
        frame = Frame()
        corners = ((8, 8), (9, 8), (8, 9))
        if paths:
            head = frame.vg_shader(solid(RED)) + build(100, x=64)
            points = frame.job.put(struct.pack("<6h", *(16 * n for c in corners for n in c)))
            fields = ((4, 3), (1, 2))
            draws = [build(41, type=kind, length=n, address=points) for kind, n in fields]
        else:
            vertices = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in corners)
            head = frame.nv_shader(solid(RED), vertices)
            draws = [build(98, point_size=size) + build(33, mode=4, length=3) for size in (1.0, 2.0)]
        body = b"".join(draws[k & 1] for k in range(changes + 1))
        start, end, _ = frame.job.binning(viewport(frame.job) + head + body)
        frame.v3d.write(CT0CA, start)
        frame.v3d.write(CT0EA, end)
        assert frame.v3d.read(BFC) == 1
        assert frame.reporter.counts == ({"CLE-029": 1} if reported else {})


def test_nothing_is_left_in_the_map_of_used_vertices() -> None:
    scene = Scene()
    scene.bin(scene.shader(scene.copy) + all_modes(scene))
    used = scene.frame.v3d.binning.native.context.used
    assert ctypes.string_at(used, MAX_VERTICES) == bytes(MAX_VERTICES)


def test_draws_out_of_order() -> None:
    """Before a shader, with a VG shader, after the flush, before record 6."""

    def run(scene: Scene) -> None:
        draw = scene.indexed(4, 30)
        shader = scene.shader(scene.copy)
        job = scene.frame.job
        scene.bin(draw + shader + draw + scene.frame.vg_shader(solid(RED)) + draw)
        scene.bin(shader + draw + build(4) + draw)
        start = job.put(shader + draw + build(4))
        scene.frame.v3d.write(CT0CA, start)
        scene.frame.v3d.write(CT0EA, job.top)

    fast = both(run)
    assert {"CLE-038", "CLE-021"} <= set(fast.frame.reporter.counts)


def test_each_primitive_record_says_that_the_window_is_empty() -> None:
    """Those that Python executes, too, in any order."""

    def run(scene: Scene) -> None:
        words = scene.frame.job.put(struct.pack("<3I", 0, 0x10, 0x100000))
        vg = scene.frame.vg_shader(solid(RED)) + build(41, type=4, length=3, address=words)
        draw = scene.shader(scene.copy) + scene.indexed(4, 30)
        scene.bin(build(102, left=9, bottom=9, width=0, height=9) + draw + vg + scene.indexed(4, 9) + vg)

    assert both(run).frame.reporter.counts["CLE-026"] == 4


@pytest.mark.parametrize("left", range(0, 240, 9))
def test_a_list_across_the_end_of_memory(left: int) -> None:
    def run(scene: Scene) -> None:
        body = scene.shader(scene.copy) + scene.indexed(4, 30)
        scene.bin(body)
        scene.bin(body * 4, start=MEMORY_SIZE - left)

    both(run, messages=False)  # of a record cut in two, whose program may be any word


@pytest.mark.parametrize("what", ["record", "code", "vertices"])
def test_shaders_at_the_end_of_memory(what: str) -> None:
    def run(scene: Scene) -> None:
        memory = scene.frame.job.memory
        code = assemble(copies(7)).bytes
        address, base = scene.copy, scene.vertices
        if what == "code":
            address = MEMORY_SIZE - 40
            memory.write(address, code)
        if what == "vertices":
            base = MEMORY_SIZE - 500
        record = scene.record(address, base=base)
        place = MEMORY_SIZE - 32 if what == "record" else scene.frame.job.put(record)
        memory.write(place, record)
        for _ in range(2):
            scene.bin(build(64, address=place, attributes=1) + scene.indexed(4, 60))

    both(run)


@pytest.mark.parametrize("base", [0x7E20_0000, MEMORY_SIZE - 3000, 0xC000_0000, 0])
def test_addresses_worth_a_message(base: int) -> None:
    """A known program with arrays in the registers, across the end, by another alias."""

    def run(scene: Scene) -> None:
        draw = scene.indexed(4, 30)
        there = base | scene.vertices if base == 0xC000_0000 else base
        scene.bin(scene.shader(scene.copy) + draw)
        scene.bin(scene.shader(scene.copy, base=there or scene.vertices) + draw * 2)

    assert bool(both(run).frame.reporter.items) == bool(base)


def test_long_lists() -> None:
    """More records than one native call executes, and more vertices than a list may have."""

    def run(scene: Scene) -> None:
        draw = scene.indexed(4, 30)
        scene.bin(scene.shader(scene.copy) + draw + build(1) * ((1 << 20) + 5) + draw)
        huge = scene.indexed(4, (1 << 22) + 1, address=0x2000_0000)
        scene.bin(scene.shader(scene.copy) + 6 * huge)

    assert both(run).frame.reporter.has("VTX-001")


def test_an_endless_list() -> None:
    def run(scene: Scene) -> None:
        job = scene.frame.job
        body = scene.shader(scene.copy) + scene.indexed(4, 30)
        scene.bin(body)
        start = job.room(64)
        job.memory.write(start, body * 2 + build(16, address=start))
        scene.frame.v3d.write(CT0CA, start)
        scene.frame.v3d.write(CT0EA, start + 4096)

    assert both(run).frame.reporter.has("CLE-006")
