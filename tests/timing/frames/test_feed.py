"""The feed of frames: nothing else changes, everything is there once, every run gives the same."""

import itertools
from collections import Counter
from dataclasses import fields
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from tests.timing.frames.recorded import Drawn

from vc4lab.memory.native import LINE_SHIFT, QUAD_SHIFT
from vc4lab.qpu.program.program import Program
from vc4lab.records.control import RECORDS, ListFormat, parse_record
from vc4lab.records.declarations import BranchToSublist, CompressedList
from vc4lab.timing.frames.build import attribute_table
from vc4lab.timing.frames.frame import Frame, count_bits, quads_of
from vc4lab.timing.frames.vertex_batches import collect_batches, rendering_batches, tile_groups
from vc4lab.v3d.events import RecordExecuted
from vc4lab.v3d.ptb.context import COUNTERS as BINNER_COUNTERS
from vc4lab.v3d.state.render_state import ShaderRecord
from vc4lab.v3d.state.tile_context import LIST_COUNTERS
from vc4lab.v3d.tiles import job
from vc4lab.v3d.tiles.job import OP_LOAD, OP_STORE

RUNS = (
    "glmark2_ideas",
    "glmark2_bump_bump-render_normals",
    "glmark2_texture_texture-filter_mipmap",
    "glmark2_loop_fragment-uniform_true",
    "kmscube_smooth",
    "sdl_testdraw2",
    "tri_arm64",
)


def same(first: Frame, second: Frame) -> bool:
    """Whether two frames are equal, to the byte of each table."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value.dtype, value.tobytes()
        if isinstance(value, tuple):
            return [plain(part) for part in value]
        if hasattr(value, "__dataclass_fields__"):
            return [plain(getattr(value, field.name)) for field in fields(value)]
        return value

    return bool(plain(first) == plain(second))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", RUNS)
def test_the_feed_changes_no_byte(name: str, threads: int) -> None:
    plain = Drawn(name, False, False, False, threads=threads)
    mixed = Drawn(name, False, True, False, threads=threads)
    assert plain.bytes == mixed.bytes
    assert plain.reporter.counts == mixed.reporter.counts
    assert [bool(frames) for frames in mixed.frames] == [False, True, False]


@pytest.mark.parametrize("name", RUNS)
def test_every_run_and_number_of_threads_gives_the_same(name: str) -> None:
    first, second = Drawn(name, True), Drawn(name, True)
    others = Drawn(name, True, threads=2)
    for mine, again, other in zip(*(d.frames[0] for d in (first, second, others)), strict=True):
        assert same(mine, again)
        assert same(mine, other)


@pytest.mark.parametrize("name", RUNS)
def test_totals_are_what_the_core_counts(name: str) -> None:
    drawn = Drawn(name, True)
    (frames,), (counts,) = drawn.frames, drawn.counts
    totals: Counter[str] = Counter()
    for frame in frames:
        totals.update(frame.totals())
        assert not frame.lost
    for counter in (*LIST_COUNTERS, "primitives", "tiles_moved", "bytes_moved"):
        assert totals[counter] == counts[counter], counter
    assert totals["covered_quads"] == counts["quads_valid"]
    assert totals["covered_primitives"] == counts["primitives_valid"] - counts["primitives_empty"]
    binned = [binning.draws for frame in frames for binning in frame.binnings]
    for counter in BINNER_COUNTERS:
        assert sum(int(draws[counter].sum()) for draws in binned) == counts[counter], counter
    lengths = 0
    for frame in frames:
        programs = frame.draws["program"][frame.lists["draw"][frame.list_of_block]]
        sizes = np.array([len(words) for words in frame.programs], int)[programs]
        loops = [Program(words).has_branches for words in frame.programs]
        straight = ~np.array(loops, bool)[programs]
        executed = frame.blocks["instructions"]
        assert (executed[straight] == sizes[straight]).all()
        assert (executed > 0).all()
        lengths += int((sizes * count_bits(quads_of(frame.blocks["covered"]))).sum())
    assert lengths == counts["fragment_instructions"]


@pytest.mark.parametrize("name", RUNS)
def test_tables_fit_together(name: str) -> None:
    for frame in Drawn(name, True).frames[0]:
        lists, tiles = frame.lists, frame.tiles
        assert (lists["draw"] < len(frame.draws)).all()
        assert (np.diff(lists["tile"]) >= 0).all()
        assert int(tiles["lists"].sum()) == len(lists)
        assert int(tiles["ops"].sum()) == len(frame.ops)
        for number in range(len(tiles)):
            first = int(tiles["first_list"][number])
            mine = lists[first : first + int(tiles["lists"][number])]
            assert (mine["tile"] == number).all()
        assert int(lists["blocks"].sum()) == len(frame.blocks)
        assert int(lists["vertices"].sum()) == len(frame.vertices)
        assert frame.first_request[-1] == len(frame.requests)
        assert frame.first_line[-1] == len(frame.lines)
        per_draw = np.bincount(lists["draw"], lists["primitives"], len(frame.draws))
        assert per_draw.tolist() == frame.draws["primitives"].tolist()
        for number, draw in enumerate(frame.draws):
            named = np.concatenate(
                [np.zeros(0, np.uint32)]
                + [
                    frame.vertices[one["first_vertex"] : one["first_vertex"] + one["vertices"]]
                    for one in lists[lists["draw"] == number]
                ]
            )
            assert len(np.unique(named)) == draw["vertices"]
        width, height = frame.tile_width, frame.tile_height
        assert ((frame.blocks["place"] & 0xFF) < width).all()
        assert ((frame.blocks["place"] >> 8 & 0xFF) < height).all()
        blocks = frame.blocks
        assert not (blocks["flags"] & ~blocks["covered"]).any()
        assert not (blocks["passed"] & ~blocks["flags"]).any()


@pytest.mark.parametrize("name", RUNS)
def test_texture_requests_are_counted_and_of_quads_that_are_there(name: str) -> None:
    drawn = Drawn(name, True)
    found = 0
    for frame in drawn.frames[0]:
        flags = np.repeat(quads_of(frame.blocks["flags"]), frame.blocks["requests"])
        found += int(count_bits(flags).sum())
        quads = frame.lines >> QUAD_SHIFT
        their = np.repeat(flags, frame.requests["lines"]).astype(np.int64)
        assert ((their >> (4 * quads.astype(np.int64))) & 1).all()
    assert found == drawn.counts[0]["texture_quads"]
    if "texture" in name:
        assert found


@pytest.mark.parametrize("name", RUNS)
def test_records_are_those_that_are_executed(name: str) -> None:
    drawn = Drawn(name)
    heard: list[RecordExecuted] = []
    with drawn.v3d.listeners.record_executed.subscribe(heard.append):
        drawn.lap(True)
    made = [
        (int(address), RECORDS[int(number)])
        for frame in drawn.frames[0]
        for table in (*(binning.records for binning in frame.binnings), frame.records)
        for address, number in zip(table["address"], table["id"], strict=True)
    ]
    assert made == [(event.address, event.record) for event in heard]


@pytest.mark.parametrize("name", RUNS)
def test_bytes_of_tile_lists(name: str) -> None:
    """A list in one piece has the bytes that a reader in Python finds; tiles have all of them."""
    drawn = Drawn(name, True)
    frame = drawn.frames[0][-1]
    read = drawn.run.memory.read
    for one in frame.lists[:200]:
        form = ListFormat(int(frame.draws["form"][one["draw"]]))
        record = parse_record(read, int(one["address"]), None, form)
        assert record.id == CompressedList.id or record.id == CompressedList.id + 1
        size = record.size if record.next == record.address + record.size else one["bytes"]
        assert one["bytes"] == size
        assert one["primitives"] == len(record.primitives)
    mine = frame.records[frame.records["tile"] >= 0]
    assert int(frame.tiles["records"].sum()) == len(mine)
    assert int(frame.tiles["bytes"].sum()) == int(mine["bytes"].sum())
    calls = frame.records[frame.records["id"] == BranchToSublist.id]
    assert (np.bincount(mine["tile"], minlength=len(frame.tiles)) > 0).sum() == len(calls)


def test_textures_and_attributes_of_draws() -> None:
    """The lines of a request lie in its texture; attributes have the bytes that shaders name."""
    drawn = Drawn("glmark2_texture_texture-filter_mipmap", True)
    for frame in drawn.frames[0]:
        for table, draws in (
            (frame.attributes, frame.draws),
            *((binning.attributes, binning.draws) for binning in frame.binnings),
        ):
            sizes = np.bincount(table["draw"], table["bytes"], len(draws))
            assert (sizes >= draws["attribute_bytes"]).all()  # not all of it stays in the VPM
            counts = np.bincount(table["draw"], minlength=len(draws))
            assert counts.tolist() == draws["attributes"].tolist()
        numbers = frame.requests["number"]
        if not len(numbers):
            continue
        (texture,) = frame.textures
        assert (numbers == texture["number"]).all()
        addresses = (frame.lines & 0xFFFFFF).astype(np.int64) << LINE_SHIFT
        size = int(texture["width"]) * int(texture["height"]) * int(texture["bits"]) // 8
        far = addresses - int(texture["address"])
        assert (far < size).all()
        assert (far >= (-size if texture["levels"] > 1 else 0)).all()


def test_transfers_of_tiles() -> None:
    for frame in Drawn("glmark2_ideas", True).frames[0]:
        moves = frame.ops[np.isin(frame.ops["kind"], (OP_LOAD, OP_STORE))]
        assert len(moves)
        for move in moves:
            surface = frame.surfaces[move["surface"]]
            assert move["address"] == surface.address
            assert move["bytes"] == surface.bits // 8 * frame.tile_width * frame.tile_height


def test_batches_of_vertices_hold_each_vertex_once() -> None:
    for frame in Drawn("glmark2_ideas", True).frames[0]:
        batches = rendering_batches(frame)
        groups = tile_groups(frame)
        assert len(batches.first_batch) == len(groups)
        assert int(batches.first_batch[-1]) == len(batches.sizes)
        assert (batches.sizes > 0).all()
        assert (batches.sizes <= 16).all()
        endless = rendering_batches(frame, kept=1 << 20)
        firsts = np.append(frame.lists["first_vertex"], len(frame.vertices))[groups]
        for number, (start, end) in enumerate(itertools.pairwise(firsts)):
            first, last = endless.first_batch[number : number + 2]
            distinct = len(np.unique(frame.vertices[start:end]))
            assert int(endless.sizes[first:last].sum()) == distinct
        for binning in frame.binnings:
            starts = np.append(binning.draws["first_vertex"], len(binning.vertices))
            found = collect_batches(binning.vertices, starts)
            assert len(found.sizes) >= len(binning.draws)


def test_the_interpreter_has_the_same_blocks() -> None:
    """Without texture requests and instructions, which it does not record."""
    jit, reference = (Drawn("tri_amd64", True, engine=engine) for engine in ("jit", "interpreter"))
    assert jit.bytes == reference.bytes
    for mine, other in zip(jit.frames[0], reference.frames[0], strict=True):
        assert same_columns(mine.blocks, other.blocks, "primitive", "place", "covered", "flags")
        assert same_columns(mine.lists, other.lists, *mine.lists.dtype.names)
        assert other.draws["reference"].all()
        assert not other.blocks["instructions"].any()


def test_a_frame_without_room_has_no_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Drawn("kmscube_smooth", False)
    monkeypatch.setitem(job.ROOM, "blocks", 4096)
    drawn = Drawn("kmscube_smooth", True)
    assert plain.bytes == drawn.bytes
    lost = [frame for frame in drawn.frames[0] if frame.lost]
    assert lost
    for frame in lost:
        assert not len(frame.blocks)
        assert not frame.lists["drawn"].any()
        assert not frame.totals()["covered_quads"]
        assert len(frame.vertices)


def same_columns(first: Any, second: Any, *names: str) -> bool:
    """Whether two tables have the same in some columns."""
    return all((first[name] == second[name]).all() for name in names)


def test_the_largest_strides() -> None:
    """Extended shader records have strides of 32 bits, and damaged lists any of them."""
    array = SimpleNamespace(address=0xFFFF_FFF0, size=16, stride=0xFFFF_FFFF)
    record = SimpleNamespace(vs_attributes=1, cs_attributes=1)
    shader = SimpleNamespace(gl=SimpleNamespace(record=record, attributes=[array]), nv=None)
    for vertex in (False, True):
        (row,) = attribute_table([None, cast(ShaderRecord, shader)], vertex=vertex)
        assert row.tolist() == (1, 0, 0xFFFF_FFF0, 16, 0xFFFF_FFFF)
