"""Recorded jobs drawn by the reference interpreter and by the JIT: every byte of memory the same.

A depth surface is added to each job that has none, so that the depth and stencil of every pixel can
be compared too.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.hardware import run_job
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.drm.uapi.submit import Buffer, LoadStoreBits, Submit, Surface
from vc4lab.images import tiling as layouts
from vc4lab.records.codes import TileBuffer, Tiling
from vc4lab.v3d.core import V3D
from vc4lab.v3d.registers import BY_NAME

JOBS = Path(__file__).parents[2] / "data" / "vc4-jobs"


@dataclass(frozen=True)
class Result:
    """What a job left in memory."""

    colour: bytes
    depth: bytes
    tile_lists: bytes


def with_depth(submit: Submit, address: int) -> Submit:
    """The job, storing its depth buffer at a free address if it stores none."""
    if submit.surface("zs_write").present:
        return submit
    size = layouts.image_bytes(submit.width, submit.height, 32, layouts.Tiling.T)
    bits = LoadStoreBits.make(buffer=TileBuffer.ZS, tiling=Tiling.T)
    surfaces = dict(submit.surfaces)
    surfaces["zs_write"] = Surface(len(submit.buffers), 0, int(bits))
    buffers = (*submit.buffers, Buffer(0xFFFF, address, size))
    return replace(submit, buffers=buffers, surfaces=surfaces)


def in_tiles(submit: Submit, tiles: tuple[int, int, int, int] | None) -> Submit:
    """The job on the tiles from (left, top) to (right, bottom) only."""
    if tiles is None:
        return submit
    left, top, right, bottom = tiles
    return replace(
        submit, min_x_tile=left, min_y_tile=top, max_x_tile=right, max_y_tile=bottom
    )  # fmt: skip


def draw(name: str, number: int | None, engine: str, tiles: tuple[int, int, int, int] | None) -> Result:
    """The last job of a run (up to `number`)."""
    reporter = Reporter(strict=True)
    run = RecordedRun(JOBS / name, reporter, number)
    job = run.jobs[-1]
    assert job.submit is not None
    assert run.workspace is not None
    free = max(b.address + b.size for j in run.jobs if j.submit for b in j.submit.buffers)
    free = max(free, run.workspace + (128 << 20))
    job.submit = with_depth(in_tiles(job.submit, tiles), free)
    v3d = V3D(run.memory, reporter, engine=engine, threads=1)
    for earlier in run.jobs:  # only their buffers: what they would have rendered is not needed
        built = earlier.build(run.memory)
    assert run_job(v3d, built)
    assert built.colour is not None
    lists = v3d.read(BY_NAME["BPCA"].offset) - run.workspace
    size = layouts.image_bytes(built.width, built.height, built.colour.bits_per_pixel, layouts.Tiling.T)
    depth = job.submit.buffers[job.submit.surface("zs_write").hindex]
    return Result(
        run.memory.read(built.colour.address, size),
        run.memory.read(depth.address, depth.size),
        run.memory.read(run.workspace, lists),
    )


RUNS: dict[str, tuple[int, int, int, int] | None] = {
    "glmark2_buffer_update-method_map": None,
    "glmark2_build_use-vbo_true": None,
    "glmark2_bump_bump-render_normals": None,
    "glmark2_clear": None,
    "glmark2_conditionals_fragment-steps_5": None,
    "glmark2_effect2d_kernel_0_1_0_1_-4_1_0_1_0_": None,
    "glmark2_ideas": (3, 2, 6, 4),
    "glmark2_loop_fragment-loop_false": None,
    "glmark2_shading_shading_phong": None,
    "glmark2_texture_texture-filter_linear": None,
    "glmark2_texture_texture-filter_mipmap": None,
    "kmscube_smooth": None,
    "sdl_testdraw2": None,
    "tri_arm64": None,
}
"""Runs, and the tiles to draw of the last frame where the whole would take long."""
PLAIN = {"glmark2_clear", "sdl_testdraw2", "glmark2_texture_texture-filter_mipmap"}
"""Runs whose last job has hardly any colours."""


@pytest.mark.parametrize("name", RUNS)
def test_interpreter_and_jit_leave_the_same_bytes(name: str) -> None:
    """A run's last job: frame, depth and stencil, tile lists."""
    number = 2 if name.endswith("mipmap") else None
    reference, fast = (draw(name, number, engine, RUNS[name]) for engine in ("interpreter", "jit"))
    assert len(reference.tile_lists) > 32
    assert reference.tile_lists == fast.tile_lists
    assert name in PLAIN or len(set(reference.colour)) > 40, "the tiles must show something"
    assert reference.colour == fast.colour
    assert reference.depth == fast.depth
    assert any(reference.depth) or name in {"kmscube_smooth", "tri_arm64", *PLAIN}
