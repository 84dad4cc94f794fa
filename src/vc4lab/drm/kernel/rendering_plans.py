"""Rendering lists of jobs whose surfaces were checked before: a header, and models of tiles."""

from __future__ import annotations

import ctypes
from collections.abc import Hashable

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.native.context import RenderContext
from vc4lab.drm.kernel.rendering import FULL_RES_TILE_PIXELS, ColourSurface, RenderingBuilder
from vc4lab.drm.uapi.submit import (
    FLAG_CLEAR,
    FLAG_FIXED_ORDER,
    FLAG_INCREASING_X,
    FLAG_INCREASING_Y,
    Submit,
    refuse,
)

MAX_PLANS = 256
MAX_ROWS = 4096
"""Bytes of buffers' places by which plans are remembered."""


class RenderPlan:
    """Everything about the list of one job but its clear values."""

    def __init__(
        self, submit: Submit, bin_tiles_x: int, tile_lists: int, reporter: Reporter
    ) -> None:
        builder = RenderingBuilder(submit, reporter, bin_tiles_x=bin_tiles_x, tile_lists=tile_lists)
        builder.check_surfaces()
        self.has_warning = builder.has_warning
        """Then it is made anew for each job, which reports it."""
        self.header = builder.mode()
        self.colour: ColourSurface | None = builder.colour
        columns = submit.max_x_tile - submit.min_x_tile + 1
        rows = submit.max_y_tile - submit.min_y_tile + 1
        self.tiles = count = columns * rows
        ends = [(True, count == 1), (False, False), (False, True)]
        models = [builder.tile(0, 0, first=first, last=last) for first, last in ends]
        self.size = sum(map(len, models[:count] if count < 2 else (models[0], models[2])))
        self.size += max(count - 2, 0) * len(models[1])
        self._kept = [ctypes.create_string_buffer(model, len(model)) for model in models]
        fixed = submit.flags & FLAG_FIXED_ORDER
        step_x, step_y = (
            1 if not fixed or submit.flags & flag else -1
            for flag in (FLAG_INCREASING_X, FLAG_INCREASING_Y)
        )
        places = [ctypes.addressof(kept) for kept in self._kept]
        self.context = RenderContext(
            first=places[0], first_size=len(models[0]),
            middle=places[1], middle_size=len(models[1]),
            last=places[2], last_size=len(models[2]),
            start_x=submit.min_x_tile if step_x > 0 else submit.max_x_tile,
            start_y=submit.min_y_tile if step_y > 0 else submit.max_y_tile,
            step_x=step_x, step_y=step_y, columns=columns, rows=rows,
            bin_tiles_x=bin_tiles_x,
            full_res_per_row=-(-submit.width // FULL_RES_TILE_PIXELS),
        )  # fmt: skip
        self.address: int = self.context.address


_plans: dict[Hashable, RenderPlan] = {}
_shaped: dict[tuple[bytes, bytes, int, int], RenderPlan] = {}
"""The same by the job's shape and the buffers' places, which is found sooner."""


def rendering_plan(
    submit: Submit, rows: bytes, bin_tiles_x: int, tile_lists: int, reporter: Reporter
) -> RenderPlan:
    """The plan of a job. Raises JobError if its surfaces or tiles are refused.

    rows: where its buffers lie; none if that is not known in this form.
    """
    if not submit.shape or not rows:
        return _found(submit, bin_tiles_x, tile_lists, reporter)
    known = submit.shape, rows, bin_tiles_x, tile_lists
    plan = _shaped.get(known)
    if plan is None:
        plan = _found(submit, bin_tiles_x, tile_lists, reporter)
        if not plan.has_warning and len(rows) <= MAX_ROWS:
            if len(_shaped) >= MAX_PLANS:
                _shaped.clear()
            _shaped[known] = plan
    return plan


def _found(submit: Submit, bin_tiles_x: int, tile_lists: int, reporter: Reporter) -> RenderPlan:
    if submit.min_x_tile > submit.max_x_tile or submit.min_y_tile > submit.max_y_tile:
        refuse(reporter, "DRM-014", "the tile range is empty (rule 9.1)")
    key: list[Hashable] = [
        submit.width, submit.height, submit.min_x_tile, submit.min_y_tile, submit.max_x_tile,
        submit.max_y_tile, submit.flags & ~FLAG_CLEAR, bin_tiles_x, tile_lists,
    ]  # fmt: skip
    for name, surface in submit.surfaces.items():
        if 0 <= surface.hindex < len(submit.buffers):
            buffer = submit.buffers[surface.hindex]
            key += name, surface.offset, surface.bits, surface.flags, buffer.address, buffer.size
        else:  # a surface without a buffer counts, too; one with a bad index is refused below
            key += name, surface.bits, surface.flags, surface.present
    known = tuple(key)
    plan = _plans.get(known)
    if plan is None:
        plan = RenderPlan(submit, bin_tiles_x, tile_lists, reporter)
        if not plan.has_warning:
            if len(_plans) >= MAX_PLANS:
                _plans.clear()
            _plans[known] = plan
    return plan
