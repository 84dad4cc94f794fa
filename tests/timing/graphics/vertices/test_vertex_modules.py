"""Thread 0, vertex cache manager, attribute DMA and binner, by hand-counted clocks."""

import numpy as np
import pytest
from tests.timing.graphics.vertices.vertex_frames import draw_of, frame_of
from tests.timing.graphics.vertices.vertex_machine import LATENCY, ONE, VertexMachine

from vc4lab.timing.compute.kinds import MemorySource
from vc4lab.timing.event_scheduler import Pause


def all_done(machine: VertexMachine) -> bool:
    """Whether every batch was made and shaded exactly once."""
    both = machine.tables.binning.vertices.batches, machine.tables.rendering.batches
    return all((part["done"] == 1).all() and (part["made"] == 1).all() for part in both)


def test_everything_is_done_once() -> None:
    machine = VertexMachine()
    frame = frame_of(
        [draw_of(range(100), entries=40, blocks=9), draw_of(range(70), index_bytes=2, entries=3)],
        [range(60), range(33), []],
    )
    tables = machine.run(frame)
    assert machine.binned > 0
    assert all_done(machine)
    assert machine.shader.batches == 7 + 5 + 4 + 3
    assert machine.binner.entries == 43
    assert machine.binner.primitives == 33 + 23
    assert machine.binner.bytes == 9 * 32 + 2 * 32
    written = machine.sdram.bytes[MemorySource.TILE_LISTS]
    assert written == machine.binner.bytes
    fetched = machine.sdram.bytes[MemorySource.ATTRIBUTES]
    both = tables.binning.vertices.fetches, tables.rendering.fetches
    assert fetched == sum(int(part["bytes"].sum()) for part in both)
    read = machine.sdram.bytes[MemorySource.BINNING_LIST]
    assert read == tables.binning.reads["bytes"].sum()
    assert machine.cache.rows == 0
    assert machine.cache.binning.held == machine.cache.rendering.held == 0


def test_the_same_again_has_the_same_clocks() -> None:
    frame = frame_of([draw_of(range(300))], [range(200)])
    machine = VertexMachine()
    machine.run(frame)
    first = machine.binned
    machine.run(frame)
    again = VertexMachine()
    again.run(frame)
    assert again.binned == first
    assert all_done(machine)


def test_one_triangle() -> None:
    machine = VertexMachine(shading=20, binner={"tile_part": 5 * ONE})
    machine.run(frame_of([draw_of([0, 1, 2], entries=1)]))
    came = 1 + LATENCY + 1  # asked at 0, taken by the memory at 1, which moves it in a clock
    collected = came + 1 + 3  # the group is read a clock later, three indices
    fetched = collected + 1 + LATENCY + 1 + 9  # 36 bytes in one line, 9 words
    shaded = fetched + 1 + 20
    binned = shaded + 1 + 1  # read a clock later, a primitive
    flushed = binned + 2 * 5 + 1  # its last block is written at the end, and it ends after that
    assert machine.binned == flushed + 1


def test_vertices_in_memory_are_not_shaded() -> None:
    machine = VertexMachine()
    frame = frame_of([draw_of(range(64))], [range(64)], in_memory=True, arrays=[(0, 24, 24)])
    machine.run(frame)
    assert machine.binned > 0
    assert machine.shader.batches == 0
    assert all_done(machine)
    assert machine.cache.rows == 0


def test_the_attribute_dma_is_busy_all_the_time() -> None:
    """Batches follow one another without a gap: 16 vertices of 7 clocks and 3 words each."""
    ends = []
    for triangles in (800, 1600):
        machine = VertexMachine(shading=1, attributes={"vertex_part": 7 * ONE})
        machine.run(frame_of([draw_of(range(3 * triangles))]))
        ends.append(machine.binned)
    assert ends[1] - ends[0] == 800 * 3 * (7 + 3)


def test_the_binner_is_busy_all_the_time() -> None:
    frame = frame_of([draw_of(range(1600 * 3), entries=1600)])
    machine = VertexMachine(shading=1, binner={"primitive_part": 40 * ONE, "entry_part": 2 * ONE})
    machine.run(frame)
    least = 1600 * 42
    assert least < machine.binned < least + 200


def test_a_full_vpm_makes_vertices_wait() -> None:
    frame = frame_of(groups=[range(16 * 40)])
    machine = VertexMachine(rows=24, setup={"holds": 1})  # 3 + 3 rows a batch
    machine.run(frame, binning=False)
    cache = machine.cache
    # the room of attributes comes back, that of vertices does not
    assert cache.rendering.batch == 7
    assert cache.rows == 7 * 3
    assert cache.rendering.since > 0
    assert cache.peak <= 24
    machine = VertexMachine(rows=24)
    machine.run(frame, binning=False)
    assert machine.cache.rendering.batch == 40
    assert machine.cache.rendering.waited == machine.blocked > 0
    assert machine.cache.peak <= 24


def test_a_limit_is_for_its_thread_only() -> None:
    machine = VertexMachine(rows=192)
    machine.cache.rendering.limit = 12
    machine.consumer.holds = 1
    machine.run(frame_of([draw_of(range(640))], [range(640)]))
    assert machine.cache.rendering.batch == 3
    assert machine.cache.binning.batch == 40
    assert machine.binned > 0


def test_a_batch_larger_than_the_vpm_goes_through() -> None:
    arrays = [(0, 240, 240)]
    machine = VertexMachine(rows=16)
    machine.run(frame_of([draw_of(range(64))], [range(64)], arrays=arrays))
    assert machine.binned > 0
    assert all_done(machine)


@pytest.mark.parametrize(("arbitration", "first"), [(0, None), (1, 0), (2, 1)])
def test_arbitration(arbitration: int, first: int | None) -> None:
    machine = VertexMachine(rows=2000, vertex_cache={"arbitration": arbitration})
    machine.run(frame_of([draw_of(range(480))], [range(480)]))
    assert all_done(machine)
    turns = machine.cache.binning.last_at - machine.cache.rendering.last_at
    if first is None:
        assert abs(turns) < 100
    else:
        assert (turns < 0) == (first == 0)


def test_a_vertex_named_a_million_times() -> None:
    """Indices far beyond what is read ahead, all of one batch."""
    machine = VertexMachine()
    machine.run(frame_of([draw_of(np.zeros(1_000_000, int).tolist(), index_bytes=2)]))
    assert machine.binned >= 1_000_000
    assert machine.list.back == machine.list.read_count


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_vertices_that_are_found_again(kept: int) -> None:
    rng = np.random.default_rng(kept)
    named = rng.integers(0, 60, 900)
    machine = VertexMachine(rows=16, vertex_cache={"kept": kept})
    machine.run(frame_of([draw_of(named, index_bytes=1)], [named]))
    assert machine.binned > 0
    assert all_done(machine)


def test_nothing_to_bin() -> None:
    machine = VertexMachine()
    machine.run(frame_of())
    assert machine.binned == 0
    assert machine.pause is Pause.IDLE


def test_draws_without_attributes() -> None:
    machine = VertexMachine()
    machine.run(frame_of([draw_of(range(50))], [range(50)], arrays=[]))
    assert machine.binned > 0
    assert all_done(machine)


def test_draws_without_vertices() -> None:
    machine = VertexMachine()
    machine.run(frame_of([draw_of([]), draw_of([7]), draw_of([])]))
    assert machine.binned > 0
    assert machine.binner.primitives == 0


@pytest.mark.parametrize("seed", range(40))
def test_any_frame_on_any_chip_goes_through(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def some(least: int, most: int) -> int:
        return int(rng.integers(least, most + 1))

    draws = [
        draw_of(
            rng.integers(0, some(1, 400), some(0, 300)),
            mode=some(0, 6),
            index_bytes=some(0, 2),
            entries=some(0, 50),
            blocks=some(0, 9),
            clipped=some(0, 3),
        )
        for _ in range(some(0, 6))
    ]
    groups = [rng.integers(0, some(1, 400), some(0, 200)) for _ in range(some(0, 6))]
    arrays = [(some(0, 1 << 30), some(1, 256), some(0, 255)) for _ in range(some(0, 8))]
    machine = VertexMachine(
        rows=some(16, 192),
        shading=some(1, 500),
        vertex_cache={"kept": some(0, 3), "arbitration": some(0, 2), "index_part": some(0, 9000)},
        attributes={"ahead": some(1, 16), "vertex_part": some(0, 9000), "word_part": some(0, 9000)},
        binning_list={"ahead": some(1, 8), "record_clocks": some(1, 50)},
        binner={f"{name}_part": some(0, 90_000) for name in ("primitive", "entry", "clip", "tile")},
        depth=some(1, 4),
    )
    frame = frame_of(draws, groups, arrays=arrays, in_memory=bool(some(0, 1)), tiles=(some(0, 9), some(0, 9)))
    tables = machine.run(frame)
    assert machine.binned >= 0
    assert all_done(machine)
    assert machine.cache.rows == 0
    assert machine.binner.entries == sum(draw["entries"] for draw in draws)
    assert machine.binner.bytes == tables.binning.chunks["writes"].sum() * 32
    assert machine.consumer.used == len(tables.rendering.batches)
