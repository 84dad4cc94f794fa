"""The builder's machine code, made once (and kept on disk)."""

from __future__ import annotations

from functools import cache

from vc4lab.drm.kernel.native.render_list import render_list
from vc4lab.drm.kernel.native.shader_records import build_job
from vc4lab.simd import NativeModule, build


@cache
def builder() -> NativeModule:
    """Entries "job" (binning list, records, uniforms) and "tiles" (rendering list)."""
    functions = {"job": build_job, "tiles": render_list}
    return build("drm_jobs", functions, float_mode="caller", key="drm_jobs")
