"""Recorded jobs drawn by the golden interpreter and by the JIT: every byte of memory the same.

The interpreter is slow, so a job draws the tiles in the middle of its frame only. A depth surface
is added to each, so that the depth and stencil of every pixel can be compared too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from vc4lab.diagnostics import Reporter
from vc4lab.drm.jobs import RecordedRun
from vc4lab.drm.replay import submit as run_job
from vc4lab.drm.submit import Buffer, LoadStoreBits, Submit, Surface
from vc4lab.records.codes import TileBuffer, Tiling
from vc4lab.v3d.core import V3D
from vc4lab.v3d.fragment import tiling as layouts
from vc4lab.v3d.registers import BY_NAME

JOBS = Path(__file__).parents[1] / "data" / "vc4-jobs"


@dataclass(frozen=True)
class Result:
    """What a job left in memory."""

    colour: bytes
    depth: bytes
    tile_lists: bytes


def with_depth(submit: Submit, address: int, tiles: tuple[int, int, int, int]) -> Submit:
    """The job on a few tiles, storing its depth buffer at a free address as well."""
    size = layouts.image_bytes(submit.width, submit.height, 32, layouts.Tiling.T)
    bits = LoadStoreBits.make(buffer=TileBuffer.ZS, tiling=Tiling.T)
    surfaces = dict(submit.surfaces)
    surfaces["zs_write"] = Surface(len(submit.buffers), 0, int(bits))
    return replace(
        submit,
        buffers=(*submit.buffers, Buffer(0xFFFF, address, size)),
        surfaces=surfaces,
        min_x_tile=tiles[0],
        min_y_tile=tiles[1],
        max_x_tile=tiles[2],
        max_y_tile=tiles[3],
    )


def draw(name: str, number: int, engine: str, tiles: tuple[int, int, int, int]) -> Result:
    reporter = Reporter(strict=True)
    run = RecordedRun(JOBS / name, reporter, number)
    job = run.jobs[-1]
    assert job.submit is not None
    assert run.workspace is not None
    free = max(b.address + b.size for j in run.jobs if j.submit for b in j.submit.buffers)
    free = max(free, run.workspace + (128 << 20))
    job.submit = with_depth(job.submit, free, tiles)
    v3d = V3D(run.memory, reporter, engine=engine, threads=1)
    for earlier in run.jobs:  # only their buffers: what they would have rendered is not needed
        built = earlier.build(run.memory)
    assert run_job(v3d, built)
    assert built.colour is not None
    lists = v3d.read(BY_NAME["BPCA"].offset) - run.workspace
    size = layouts.image_bytes(
        built.width, built.height, built.colour.bits_per_pixel, layouts.Tiling.T
    )
    return Result(
        run.memory.read(built.colour.address, size),
        run.memory.read(free, job.submit.buffers[-1].size),
        run.memory.read(run.workspace, lists),
    )


MIDDLE = (4, 3, 4, 3)


@pytest.mark.parametrize(
    ("name", "number", "tiles", "has_depth"),
    [
        ("tri_arm64", 1, (0, 0, 0, 0), False),
        ("kmscube_smooth", 2, MIDDLE, False),
        ("glmark2_texture_texture-filter_linear", 2, MIDDLE, True),
        ("glmark2_texture_texture-filter_mipmap", 2, (0, 0, 0, 0), False),
        ("glmark2_effect2d_kernel_0_1_0_1_-4_1_0_1_0_", 2, MIDDLE, True),
        ("glmark2_bump_bump-render_normals", 2, MIDDLE, True),
        ("glmark2_conditionals_fragment-steps_5", 2, MIDDLE, True),
    ],
)
def test_interpreter_and_jit_leave_the_same_bytes(
    name: str, number: int, tiles: tuple[int, int, int, int], has_depth: bool
) -> None:
    golden, fast = (draw(name, number, engine, tiles) for engine in ("interpreter", "jit"))
    assert len(golden.tile_lists) > 32
    assert golden.tile_lists == fast.tile_lists
    assert len(set(golden.colour)) > 40, "the tiles must show something"
    assert golden.colour == fast.colour
    assert any(golden.depth) == has_depth
    assert golden.depth == fast.depth
