"""A job of known shaders, built by compiled code."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from vc4lab.drm.kernel.binning import round_up
from vc4lab.drm.kernel.jobs import BuiltJob, Workspace
from vc4lab.drm.kernel.native.context import DONE, USE_BYTES, Scratch
from vc4lab.drm.kernel.native.module import builder
from vc4lab.drm.kernel.native.rendering_plans import rendering_plan
from vc4lab.drm.kernel.rendering import clear_records
from vc4lab.drm.uapi.submit import PAGE, Submit
from vc4lab.memory import MEMORY_SIZE
from vc4lab.qpu.program import Program
from vc4lab.records.declarations import GlShaderState
from vc4lab.records.shader import GL_FIXED_SIZE

if TYPE_CHECKING:
    from vc4lab.drm.kernel.shaders import KnownShaders, Stream
    from vc4lab.memory import GuestMemory

_SHORTEST_RECORD = GL_FIXED_SIZE + 3 * 4
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
    if submit.bin_cl:
        job = _scratch.job
        shaders: dict[int, Stream] = {}
        table: list[int] = []
        for index, buffer in enumerate(submit.buffers):
            stream = known.find(buffer.address, buffer.size) if buffer.shader else None
            if stream is None:
                table += buffer.address, buffer.size, 0, 0
            else:
                place = stream.table_address
                table += buffer.address, buffer.size, place & 0xFFFFFFFF, place >> 32
                shaders[index] = stream
        try:
            rows = array("I", table).tobytes()
        except OverflowError:  # no address of this memory
            return None
        states = min(
            submit.shader_rec_count,
            len(submit.bin_cl) // GlShaderState.size,
            len(submit.shader_rec) // _SHORTEST_RECORD,
        )
        _scratch.reserve(states)
        job.room = states
        job.bin_size = len(submit.bin_cl)
        job.records_size = len(submit.shader_rec)
        job.words_size = len(submit.uniforms)
        job.buffer_count = len(submit.buffers)
        job.memory = memory.base
        job.limit = MEMORY_SIZE
        job.tile_memory = workspace.tile_memory
        job.tile_memory_size = workspace.tile_memory_size
        job.lists = lists
        job.first_record = round_up(lists + 2 * len(submit.bin_cl), PAGE)
        status = builder()["job"](
            job.address, submit.bin_cl, submit.shader_rec, submit.uniforms, rows
        )
        if status != DONE:
            return None
        bin_tiles_x, tile_lists, bin_end = job.tiles_x, job.tile_lists, job.bin_end
        if submit.max_x_tile >= bin_tiles_x or submit.max_y_tile >= job.tiles_y:
            return None
        render_start = job.next_uniforms
        used = _scratch.uses[2 : job.use_count * USE_BYTES // 4 : USE_BYTES // 4].tolist()
        programs = tuple([shaders[index].program for index in used])
    plan = rendering_plan(submit, bin_tiles_x, tile_lists)
    if plan is None:
        return None
    render_start = round_up(render_start, PAGE)
    header = clear_records(submit) + plan.header
    render_end = render_start + len(header) + plan.size
    if render_end > MEMORY_SIZE:
        return None
    memory.write(render_start, header)
    builder()["tiles"](plan.address, memory.base + render_start + len(header))
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
