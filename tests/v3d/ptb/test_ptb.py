"""Tile lists written by the binner, parsed back with the reference decoder."""

import random
import struct

import numpy as np
import pytest
from tests.support.binning import BinnerByHand, IndexSource
from tests.v3d.ptb.binning import BASE, INDICES, Frame, coordinates, indexed

from vc4lab.diagnostics import Reporter
from vc4lab.memory import GuestMemory
from vc4lab.records.declarations import TileBinningMode
from vc4lab.v3d.ptb import context as pc
from vc4lab.v3d.state.frame_mode import tile_size
from vc4lab.v3d.unknowns import Unknowns


@pytest.fixture(scope="module")
def memory():
    return GuestMemory()


def assemble(mode, order):
    """Independent primitives of a draw, newest vertex last."""
    n = len(order)
    if mode == 0:
        return [(v,) for v in order]
    if mode == 1:
        return [tuple(order[k : k + 2]) for k in range(0, n - 1, 2)]
    if mode in (2, 3):
        lines = [(order[k], order[k + 1]) for k in range(n - 1)]
        return lines + ([(order[-1], order[0])] if mode == 2 and n > 1 else [])
    if mode == 4:
        return [tuple(order[k : k + 3]) for k in range(0, n - 2, 3)]
    if mode == 5:
        strip = [(order[k : k + 3]) for k in range(n - 2)]
        return [(b, a, c) if k % 2 else (a, b, c) for k, (a, b, c) in enumerate(strip)]
    return [(order[0], order[k], order[k + 1]) for k in range(1, n - 1)]


def covers(points, x, y):
    """Whether point (x, y) lies in the closed triangle; None for a triangle without area."""
    (ax, ay), (bx, by), (cx, cy) = points
    area = (bx - ax) * (cy - ay) - (cx - ax) * (by - ay)
    if area == 0:
        return None
    sign = 1 if area > 0 else -1
    return all(
        sign * ((x1 - x0) * (y - y0) - (y1 - y0) * (x - x0)) >= 0
        for (x0, y0), (x1, y1) in ((points[0], points[1]), (points[1], points[2]), (points[2], points[0]))
    )


def covers_any(points, x, y):
    """Whether one of the sample positions lies in the triangle."""
    edges = list(zip(points, points[1:] + points[:1], strict=True))
    inside = [(x1 - x0) * (y - y0) - (y1 - y0) * (x - x0) for (x0, y0), (x1, y1) in edges]
    low, high = np.minimum.reduce(inside), np.maximum.reduce(inside)
    return covers(points, 0, 0) is not None and bool(((low >= 0) | (high <= 0)).any())


@pytest.mark.parametrize("mode", range(7))
@pytest.mark.parametrize("source", ["array", "bytes", "shorts"])
def test_one_tile_gets_everything_in_order(memory, mode, source):
    rng = random.Random(mode)
    frame = Frame(memory, 4, 4)
    screen = [(rng.randrange(16, 1000), rng.randrange(16, 1000)) for _ in range(256)]
    frame.start()
    if source == "array":
        order = list(range(3, 203))
        where = IndexSource(200, first=3)
    else:
        order = [rng.randrange(256) for _ in range(200)]
        where = indexed(memory, order, 8 if source == "bytes" else 16)
    assert frame.binner.draw(mode, where, coordinates(screen)) == pc.DONE
    assert frame.binner.flush() == pc.DONE
    expected = assemble(mode, order)
    assert frame.binner.context.primitive_count == len(expected)
    if mode >= 4:
        expected = [t for t in expected if covers([screen[v] for v in t], 0, 0) is not None]
    found = frame.tile(0, 0)
    assert [p[0] for p in found.primitives] == expected
    assert [r[0] for r in found.records] == [56, 65]
    assert found.records[0][1] == 0x10 | (0, 1, 1, 1, 2, 2, 2)[mode]
    for position, content in frame.all_tiles().items():
        if position != (0, 0):
            assert not content.records
            assert mode < 4 or not content.primitives
    assert frame.binner.counters["entries"] >= len(expected)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("flags", [{}, {"multisample": 1}, {"colour64": 1}, {"block": 2}])
def test_every_touched_tile_has_the_triangle(memory, seed, flags):
    rng = random.Random(seed)
    frame = Frame(memory, 8, 6, **flags)
    wide, high = tile_size(flags.get("multisample", 0), flags.get("colour64", 0))
    scale = rng.choice((60, 400, 1500))
    offset = rng.choice((0, 2048))
    frame.state(103, struct.pack("<2h", offset, offset))
    screen = []
    for _ in range(80):
        cx, cy = rng.randrange(-300, 8 * wide * 16), rng.randrange(-300, 6 * high * 16)
        for _ in range(3):
            screen.append(
                (cx - offset + rng.randrange(-scale, scale), cy - offset + rng.randrange(-scale, scale))
            )
    screen = [(max(-32768, min(32767, x)), max(-32768, min(32767, y))) for x, y in screen]
    frame.start()
    assert frame.binner.draw(4, IndexSource(240), coordinates(screen), clip=False) == pc.DONE
    assert frame.binner.flush() == pc.DONE
    tiles = frame.all_tiles()
    excess = total = 0
    for k in range(0, 240, 3):
        triangle = (k, k + 1, k + 2)
        points = [(x + offset, y + offset) for x, y in screen[k : k + 3]]
        for (tx, ty), content in tiles.items():
            here = any(p[0] == triangle for p in content.primitives)
            x = tx * wide * 16 + 16 * np.arange(0, wide, 3) + 8
            y = ty * high * 16 + 16 * np.arange(0, high, 3)[:, None] + 8
            touched = covers_any(points, x, y)
            assert here or not touched
            total += here
            excess += here and not touched
    assert excess < 0.7 * total + 20
    for content in tiles.values():
        order = [p[0][0] for p in content.primitives]
        assert order == sorted(order)


def test_state_cache(memory):
    frame = Frame(memory, 2, 1)
    tri = coordinates([(16, 16), (160, 16), (16, 160), (1040, 16), (1200, 16), (1040, 160)])
    left, right = IndexSource(3), IndexSource(3, first=3)
    frame.state(96, b"\x01\0\0")  # prefix: stays out
    frame.state(98, struct.pack("<f", 2.0))
    frame.start()
    draw = frame.binner.draw
    assert draw(4, left, tri) == 0
    frame.state(96, b"\x02\0\0")
    frame.state(96, b"\x03\0\0")  # only the latest value is written
    assert draw(4, left, tri) == 0
    frame.state(97, b"\x01\0\0\0")
    assert draw(4, right, tri) == 0
    assert draw(4, left, tri) == 0
    assert frame.binner.flush() == 0
    shader = b"\x41\x30\x12\0\0"
    one, two = frame.tile(0, 0), frame.tile(1, 0)
    assert one.records == [b"\x38\x12", shader, b"\x60\x03\0\0", b"\x61\x01\0\0\0"]
    assert two.records == [b"\x60\x03\0\0", b"\x61\x01\0\0\0", b"\x38\x12", shader]
    assert len(one.primitives) == 3
    assert len(two.primitives) == 1


def test_flush_all_state_writes_prefix_state_everywhere(memory):
    frame = Frame(memory, 3, 1)
    frame.state(96, b"\x07\0\0")
    frame.state(103, bytes(4))
    frame.start()
    tri = coordinates([(16, 16), (160, 16), (16, 160)])
    assert frame.binner.draw(4, IndexSource(3), tri) == 0
    assert frame.binner.flush(all_state=True) == 0
    for x in range(3):
        tail = frame.tile(x, 0).records[-4:]
        assert [r[0] for r in tail] == [96, 103, 56, 65]


def test_change_of_primitive_type_writes_the_format(memory):
    frame = Frame(memory, 1, 1)
    frame.start()
    some = coordinates([(16, 16), (160, 16), (16, 160)])
    for mode in (4, 1, 4, 0):
        assert frame.binner.draw(mode, IndexSource(3), some) == 0
    assert frame.binner.flush() == 0
    records = frame.tile(0, 0).records
    assert [r[1] for r in records if r[0] == 56] == [0x12, 0x11, 0x12, 0x10]
    assert [r[0] for r in records] == [56, 65] * 4
    assert [len(p[0]) for p in frame.tile(0, 0).primitives] == [3, 2, 3, 1, 1, 1]


def test_overspill_and_resume(memory):
    rng = random.Random(3)
    screen = [(rng.randrange(8192), rng.randrange(6144)) for _ in range(300)]
    expected = None
    for pool in (1 << 22, 48 * 32 + 320):
        frame = Frame(memory, 8, 6, pool=pool)
        frame.start()
        status = frame.binner.draw(4, IndexSource(300), coordinates(screen), clip=False)
        supplied = 0
        while status == pc.OUT_OF_MEMORY:
            assert frame.binner.pool_bytes < 32
            frame.binner.supply_memory(0x40300000 + supplied * 4096, 4096)
            supplied += 1
            status = frame.binner.resume()
        assert status == pc.DONE
        status = frame.binner.flush(all_state=True)
        while status == pc.OUT_OF_MEMORY:
            frame.binner.supply_memory(0x40300000 + supplied * 4096, 4096)
            supplied += 1
            status = frame.binner.resume()
        lists = {k: [p[0] for p in t.primitives] for k, t in frame.all_tiles().items()}
        entries = frame.binner.counters["entries"]
        assert entries == sum(map(len, lists.values()))
        assert expected is None or lists == expected
        expected = lists
    assert supplied >= 2


def test_small_declared_pool_goes_on_behind_the_fixed_area(memory):
    frame = Frame(memory, 8, 6, pool=64)
    assert frame.binner.context.pool_missing
    assert frame.binner.pool_bytes > 1 << 31
    assert frame.binner.pool_address == BASE + 48 * 32


def test_far_blocks_are_linked_by_branches(memory):
    frame = Frame(memory, 1, 1, pool=32)
    frame.start()
    some = coordinates([(16, 16), (160, 16), (16, 160)])
    status = frame.binner.draw(4, indexed(memory, [0, 1, 2] * 60), some)
    assert status == pc.OUT_OF_MEMORY
    frame.binner.supply_memory(0x4F000000, 4096)  # more than 1 MiB away
    assert frame.binner.resume() == pc.DONE
    assert frame.binner.flush() == pc.DONE
    assert [p[0] for p in frame.tile(0, 0).primitives] == [(0, 1, 2)] * 60


def test_maximum_index_is_checked(memory):
    frame = Frame(memory, 1, 1)
    frame.start()
    some = coordinates([(16, 16), (160, 16), (16, 160)] * 4)
    source = indexed(memory, [0, 1, 2, 0, 1, 9], maximum=2)
    assert frame.binner.draw(4, source, some) == pc.BAD_INDEX
    assert frame.reporter.has("CLE-014")
    assert frame.binner.flush() == pc.DONE
    assert len(frame.tile(0, 0).primitives) == 1


def test_points_and_lines_reach_as_far_as_their_size(memory):
    frame = Frame(memory, 4, 4)
    frame.state(99, struct.pack("<f", 40.0))
    frame.start()
    center = coordinates([(1024 * 2 - 16, 1024 * 2 - 16)], sizes=[4.0])
    assert frame.binner.draw(0, IndexSource(1), center) == 0
    line = coordinates([(1024 + 160, 1024 + 160), (3 * 1024 - 160, 1024 + 160)])
    assert frame.binner.draw(1, IndexSource(2), line) == 0
    assert frame.binner.flush() == 0
    tiles = frame.all_tiles()
    points = {k for k, t in tiles.items() if any(len(p[0]) == 1 for p in t.primitives)}
    lines = {k for k, t in tiles.items() if any(len(p[0]) == 2 for p in t.primitives)}
    assert points == {(1, 1), (2, 1), (1, 2), (2, 2)}
    assert {(1, 0), (2, 0), (1, 1), (2, 1)} <= lines
    assert all(y < 2 for _, y in lines)


@pytest.mark.parametrize("in_vertex", [False, True])
def test_points_reach_no_farther_than_512_pixels(memory, in_vertex):
    """Larger sizes, and nonsense, act as 512 (or as nothing)."""
    reached = {}
    for size in (512.0, 528.0, 1e9, float("inf"), float("nan"), -1.0):
        frame = Frame(memory, 16, 1)
        frame.state(98, struct.pack("<f", 4.0 if in_vertex else size))
        frame.start()
        centre = coordinates([(512 * 16 + 8, 32 * 16)], sizes=[size] if in_vertex else None)
        assert frame.binner.draw(0, IndexSource(1), centre) == pc.DONE
        assert frame.binner.flush() == pc.DONE
        reached[size] = sorted(x for (x, _), t in frame.all_tiles().items() if t.primitives)
    inside = list(range(4, 13))
    found = list(reached.values())
    assert found[:4] == [inside] * 4
    assert all(set(tiles) <= {7, 8} for tiles in found[4:])


def test_clip_window_limits_the_tiles(memory):
    big = coordinates([(-9000, -9000), (30000, -9000), (-9000, 30000)])
    frame = Frame(memory, 8, 6)
    frame.state(102, struct.pack("<4H", 70, 64, 100, 65))
    frame.start()
    assert frame.binner.draw(4, IndexSource(3), big, clip=False) == 0
    frame.state(102, struct.pack("<4H", 1, 0, 0, 50))
    assert frame.binner.draw(4, IndexSource(3), big, clip=False) == 0
    assert frame.binner.flush() == 0
    touched = {k for k, t in frame.all_tiles().items() if t.primitives}
    assert touched == {(x, y) for x in (1, 2) for y in (1, 2)}


def test_indices_beyond_the_coordinates_are_held_inside(memory):
    frame = Frame(memory, 1, 1)
    frame.start()
    some = coordinates([(16, 16), (160, 16), (16, 160)])
    assert frame.binner.draw(4, indexed(memory, [0, 1, 65535, 0, 9, 2]), some) == pc.DONE
    assert frame.binner.flush() == pc.DONE
    assert [p[0] for p in frame.tile(0, 0).primitives] == [(0, 1, 2)]


def test_long_work_can_be_interrupted(memory):
    frame = Frame(memory, 1, 1)
    frame.start()
    some = coordinates([(16, 16), (160, 16), (16, 160)])
    asked = []

    def stop():
        asked.append(1)
        return len(asked) == 1

    frame.binner.interrupted = stop
    assert frame.binner.draw(4, IndexSource(6_600_000), some) == pc.PAUSED
    assert frame.binner.resume() == pc.DONE
    assert len(asked) == 2


def test_random_input_is_survived(memory):
    rng = random.Random(9)
    for _ in range(60):
        frame = Frame(
            memory,
            rng.choice((0, 1, 3, 255)),
            rng.choice((1, 2, 40)),
            pool=rng.getrandbits(rng.choice((8, 32))),
            multisample=rng.getrandbits(1),
            colour64=rng.getrandbits(1),
            block=rng.getrandbits(2),
            initial_block=rng.getrandbits(2),
        )
        for identifier in (*range(96, 107), 64, 65, 66, 67, 56):
            frame.state(identifier, rng.randbytes(9)[: pc_size(identifier)])
        frame.binner.start()
        words = [struct.unpack("<f", rng.randbytes(4))[0] for _ in range(64)]
        screen = [(rng.getrandbits(16), rng.getrandbits(16)) for _ in range(64)]
        clip = [tuple(rng.choice(words) for _ in range(4)) for _ in range(64)]
        vertices = coordinates(screen, clip, [rng.choice(words) for _ in range(64)])
        memory.write(INDICES, bytes(rng.randrange(64) for _ in range(100)))
        for mode in range(7):
            source = IndexSource(100, address=INDICES, bits=8)
            status = frame.binner.draw(mode, source, vertices)
            for _ in range(3):
                if status == pc.OUT_OF_MEMORY:
                    frame.binner.supply_memory(rng.getrandbits(32), rng.getrandbits(16))
                    status = frame.binner.resume()
        frame.binner.flush(all_state=bool(rng.getrandbits(1)))


def pc_size(identifier):
    from vc4lab.records.control import RECORD_SIZES

    return RECORD_SIZES[identifier] - 1


@pytest.mark.parametrize("choice", ["half", "full"])
def test_the_grid_of_record_112(choice: str) -> None:
    """Tiles, their first blocks and the pool after them, for any record."""
    rng = random.Random(112)
    memory = GuestMemory()
    reporter = Reporter()
    binner = BinnerByHand(memory, reporter, Unknowns({"double_buffer_tile": choice}))
    short = 0
    for _ in range(300):
        mode = TileBinningMode(rng.getrandbits(120))
        if rng.random() < 0.5:
            place, size = rng.choice((0, 0xFFFFFFE0)), rng.getrandbits(rng.randrange(1, 32))
            mode = mode.replace(address=place, tiles_x=rng.randrange(9), memory_size=size)
        binner.configure(mode)
        c, double = binner.context, bool(mode.double_buffer) and choice == "half"
        columns, rows = int(mode.tiles_x), int(mode.tiles_y)
        shape = tile_size(bool(mode.multisample), bool(mode.colour64), double)
        assert (c.width, c.height) == (columns, rows)
        assert (1 << (c.shift_x - 4), 1 << (c.shift_y - 4)) == shape
        initial, block = 32 << int(mode.initial_block), 32 << int(mode.block)
        end = int(mode.address) + columns * rows * initial
        pool = -(-end // block) * block
        left = int(mode.memory_size) - (pool - int(mode.address))
        assert (binner.pool_address, binner.pool_bytes) == (pool % 2**32, left % 2**32)
        assert c.block_bytes == block
        assert (c.last_x, c.last_y) == (columns - 1, rows - 1)
        assert c.pool_missing == (left < 0)
        short += left < 0
        for k in range(columns * rows):
            tile = pc.TileState.python.from_buffer(binner._tiles, k * pc.TileState.size)
            first = int(mode.address) + k * initial
            assert tile.cursor & 0xFFFFFFFF == first % 2**32
            assert tile.limit & 0xFFFFFFFF == (first + initial - pc.LINK_RESERVE) % 2**32
            assert (tile.seen, tile.key) == (0, 0)
            if k > 20:
                break
    assert short > 10
