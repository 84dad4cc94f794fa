"""Resources in GPU memory, clears through the V3D, copies and blits."""

from typing import Any

import numpy as np
import pytest
from tests.driver.drawing import BGRA, DEPTH, DEPTH_STENCIL, RGBA, Drawing
from tests.mesa.conftest import RunningServer

from vc4lab.mesa.protocol import work_commands
from vc4lab.mesa.protocol.codes import Filter, Target
from vc4lab.mesa.protocol.formats import Format, layout_of

RGB565 = Format.B5G6R5_UNORM
WINDOW = 0x8A
FORMATS = [BGRA, RGB565, Format.B5G5R5A1_UNORM, Format.L8A8_UNORM, Format.A8_UNORM, DEPTH]


def texels(rng: np.random.Generator, format_: Any, width: int, height: int) -> Any:
    layout = layout_of(format_)
    assert layout is not None
    return rng.integers(0, 256, (height, width, layout.block_bytes), np.uint8)


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("size", [(64, 64), (100, 37), (5, 3)])
@pytest.mark.parametrize("bind", [8, WINDOW])
def test_what_is_uploaded_is_read_back(
    drawing: Drawing, format_: Any, size: tuple[int, int], bind: int
) -> None:
    rng = np.random.default_rng(1)
    width, height = size
    handle = drawing.texture(width, height, format_, bind=bind)
    expected = texels(rng, format_, width, height)
    drawing.put(handle, expected)
    part = texels(rng, format_, 3, 2)
    drawing.put(handle, part, x=1, y=1)
    expected[1:3, 1:4] = part
    assert (drawing.get(handle) == expected).all()


def test_levels_and_faces_lie_apart(drawing: Drawing) -> None:
    rng = np.random.default_rng(2)
    handle = drawing.texture(48, 48, RGBA, levels=6, bind=8, target=Target.TEXTURE_CUBE)
    whole = {}
    for face in range(6):
        for level in range(6):
            size = max(48 >> level, 1)
            whole[face, level] = texels(rng, RGBA, size, size)
            drawing.put(handle, whole[face, level], level, z=face)
    for (face, level), expected in whole.items():
        assert (drawing.get(handle, level, face) == expected).all(), (face, level)


def test_blocks_of_a_compressed_format(drawing: Drawing) -> None:
    rng = np.random.default_rng(3)
    handle = drawing.texture(64, 32, Format.ETC1_RGB8, bind=8)
    blocks = rng.integers(0, 256, (8, 16, 8), np.uint8)
    drawing.put(handle, blocks)
    assert (drawing.get(handle) == blocks).all()


@pytest.mark.parametrize(
    ("format_", "expected"),
    [
        (RGBA, [51, 102, 153, 204]),
        (BGRA, [153, 102, 51, 204]),
        (Format.B8G8R8X8_UNORM, [153, 102, 51, 255]),
        (RGB565, [0x33, 0x33]),
    ],
)
@pytest.mark.parametrize("bind", [2, WINDOW])
def test_a_clear_is_the_v3d_s(
    drawing: Drawing, gpu: RunningServer, format_: Any, expected: list[int], bind: int
) -> None:
    handle = drawing.texture(130, 70, format_, bind=bind)
    drawing.target(handle)
    drawing.clear(4, (0.2, 0.4, 0.6, 0.8))
    assert (drawing.get(handle) == expected).all()
    assert gpu.screen.runner.jobs == 1
    assert gpu.codes() == []


def test_depth_and_stencil_are_cleared_together_or_alone(drawing: Drawing) -> None:
    handle = drawing.texture(70, 70, DEPTH_STENCIL, bind=1)
    drawing.target(0, handle)
    drawing.clear(3, depth=0.5, stencil=7)
    assert (drawing.get(handle) == [7, 0, 0, 0x80]).all()
    drawing.clear(1, depth=1.0)
    assert (drawing.get(handle) == [7, 255, 255, 255]).all()
    drawing.clear(2, stencil=9)
    assert (drawing.get(handle) == [9, 255, 255, 255]).all()


def test_a_clear_of_colour_leaves_depth(drawing: Drawing) -> None:
    colour, depth = drawing.texture(70, 70), drawing.texture(70, 70, DEPTH, bind=1)
    drawing.target(colour, depth)
    drawing.clear(5, (1, 0, 0, 1), depth=0.25)
    drawing.clear(4, (0, 1, 0, 1))
    assert (drawing.get(colour) == [0, 255, 0, 255]).all()
    assert (drawing.get(depth)[..., 3] == 0x40).all()


def test_a_clear_of_a_level(drawing: Drawing) -> None:
    handle = drawing.texture(100, 60, RGBA, levels=3)
    drawing.target(handle, level=1)
    drawing.clear(4, (1, 1, 0, 1))
    assert (drawing.get(handle, 0) == 0).all()
    assert (drawing.get(handle, 1) == [255, 255, 0, 255]).all()
    assert (drawing.get(handle, 2) == 0).all()


def test_copies_and_blits_follow_draws(drawing: Drawing) -> None:
    """The blit reads what the clear before it wrote, without a wait between them."""
    source, target = drawing.texture(64, 64), drawing.texture(64, 64, BGRA)
    drawing.target(source)
    drawing.clear(4, (1, 0, 0, 1))
    drawing.client.submit(
        work_commands.ResourceCopyRegion(target, 0, 8, 8, 0, source, 0, 0, 0, 0, 4, 4, 1),
        work_commands.Blit(
            mask=15,
            filter=Filter.NEAREST,
            dst=target,
            dst_format=BGRA,
            dst_box=(32, 32, 0, 16, 16, 1),
            src=source,
            src_format=RGBA,
            src_box=(0, 0, 0, 8, 8, 1),
        ),
    )
    found = drawing.get(target)
    assert (found[8:12, 8:12] == [255, 0, 0, 255]).all()
    assert (found[32:48, 32:48] == [0, 0, 255, 255]).all()
    assert found.any(axis=2).sum() == 16 + 256


def test_what_cannot_be_a_target_is_reported(drawing: Drawing, gpu: RunningServer) -> None:
    handle = drawing.texture(64, 64, Format.L8_UNORM)
    drawing.target(handle)
    drawing.clear(4, (1, 1, 1, 1))
    drawing.client.wait()
    assert gpu.codes() == ["GL-015"]


def test_memory_of_destroyed_textures_is_used_again(drawing: Drawing, gpu: RunningServer) -> None:
    from vc4lab.mesa.protocol import messages

    for _ in range(300):
        handle = drawing.texture(1024, 1024, RGBA, bind=8)
        drawing.client.send(messages.ResourceUnref(handle))
        drawing.memory.pop(handle).close()
    drawing.client.wait()
    assert gpu.codes() == []
    assert gpu.screen.memory.heap.used < 32 << 20


def test_uploads_go_to_their_place_at_once_if_nothing_waits(drawing: Drawing, gpu: RunningServer) -> None:
    """Else beside the queue, so that a draw before them sees what was there."""
    handle = drawing.texture(64, 64)
    red, green = (np.full((64, 64, 4), one, np.uint8) for one in ((255, 0, 0, 255), (0, 255, 0, 1)))
    arena = gpu.screen.memory.arena
    drawing.put(handle, red)
    assert (arena.turn, arena.next) == (0, arena.start)
    target = drawing.texture(64, 64)
    copied = work_commands.ResourceCopyRegion(target, 0, 0, 0, 0, handle, 0, 0, 0, 0, 64, 64, 1)
    drawing.client.submit(copied)
    drawing.put(handle, green)
    assert arena.turn == 1
    assert (drawing.get(target) == red).all()
    assert (drawing.get(handle) == green).all()


def test_uploads_are_commands_for_those_who_look(drawing: Drawing, gpu: RunningServer) -> None:
    """A capture has to have them."""
    handle = drawing.texture(64, 64)
    seen: list[Any] = []
    with gpu.screen.listeners.command.subscribe(lambda event: seen.append(event.command)):
        drawing.put(handle, np.zeros((64, 64, 4), np.uint8))
    assert [one.name for one in seen] == ["upload", "halt"]


@pytest.mark.parametrize("bind", [2, WINDOW])
def test_reading_needs_no_room_beside_the_queue(drawing: Drawing, gpu: RunningServer, bind: int) -> None:
    """The same pixels as through a command, which those who look get."""
    handle = drawing.texture(70, 50, bind=bind)
    drawing.put(handle, texels(np.random.default_rng(5), RGBA, 70, 50))
    arena, counts = gpu.screen.memory.arena, gpu.screen.processor.counts
    turn, at_once = arena.turn, drawing.get(handle)
    assert arena.turn - turn == (bind == WINDOW)  # only that the window is shown is a command
    frames = counts.frame
    seen: list[Any] = []
    with gpu.screen.listeners.command.subscribe(lambda event: seen.append(event.command)):
        assert (drawing.get(handle) == at_once).all()
    assert "readback" in [one.name for one in seen]
    assert counts.frame - frames == (bind == WINDOW)
