"""Blits: those of the software, levels of each other, depths, and blits that come again."""

from typing import Any

import numpy as np
import pytest
from tests.driver.drawing import BGRA, DEPTH_STENCIL, RGBA, Drawing
from tests.mesa.conftest import RunningServer

from vc4lab.driver.draws.blit import MAX_KNOWN
from vc4lab.mesa.protocol import state_commands, work_commands
from vc4lab.mesa.protocol.codes import Filter, Target
from vc4lab.mesa.protocol.formats import Format, layout_of
from vc4lab.mesa.protocol.messages import ResourceCreate2
from vc4lab.mesa.store import blits
from vc4lab.mesa.store.resources import Box, HostResource

SIZE = 64
Array = np.ndarray[Any, Any]


def software_blit(source: Array, target: Array, command: Any, formats: tuple[Any, Any]) -> Array:
    """The same by the store without a GPU: the target's texels after it."""
    made = []
    for texels, format_ in zip((source, target), formats, strict=True):
        height, width = texels.shape[:2]
        one = HostResource(ResourceCreate2(1, Target.TEXTURE_2D, format_, 8, width, height, 1, 1, 0, 0, 0))
        box = Box(0, 0, 0, width, height, 1)
        one.put(0, box, texels.reshape(1, height, -1))
        made.append((one, box))
    blits.blit(command, made[1][0], made[0][0])
    one, box = made[1]
    return one.get(0, box).reshape(target.shape)


@pytest.mark.parametrize("filter_", list(Filter))
@pytest.mark.parametrize("formats", [(RGBA, BGRA), (Format.B5G6R5_UNORM, RGBA), (BGRA, BGRA)])
def test_blits_are_those_of_the_software(
    drawing: Drawing, gpu: RunningServer, filter_: Filter, formats: tuple[Any, Any]
) -> None:
    rng = np.random.default_rng(8)
    sizes = [layout.block_bytes for one in formats if (layout := layout_of(one)) is not None]
    source = rng.integers(0, 256, (40, 56, sizes[0]), np.uint8)
    target = rng.integers(0, 256, (70, 90, sizes[1]), np.uint8)
    if sizes[0] == 4:
        source[..., 3] = 255
    handles = drawing.texture(56, 40, formats[0]), drawing.texture(90, 70, formats[1])
    drawing.put(handles[0], source)
    scissor = state_commands.Scissor(10, 5, 80, 60)
    boxes = [
        ((0, 0, 0, 56, 40, 1), (3, 5, 0, 56, 40, 1), False),
        ((4, 8, 0, 20, 20, 1), (70, 60, 0, -48, -40, 1), False),
        ((10, 10, 0, 27, 19, 1), (0, 0, 0, 90, 70, 1), True),
    ]
    for source_box, target_box, cut in boxes:
        drawing.put(handles[1], target)
        command = work_commands.Blit(
            mask=15,
            filter=filter_,
            scissor_enable=cut,
            scissor=(scissor,),
            dst=handles[1],
            dst_format=formats[1],
            dst_box=target_box,
            src=handles[0],
            src_format=formats[0],
            src_box=source_box,
        )
        drawing.client.submit(command)
        found = drawing.get(handles[1])
        expected = software_blit(source, target, command, formats)
        difference = abs(found.astype(int) - expected)
        assert difference.max() <= (4 if filter_ == Filter.LINEAR else 1), source_box
    assert gpu.screen.runner.jobs == len(boxes)


def test_levels_are_blitted_of_each_other(drawing: Drawing, gpu: RunningServer) -> None:
    """As Mesa generates them, of a size that is no power of two."""
    texture = drawing.texture(80, 60, levels=4)
    rng = np.random.default_rng(9)
    data = np.kron(rng.integers(0, 256, (8, 10, 4), np.uint8), np.ones((8, 8, 1), np.uint8))[:60]
    drawing.put(texture, data)
    for level in range(3):
        sizes = [(80 >> one, 60 >> one) for one in (level, level + 1)]
        drawing.client.submit(
            work_commands.Blit(
                mask=15,
                filter=Filter.LINEAR,
                dst=texture,
                dst_level=level + 1,
                dst_format=RGBA,
                dst_box=(0, 0, 0, *sizes[1], 1),
                src=texture,
                src_level=level,
                src_format=RGBA,
                src_box=(0, 0, 0, *sizes[0], 1),
            )
        )
    for level in (1, 2):
        assert (drawing.get(texture, level) == data[:: 1 << level, :: 1 << level]).all(), level
    assert gpu.screen.runner.jobs == 3


def test_blits_that_come_again(drawing: Drawing, gpu: RunningServer) -> None:
    """More of them than are known, in one frame; then some of them with other texels."""
    rng = np.random.default_rng(12)
    target = drawing.texture(SIZE, SIZE)
    sources = [drawing.texture(1, 1) for _ in range(MAX_KNOWN + 8)]
    for count in (len(sources), 20, 20):
        texels = rng.integers(0, 256, (count, 4), np.uint8)
        for source, texel in zip(sources[-count:], texels, strict=True):
            drawing.put(source, texel.reshape(1, 1, 4))
        wanted = drawing.get(target)
        jobs = gpu.screen.runner.jobs
        for number, source in enumerate(sources[-count:]):
            x, y = number % SIZE, number // SIZE
            drawing.client.submit(
                work_commands.Blit(
                    mask=15,
                    filter=Filter.NEAREST,
                    dst=target,
                    dst_format=RGBA,
                    dst_box=(x, y, 0, 1, 1, 1),
                    src=source,
                    src_format=RGBA,
                    src_box=(0, 0, 0, 1, 1, 1),
                )
            )
            wanted[y, x] = texels[number]
        assert (drawing.get(target) == wanted).all()
        assert gpu.screen.runner.jobs == jobs + (2 if count > MAX_KNOWN else 1)
    assert gpu.codes() == []


def test_smaller_levels_of_depth_are_means(drawing: Drawing) -> None:
    """As Mesa makes them: a linear blit from level to level; the stencil is that of one texel."""
    texture = drawing.texture(8, 8, DEPTH_STENCIL, levels=2, bind=9)
    words = np.random.default_rng(2).integers(0, 1 << 32, (8, 8)).astype(np.uint32)
    drawing.put(texture, words.view(np.uint8).reshape(8, 8, 4))
    drawing.put(texture, np.full((4, 4, 4), 0x55, np.uint8), level=1)
    formats = DEPTH_STENCIL, (0, 0, 0, 4, 4, 1), texture, 0, DEPTH_STENCIL, (0, 0, 0, 8, 8, 1)
    none = (state_commands.Scissor(0, 0, 0, 0),)
    drawing.client.submit(
        work_commands.Blit(16, Filter.LINEAR, False, False, False, none, texture, 1, *formats)
    )
    found = drawing.get(texture, 1).view(np.uint32)[..., 0]
    means = (words >> 8).astype(float).reshape(4, 2, 4, 2).mean((1, 3))
    assert abs((found >> 8) - means).max() <= 0.5
    assert (found & 255 == 0x55).all()


def test_blits_that_are_not_built(drawing: Drawing, gpu: RunningServer) -> None:
    """Another number of layers, and depths whose bits lie otherwise: reported, and left out."""
    one, other = drawing.texture(SIZE, SIZE), drawing.texture(SIZE, SIZE)
    depth = drawing.texture(SIZE, SIZE, DEPTH_STENCIL)
    short = drawing.texture(SIZE, SIZE, Format.Z16_UNORM)
    box = (0, 0, 0, SIZE, SIZE, 1)
    drawing.put(other, np.full((SIZE, SIZE, 4), 9, np.uint8))
    for target, source, mask, layers in ((other, one, 15, 2), (short, depth, 16, 1)):
        drawing.client.submit(
            work_commands.Blit(
                mask=mask,
                filter=Filter.NEAREST,
                dst=target,
                dst_format=drawing.shapes[target][0],
                dst_box=(*box[:5], layers),
                src=source,
                src_format=drawing.shapes[source][0],
                src_box=box,
            )
        )
    assert (drawing.get(other) == 9).all()
    assert gpu.codes() == ["GL-012", "GL-012"]
