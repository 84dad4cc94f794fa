"""VG primitives (records 41, 42) binned into x/y lists and drawn."""

import struct
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.binning import BinnerByHand
from tests.support.frames import BACKGROUND, RED, Frame, inside, solid
from tests.support.jobs import BFC, CT0CA, CT0EA, CT1CA, CT1EA, viewport
from tests.v3d.ptb.binning import read_tile
from tests.v3d.tile_lists.test_xy_lists import trapezoid

from vc4lab.records.control import build
from vc4lab.records.declarations import TileBinningMode
from vc4lab.v3d.registers import BY_NAME
from vc4lab.v3d.unknowns import Unknowns

RHT, RHT_STRIP, TRIANGLES, STRIP, FAN = 1, 3, 4, 5, 6
END, DUMMY = 0xBFFF0000, 0xBFFF0001

ENGINES = [{}, {"threads": 1}, {"threads": 8}, {"engine": "interpreter"}]


def words(*items: tuple[float, float] | int) -> bytes:
    out = b""
    for item in items:
        if isinstance(item, int):
            out += struct.pack("<I", item)
        else:
            out += struct.pack("<2h", round(item[0] * 16), round(item[1] * 16))
    return out


def array(frame: Frame, kind: int, *items: tuple[float, float] | int, continues: int = 0) -> bytes:
    """Record 41."""
    data = words(*items)
    return build(41, type=kind, continuation=continues, length=len(items), address=frame.job.put(data, 4))


def inline(kind: int, *items: tuple[float, float] | int) -> bytes:
    """Record 42, ended where its length allows."""
    return build(42, type=kind) + words(*items)


A, B, C, D, E = (10.0, 10.0), (30.0, 110.0), (60.0, 12.0), (90.0, 115.0), (120.0, 20.0)


@pytest.mark.parametrize("options", ENGINES)
def test_triangles_of_all_kinds(options: dict[str, object]) -> None:
    for kind, items, expected in (
        (TRIANGLES, (A, B, C, C, D, E), [(A, B, C), (C, D, E)]),
        (STRIP, (A, B, C, D, E), [(A, B, C), (B, C, D), (C, D, E)]),
        (FAN, (C, A, B, D, E), [(C, A, B), (C, B, D), (C, D, E)]),
        (TRIANGLES, (A, B, C, C, D, END, C, D, E), [(A, B, C)]),
        (TRIANGLES, (A, B, DUMMY, C, D, E), [(C, D, E)]),
        (STRIP, (A, B, C, END, D, E), [(A, B, C)]),
        (FAN, (C, END, A, B, D), []),
        (STRIP, (A, B, C, DUMMY, D), [(A, B, C), (B, C, D)]),
    ):
        frame = Frame(**options)
        state = viewport(frame.job) + frame.vg_shader(solid(RED))
        picture = frame.bin(state + array(frame, kind, *items))
        assert ((picture == RED) == inside(frame, *expected)).all(), (kind, items)
        assert not frame.reporter.items, frame.reporter.summary()


@pytest.mark.parametrize("options", ENGINES)
def test_trapezoids(options: dict[str, object]) -> None:
    for kind, items, edges in (
        (RHT, (A, B, C, D), [(A, B), (C, D)]),
        (RHT_STRIP, (A, B, C, D), [(A, B), (B, C), (C, D)]),
        (RHT, (A, END, C, D), []),
        (RHT, (A, DUMMY, C, D), [(C, D)]),
        (RHT_STRIP, (A, B, END, C, D), [(A, B)]),
    ):
        frame = Frame(**options)
        state = viewport(frame.job) + build(100, x=20 * 16)
        state += frame.vg_shader(solid(RED), inline=True)
        picture = frame.bin(state + array(frame, kind, *items))
        expected = np.zeros(picture.shape, bool)
        for v0, v1 in edges:
            expected |= trapezoid(frame, v0, v1, 20)
        assert ((picture == RED) == expected).all(), (kind, items)
        assert not frame.reporter.items, frame.reporter.summary()


def test_inline_lists_end_at_their_code() -> None:
    frame = Frame()
    state = viewport(frame.job) + build(100, x=0) + frame.vg_shader(solid(RED))
    state += inline(FAN, C, END, A) + inline(RHT, END, A, B, END)  # an END that is a vertex
    state += inline(STRIP, A, B, C, D, END) + inline(TRIANGLES, C, D, E, E, E, END)
    picture = frame.bin(state)
    expected = inside(frame, (A, B, C), (B, C, D), (C, D, E))
    assert (picture[:, 64:] == RED)[expected[:, 64:]].all()
    assert not frame.reporter.items, frame.reporter.summary()


def test_fans_continue() -> None:
    for choice, expected in (
        ("two", [(C, A, B), (C, B, D), (C, D, E)]),
        ("one", [(C, A, B), (C, A, D), (C, D, E)]),
    ):
        frame = Frame(unknowns=Unknowns({"vg_continuation": choice}))
        state = viewport(frame.job) + frame.vg_shader(solid(RED))
        state += array(frame, FAN, C, A, B) + array(frame, FAN, E, A, D, E, continues=1)
        assert ((frame.bin(state) == RED) == inside(frame, *expected)).all()


def test_a_dummy_may_begin_anew() -> None:
    frame = Frame(unknowns=Unknowns({"vg_dummy": "restart"}))
    state = viewport(frame.job) + frame.vg_shader(solid(RED))
    picture = frame.bin(state + array(frame, STRIP, A, B, C, DUMMY, C, D, E))
    assert ((picture == RED) == inside(frame, (A, B, C), (C, D, E))).all()


def test_positions_are_those_of_the_list() -> None:
    """Depth one half, W one, no varyings."""
    program = """
    nop ; mov r0, ra15
    mov r1, rb15 ; nop ; sbwait
    mov tlbc, r1 ; nop ; thrend
    nop
    nop ; nop ; sbdone
"""
    frame = Frame()
    picture = frame.bin(viewport(frame.job) + frame.vg_shader(program) + array(frame, TRIANGLES, A, B, C))
    assert set(np.unique(picture)) == {BACKGROUND, 0x800000}


@pytest.mark.parametrize("kind", [STRIP, RHT_STRIP])
def test_memory_runs_out_and_is_supplied(kind: int) -> None:
    """However small the blocks are that come, the list is the same."""
    pictures = []
    zigzag = [(1.0 + k % 59, 3.0 + 7 * (k % 8)) for k in range(120)]
    for portions in (None, 64):
        frame = Frame(64, 64, unknowns=Unknowns({"bpos_small": "taken"}))
        job, v3d = frame.job, frame.v3d
        lists = job.room(8192)
        size = 8192 if portions is None else 32
        body = build(112, address=lists, memory_size=size, tiles_x=1, tiles_y=1)
        body += build(6) + viewport(job) + build(100, x=9) + frame.vg_shader(solid(RED))
        body += array(frame, kind, *zigzag) + build(4)
        start = job.put(body)
        v3d.write(CT0CA, start)
        v3d.write(CT0EA, start + len(body))
        supplied = 0
        while v3d.read(BFC) == 0:
            assert portions is not None
            v3d.write(BY_NAME["BPOA"].offset, job.room(portions, 32))
            v3d.write(BY_NAME["BPOS"].offset, portions)
            supplied += 1
        assert (supplied > 3) == (portions is not None)
        render = job.rendering(lists, frame.surface, clear=BACKGROUND)
        v3d.write(CT1CA, render[0])
        v3d.write(CT1EA, render[1])
        pictures.append(frame.pixels())
    assert (pictures[0] == RED).any()
    assert (pictures[0] == pictures[1]).all()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (lambda f: f.vg_shader(solid(RED)) + build(33, mode=4, length=3, first=0), "CLE-038"),
        (lambda f: f.nv_shader(solid(RED), b"") + array(f, TRIANGLES, A, B, C), "CLE-038"),
        (lambda f: array(f, TRIANGLES, A, B, C), "CLE-013"),
        (lambda f: f.vg_shader(solid(RED)) + array(f, 2, A, B, C), "CLE-016"),
        (lambda f: f.vg_shader(solid(RED)) + build(42, type=4), "CLE-039"),
    ],
)
def test_wrong_lists_are_named(body: object, code: str) -> None:
    frame = Frame()
    frame.bin(viewport(frame.job) + body(frame))  # type: ignore[operator]
    assert frame.reporter.has(code), frame.reporter.summary()


class _Bench:
    """A binner of its own, with one tile, reused by many examples."""

    def __init__(self) -> None:
        self.frame = Frame(64, 64)

    def lists(self, kind: int, vertices: list[tuple[int, int]], block: int) -> list[object]:
        memory, job = self.frame.job.memory, self.frame.job
        job.top = 0x20_0000
        binner = BinnerByHand(memory, self.frame.reporter)
        base = 0x30_0000
        record = build(112, address=base, memory_size=1 << 20, tiles_x=1, tiles_y=1, block=block)
        binner.configure(TileBinningMode(int.from_bytes(record[1:], "little")))
        binner.start()
        for state in (build(66, address=16), build(102, left=0, bottom=0, width=64, height=64)):
            binner.set_state(state)
        data = b"".join(struct.pack("<2h", *v) for v in vertices)
        assert binner.draw_vg(kind, job.put(data, 4), len(vertices)) == 0
        assert binner.flush() == 0
        return [item for item, _, _ in read_tile(memory, base).primitives]


BENCH = _Bench()
COORDINATES = st.one_of(st.integers(0, 1023), st.integers(300, 420), st.sampled_from([-32768, 32767, -1, 0]))


@settings(deadline=None, max_examples=150)
@given(
    vertices=st.lists(st.tuples(COORDINATES, COORDINATES), min_size=2, max_size=40),
    kind=st.sampled_from([RHT, RHT_STRIP, TRIANGLES, STRIP, FAN]),
    block=st.integers(0, 3),
)
def test_every_coding_reads_back(vertices: list[tuple[int, int]], kind: int, block: int) -> None:
    """All primitives that touch the tile come out of the reference decoder in their order."""
    found = BENCH.lists(kind, vertices, block)
    n = len(vertices)
    if kind in (RHT, RHT_STRIP):
        pairs = zip(vertices[::2], vertices[1::2], strict=False)
        wanted = list(pairs) if kind == RHT else list(pairwise(vertices))
        wanted = [p for p in wanted if p[0][1] != p[1][1] and _touches(p, 0)]
    else:
        starts = range(0, n - 2, 3 if kind == TRIANGLES else 1)
        wanted = []
        for k in starts:
            a, b, c = vertices[k : k + 3]
            if kind == FAN:
                a = vertices[0]
            elif kind == STRIP and k % 2:
                a, b = b, a
            wanted.append((a, b, c))
        wanted = [t for t in wanted if _area(*t) and t in found]  # exact tile test elsewhere
        assert [t for t in found if t in wanted] == found
    if kind in (RHT, RHT_STRIP):
        assert found == wanted
    else:
        assert found == [t for t in wanted if t in found]


def _area(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> int:
    return (b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1])


def _touches(edge: tuple[tuple[int, int], tuple[int, int]], boundary: int) -> bool:
    xs = [edge[0][0], edge[1][0], boundary]
    ys = [edge[0][1], edge[1][1]]
    return min(xs) >> 10 <= 0 <= max(xs) >> 10 and min(ys) >> 10 <= 0 <= max(ys) >> 10
