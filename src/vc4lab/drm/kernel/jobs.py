"""The kernel's half of a submit: what it does between the ioctl and the hardware's registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.binning import BinningBuilder, BinningList, round_up
from vc4lab.drm.kernel.built_job import BuiltJob, Workspace
from vc4lab.drm.kernel.rendering import RenderingBuilder
from vc4lab.drm.kernel.shaders import KnownShaders, ShaderBuilder
from vc4lab.drm.uapi.submit import KNOWN_FLAGS, PAGE, Submit, refuse
from vc4lab.qpu.program.program import Program

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory

MAX_RECORDS = (1 << 32) // 64
"""Announced shader records at which the kernel's own table would overflow."""


def build_submit(
    submit: Submit,
    memory: GuestMemory,
    workspace: Workspace,
    reporter: Reporter,
    known: KnownShaders | None = None,
    *,
    native: bool = True,
) -> BuiltJob:
    """Do what the kernel does between the ioctl and the hardware's registers.

    Parameters
    ----------
    workspace
        Where lists and tile memory go; the job's buffers must be in memory already.
    known
        Shaders that were checked before; those of this job are added.
    native
        Let compiled code build what it can, a job of known shaders without anything to report. It
        gives the same bytes; whatever it does not accept is built or refused here.

    Raises JobError when the kernel would refuse the job.
    """
    check_submit(submit, reporter)
    known = known if known is not None else KnownShaders(memory)
    if native:
        from vc4lab.drm.kernel.native.jobs import build_known

        built = build_known(submit, memory, workspace, known)
        if built is not None:
            return built
    lists = workspace.lists
    binned = BinningList()
    bin_end = lists
    programs: tuple[Program, ...] = ()
    if submit.bin_cl:
        records = round_up(lists + 2 * len(submit.bin_cl), PAGE)
        builder = BinningBuilder(
            submit,
            reporter,
            tile_memory=workspace.tile_memory,
            tile_memory_size=workspace.tile_memory_size,
            shader_records=records,
        )
        binned = builder.run()
        uniforms = round_up(builder.next_record, PAGE)
        shaders = ShaderBuilder(submit, memory, reporter, uniforms, known)
        for use in binned.shaders:
            shaders.record(use)
        shaders.write(records)
        programs = tuple(shaders.fragment_programs)
        bin_end = lists + len(binned.data)
        memory.write(lists, binned.data)
        check_tiles(submit, binned, reporter)
        render_start = round_up(shaders.next_uniforms, PAGE)
    else:
        render_start = round_up(lists, PAGE)
    rendering = RenderingBuilder(
        submit, reporter, bin_tiles_x=binned.tiles_x, tile_lists=binned.tile_lists
    )
    data = rendering.run()
    memory.write(render_start, data)
    columns = submit.max_x_tile - submit.min_x_tile + 1
    rows = submit.max_y_tile - submit.min_y_tile + 1
    return BuiltJob(
        lists,
        bin_end,
        render_start,
        render_start + len(data),
        submit.width,
        submit.height,
        rendering.colour,
        columns * rows,
        programs,
    )


def check_submit(submit: Submit, reporter: Reporter) -> None:
    """What the kernel demands of the description itself (rules 9.1). Raises JobError."""
    if submit.flags & ~KNOWN_FLAGS:
        refuse(reporter, "DRM-017", f"flags 0x{submit.flags:x} (rule 9.1)")
    if submit.padding:
        refuse(reporter, "DRM-017", f"pad2 is 0x{submit.padding:x}, not 0 (rule 9.1)")
    if not submit.buffers:
        refuse(reporter, "DRM-023", "the job names no buffer (rule 9.1)")
    if submit.shader_rec_count > MAX_RECORDS:
        refuse(reporter, "DRM-023", f"{submit.shader_rec_count} shader records (rule 9.1)")


def check_tiles(submit: Submit, binned: BinningList, reporter: Reporter) -> None:
    """Tiles to render must have lists. The kernel lets one column or row too many pass."""
    last = submit.max_x_tile, submit.max_y_tile
    text = f"tile {last} of {binned.tiles_x} x {binned.tiles_y}"
    if last[0] > binned.tiles_x or last[1] > binned.tiles_y:
        refuse(reporter, "DRM-014", f"{text} (rule 9.1)")
    if last[0] == binned.tiles_x or last[1] == binned.tiles_y:
        reporter.report("DRM-024", f"{text}: it has no list of its own", block="DRM")
