"""Clipped primitives against a brute-force model in homogeneous coordinates."""

import ctypes
import random
import struct

import numpy as np
import pytest
from tests.support.binning import IndexSource
from tests.v3d.ptb.binning import Frame, coordinates, indexed

from vc4lab.memory import GuestMemory
from vc4lab.v3d.ptb import context as pc
from vc4lab.v3d.ptb.binner import native
from vc4lab.v3d.ptb.context import BinnerContext

HALF_W, HALF_H = 256 * 16.0, 192 * 16.0


@pytest.fixture(scope="module")
def memory():
    return GuestMemory()


def prepared(memory, pool=1 << 22, initial_block=0, **switches):
    frame = Frame(memory, 8, 6, pool, switches, initial_block=initial_block)
    frame.state(105, struct.pack("<2f", HALF_W, HALF_H))
    frame.state(106, struct.pack("<2f", 0.5, 0.5))
    frame.state(103, struct.pack("<2h", int(HALF_W), int(HALF_H)))
    frame.start()
    return frame


def projected(vertex):
    """Screen word coordinates as a shader computes them; anything for a vertex behind the eye."""
    x, y, _, w = vertex
    if w <= 0:
        return 0, 0
    return tuple(int(np.clip(v / w * s, -32768, 32767)) for v, s in ((x, HALF_W), (y, HALF_H)))


def parts_of(memory, frame):
    """Distinct binned primitives: (indices, flags, clip entries by slot)."""
    seen = {}
    for content in frame.all_tiles().values():
        for indices, flags, record in content.primitives:
            entries, place = {}, record
            for slot in range(3):
                if flags >> slot & 1:
                    entries[slot] = struct.unpack("<2h5f", memory.read(place, 24))
                    place += 32
            seen[indices, flags, record] = entries
    return seen


@pytest.mark.parametrize("seed", range(12))
def test_clipped_triangles_cover_what_is_visible(memory, seed):
    rng = np.random.default_rng(seed)
    spread = (1.5, 4.0, 40.0)[seed % 3]
    vertices = []
    while len(vertices) < 30:
        w = rng.uniform(-1, 3, 3)
        corner = np.stack(
            [rng.uniform(-spread, spread, 3), rng.uniform(-spread, spread, 3), rng.uniform(-2, 2, 3), w],
            axis=1,
        )
        vertices += [tuple(float(np.float32(v)) for v in row) for row in corner]
    frame = prepared(memory)
    buffer = coordinates([projected(v) for v in vertices], vertices)
    assert frame.binner.draw(4, IndexSource(30), buffer) == pc.DONE
    assert frame.binner.flush() == pc.DONE
    parts = parts_of(memory, frame)
    tiles = frame.all_tiles()
    for first in range(0, 30, 3):
        corners = np.array(vertices[first : first + 3], dtype=float)
        matrix = corners[:, (0, 1, 3)].T
        if abs(np.linalg.det(matrix)) < 1e-3:
            continue
        own = {k: e for k, e in parts.items() if k[0] == (first, first + 1, first + 2)}
        shapes = []
        for (indices, _, _), entries in own.items():
            points = [
                entries[slot][:2] if slot in entries else projected(vertices[indices[slot]])
                for slot in range(3)
            ]
            shapes.append(np.array(points, dtype=float))
            check_entries(corners, entries)
        for _ in range(60):
            check_pixel(rng, corners, matrix, shapes, own, tiles)


def check_entries(corners, entries):
    for xs, ys, zs, inverse_w, *weights in entries.values():
        assert abs(sum(weights) - 1) < 1e-5
        x, y, z, w = np.array(weights) @ corners
        assert w > 0
        assert abs(inverse_w * w - 1) < 1e-3
        assert abs(xs - x / w * HALF_W) < 1 + 1e-3 * abs(xs)
        assert abs(ys - y / w * HALF_H) < 1 + 1e-3 * abs(ys)
        assert abs(zs - (z / w * 0.5 + 0.5)) < 1e-3 * max(1, abs(zs))
        assert abs(z) <= w * 1.001


def check_pixel(rng, corners, matrix, shapes, own, tiles):
    """A pixel well inside the visible part is in one shape (and its tile's list), else in none."""
    px, py = rng.uniform(-1, 1, 2)
    weights = np.linalg.solve(matrix, [px, py, 1.0])  # homogeneous: w = 1 at the hit
    depth = weights @ corners[:, 2]
    margin = min(weights.min(), 1 - depth, 1 + depth)
    sx, sy = px * HALF_W, py * HALF_H
    hits = sum(inside(shape, sx, sy) for shape in shapes)
    scale = np.abs(weights).max()
    if margin > 0.02 * scale:
        assert hits >= 1
        tile = tiles[int(sx + HALF_W) // 1024, int(sy + HALF_H) // 1024]
        assert any((p[0], p[1], p[2]) in own for p in tile.primitives)
    elif margin < -0.02 * scale:
        assert hits == 0


def inside(shape, x, y):
    signs = []
    for k in range(3):
        (x0, y0), (x1, y1) = shape[k], shape[(k + 1) % 3]
        signs.append((x1 - x0) * (y - y0) - (y1 - y0) * (x - x0))
    return min(signs) >= 0 or max(signs) <= 0


def test_winding_is_kept(memory):
    corners = [(-1.0, -1.0, 0.0, 1.0), (1.0, -1.0, 0.0, 1.0), (0.0, 3.0, 5.0, 1.0)]
    frame = prepared(memory)
    assert frame.binner.draw(4, IndexSource(3), coordinates(list(map(projected, corners)), corners)) == 0
    assert frame.binner.flush() == 0
    parts = parts_of(memory, frame)
    assert frame.binner.counters["clipped"] == 1
    assert len(parts) == 2
    for (indices, _, _), entries in parts.items():
        points = [entries[s][:2] if s in entries else projected(corners[indices[s]]) for s in range(3)]
        (ax, ay), (bx, by), (cx, cy) = points
        assert (bx - ax) * (cy - ay) - (cx - ax) * (by - ay) > 0


def test_original_vertices_keep_their_screen_position(memory):
    corners = [(-0.97, -0.3, 0.0, 1.0), (0.77, -0.51, 0.0, 1.0), (0.33, 0.5, -2.0, 1.0)]
    frame = prepared(memory)
    assert frame.binner.draw(4, IndexSource(3), coordinates([(11, 22), (33, 7), (0, 0)], corners)) == 0
    assert frame.binner.flush() == 0
    units = {(1.0, 0.0, 0.0): (11, 22), (0.0, 1.0, 0.0): (33, 7)}
    entries = [e for part in parts_of(memory, frame).values() for e in part.values()]
    moved = [(entry[4:], entry[:2]) for entry in entries if entry[4:] in units]
    assert moved
    assert all(units[weights] == place for weights, place in moved)


@pytest.mark.parametrize("before", range(24))
def test_a_clipped_triangle_keeps_its_record_where_a_block_ends(memory, before):
    """Triangles of two bytes each stand before it, which has seven; the next block is far away, so
    that the list ends with this one."""
    frame = prepared(memory, pool=48 * 64, initial_block=1)
    frame.binner.supply_memory(0x4F000000, 4096)
    plain = [(-0.9, -0.9, 0.0, 1.0), (-0.8, -0.9, 0.0, 1.0), (-0.9, -0.8, 0.0, 1.0)]
    vertices = [*plain * 20, (-0.8, -0.8, 3.0, 1.0)]
    indices = [0, 1, 2] * before + [0, 1, 60]
    buffer = coordinates([projected(v) for v in vertices], vertices)
    assert frame.binner.draw(4, indexed(memory, indices), buffer) == pc.DONE
    assert frame.binner.flush() == pc.DONE
    parts = frame.tile(0, 0).primitives
    assert [(item, flags) for item, flags, _ in parts[:before]] == [((0, 1, 2), 0)] * before
    assert len(parts) > before
    assert all(flags and record for _, flags, record in parts[before:])


def test_rejects_and_counts(memory):
    outside = [(5.0, 0.0, 0.0, 1.0), (6.0, 0.0, 0.0, 1.0), (5.0, 1.0, 0.0, 1.0)]
    broken = [(float("nan"), 0.0, 0.0, 1.0), (0.0, 0.0, 0.0, 1.0), (0.5, 0.5, float("inf"), 1.0)]
    plain = [(0.0, 0.0, 0.0, 1.0), (0.5, 0.0, 0.0, 1.0), (0.0, 0.5, 0.0, 1.0)]
    every = outside + broken + plain
    frame = prepared(memory)
    assert frame.binner.draw(4, IndexSource(9), coordinates([projected((0, 0, 0, 1))] * 9, every)) == 0
    counters = frame.binner.counters
    assert (counters["rejected"], counters["clipped"]) == (2, 0)
    assert counters["degenerate"] == 1
    assert frame.binner.draw(0, IndexSource(9), coordinates([(0, 0)] * 9, every)) == 0
    assert frame.binner.counters["rejected"] == 2 + 2  # those that are no numbers


@pytest.mark.parametrize("seed", range(5))
def test_clipped_lines_keep_their_direction(memory, seed):
    rng = random.Random(seed)
    ends = [
        (rng.uniform(-2, 2), rng.uniform(-2, 2), rng.uniform(-3, 3), rng.uniform(-0.5, 2)) for _ in range(40)
    ]
    ends = [tuple(struct.unpack("<4f", struct.pack("<4f", *v))) for v in ends]
    frame = prepared(memory)
    buffer = coordinates(list(map(projected, ends)), ends)
    assert frame.binner.draw(1, IndexSource(40), buffer) == 0
    assert frame.binner.flush() == 0
    for (indices, flags, _), entries in parts_of(memory, frame).items():
        a, b = (np.array(ends[i]) for i in indices)
        assert flags & 4 == 0
        for _, _, zs, inverse_w, wa, wb, _ in entries.values():
            point = wa * a + wb * b
            assert abs(wa + wb - 1) < 1e-5
            assert abs(point[2]) <= point[3] * 1.001
            assert abs(zs - (point[2] / point[3] * 0.5 + 0.5)) < 1e-3
            assert abs(inverse_w * point[3] - 1) < 1e-3
        if flags == 3:
            assert entries[0][4] > entries[1][4]


def test_guard_band_is_a_switch(memory):
    corners = [(-1.5, -0.5, 0.0, 1.0), (0.5, -0.5, 0.0, 1.0), (0.0, 0.5, 0.0, 1.0)]
    buffer = coordinates(list(map(projected, corners)), corners)
    for choice, clipped in (("wide", 0), ("viewport", 1)):
        frame = prepared(memory, guard_band=choice)
        assert frame.binner.draw(4, IndexSource(3), buffer) == 0
        assert frame.binner.counters["clipped"] == clipped


def test_order_of_clipper_z_is_a_switch(memory):
    corners = [(-0.5, -0.5, 0.0, 1.0), (0.5, -0.5, 0.0, 1.0), (0.0, 0.5, -2.0, 1.0)]
    buffer = coordinates(list(map(projected, corners)), corners)
    depths = []
    for choice in ("scale_first", "offset_first"):
        frame = prepared(memory, clipper_z_order=choice)
        frame.state(106, struct.pack("<2f", 0.25, 0.75))
        assert frame.binner.draw(4, IndexSource(3), buffer) == 0
        assert frame.binner.flush() == 0
        entries = [e for part in parts_of(memory, frame).values() for e in part.values()]
        depths.append(min(round(entry[2], 5) for entry in entries))
    assert depths == [0.5, -0.5]  # the near plane: Zc/Wc = -1


def test_end_of_a_line_loop_is_a_switch(memory):
    plain = [(0.0, 0.0, 0.0, 1.0), (0.5, 0.0, 0.0, 1.0), (0.0, 0.5, 0.0, 1.0)]
    buffer = coordinates(list(map(projected, plain)), plain)
    for choice, closing in (("last_first", (2, 0)), ("first_last", (0, 2))):
        frame = prepared(memory, line_loop_end=choice)
        assert frame.binner.draw(2, IndexSource(3), buffer) == 0
        assert frame.binner.flush() == 0
        assert {k[0] for k in parts_of(memory, frame)} == {(0, 1), (1, 2), closing}


@pytest.mark.parametrize(
    "guard", [(32752.0, 32752.0), (3000.0, 32752.0), (32752.0, 2000.0), (4000.0, 3000.0)]
)
def test_outcodes_of_batches(guard):
    """Bits of each vertex against numpy: batches all inside, partly outside, and of odd numbers."""
    rng = np.random.default_rng(7)
    batches = 200
    words = rng.uniform(-1, 1, (batches, 4, 16)).astype("f4")
    words[:, 3] = rng.uniform(1, 1.5, (batches, 16))
    odd = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-21, 1e-20, -1.0, 1.0, 3.4e38, 1e-45, 8.2]
    for batch in range(60, batches):
        for _ in range(int(rng.integers(1, 8)) if batch < 180 else 60):
            words[batch, rng.integers(4), rng.integers(16)] = rng.choice(odd)
    words[::7, :2] = words[::7, 3:]  # exactly on the planes
    half = (np.float32(4000.0), np.float32(-3000.0))
    codes = (ctypes.c_uint8 * (batches * 16))()
    context = BinnerContext(vertices=words.ctypes.data, codes=ctypes.addressof(codes), pitch=256)
    context.half_width, context.half_height = half
    context.guard_x, context.guard_y = guard
    x, y, z, w = (words[:, k] for k in range(4))
    with np.errstate(all="ignore"):
        expected = (x < -w) * 1 | (x > w) * 2 | (y < -w) * 4 | (y > w) * 8
        expected |= (z < -w) * 16 | (z > w) * 32
        wide = np.abs(x * half[0]) > w * np.float32(guard[0])
        wide |= np.abs(y * half[1]) > w * np.float32(guard[1])
        expected |= (wide | (w < np.float32(1e-20))) * 64
        expected |= ~np.isfinite(words).all(axis=1) * 128
    context.clipping = 1
    native("outcodes")(context.address, 0, batches - 1)
    assert np.array_equal(np.array(codes).reshape(batches, 16), expected)
    assert context.clipping == 1
    native("outcodes")(context.address, 1, 6)
    assert context.clipping == int(guard[0] < half[0] or guard[1] < -half[1])


@pytest.mark.parametrize("guard", ["wide", "viewport"])
def test_points_are_culled_by_z_and_w_only(memory, guard):
    """A wide point whose centre lies beside the view volume shows what reaches into it."""
    shown = {
        (1.02, 0.0, 0.0, 1.0): {(7, 2), (7, 3)},
        (0.0, -1.02, 0.0, 1.0): {(3, 0), (4, 0)},
        (-1.03, 1.03, 0.0, 1.0): {(0, 5)},
        (3.0, 0.0, 0.0, 1.0): set(),  # too far away
        (1.02, 0.0, 1.1, 1.0): set(),  # beyond the far plane
        (1.02, 0.0, -1.1, 1.0): set(),
        (0.0, 0.0, 0.0, -1.0): set(),
        (0.0, 0.0, 0.0, 0.0): set(),
        (1.02, 0.0, 0.0, 1e-30): set(),
        (float("nan"), 0.0, 0.0, 1.0): set(),
        (9.0, 0.0, 0.0, 1.0): set(),  # 12.4 does not reach so far: the word means another place
    }
    for clip, tiles in shown.items():
        frame = prepared(memory, guard_band=guard)
        x, y = (round(v / clip[3] * s) if clip[3] == 1.0 and v == v else 0
                for v, s in zip(clip, (HALF_W, HALF_H), strict=False))  # fmt: skip
        where = coordinates([(x, y)], [clip], sizes=[32.0])
        assert frame.binner.draw(0, IndexSource(1), where) == pc.DONE
        assert frame.binner.flush() == pc.DONE
        found = {place for place, tile in frame.all_tiles().items() if tile.primitives}
        assert found == tiles, clip
