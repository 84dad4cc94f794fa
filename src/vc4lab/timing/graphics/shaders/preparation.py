"""QPUs, TMUs and caches that run shaders: what takes part, and its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.timing.graphics.shaders.lines import step_instructions, step_uniforms
from vc4lab.timing.graphics.shaders.qpu import step_shader_qpu
from vc4lab.timing.graphics.shaders.requests import step_shader_tmu

if TYPE_CHECKING:
    from vc4lab.timing.chip import Chip
    from vc4lab.timing.graphics.shaders.state import ShadingFigures

STEPS = {
    "instruction_cache": step_instructions,
    "uniform_cache": step_uniforms,
    "tmu": step_shader_tmu,
    "qpu": step_shader_qpu,
}
"""In place of those of user programs."""

_WHOLE = {
    "varying_interval": ("varyings", "interval"),
    "varying_latency": ("varyings", "latency"),
    "varying_depth": ("varyings", "depth"),
    "request_words": ("qpu", "request_words"),
    "first_uniforms": ("shaders", "uniforms"),
    "tile_latency": ("qpu", "tile_load"),
}


def fill_shading(figures: ShadingFigures, chip: Chip) -> None:
    """The figures of a chip."""
    for name, (section, key) in _WHOLE.items():
        setattr(figures, name, chip.whole(section, key))
