"""Coordinate and vertex shaders of recorded driver jobs: every engine gives the same words."""

import ctypes
from pathlib import Path

import numpy as np
import pytest
from tests.support.binning import BinnerByHand, Coordinates, IndexSource, index_range
from tests.support.tile_lists import scan_tile_lists

from vc4lab.diagnostics import Reporter
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.qpu.program.reader import program_at
from vc4lab.records.control import STATE_RECORD_BYTES, parse_list
from vc4lab.records.shader import parse_gl_state
from vc4lab.v3d.state.render_state import default_state
from vc4lab.v3d.vertex.context import DONE, VertexContext, buffer_bytes
from vc4lab.v3d.vertex.pipeline import VertexKey, vertex_pipeline

JOBS = Path(__file__).parents[2] / "data" / "vc4-jobs"
RUNS = ("tri_arm64", "kmscube_smooth", "glmark2_shading_shading_gouraud")


def stage(memory, shader, coordinate, engine):
    """The key and uniforms address of one stage of a GL shader record."""
    r = shader.record
    if coordinate:
        code, uniforms, bits, size = r.cs_code, r.cs_uniforms, r.cs_attributes, r.cs_size
        rows = 7 + int(r.point_size)
    else:
        code, uniforms, bits, size = r.vs_code, r.vs_uniforms, r.vs_attributes, r.vs_size
        rows = 3 + int(r.fs_varyings) + int(r.point_size)
    layout = tuple(
        (k, a.size, a.cs_offset if coordinate else a.vs_offset)
        for k, a in enumerate(shader.attributes)
        if bits >> k & 1
    )
    words = program_at(memory, code).words
    return VertexKey(words, layout, int(size), rows, engine), uniforms


def shade(memory, shader, coordinate, engine, first, last, used):
    key, uniforms = stage(memory, shader, coordinate, engine)
    buffer = (ctypes.c_char * (buffer_bytes(key.rows, last) + 64))()
    start = (ctypes.addressof(buffer) + 63) & ~63
    context = VertexContext(
        memory=memory.base, output=start, uniforms=uniforms, first=first, last=last, used=used
    )
    for k, attribute in enumerate(shader.attributes):
        context.bases[k], context.strides[k] = attribute.address, attribute.stride
    pipeline = vertex_pipeline(key)
    before = pipeline.deopts
    assert pipeline.shade(context) == DONE
    assert pipeline.deopts == before
    return key, start, buffer


def draws_of(memory, job):
    """(record, GL shader, index source) of the draws in a binning list, and its other records."""
    shader = None
    for record in parse_list(memory.read, job.bin_start, job.bin_end):
        if record.id == 64:
            shader = parse_gl_state(memory.read, record.payload)
        elif record.id == 32:
            f = record.payload
            source = IndexSource(int(f.length), address=int(f.address), bits=8 << int(f.index_type))
            yield record, shader, source
            continue
        elif record.id == 33:
            f = record.payload
            yield record, shader, IndexSource(int(f.length), first=int(f.first))
            continue
        yield record, None, None


@pytest.mark.parametrize("name", RUNS)
def test_engines_agree_on_recorded_draws(name):
    run = RecordedRun(JOBS / name)
    memory, reporter = run.memory, Reporter()
    for recorded in run.jobs:
        job = recorded.build()
        if any(shader for _, shader, _ in draws_of(memory, job)):
            break
    binner = BinnerByHand(memory, reporter)
    drawn = 0
    mode = None
    for record, shader, source in draws_of(memory, job):
        if shader is None:
            if record.id == 112:
                mode = record.payload
                binner.configure(mode)
            elif record.id == 6:
                binner.start()
            elif record.id in STATE_RECORD_BYTES or record.id in (105, 106):
                binner.set_state(memory.read(record.address, record.size))
            continue
        if source.address is None:
            first, last, used = source.first, source.first + source.length - 1, 0
        else:
            found = index_range(memory, source.bits, source.address, source.length)
            first, last, used = found.first, found.last, found.used
        results = {}
        for engine in ("jit", "exact", "interpreter"):
            end = last if engine != "interpreter" else min(last, first + 300)
            for coordinate in (True, False):
                key, start, keep = shade(memory, shader, coordinate, engine, first, end, used)
                data = ctypes.string_at(start, buffer_bytes(key.rows, end))
                results[engine, coordinate] = np.frombuffer(data, np.uint32), (key, start, keep)
        for coordinate in (True, False):
            fast, exact = results["jit", coordinate][0], results["exact", coordinate][0]
            reference = results["interpreter", coordinate][0]
            size = results["jit", coordinate][1][0].rows * 16 * (min(last, first + 300) >> 4)
            assert np.array_equal(fast, exact)
            assert np.array_equal(fast[:size], reference[:size])
        key, start, keep = results["jit", True][1]
        words = np.frombuffer(ctypes.string_at(start, buffer_bytes(key.rows, last)), np.float32)
        assert np.isfinite(words.reshape(-1, key.rows, 16)[:, 3]).all()
        coordinates = Coordinates(start, key.pitch, first, last, True, key.rows == 8, keep)
        clip = bool(shader.record.clipping)
        assert binner.draw(int(record.payload.mode), source, coordinates, clip=clip) == 0
        drawn += 1
    assert drawn
    assert binner.flush() == 0
    assert binner.counters["entries"] > 0
    grid = int(mode.tiles_x) * int(mode.tiles_y)
    lists = [int(mode.address) + 32 * k for k in range(grid)]
    result = scan_tile_lists(memory, lists, default_state())
    assert not result.errors
    assert result.entries == binner.counters["entries"]
    assert not reporter.items
