"""Rendering lists of jobs whose surfaces were checked before: a header, and models of tiles."""

from __future__ import annotations

import ctypes
from collections.abc import Hashable
from typing import Any, NoReturn

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.native.context import RenderContext
from vc4lab.drm.kernel.rendering import FULL_RES_TILE_PIXELS, ColourSurface, RenderingBuilder
from vc4lab.drm.uapi.submit import (
    FLAG_CLEAR,
    FLAG_FIXED_ORDER,
    FLAG_INCREASING_X,
    FLAG_INCREASING_Y,
    Submit,
)

MAX_PLANS = 256
MAX_ROWS = 4096
"""Bytes of buffers' places by which plans are remembered."""


class _Unusual(Exception):  # noqa: N818 - a verdict
    """There is something to report."""


class _Quiet(Reporter):
    """Stops at the first finding, which another builder reports."""

    def report(self, *_args: Any, **_values: Any) -> NoReturn:
        """Raises _Unusual."""
        raise _Unusual


class RenderPlan:
    """Everything about the list of one job but its clear values."""

    def __init__(self, submit: Submit, bin_tiles_x: int, tile_lists: int) -> None:
        builder = RenderingBuilder(submit, _Quiet(), bin_tiles_x=bin_tiles_x, tile_lists=tile_lists)
        builder.check_surfaces()
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
    submit: Submit, rows: bytes, bin_tiles_x: int, tile_lists: int
) -> RenderPlan | None:
    """The plan of a job; None if its surfaces or tiles are refused, or give cause for a warning.

    rows: where its buffers lie; none if that is not known in this form.
    """
    if not submit.shape or not rows:
        return _found(submit, bin_tiles_x, tile_lists)
    known = submit.shape, rows, bin_tiles_x, tile_lists
    plan = _shaped.get(known)
    if plan is None:
        plan = _found(submit, bin_tiles_x, tile_lists)
        if plan is not None and len(rows) <= MAX_ROWS:
            if len(_shaped) >= MAX_PLANS:
                _shaped.clear()
            _shaped[known] = plan
    return plan


def _found(submit: Submit, bin_tiles_x: int, tile_lists: int) -> RenderPlan | None:
    if submit.min_x_tile > submit.max_x_tile or submit.min_y_tile > submit.max_y_tile:
        return None
    key: list[Hashable] = [
        submit.width, submit.height, submit.min_x_tile, submit.min_y_tile, submit.max_x_tile,
        submit.max_y_tile, submit.flags & ~FLAG_CLEAR, bin_tiles_x, tile_lists,
    ]  # fmt: skip
    for name, surface in submit.surfaces.items():
        if surface.present:
            if surface.hindex >= len(submit.buffers):
                return None
            buffer = submit.buffers[surface.hindex]
            key += name, surface.offset, surface.bits, surface.flags, buffer.address, buffer.size
        elif surface.bits or surface.flags:  # they count without a buffer, too
            key += name, surface.bits, surface.flags
    known = tuple(key)
    plan = _plans.get(known)
    if plan is None:
        try:
            plan = RenderPlan(submit, bin_tiles_x, tile_lists)
        except _Unusual:
            return None
        if len(_plans) >= MAX_PLANS:
            _plans.clear()
        _plans[known] = plan
    return plan
