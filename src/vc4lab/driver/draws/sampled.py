"""Textures that the texture unit cannot read where they are, in a form that it can.

Windows lie in raster order; views may begin with a level that is not at the begin of a page. Their
texels are copied when a draw samples them, again only after they have changed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vc4lab.driver.draws.textures import Texture, is_sampled_in_place, samples_of, texture_of
from vc4lab.driver.gpu.resource import GpuResource
from vc4lab.mesa.protocol.codes import Bind, Target
from vc4lab.mesa.protocol.messages import ResourceCreate2
from vc4lab.mesa.state.pipe import BoundView
from vc4lab.mesa.store.resources import Box

if TYPE_CHECKING:
    from vc4lab.driver.gpu.memory import GpuMemory
    from vc4lab.mesa.protocol.objects import SamplerState
    from vc4lab.mesa.state.pipe import PipeState, StageState

MAX_COPIES = 64


class SampledTextures:
    """Textures of draws, with copies where they are needed."""

    def __init__(self, memory: GpuMemory) -> None:
        self._memory = memory
        self._copies: dict[tuple[int, int, int], tuple[int, GpuResource]] = {}

    def of_stage(self, stage: StageState) -> tuple[Texture | None, ...]:
        """The textures of a stage by number. Raises Refused."""
        found: list[Texture | None] = []
        for number, view in enumerate(stage.views):
            sampler = stage.samplers[number] if number < len(stage.samplers) else None
            has_both = view is not None and sampler is not None
            found.append(self._texture(view, sampler) if has_both else None)  # type: ignore[arg-type]
        return tuple(found)

    def copied(self, state: PipeState) -> list[GpuResource]:
        """The resources of a state whose copies are sampled, and the copies."""
        found: list[GpuResource] = []
        for view in (*state.vertex.views, *state.fragment.views):
            if view is not None and not is_sampled_in_place(view):
                source: Any = view.resource
                last = min(view.state.last_level, source.last_level)
                known = self._copies.get((source.number, view.state.first_level, last))
                found += [source] if known is None else [source, known[1]]
        return found

    def forget(self) -> None:
        """A resource went."""
        self._copies.clear()

    def _texture(self, view: BoundView, sampler: SamplerState) -> Texture:
        if view.resource.samples > 1:
            return samples_of(view)
        return texture_of(view if is_sampled_in_place(view) else self._copied(view), sampler)

    def _copied(self, view: BoundView) -> BoundView:
        state = view.state
        source: GpuResource | Any = view.resource
        last = min(state.last_level, source.last_level)
        key = source.number, state.first_level, last
        known = self._copies.get(key)
        if known is None or known[0] != source.changes:
            if len(self._copies) >= MAX_COPIES:
                self._copies.clear()
            known = self._copies[key] = source.changes, self._copy(source, state.first_level, last)
        made = replace(state, first_level=0, last_level=last - state.first_level)
        return BoundView(made, known[1])

    def _copy(self, source: GpuResource, first: int, last: int) -> GpuResource:
        level = source.level(first)
        is_cube = source.target == Target.TEXTURE_CUBE
        asked = ResourceCreate2(
            handle=0,
            target=Target.TEXTURE_CUBE if is_cube else Target.TEXTURE_2D,
            format=source.format,
            bind=int(Bind.SAMPLER_VIEW),
            width=level.width,
            height=level.height,
            depth=1,
            array_size=level.layers,
            last_level=last - first,
            nr_samples=0,
            data_size=0,
        )
        made = GpuResource(asked, self._memory, 0)
        for number in range(first, last + 1):
            level = source.level(number)
            box = Box(0, 0, 0, level.width, level.height, level.layers)
            made.put(number - first, box, source.get(number, box))
        return made
