"""Work on resources with several samples a pixel, one sample after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.mesa.store.resources import Box, Resource

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray


class SamplePlane(Resource):
    """One sample of each pixel, as a picture."""

    def __init__(self, whole: Resource, sample: int) -> None:
        # Nothing is made: what describes the whole describes its parts.
        self.handle, self.target, self.format = whole.handle, whole.target, whole.format
        self.bind, self.last_level = whole.bind, whole.last_level
        self.width, self.height, self.depth = whole.width, whole.height, whole.depth
        self.array_size, self.layout, self.levels = whole.array_size, whole.layout, whole.levels
        self.samples, self.size, self.staging = 1, whole.size // whole.samples, None
        self._whole, self._sample = whole, sample

    def get(self, number: int, box: Box) -> NDArray[np.uint8]:
        return self._whole.get_sample(self._sample, number, box)

    def put(self, number: int, box: Box, blocks: NDArray[np.uint8]) -> None:
        self._whole.put_sample(self._sample, number, box, blocks)


def planes(resource: Resource) -> list[Resource]:
    """A picture for each sample; the resource itself if it has one."""
    if resource.samples == 1:
        return [resource]
    return [SamplePlane(resource, sample) for sample in range(resource.samples)]


def copy_content(target: Resource, source: Resource) -> None:
    """All levels and samples of a resource into an equal one. Raises Refused."""
    for to, of in pairs(target, source):
        for number, level in enumerate(source.levels):
            box = Box(0, 0, 0, level.width, level.height, level.layers)
            to.put(number, box, of.get(number, box))


def pairs(target: Resource, source: Resource) -> Iterator[tuple[Resource, Resource]]:
    """Targets and sources of a copy: samples to samples; all of them to one, or one to all."""
    if target.samples == 1 or source.samples == 1:
        for one in planes(target):
            yield one, source
    else:
        yield from zip(planes(target), planes(source), strict=True)
