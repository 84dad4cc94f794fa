"""Textures of draws: formats, filters, levels, faces, targets that are sampled."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.driver.drawing import BGRA, DEPTH, RGBA, Drawing
from tests.driver.shaders import TEXTURED, VARYING
from tests.mesa.conftest import RunningServer
from tests.support.texture_reference import decode_etc1

from vc4lab.driver.program_cache import mesa_compiler
from vc4lab.driver.screen import VideoCoreScreen
from vc4lab.mesa.protocol import messages
from vc4lab.mesa.protocol.codes import Compare, Filter, MipFilter, Primitive, Stage, Target, Wrap
from vc4lab.mesa.protocol.formats import Format, layout_of
from vc4lab.options import GpuOptions
from vc4lab.records.shader import GlShaderRecord

SIZE = 64
WINDOW = 0x8A
Array = np.ndarray[Any, Any]
UNIT = ((0, 0), (1, 0), (1, 1), (0, 1))


def quad(drawing: Drawing, corners: Any = UNIT, *, target: str = "2D", z: float = 0.0) -> None:
    """The whole target, with texture coordinates of its corners, from the first pixel round."""
    places = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)], np.float64)
    coordinates = np.zeros((4, 4))
    coordinates[:, : len(corners[0])] = corners
    rows = np.concatenate([places, np.tile([z, 1.0], (4, 1)), coordinates], axis=1)
    drawing.shaders(VARYING, TEXTURED.format(target=target))
    drawing.vertices(rows, 4, 4)
    drawing.draw(Primitive.TRIANGLE_FAN, 4)


@pytest.fixture
def target(drawing: Drawing) -> int:
    """A texture that is drawn to."""
    handle = drawing.texture(SIZE, SIZE)
    drawing.target(handle)
    drawing.viewport(SIZE, SIZE)
    drawing.defaults()
    return handle


def expand(words: Array, first: int, bits: int) -> Array:
    """Bits of words as bytes."""
    most = (1 << bits) - 1
    return np.rint((words >> first & most) * 255 / most).astype(np.int64)


FULL = np.full((SIZE, SIZE), 255)
NONE = np.zeros((SIZE, SIZE), np.int64)
FORMATS: dict[Any, Any] = {
    RGBA: lambda w: [expand(w, 0, 8), expand(w, 8, 8), expand(w, 16, 8), expand(w, 24, 8)],
    BGRA: lambda w: [expand(w, 16, 8), expand(w, 8, 8), expand(w, 0, 8), expand(w, 24, 8)],
    Format.R8G8B8X8_UNORM: lambda w: [expand(w, 0, 8), expand(w, 8, 8), expand(w, 16, 8), FULL],
    Format.B8G8R8X8_UNORM: lambda w: [expand(w, 16, 8), expand(w, 8, 8), expand(w, 0, 8), FULL],
    Format.B5G6R5_UNORM: lambda w: [expand(w, 11, 5), expand(w, 5, 6), expand(w, 0, 5), FULL],
    Format.B5G5R5A1_UNORM: lambda w: [
        *(expand(w, 10, 5), expand(w, 5, 5), expand(w, 0, 5), expand(w, 15, 1))
    ],
    Format.B4G4R4A4_UNORM: lambda w: [*(expand(w, 8, 4), expand(w, 4, 4), expand(w, 0, 4), expand(w, 12, 4))],
    Format.L8_UNORM: lambda w: [expand(w, 0, 8), expand(w, 0, 8), expand(w, 0, 8), FULL],
    Format.A8_UNORM: lambda w: [NONE, NONE, NONE, expand(w, 0, 8)],
    Format.L8A8_UNORM: lambda w: [*[expand(w, 0, 8)] * 3, expand(w, 8, 8)],
}
"""Formats, and red, green, blue and alpha of their words."""


def test_blocks_of_etc1_have_their_first_row_on_top(drawing: Drawing, target: int) -> None:
    """Blocks of any bits, beside a decoder of OpenGL's extension, texel by texel."""
    texture = drawing.texture(SIZE, SIZE, Format.ETC1_RGB8, bind=8)
    blocks = np.random.default_rng(8).integers(0, 256, (SIZE // 4, SIZE // 4, 8)).astype(np.uint8)
    drawing.put(texture, blocks)
    drawing.sampled(texture)
    quad(drawing)
    found = drawing.get(target)
    words = blocks.view(">u8")[..., 0]
    for y, x in np.ndindex(SIZE, SIZE):
        expected = decode_etc1(int(words[y // 4, x // 4]), x % 4, y % 4)
        assert found[y, x].tolist() == list(expected.to_bytes(4, "little")), (x, y)


@pytest.mark.parametrize("format_", FORMATS)
def test_texels_of_each_format(drawing: Drawing, target: int, format_: Any) -> None:
    layout = layout_of(format_)
    assert layout is not None
    rng = np.random.default_rng(4)
    data = rng.integers(0, 256, (SIZE, SIZE, layout.block_bytes), np.uint8)
    texture = drawing.texture(SIZE, SIZE, format_, bind=8)
    drawing.put(texture, data)
    drawing.sampled(texture)
    quad(drawing)
    words = data.copy().view(f"<u{layout.block_bytes}")[..., 0].astype(np.int64)
    expected = np.stack(FORMATS[format_](words), axis=2)
    assert abs(drawing.get(target).astype(int) - expected).max() <= 1


def test_the_view_swizzles(drawing: Drawing, target: int) -> None:
    """A view of BGRA as Mesa makes one of luminance, on top of the format's own order."""
    from vc4lab.mesa.protocol import objects, state_commands
    from vc4lab.mesa.protocol.codes import Swizzle

    texture = drawing.texture(SIZE, SIZE, BGRA, bind=8)
    drawing.put(texture, np.full((SIZE, SIZE, 4), [10, 20, 30, 40], np.uint8))
    drawing.sampled(texture)
    view = objects.SamplerView(
        resource=texture,
        format=BGRA,
        swizzle_r=Swizzle.W,
        swizzle_g=Swizzle.X,
        swizzle_b=Swizzle.ONE,
        swizzle_a=Swizzle.ZERO,
    )
    handle = drawing.create(view)
    drawing.client.submit(state_commands.SetSamplerViews(Stage.FRAGMENT, 0, (handle,)))
    quad(drawing)
    assert (drawing.get(target) == [40, 30, 255, 0]).all()


@pytest.mark.parametrize("size", [(16, 16), (20, 12)])
def test_linear_filtering(drawing: Drawing, target: int, size: tuple[int, int]) -> None:
    width, height = size
    rng = np.random.default_rng(5)
    data = rng.integers(0, 256, (height, width, 4), np.uint8)
    texture = drawing.texture(width, height, bind=8)
    drawing.put(texture, data)
    drawing.sampled(texture, min_img_filter=Filter.LINEAR, mag_img_filter=Filter.LINEAR)
    quad(drawing)
    middles = (np.arange(SIZE) + 0.5) / SIZE
    x, y = middles * width - 0.5, middles * height - 0.5

    def mixed(texels: Array, places: Array, most: int) -> Array:
        low = np.floor(places).astype(int)
        share = (places - low)[:, None, None]
        first, second = (texels[np.clip(low + step, 0, most - 1)] for step in (0, 1))
        return first * (1 - share) + second * share

    rows = mixed(data.astype(float), y, height)
    expected = mixed(rows.transpose(1, 0, 2), x, width).transpose(1, 0, 2)
    assert abs(drawing.get(target) - expected).max() <= 4


@pytest.mark.parametrize(
    ("wrap", "expected"),
    [
        (Wrap.REPEAT, [0, 1, 2, 3, 0, 1, 2, 3]),
        (Wrap.CLAMP_TO_EDGE, [0, 0, 0, 1, 2, 3, 3, 3]),
        (Wrap.MIRROR_REPEAT, [1, 0, 0, 1, 2, 3, 3, 2]),
        (Wrap.CLAMP_TO_BORDER, [9, 9, 0, 1, 2, 3, 9, 9]),
    ],
)
def test_what_lies_outside(drawing: Drawing, target: int, wrap: Wrap, expected: list[int]) -> None:
    """Four texels in a row; coordinates from -0.5 to 1.5."""
    texture = drawing.texture(4, 4, bind=8)
    data = np.zeros((4, 4, 4), np.uint8)
    data[..., 0] = np.arange(4) * 20
    drawing.put(texture, data)
    drawing.sampled(texture, wrap_s=wrap, border_color=(180 / 255, 0.0, 0.0, 0.0))
    begin = -0.5 if wrap != Wrap.REPEAT else 0.0
    quad(drawing, ((begin, 0), (begin + 2, 0), (begin + 2, 1), (begin, 1)))
    found = drawing.get(target)[32, 4::8, 0]
    assert (found == np.array(expected) * 20).all()


@pytest.mark.parametrize("size", [64, 48])
@pytest.mark.parametrize("level", range(4))
def test_levels(drawing: Drawing, target: int, size: int, level: int) -> None:
    texture = drawing.texture(size, size, levels=5, bind=8)
    for number in range(5):
        small = size >> number
        drawing.put(texture, np.full((small, small, 4), 40 * number + 20, np.uint8), number)
    drawing.sampled(texture, last_level=4, min_mip_filter=MipFilter.NEAREST)
    far = SIZE * 2.0**level / size
    quad(drawing, ((0, 0), (far, 0), (far, far), (0, far)))
    assert (drawing.get(target) == 40 * level + 20).all()


@pytest.mark.parametrize("first", [1, 2])
def test_views_that_begin_with_a_later_level(drawing: Drawing, target: int, first: int) -> None:
    texture = drawing.texture(40, 40, levels=4, bind=8)
    for number in range(4):
        small = 40 >> number
        drawing.put(texture, np.full((small, small, 4), 40 * number + 20, np.uint8), number)
    drawing.sampled(texture, first_level=first, last_level=3)
    quad(drawing)
    assert (drawing.get(target) == 40 * first + 20).all()


def test_faces_of_a_cube(drawing: Drawing, target: int) -> None:
    texture = drawing.texture(32, 32, bind=8, target=Target.TEXTURE_CUBE)
    for face in range(6):
        drawing.put(texture, np.full((32, 32, 4), 40 * face + 10, np.uint8), z=face)
    drawing.sampled(texture, last_layer=5)
    for face in range(6):
        axis, sign = face // 2, 1 - face % 2 * 2
        corner = np.zeros((4, 3))
        corner[:, [0, 1, 2][:axis] + [0, 1, 2][axis + 1 :]] = np.array(UNIT) - 0.5
        corner[:, axis] = sign
        quad(drawing, corner, target="CUBE")
        assert (drawing.get(target) == 40 * face + 10).all(), face


def test_a_target_is_sampled_and_drawn_to_again(drawing: Drawing) -> None:
    """Clear A, draw A in B, clear A again, draw A in half of B: each in its order, no wait."""
    first, second = drawing.texture(SIZE, SIZE), drawing.texture(SIZE, SIZE, BGRA)
    drawing.defaults()
    drawing.viewport(SIZE, SIZE)
    drawing.target(first)
    drawing.clear(4, (1, 0, 0, 1))
    drawing.target(second)
    drawing.sampled(first)
    quad(drawing)
    drawing.target(first)
    drawing.clear(4, (0, 1, 0, 1))
    drawing.target(second)
    drawing.viewport(SIZE, SIZE // 2)
    quad(drawing)
    found = drawing.get(second)
    assert (found[: SIZE // 2] == [0, 255, 0, 255]).all()
    assert (found[SIZE // 2 :] == [0, 0, 255, 255]).all()


@pytest.mark.parametrize("format_", [BGRA, RGBA])
def test_a_window_is_sampled(drawing: Drawing, target: int, format_: Any) -> None:
    """It lies in rows: the texture unit gets a copy, a new one when it has changed."""
    rng = np.random.default_rng(6)
    window = drawing.texture(50, 30, format_, bind=WINDOW)
    drawing.sampled(window)
    for _ in range(2):
        data = rng.integers(0, 256, (30, 50, 4), np.uint8)
        drawing.put(window, data)
        quad(drawing, ((0, 0), (SIZE / 50, 0), (SIZE / 50, SIZE / 30), (0, SIZE / 30)))
        colours = data[..., [2, 1, 0, 3]] if format_ == BGRA else data
        assert (drawing.get(target)[:30, :50] == colours).all()


@pytest.mark.parametrize("compare", [False, True])
def test_depth_is_sampled(drawing: Drawing, target: int, compare: bool) -> None:
    depth = drawing.texture(SIZE, SIZE, DEPTH, bind=1 | 8)
    words = np.linspace(0, 0xFFFFFF, SIZE * SIZE).astype(np.uint32).reshape(SIZE, SIZE)
    drawing.put(depth, (words << 8).view(np.uint8).reshape(SIZE, SIZE, 4))
    drawing.sampled(depth, compare_mode=compare, compare_func=Compare.LEQUAL)
    reference = 0.5
    quad(drawing, [(*corner, reference) for corner in UNIT], target="SHADOW2D" if compare else "2D")
    found = drawing.get(target)[..., 0].astype(int)
    expected = (reference <= words / 0xFFFFFF) * 255 if compare else words / 0xFFFFFF * 255
    assert abs(found - expected).max() <= 1


def test_a_level_is_made_of_the_one_before(drawing: Drawing, gpu: RunningServer) -> None:
    """Draws to level n that sample level n - 1 of the same texture, as generated levels are."""
    texture = drawing.texture(SIZE, SIZE, levels=4)
    rng = np.random.default_rng(7)
    data = np.kron(rng.integers(0, 256, (8, 8, 4), np.uint8), np.ones((8, 8, 1), np.uint8))
    drawing.put(texture, data)
    drawing.defaults()
    for level in range(1, 4):
        drawing.target(texture, level=level)
        drawing.viewport(SIZE >> level, SIZE >> level)
        drawing.sampled(texture, first_level=level - 1, last_level=level - 1)
        quad(drawing)
    assert (drawing.get(texture, 3) == data[::8, ::8]).all()
    assert gpu.codes() == []


TWO_LOOK_UPS = TEXTURED.format(target="2D").replace(
    "  1: MOV OUT[0], TEMP[0]\n  2: END",
    "  1: TEX TEMP[0], TEMP[0], SAMP[0], 2D\n  2: ADD OUT[0], TEMP[0], IN[0]\n  3: END",
)


def test_programs_with_two_threads_are_drawn_as_such(tmp_path: Path) -> None:
    """A texel says where the next one is: two switches; the record's bit; both engines alike."""
    texels = np.random.default_rng(11).integers(0, 256, (SIZE, SIZE, 4), np.uint8)
    found = []
    for engine in ("jit", "interpreter"):
        path = tmp_path / engine
        server = RunningServer(
            path,
            lambda reporter, engine=engine: VideoCoreScreen(
                reporter, mesa_compiler(), GpuOptions(engine=engine)
            ),
        )
        client = server.client()
        client.send(messages.CreateRenderer(b"test\0"))
        client.send(messages.ProtocolVersion(2))
        client.words(3)
        drawing = Drawing(client)
        handle = drawing.texture(SIZE, SIZE)
        drawing.target(handle)
        drawing.viewport(SIZE, SIZE)
        drawing.defaults()
        texture = drawing.texture(SIZE, SIZE, bind=8)
        drawing.put(texture, texels)
        drawing.sampled(texture)
        rows = np.array([(-1, -1, 0, 1, 0, 0, 0, 0), (1, -1, 0, 1, 1, 0, 0, 0),
                         (1, 1, 0, 1, 1, 1, 0, 0), (-1, 1, 0, 1, 0, 1, 0, 0)])  # fmt: skip
        drawing.shaders(VARYING, TWO_LOOK_UPS)
        drawing.vertices(rows, 4, 4)
        drawing.draw(Primitive.TRIANGLE_FAN, 4)
        found.append(drawing.get(handle))
        pipeline = server.screen.processor.draws.pipeline
        assert pipeline.fragment.shader.is_threaded
        record = GlShaderRecord.from_bytes(pipeline.records.head((0, 0, 0)))
        assert not record.fs_single_threaded
        assert server.codes() == []
        client.socket.close()
        server.close()
    assert (found[0] == found[1]).all()
    at = np.minimum(texels[..., :2].astype(int) * SIZE // 255, SIZE - 1)
    place = (np.arange(SIZE) + 0.5) / SIZE * 255
    expected = texels[at[..., 1], at[..., 0]].astype(float)
    expected[..., 0] += place
    expected[..., 1] += place[:, None]
    near_edge = (texels[..., :2].astype(int) * SIZE % 255 < 2).any(axis=2)
    assert abs(found[0] - np.minimum(expected, 255))[~near_edge].max() <= 1.5
