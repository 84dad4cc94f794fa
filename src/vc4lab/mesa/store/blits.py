"""Clears, copies and blits of the software store (numpy), one sample of a pixel after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.images import srgb
from vc4lab.mesa.protocol.codes import Filter
from vc4lab.mesa.protocol.formats import layout_of, unorm_of
from vc4lab.mesa.store import pixels
from vc4lab.mesa.store.resources import Box, Refused, Resource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from vc4lab.mesa.protocol.formats import Layout
    from vc4lab.mesa.protocol.work_commands import Blit

COLOUR, DEPTH, STENCIL = 15, 16, 32
"""Bits of a blit's mask."""


def clear_colour(resource: Resource, level: int, box: Box, layout: Layout, colour: tuple[float, ...]) -> None:
    """Fill a box. Raises Refused."""
    texel = np.array(colour, np.float32)
    if layout.is_srgb:
        texel[:3] = srgb.stored(texel[:3])
    word = pixels.pack(texel, layout)
    row = np.tile(np.frombuffer(word.tobytes(), np.uint8), box.width)
    resource.put(level, box, np.broadcast_to(row, (box.depth, box.height, len(row))))


def clear_depth_stencil(
    resource: Resource, level: int, box: Box, depth: float | None, stencil: int | None
) -> None:
    """Fill depth, stencil or both in a box; what is not given stays. Raises Refused."""
    made = pixels.depth_stencil(resource.layout, depth, stencil)
    if made is None:
        return
    part = resource.get(level, box)
    words = pixels.words_of(part, resource.layout)
    kind = words.dtype.type
    word, mask = made
    new = words & kind(~mask & int(np.iinfo(kind).max)) | kind(word)
    resource.put(level, box, new.view(np.uint8).reshape(part.shape))


def copy_region(
    target: Resource, level: int, place: tuple[int, int, int], source: Resource, at: int, box: Box
) -> None:
    """Copy blocks as they are. Raises Refused."""
    if target.layout.block_bytes != source.layout.block_bytes:
        raise Refused("GL-005", f"{source} cannot be copied to {target}: other sizes of texels")
    from_ = source.get(at, box)
    width = box.width // source.layout.block_width * target.layout.block_width
    height = box.height // source.layout.block_height * target.layout.block_height
    to = Box(*place, max(width, 1), max(height, 1), box.depth)
    target.check(level, to)
    if (to.depth, target.layout.rows(to.height), target.layout.row_bytes(to.width)) != from_.shape:
        raise Refused("GL-005", f"{source} cannot be copied to {target}: other shapes of blocks")
    target.put(level, to, from_.copy())


def blit(command: Blit, target: Resource, source: Resource) -> None:
    """Copy a box to another one, scaled and converted. Raises Refused.

    What a mask names and the formats have not is no part of it: Mesa copies windows, their depth as
    well, with a mask of colours.
    """
    if not command.mask & (DEPTH | STENCIL if source.layout.has_depth else COLOUR):
        return
    to, from_ = Box(*command.dst_box), Box(*command.src_box)
    if command.render_condition_enable or command.alpha_blend:
        raise Refused("GL-007", "BLIT with a condition or with blending was not announced")
    if abs(to.depth) != abs(from_.depth):
        raise Refused("GL-012", "BLIT between different numbers of layers is not built")
    rows, columns = _places(to.y, to.height), _places(to.x, to.width)
    if command.scissor_enable:
        scissor = command.scissor[0]
        rows = rows[(rows >= scissor.miny) & (rows < scissor.maxy)]
        columns = columns[(columns >= scissor.minx) & (columns < scissor.maxx)]
    level = target.level(command.dst_level)
    rows = rows[(rows >= 0) & (rows < level.height)]
    columns = columns[(columns >= 0) & (columns < level.width)]
    if not len(rows) or not len(columns) or not to.depth:
        return
    y = from_.y + (rows - to.y + 0.5) * from_.height / to.height
    x = from_.x + (columns - to.x + 0.5) * from_.width / to.width
    box = Box(
        *(int(columns[0]), int(rows[0]), min(to.z, to.z + to.depth)),
        *(len(columns), len(rows), abs(to.depth)),
    )
    layers = Box(0, 0, min(from_.z, from_.z + from_.depth), 0, 0, abs(from_.depth))
    whole = source.level(command.src_level)
    texels = source.get(command.src_level, Box(0, 0, layers.z, whole.width, whole.height, layers.depth))
    if command.mask & (DEPTH | STENCIL):
        _blit_words(command, target, source, box, texels, x, y)
        return
    to_format, from_format = linear_pair(command.dst_format, command.src_format)
    layout = layout_as(from_format, source)
    colours = pixels.unpack(texels, layout)
    sampled: NDArray[Any] = (
        _linear(colours, x, y) if command.filter == Filter.LINEAR else _nearest(colours, x, y)
    )
    if layout.is_srgb:
        sampled[..., :3] = srgb.linear(sampled[..., :3])
    part = target.get(command.dst_level, box)
    layout = layout_as(to_format, target)
    if layout.is_srgb:
        sampled[..., :3] = srgb.stored(sampled[..., :3])
    if command.mask & COLOUR != COLOUR:
        old = pixels.unpack(part, layout)
        kept = [channel for channel in range(4) if not command.mask >> channel & 1]
        sampled[..., kept] = old[..., kept]
    new = pixels.pack(sampled, layout).view(np.uint8).reshape(part.shape)
    target.put(command.dst_level, box, new)


def linear_pair(target: int, source: int) -> tuple[int, int]:
    """Formats of a blit as they are converted: from sRGB to sRGB, colours stay as stored.

    Texels are mixed before they are converted, as the chip's texture unit does it.
    """
    first, second = layout_of(target), layout_of(source)
    if first is not None and second is not None and first.is_srgb and second.is_srgb:
        return unorm_of(target), unorm_of(source)
    return target, source


def layout_as(number: int, resource: Resource) -> Layout:
    """The layout of a view's format. Raises Refused if it has not the resource's size."""
    layout = layout_of(number)
    if layout is None or layout.block_bytes != resource.layout.block_bytes:
        raise Refused("GL-005", f"{resource} cannot be seen as format {number}")
    return layout


def _places(first: int, size: int) -> NDArray[np.int64]:
    """The texels from `first` on, or before it if the size is negative, in rising order."""
    low, high = min(first, first + size), max(first, first + size)
    low, high = max(low, 0), min(high, 1 << 16)
    return np.arange(low, max(low, high))


def _nearest(texels: NDArray[Any], x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    rows = np.clip(np.floor(y).astype(np.int64), 0, texels.shape[1] - 1)
    columns = np.clip(np.floor(x).astype(np.int64), 0, texels.shape[2] - 1)
    return texels[:, rows[:, None], columns[None, :]]


def _linear(texels: NDArray[Any], x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float32]:
    """Four texels for each place, those outside the level replaced by the nearest inside."""
    top, left = np.floor(y - 0.5), np.floor(x - 0.5)
    down: NDArray[Any] = (y - 0.5 - top).astype(np.float32)[None, :, None, None]
    right: NDArray[Any] = (x - 0.5 - left).astype(np.float32)[None, None, :, None]
    corners = [_nearest(texels, left + across, top + along) for along in (0, 1) for across in (0, 1)]
    upper = corners[0] * (1 - right) + corners[1] * right
    lower = corners[2] * (1 - right) + corners[3] * right
    mixed: NDArray[Any] = upper * (1 - down) + lower * down
    return mixed


def _lie_alike(mask: int, target: Resource, source: Resource) -> bool:
    """Whether depth and stencil, as far as they are blitted, are the same bits in both."""
    places = []
    for resource in (target, source):
        shift = 0
        found = {}
        for letter, width in resource.layout.channels:
            if mask & {"Z": DEPTH, "S": STENCIL}.get(letter, 0):
                found[letter] = shift, width
            shift += width
        places.append((resource.layout.kind, resource.layout.block_bytes, found))
    return target.format == source.format or places[0] == places[1]


def _mixed_depths(
    whole: NDArray[Any], words: NDArray[Any], layout: Layout, x: NDArray[Any], y: NDArray[Any]
) -> NDArray[Any]:
    """The nearest words with the mean depth of four texels."""
    shift = width = 0
    for letter, width in layout.channels:
        if letter == "Z":
            break
        shift += width
    kind = whole.dtype.type
    most = kind((1 << width) - 1)
    depths = (whole >> kind(shift) & most).astype(np.float64)[..., None]
    mixed = np.rint(_linear(depths, x, y)[..., 0]).astype(whole.dtype)
    found: NDArray[Any] = words & ~(most << kind(shift)) | mixed << kind(shift)
    return found


def _blit_words(
    command: Blit,
    target: Resource,
    source: Resource,
    box: Box,
    texels: NDArray[np.uint8],
    x: NDArray[Any],
    y: NDArray[Any],
) -> None:
    """Depth and stencil, only between formats whose parts lie alike: nearest, but for depths of
    smaller levels, which are mixed.
    """
    if not _lie_alike(command.mask, target, source):
        raise Refused("GL-012", f"BLIT of {source.format} to {target.format} is not built")
    mask = shift = 0
    for letter, width in source.layout.channels:
        wanted = {"Z": DEPTH, "S": STENCIL}.get(letter, 0)
        if command.mask & wanted:
            mask |= ((1 << width) - 1) << shift
        shift += width
    whole = pixels.words_of(texels, source.layout)
    words = _nearest(whole, x, y)
    if command.filter == Filter.LINEAR and command.mask & DEPTH:
        words = _mixed_depths(whole, words, source.layout, x, y)
    part = target.get(command.dst_level, box)
    old = pixels.words_of(part, target.layout)
    kind = words.dtype.type
    keep = kind(~mask & int(np.iinfo(kind).max))
    new = np.ascontiguousarray(old & keep | words & kind(mask))
    target.put(command.dst_level, box, new.view(np.uint8).reshape(part.shape))


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
