"""Textures and targets in sRGB, beside the curve of OpenGL's specification in numpy."""

from typing import Any

import numpy as np
import pytest
from tests.driver import test_blend
from tests.driver.drawing import BGRA, RGBA, Drawing
from tests.driver.shaders import VARYING, VARYING_COLOUR
from tests.driver.test_textures import SIZE, quad
from tests.mesa.conftest import RunningServer
from tests.support.compiled_shaders import any_pixels, check_rules, run_compiled, varyings_for
from tests.support.shader_runs import LANES

from vc4lab.driver.compiler.compile import compile_fragment
from vc4lab.driver.compiler.interface import ColorTarget, FragmentKey
from vc4lab.mesa.protocol import objects, state_commands, work_commands
from vc4lab.mesa.protocol.capabilities import SRGB, videocore
from vc4lab.mesa.protocol.codes import BlendFactor, BlendFunc, Filter, LogicOp, Primitive, Wrap
from vc4lab.mesa.protocol.formats import Format, layout_of, unorm_of

Array = np.ndarray[Any, Any]
FORMATS = [Format[name] for name in SRGB]
CONSTANT = np.array([0x80, 0x20, 0xC0, 0x40]) / 255


def linear(stored: Any) -> Array:
    """Of 0..1; alpha, the fourth, stays."""
    x = np.array(stored, float)
    rgb = x[..., :3]
    curve = ((rgb + 0.055) / 1.055) ** 2.4
    x[..., :3] = np.where(rgb > 0.04045, curve, rgb / 12.92)
    return x


def stored(values: Any) -> Array:
    """The other way."""
    x = np.clip(np.array(values, float), 0, 1)
    rgb = x[..., :3]
    curve = 1.055 * rgb ** (1 / 2.4) - 0.055
    x[..., :3] = np.where(rgb > 0.0031308, curve, 12.92 * rgb)
    return x


def drawn(color: ColorTarget, seed: int = 0) -> tuple[Array, Array, Array]:
    """Source (floats), destination and result (stored, 0..1) of 16 pixels, rgba."""
    shader = compile_fragment(test_blend.SHADER, FragmentKey(color=color))
    check_rules(shader.words)
    inputs = any_pixels(test_blend.SHADER, seed)
    rng = np.random.default_rng(seed)
    source = rng.uniform(-0.1, 1.1, (LANES, 4)).astype(np.float32)
    source[0], source[1], source[2, :3] = 0, 1, (0.001, 0.003, 0.0035)
    inputs.inputs = {(0, c): np.ascontiguousarray(source[:, c]).view(np.uint32) for c in range(4)}
    destination = rng.integers(0, 256, (LANES, 4)).astype(np.uint8)
    destination[3, :3] = 0, 5, 11
    words = np.ascontiguousarray(destination).view(np.uint32).ravel()
    ran = run_compiled(shader, inputs, varyings_for(test_blend.SHADER, inputs), destination=words)
    result = ran.colour.view(np.uint8).reshape(LANES, 4)
    places = ["rgba".index(letter) for letter in color.order.replace("x", "a")]
    back = np.argsort(places)
    return source.astype(float), destination[:, back] / 255, result[:, back] / 255


def factor_of(factor: BlendFactor, source: Array, destination: Array) -> Array:
    """A factor for each component, of linear colours."""
    name = factor.name
    if name.startswith("INV_"):
        return 1 - factor_of(BlendFactor[name[4:]], source, destination)
    ones = np.ones_like(source)
    saturated = np.minimum(source[:, 3:], 1 - destination[:, 3:]) * ones
    saturated[:, 3] = 1
    known = {
        "ONE": ones, "ZERO": 0 * ones, "SRC_COLOR": source, "SRC_ALPHA": ones * source[:, 3:],
        "DST_COLOR": destination, "DST_ALPHA": ones * destination[:, 3:],
        "CONST_COLOR": ones * CONSTANT, "CONST_ALPHA": ones * CONSTANT[3],
        "SRC_ALPHA_SATURATE": saturated,
    }  # fmt: skip
    return known[name]


@pytest.mark.parametrize("factor", test_blend.FACTORS, ids=lambda one: one.name)
def test_factors(factor: BlendFactor) -> None:
    """Source times the factor plus destination times another one, as linear colours."""
    one = BlendFactor.CONST_COLOR
    blend = test_blend.target(
        rgb_src_factor=factor, alpha_src_factor=factor, rgb_dst_factor=one, alpha_dst_factor=one
    )
    source, destination, result = drawn(ColorTarget(blend=blend, is_srgb=True))
    new, old = np.clip(source, 0, 1), linear(destination)
    expected = stored(new * factor_of(factor, new, old) + old * CONSTANT)
    assert abs(result - expected).max() * 255 < 1.1


@pytest.mark.parametrize("order", ["rgba", "bgra", "bgrx"])
@pytest.mark.parametrize("function", list(BlendFunc), ids=lambda one: one.name)
def test_equations(function: BlendFunc, order: str) -> None:
    alpha, one = BlendFactor.DST_ALPHA, BlendFactor.ONE
    blend = test_blend.target(
        rgb_func=function, alpha_func=function, rgb_src_factor=alpha, alpha_src_factor=alpha,
        rgb_dst_factor=one, alpha_dst_factor=one,
    )  # fmt: skip
    source, destination, result = drawn(ColorTarget(order, blend=blend, is_srgb=True), seed=2)
    if "a" not in order:
        destination[:, 3] = 1
    new, old = np.clip(source, 0, 1), linear(destination)
    first = new if function in (BlendFunc.MIN, BlendFunc.MAX) else new * old[:, 3:]
    expected = stored({
        BlendFunc.ADD: first + old, BlendFunc.SUBTRACT: first - old,
        BlendFunc.REVERSE_SUBTRACT: old - first, BlendFunc.MIN: np.minimum(first, old),
        BlendFunc.MAX: np.maximum(first, old),
    }[function])  # fmt: skip
    if "a" not in order:
        expected[:, 3] = 1
    assert abs(result - expected).max() * 255 < 1.1


@pytest.mark.parametrize("mask", [0b1111, 0b1010, 0b0111])
def test_stored_colours_and_masks(mask: int) -> None:
    """Without blending; a logic operation does not count for sRGB."""
    source, destination, result = drawn(
        ColorTarget(colormask=mask, is_srgb=True, logic_op=LogicOp.XOR), seed=3
    )
    expected = stored(source)
    for component in range(4):
        if not mask >> component & 1:
            expected[:, component] = destination[:, component]
    assert abs(result - expected).max() * 255 < 0.6


@pytest.fixture
def target(drawing: Drawing) -> int:
    """A texture of linear colours that is drawn to."""
    handle = drawing.texture(SIZE, SIZE)
    drawing.target(handle)
    drawing.viewport(SIZE, SIZE)
    drawing.defaults()
    return handle


def rgba_of(format_: Any, texels: Array) -> Array:
    """Bytes of texels as red, green, blue, alpha."""
    layout = layout_of(format_)
    assert layout is not None
    names = [letter for letter, _ in layout.channels]
    found = np.full(texels.shape, 255)
    for component, letter in enumerate("RGBA"):
        if letter in names:
            found[..., component] = texels[..., names.index(letter)]
    return found


def any_texels() -> Array:
    """Each byte in each channel."""
    texels = np.random.default_rng(7).integers(0, 256, (SIZE, SIZE, 4), np.uint8)
    texels[:4] = np.arange(256, dtype=np.uint8).reshape(4, 64, 1)
    return texels


@pytest.mark.parametrize("format_", FORMATS, ids=str)
def test_texels(drawing: Drawing, target: int, format_: Any) -> None:
    texels = any_texels()
    texture = drawing.texture(SIZE, SIZE, format_, bind=8)
    drawing.put(texture, texels)
    drawing.sampled(texture)
    quad(drawing)
    expected = linear(rgba_of(format_, texels) / 255) * 255
    assert abs(drawing.get(target) - expected).max() < 0.7


@pytest.mark.parametrize("format_", FORMATS, ids=str)
def test_a_texel_comes_back(drawing: Drawing, gpu: RunningServer, format_: Any) -> None:
    """From sRGB to sRGB: decoded and encoded, each of the 256 bytes is itself."""
    handle = drawing.texture(SIZE, SIZE, format_)
    drawing.target(handle)
    drawing.viewport(SIZE, SIZE)
    drawing.defaults()
    texels = any_texels()
    texture = drawing.texture(SIZE, SIZE, format_, bind=8)
    drawing.put(texture, texels)
    drawing.sampled(texture)
    quad(drawing)
    shown = [one != "X" for one, _ in layout_of(format_).channels]  # type: ignore[union-attr]
    assert (drawing.get(handle) == texels)[..., shown].all()
    assert gpu.codes() == []


def test_the_border_is_a_linear_colour(drawing: Drawing, target: int) -> None:
    texture = drawing.texture(8, 8, Format.B8G8R8A8_SRGB, bind=8)
    drawing.put(texture, np.zeros((8, 8, 4), np.uint8))
    border = Wrap.CLAMP_TO_BORDER
    colour = (0.5, 0.1, 0.002, 0.25)
    drawing.sampled(texture, wrap_s=border, wrap_t=border, border_color=colour)
    quad(drawing, ((2, 2), (3, 2), (3, 3), (2, 3)))
    assert abs(drawing.get(target) - np.array(colour) * 255).max() < 1.1


@pytest.mark.parametrize("format_", FORMATS, ids=str)
def test_clears_and_draws(drawing: Drawing, gpu: RunningServer, format_: Any) -> None:
    """A clear has a linear colour; a surface of linear colours of the texture is not encoded."""
    handle = drawing.texture(SIZE, SIZE, format_)
    colour = (0.2, 0.5, 0.9, 0.4)
    values = np.tile([*colour], (4, 1))
    places = np.array([(-1, -1, 0, 1), (1, -1, 0, 1), (1, 0, 0, 1), (-1, 0, 0, 1)], float)
    for seen_as, expected in ((format_, stored(colour)), (unorm_of(format_), np.array(colour))):
        surface = drawing.create(objects.Surface(handle, seen_as, 0, 0, 0))
        drawing.client.submit(state_commands.SetFramebufferState(1, 0, (surface,)))
        drawing.viewport(SIZE, SIZE)
        drawing.defaults()
        drawing.clear(4, colour)
        drawing.shaders(VARYING, VARYING_COLOUR)
        drawing.vertices(np.concatenate([places, values], axis=1), 4, 4)
        drawing.draw(Primitive.TRIANGLE_FAN, 4)
        found = rgba_of(format_, drawing.get(handle))
        if found.shape and "A" not in str(seen_as).split("_")[0]:
            expected = [*expected[:3], 1.0]
        assert abs(found - np.array(expected) * 255).max() < 0.7, seen_as
    assert gpu.codes() == []


BLITS = [
    (Format.R8G8B8A8_SRGB, RGBA), (RGBA, Format.B8G8R8A8_SRGB),
    (Format.R8G8B8A8_SRGB, Format.B8G8R8A8_SRGB), (Format.B8G8R8X8_SRGB, BGRA),
]  # fmt: skip


@pytest.mark.parametrize("mask", [15, 7], ids=["drawn", "software"])
@pytest.mark.parametrize(("source", "to"), BLITS)
def test_blits_convert(drawing: Drawing, source: Any, to: Any, mask: int) -> None:
    texels = any_texels()
    texture, target = drawing.texture(SIZE, SIZE, source), drawing.texture(SIZE, SIZE, to)
    drawing.put(texture, texels)
    drawing.put(target, np.full((SIZE, SIZE, 4), 255, np.uint8))
    box = (0, 0, 0, SIZE, SIZE, 1)
    drawing.client.submit(
        work_commands.Blit(
            mask, Filter.NEAREST, False, False, False, (state_commands.Scissor(0, 0, 0, 0),),
            target, 0, to, box, texture, 0, source, box,
        )
    )  # fmt: skip
    colours = rgba_of(source, texels) / 255
    is_from, is_to = (layout_of(one).is_srgb for one in (source, to))  # type: ignore[union-attr]
    if is_from and not is_to:
        colours = linear(colours)
    elif is_to and not is_from:
        colours = stored(colours)
    found = rgba_of(to, drawing.get(target))
    shown = 4 if mask == 15 else 3
    assert abs(found - colours * 255)[..., :shown].max() < (0.7 if is_from != is_to else 0.01)


def test_what_is_announced() -> None:
    """Sampled and drawn to, as Mesa's driver for the chip has them."""
    known = videocore()
    for one in FORMATS:
        word, bit = divmod(int(one), 32)
        assert known.sampler[word] >> bit & 1
        assert known.render[word] >> bit & 1
