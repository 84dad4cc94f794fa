"""A job of known shaders, built by compiled code."""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING

from vc4lab.drm.kernel.binning import round_up
from vc4lab.drm.kernel.built_job import BuiltJob, Workspace
from vc4lab.drm.kernel.native.context import DONE, USE_BYTES, Scratch
from vc4lab.drm.kernel.native.module import builder
from vc4lab.drm.kernel.native.rendering_plans import rendering_plan
from vc4lab.drm.kernel.rendering import clear_records
from vc4lab.drm.uapi.submit import PAGE, Submit
from vc4lab.memory import MEMORY_SIZE
from vc4lab.qpu.program.program import Program
from vc4lab.records.declarations import GlShaderState
from vc4lab.records.shader import GL_FIXED_SIZE

if TYPE_CHECKING:
    from vc4lab.drm.kernel.shaders import KnownShaders
    from vc4lab.memory import GuestMemory

_SHORTEST_RECORD = GL_FIXED_SIZE + 3 * 4
_USE_WORDS = USE_BYTES // 4
_scratch = Scratch()


def build_known(
    submit: Submit, memory: GuestMemory, workspace: Workspace, known: KnownShaders
) -> BuiltJob | None:
    """The same as `build_submit`, of a description that was checked; None if Python has to do it.

    That is so for each job that is refused or gives cause for a warning (what to say needs the way
    there), and for shaders that were not checked yet. Nothing is reported here.
    """
    lists = bin_end = render_start = workspace.lists
    if not 0 <= lists <= MEMORY_SIZE - 4 * PAGE - 3 * len(submit.bin_cl):
        return None
    bin_tiles_x = tile_lists = 0
    programs: tuple[Program, ...] = ()
    rows = b""
    if submit.bin_cl:
        try:
            streams, rows = known.table(submit.buffers)
        except struct.error:  # no address of this memory
            return None
        list_size, records_size = len(submit.bin_cl), len(submit.shader_rec)
        states = min(
            submit.shader_rec_count,
            list_size // GlShaderState.size,
            records_size // _SHORTEST_RECORD,
        )
        scratch = _scratch
        scratch.begin(
            states,
            list_size,
            records_size,
            len(submit.uniforms),
            len(streams),
            memory.base,
            MEMORY_SIZE,
            workspace.tile_memory,
            workspace.tile_memory_size,
            lists,
            round_up(lists + 2 * list_size, PAGE),
        )
        status = builder()["job"].call(
            scratch.address, submit.bin_cl, submit.shader_rec, submit.uniforms, rows
        )
        if status != DONE:
            return None
        job = scratch.job
        bin_tiles_x, tile_lists, bin_end = job.tiles_x, job.tile_lists, job.bin_end
        if submit.max_x_tile >= bin_tiles_x or submit.max_y_tile >= job.tiles_y:
            return None
        render_start = job.next_uniforms
        used = scratch.uses[2 : job.use_count * _USE_WORDS : _USE_WORDS].tolist()
        programs = tuple([stream.program for stream in map(streams.__getitem__, used) if stream])
    plan = rendering_plan(submit, rows, bin_tiles_x, tile_lists)
    if plan is None:
        return None
    render_start = round_up(render_start, PAGE)
    header = clear_records(submit) + plan.header
    render_end = render_start + len(header) + plan.size
    if render_end > MEMORY_SIZE:
        return None
    place = memory.base + render_start
    ctypes.memmove(place, header, len(header))
    builder()["tiles"].call(plan.address, place + len(header))
    return BuiltJob(
        lists,
        bin_end,
        render_start,
        render_end,
        submit.width,
        submit.height,
        plan.colour,
        plan.tiles,
        programs,
    )
