"""Triangles that the binner looks at together: windows, runs, what lies after the last one."""

import ctypes
import random
from dataclasses import replace

import pytest
from tests.support.binning import IndexSource
from tests.v3d.ptb.binning import BASE, INDICES, Frame, coordinates, indexed

from vc4lab.memory import MEMORY_SIZE, GuestMemory
from vc4lab.memory.guest import PAD
from vc4lab.v3d.ptb import context as pc

NEXT_BLOCK = BASE + 0x8000


@pytest.fixture(scope="module")
def memory():
    return GuestMemory(guard=True)


@pytest.mark.parametrize("start", [0, 8, 3])
@pytest.mark.parametrize("starved", [False, True])
def test_runs_of_neighbours_are_coded_like_single_triangles(memory, start, starved):
    """Small triangles side by side: bytes and counters are those of one draw for each."""
    rng = random.Random(start)
    screen = [(0, 0)] * start
    x = y = 900
    for k in range(150):
        if k % 11 == 7:
            x, y = rng.randrange(7000), rng.randrange(5000)
        x, y = x + rng.randrange(-60, 120), y + rng.randrange(-60, 120)
        screen += [(x + rng.randrange(400), y + rng.randrange(400)) for _ in range(3)]
    points = coordinates(screen)
    order = list(range(start, len(screen)))
    results = []
    for sources in (
        [IndexSource(450, first=start)],
        [indexed(memory, order)],
        [IndexSource(3, first=k) for k in order[::3]],
    ):
        memory.write(BASE, bytes(1 << 16))
        frame = Frame(memory, 8, 6, pool=48 * 32 + 256 if starved else 1 << 22)
        frame.start()
        place = BASE + 0x8000
        between = 0
        for source in sources:
            status = frame.binner.draw(4, source, points, clip=False)
            while status == pc.OUT_OF_MEMORY:
                between += frame.binner.context.tile_x >= 0
                frame.binner.supply_memory(place, 32)
                place += 32
                status = frame.binner.resume()
            assert status == pc.DONE
        assert frame.binner.flush() == pc.DONE
        lists = {k: [p[0] for p in t.primitives] for k, t in frame.all_tiles().items()}
        assert sum(map(len, lists.values())) == frame.binner.counters["entries"]
        results.append((memory.read(BASE, 1 << 16), lists, frame.binner.counters))
        assert (place > BASE + 0x8000) == starved
        assert (between > 0) == starved  # memory ran out between a triangle's tiles, too
    assert results[0] == results[1]
    assert results[0] == results[2]


@pytest.mark.parametrize("spread", [1, 4, 20, 300])
@pytest.mark.parametrize("starved", [False, True])
def test_triangles_of_any_vertices_are_coded_like_single_ones(memory, spread, starved):
    """All codings, from strips to absolute ones: bytes are those of a draw for each triangle."""
    rng = random.Random(spread)
    screen = [(900 + 13 * k % 2400, 900 + 7 * k % 1700) for k in range(300)]
    points = coordinates([(x + rng.randrange(200), y + rng.randrange(200)) for x, y in screen])
    order, at = [0, 1, 2], 2
    for _ in range(199):
        at = max(0, min(299, at + rng.randrange(-spread, spread + 1)))
        kept = rng.choice([order[-2:], order[-1:] + order[-2:-1], [order[-3], order[-1]], None])
        order += [*(kept or (rng.randrange(300), max(0, at - 2))), at]
    results = []
    for alone in (False, True):
        memory.write(BASE, bytes(1 << 16))
        frame = Frame(memory, 8, 6, pool=48 * 32 + 256 if starved else 1 << 22)
        frame.start()
        whole = indexed(memory, order)
        sources = [whole]
        if alone:
            sources = [IndexSource(3, address=INDICES + 6 * k, bits=16) for k in range(200)]
        place = BASE + 0x8000
        for source in sources:
            status = frame.binner.draw(4, source, points, clip=False)
            while status == pc.OUT_OF_MEMORY:
                frame.binner.supply_memory(place, 32)
                place += 32
                status = frame.binner.resume()
            assert status == pc.DONE
        assert frame.binner.flush() == pc.DONE
        results.append((memory.read(BASE, 1 << 16), frame.all_tiles(), frame.binner.counters))
    assert results[0] == results[1]


@pytest.mark.parametrize("count", [1, 2, 5, 15, 16, 63, 64, 65, 129])
def test_triangles_without_a_trace_are_counted(memory, count):
    """Whether a draw ends inside a window of triangles, with it or after it."""
    shapes = {
        "degenerate": [(100, 100), (200, 200), (300, 300)],
        "outside": [(-100, 100), (-200, 200), (-300, 100)],
        "entries": [(100, 100), (200, 200), (300, 100)],
    }
    for name, shape in shapes.items():
        frame = Frame(memory, 8, 6)
        frame.start()
        points = coordinates(shape * count)
        assert frame.binner.draw(4, IndexSource(3 * count), points, clip=False) == pc.DONE
        assert {k: v for k, v in frame.binner.counters.items() if v and k != "blocks"} == {name: count}
    frame = Frame(memory, 8, 6)
    frame.start()
    unseen = coordinates(shapes["entries"] * count, [(9.0, 0.0, 0.0, 1.0)] * (3 * count))
    assert frame.binner.draw(4, IndexSource(3 * count), unseen) == pc.DONE
    assert {k: v for k, v in frame.binner.counters.items() if v and k != "blocks"} == {"rejected": count}


def test_memory_runs_out_between_tiles_one_above_the_other(memory):
    """The second tile of a triangle is in column 0; no entry is lost, none comes twice."""
    across = [(100, 1000), (200, 1010), (150, 1100)]  # the edge between rows 0 and 1
    above = [(100, 1500), (200, 1510), (150, 1600)]
    between = 0
    for first in range(12):  # so many bytes the lists of the two tiles differ by
        points = coordinates(above * first + across * 40)
        lists = []
        for pool in (1 << 22, 2 * 32):
            frame = Frame(memory, 1, 2, pool=pool)
            frame.start()
            place = NEXT_BLOCK
            status = frame.binner.draw(4, IndexSource(3 * first + 120), points, clip=False)
            while status == pc.OUT_OF_MEMORY:
                between += frame.binner.context.tile_x == 0
                frame.binner.supply_memory(place, 32)
                place += 32
                status = frame.binner.resume()
            while frame.binner.flush() == pc.OUT_OF_MEMORY:
                frame.binner.supply_memory(place, 32)
                place += 32
            tiles = frame.all_tiles().items()
            lists.append({place: [p[0] for p in tile.primitives] for place, tile in tiles})
        assert lists[0] == lists[1]
    assert between


def test_a_smaller_grid_knows_nothing_of_the_tiles_of_the_larger_one(memory):
    """A triangle of many tiles has no tile of its own, not even one that once was there."""
    small = coordinates([(2100, 100), (2200, 110), (2150, 200)] * 3)  # in tile 2
    large = coordinates([(100, 100), (1900, 120), (150, 1900)])
    frame = Frame(memory, 4, 1)
    frame.start()
    assert frame.binner.draw(4, IndexSource(9), small, clip=False) == pc.DONE
    frame.configure(2, 1)
    assert frame.binner.draw(4, IndexSource(3), large, clip=False) == pc.DONE
    assert frame.binner.flush() == pc.DONE
    found = {place: [p[0] for p in tile.primitives] for place, tile in frame.all_tiles().items()}
    assert found == {(0, 0): [(0, 1, 2)], (1, 0): [(0, 1, 2)]}


@pytest.mark.parametrize("start", [0, 2])
@pytest.mark.parametrize("clip", [False, True])
def test_nothing_is_read_behind_the_last_vertex(memory, start, clip):
    """The vertices end where memory does; fifteen triangles leave a lane without any."""
    points = coordinates(
        [(100 + 9 * k, 100 + 50 * (k % 2)) for k in range(48)], [(0.0, 0.0, 0.0, 1.0)] * 48 if clip else None
    )
    size = 3 * points.pitch
    target = memory.base + MEMORY_SIZE + PAD - size
    ctypes.memmove(target, points.address, size)
    frame = Frame(memory, 8, 6)
    frame.start()
    there = replace(points, address=target)
    source = IndexSource(45, first=start)
    assert frame.binner.draw(4, source, there, clip=clip) == pc.DONE
    assert frame.binner.counters["entries"] >= 15


def test_triangles_of_many_tiles_are_coded_behind_others(memory):
    """Whatever vertices they have, and whatever those have that come next."""
    rng = random.Random(5)
    points = coordinates([(rng.randrange(8000), rng.randrange(6000)) for _ in range(64)])
    order = []
    for _ in range(200):
        at = rng.randrange(60)
        order += [at, at + rng.choice((1, 1, 1, 2)), at + rng.choice((2, 2, 3))]
    found = []
    for sources in (
        [indexed(memory, order)],
        [IndexSource(3, address=INDICES + 6 * k, bits=16) for k in range(200)],
    ):
        frame = Frame(memory, 8, 6)
        frame.start()
        for source in sources:
            assert frame.binner.draw(4, source, points, clip=False) == pc.DONE
        assert frame.binner.flush() == pc.DONE
        tiles = frame.all_tiles().items()
        found.append({place: [p[0] for p in tile.primitives] for place, tile in tiles})
    assert found[0] == found[1]
    triangles = [tuple(order[k : k + 3]) for k in range(0, len(order), 3)]
    assert all(set(tile) <= set(triangles) for tile in found[0].values())
