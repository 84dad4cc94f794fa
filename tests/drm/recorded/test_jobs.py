"""The kernel's half of a submit: recorded jobs become whole lists."""

import json
import shutil
import zlib
from pathlib import Path
from typing import Any

import pytest
from tests.drm.recorded.edited import bos, change_list, edit, surface

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.built_job import BuiltJob
from vc4lab.drm.kernel.rendering import ColourSurface
from vc4lab.drm.kernel.shader_rules import CheckedShader
from vc4lab.drm.kernel.shaders import Stream
from vc4lab.drm.recorded.byte_order import ByteOrder, ByteOrders, shader_byte_order
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.memory import GuestMemory
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.program.reader import program_at
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records.codes import Tiling
from vc4lab.records.control import Record, build, parse_list
from vc4lab.records.shader import parse_gl_state

JOBS = Path(__file__).parents[2] / "data" / "vc4-jobs"
RUNS = sorted(path for path in JOBS.iterdir() if path.is_dir() and path.name != "blobs")


def lists(memory: GuestMemory, job: BuiltJob) -> tuple[list[Record], list[Record]]:
    binning = list(parse_list(memory.read, job.bin_start, job.bin_end))
    rendering = list(parse_list(memory.read, job.render_start, job.render_end))
    assert not any(record.illegal for record in binning + rendering)
    return binning, rendering


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name)
def test_recorded_runs_build(path: Path) -> None:
    reporter = Reporter(strict=True)
    run = RecordedRun(path, reporter)
    assert run.jobs
    for job in run.jobs:
        built = job.build()
        binning, rendering = lists(run.memory, built)
        mode = binning[0].payload
        assert mode is not None
        tiles_x, tiles_y = mode.tiles_x, mode.tiles_y
        assert (mode.auto_initialise, mode.initial_block.size, mode.block.size) == (1, 32, 128)
        assert mode.state_address + 48 * tiles_x * tiles_y <= mode.address
        visited = [(r.column, r.row) for r in rendering if r.id == 115]
        assert len(set(visited)) == built.tile_count == tiles_x * tiles_y
        branches = [r.address for r in rendering if r.id == 17]
        targets = [r.payload.address for r in rendering if r.id == 17 and r.payload]
        assert len(branches) == built.tile_count
        assert targets == [mode.address + 32 * n for n in range(built.tile_count)]
        assert [r.id for r in rendering].count(8) == 1
        assert rendering[-1].id == 25
        for record in binning:
            if record.id == 64:
                check_shader(run, job.submit, record)
    assert not reporter.items


def check_shader(run: RecordedRun, submit: Any, record: Record) -> None:
    """All addresses of the record lie in the job's buffers."""
    shader = parse_gl_state(run.memory.read, record.payload)  # type: ignore[arg-type]
    starts = {b.address: b for b in submit.buffers}
    for code in (shader.record.fs_code, shader.record.vs_code, shader.record.cs_code):
        assert code in starts
        assert not program_at(run.memory, code).problems
    for array in shader.attributes:
        assert any(b.address <= array.address < b.address + b.size for b in submit.buffers)


def test_triangle_in_detail() -> None:
    run = RecordedRun(JOBS / "tri_arm64")
    built = run.jobs[0].build()
    binning, rendering = lists(run.memory, built)
    assert [r.id for r in rendering] == [114, 115, 28, 113, 115, 8, 17, 25]
    assert rendering[0].colour == 0xFFBF8040
    state = next(r for r in binning if r.id == 64)
    shader = parse_gl_state(run.memory.read, state.payload)  # type: ignore[arg-type]
    assert [a.address for a in shader.attributes] == [0x105000, 0x105000 + 8]
    assert (shader.record.fs_code, shader.record.vs_code, shader.record.cs_code) == (
        0x106000,
        0x107000,
        0x108000,
    )
    assert built.colour == ColourSurface(0x100000, 64, 64, 32, Tiling.T)


def test_texture_uniforms_are_relocated() -> None:
    run = RecordedRun(JOBS / "glmark2_texture_texture-filter_nearest")
    for job in run.jobs:
        built = job.build()
    state = next(r for r in lists(run.memory, built)[0] if r.id == 64)
    shader = parse_gl_state(run.memory.read, state.payload)  # type: ignore[arg-type]
    program = program_at(run.memory, shader.record.fs_code)
    (request,) = program.texture_requests
    p0 = run.memory.u32(shader.record.fs_uniforms + 4 * request.uniforms[0])
    submit = run.jobs[-1].submit
    assert submit is not None
    assert any(b.address <= p0 < b.address + b.size for b in submit.buffers)


def test_single_job_brings_those_before_it() -> None:
    run = RecordedRun(JOBS / "kmscube_smooth" / "job0002")
    assert [job.name for job in run.jobs] == ["job0001", "job0002"]


def test_order_and_place_of_jobs(run: Path) -> None:
    """By number, however many digits; the blobs may lie in the run's own directory."""
    for number in (2, 10, 10000):
        shutil.copytree(run / "job0001", run / f"job{number}")
    (run.parent / "blobs").rename(run / "blobs")
    recorded = RecordedRun(run)
    assert [job.name for job in recorded.jobs] == ["job0001", "job2", "job10", "job10000"]
    for job in recorded.jobs:
        job.build()
    assert not recorded.reporter.items
    assert [j.name for j in RecordedRun(run / "job10").jobs] == ["job0001", "job2", "job10"]
    alone = run.parent / "one job"
    shutil.copytree(run / "job2", alone)
    assert [job.name for job in RecordedRun(alone).jobs] == ["one job"]


def test_indexed_draw(run: Path) -> None:
    data = (run / "job0001" / "bin_cl.bin").read_bytes()
    indexed = build(254, index0=3) + build(32, mode=4, index_type=1, length=3, address=64, maximum_index=2)
    change_list(run, data[:0x50] + indexed + data[0x5A:])
    recorded = RecordedRun(run)
    binning, _ = lists(recorded.memory, recorded.jobs[0].build())
    record = next(r for r in binning if r.id == 32)
    assert record.payload is not None
    assert (record.payload.address, record.payload.length) == (0x105040, 3)
    assert not any(r.id == 254 for r in binning)


def test_multisample_and_loads(run: Path) -> None:
    none = {"hindex": 0xFFFFFFFF, "offset": 0, "bits": 0, "flags": 0}
    edit(
        run,
        width=32,
        height=32,
        bos=bos(4, addr=0x200000, size=65536, used_size=65536),
        color_write=none,
        msaa_color_write=surface(hindex=4),
        msaa_zs_write=surface(hindex=4, offset=16384),
        color_read=surface(hindex=4, flags=1),
        zs_read=surface(hindex=4, offset=16384, flags=1),
    )
    recorded = RecordedRun(run)
    built = recorded.jobs[0].build()
    _, rendering = lists(recorded.memory, built)
    ids = [r.id for r in rendering]
    assert ids == [114, 115, 28, 113, 27, 115, 28, 27, 115, 8, 17, 26, 115, 26]
    first, last = (r.payload for r in rendering if r.id == 26)
    assert first is not None
    assert last is not None
    assert (first.disable_clear, first.disable_zs, first.last_tile) == (1, 1, 0)
    assert (last.disable_clear, last.disable_colour, last.last_tile) == (0, 1, 1)
    assert built.colour is not None
    assert built.colour.multisample


def test_cpu_changes_keep_what_the_gpu_rendered(run: Path) -> None:
    """The second job's content differs in one byte; the rendered rest survives."""
    shutil.copytree(run / "job0001", run / "job0002")
    old = bytearray(zlib.decompress((run.parent / "blobs" / "6bf8937b38bdf449122c.z").read_bytes()))
    old[100] ^= 0xFF
    (run.parent / "blobs" / "new.z").write_bytes(zlib.compress(bytes(old)))
    path = run / "job0002" / "submit.json"
    table = json.loads(path.read_text())
    table["bos"][3]["blob"] = "new.z"
    path.write_text(json.dumps(table))
    recorded = RecordedRun(run)
    recorded.jobs[0].build()
    recorded.memory.write(0x105000 + 200, b"rendered")
    recorded.memory.write(0x100000, b"picture")
    recorded.jobs[1].build()
    assert recorded.memory.read(0x105000 + 200, 8) == b"rendered"
    assert recorded.memory.u8(0x105000 + 100) == old[100]
    assert recorded.memory.read(0x100000, 7) == b"picture", "recorded as zero, rendered since"


def test_uniform_address_words() -> None:
    code = assemble(
        """
        mov r0, unif ; nop
        ldi r1, 8
        add unif_addr, r1, unif ; nop
        nop ; nop ; thrend
        nop ; nop
        nop ; nop
        """
    )
    program = Program(tuple(code.words))
    stream = Stream.of(program, CheckedShader())
    assert stream.resets == (1,)
    assert stream.words == len(program.uniform_sites)  # no word more than it reads


@pytest.mark.parametrize(
    ("run", "order"),
    [
        ("tri_arm64", ByteOrder.RGBA),
        ("kmscube_smooth", ByteOrder.BGRA),
        ("glmark2_texture_texture-filter_linear", ByteOrder.BGRA),
        ("glmark2_texture_texture-filter_mipmap", ByteOrder.RGBA),
        ("glmark2_shading_shading_gouraud", None),
        ("glmark2_build_use-vbo_true", None),
    ],
)
def test_shaders_tell_the_byte_order(run: str, order: ByteOrder | None) -> None:
    """Windows are BGRA, the triangle's and the mip levels' textures RGBA."""
    jobs = [job.build() for job in RecordedRun(JOBS / run).jobs]
    assert {shader_byte_order(p) for job in jobs for p in job.fragment_programs} == {order}
    votes = ByteOrders()
    for job in jobs:
        assert job.colour is not None
        votes.add(job.colour.address, job.fragment_programs)
    assert votes.of(0) is (order or ByteOrder.BGRA)
