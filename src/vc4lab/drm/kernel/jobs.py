"""The kernel's half of a submit, between the ioctl and the hardware's registers."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.built_job import BuiltJob, Workspace
from vc4lab.drm.kernel.findings import JobFindings
from vc4lab.drm.kernel.native.context import USE_BYTES, Finding, Scratch
from vc4lab.drm.kernel.native.render_list import render_list
from vc4lab.drm.kernel.native.shader_records import build_job
from vc4lab.drm.kernel.rendering import clear_records, rendering_plan
from vc4lab.drm.kernel.shaders import KnownShaders
from vc4lab.drm.uapi.submit import KNOWN_FLAGS, PAGE, Submit, refuse
from vc4lab.images.tiling import round_up
from vc4lab.memory import MEMORY_SIZE
from vc4lab.qpu.program.program import Program
from vc4lab.records.states import GlShaderState
from vc4lab.simd import NativeModule, build

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory

MAX_RECORDS = (1 << 32) // 64
"""Announced shader records at which the kernel's own table would overflow."""
_USE_WORDS = USE_BYTES // 4
_scratch = Scratch()


@cache
def builder() -> NativeModule:
    """The machine code, made once (and kept on disk).

    Entries "job" (binning list, records, uniforms) and "tiles" (rendering list).
    """
    functions = {"job": build_job, "tiles": render_list}
    return build("drm_jobs", functions, float_mode="caller", key="drm_jobs")


def build_submit(
    submit: Submit,
    memory: GuestMemory,
    workspace: Workspace,
    reporter: Reporter,
    known: KnownShaders | None = None,
) -> BuiltJob:
    """Do what the kernel does between the ioctl and the hardware's registers.

    Parameters
    ----------
    workspace
        Where lists and tile memory go; the job's buffers must be in memory already.
    known
        Shaders that were checked before; those of this job are added.

    Raises JobError when the kernel would refuse the job.
    """
    check_submit(submit, reporter)
    known = known if known is not None else KnownShaders(memory)
    lists = bin_end = render_start = workspace.lists
    list_size, records_size = len(submit.bin_cl), len(submit.shader_rec)
    room = 2 * list_size + records_size + len(submit.uniforms) + 4 * PAGE
    if lists + room > MEMORY_SIZE:
        refuse(reporter, "DRM-004", f"no room for the job's lists at 0x{lists:x}")
    bin_tiles_x = tile_lists = 0
    programs: tuple[Program, ...] = ()
    rows = b""
    if submit.bin_cl:
        streams, rows = known.table(submit.buffers)
        scratch = _scratch
        scratch.begin(
            min(submit.shader_rec_count, list_size // GlShaderState.size),
            list_size,
            records_size,
            len(submit.uniforms),
            len(streams),
            memory.base,
            workspace.tile_memory,
            workspace.tile_memory_size,
            lists,
            round_up(lists + 2 * list_size, PAGE),
        )
        build_lists = builder()["job"].call
        inputs = scratch.address, submit.bin_cl, submit.shader_rec, submit.uniforms
        while (status := build_lists(*inputs, rows)) != Finding.DONE:
            findings = JobFindings(submit, memory, reporter, known, scratch.job, scratch.uses)
            findings.serve(status, streams)
            streams, rows = known.table(submit.buffers)
        job = scratch.job
        bin_tiles_x, tile_lists, bin_end = job.tiles_x, job.tile_lists, job.bin_end
        check_tiles(submit, bin_tiles_x, job.tiles_y, reporter)
        render_start = job.next_uniforms
        used = scratch.uses[2 : job.use_count * _USE_WORDS : _USE_WORDS].tolist()
        programs = tuple([stream.program for stream in map(streams.__getitem__, used) if stream])
    plan = rendering_plan(submit, rows, bin_tiles_x, tile_lists, reporter)
    render_start = round_up(render_start, PAGE)
    header = clear_records(submit) + plan.header
    render_end = render_start + len(header) + plan.size
    if render_end > MEMORY_SIZE:
        refuse(reporter, "DRM-004", f"no room for the rendering list at 0x{render_start:x}")
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


def check_submit(submit: Submit, reporter: Reporter) -> None:
    """Check what the kernel demands of the description itself (rules 9.1). Raises JobError."""
    if submit.flags & ~KNOWN_FLAGS:
        refuse(reporter, "DRM-017", f"flags 0x{submit.flags:x} (rule 9.1)")
    if submit.padding:
        refuse(reporter, "DRM-017", f"pad2 is 0x{submit.padding:x}, not 0 (rule 9.1)")
    if not submit.buffers:
        refuse(reporter, "DRM-023", "the job names no buffer (rule 9.1)")
    if submit.shader_rec_count > MAX_RECORDS:
        refuse(reporter, "DRM-023", f"{submit.shader_rec_count} shader records (rule 9.1)")


def check_tiles(submit: Submit, columns: int, rows: int, reporter: Reporter) -> None:
    """Tiles to render must have lists. The kernel lets one column or row too many pass."""
    last = submit.max_x_tile, submit.max_y_tile
    if last[0] < columns and last[1] < rows:
        return
    text = f"tile {last} of {columns} x {rows}"
    if last[0] > columns or last[1] > rows:
        refuse(reporter, "DRM-014", f"{text} (rule 9.1)")
    reporter.report("DRM-024", f"{text}: it has no list of its own", block="DRM")
