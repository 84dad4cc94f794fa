"""Colours on their way into the tile buffer: every factor, equation, mask and logic operation."""

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.support.compiled_shaders import any_pixels, check_rules, run_compiled, varyings_for
from tests.support.shader_runs import LANES

from vc4lab.driver.compiler.compile import compile_fragment
from vc4lab.driver.compiler.interface import ColorTarget, FragmentKey
from vc4lab.driver.compiler.tgsi.parser import parse
from vc4lab.mesa.protocol.codes import BlendFactor, BlendFunc, Compare, LogicOp
from vc4lab.mesa.protocol.objects import BlendTarget

Floats = NDArray[np.float64]
SHADER = parse("FRAG\nDCL IN[0], GENERIC[0], PERSPECTIVE\nDCL OUT[0], COLOR\nMOV OUT[0], IN[0]\nEND\n")
FACTORS = [one for one in BlendFactor if one.name != "NONE" and "SRC1" not in one.name]
CONSTANT = np.array([0x80, 0x20, 0xC0, 0x40])
"""The bytes of `ShaderStage`'s blend colour."""


def target(**fields: object) -> BlendTarget:
    """Blending with everything on; the rest as given."""
    names = {
        "blend_enable": True,
        "rgb_func": BlendFunc.ADD,
        "rgb_src_factor": BlendFactor.ONE,
        "rgb_dst_factor": BlendFactor.ZERO,
        "alpha_func": BlendFunc.ADD,
        "alpha_src_factor": BlendFactor.ONE,
        "alpha_dst_factor": BlendFactor.ZERO,
        "colormask": 15,
    }
    return BlendTarget(**{**names, **fields})


def drawn(color: ColorTarget, seed: int = 0, **key: object) -> tuple[Floats, Floats, Floats]:
    """Source, destination and result in bytes: (16 pixels, rgba as `order` has them)."""
    shader = compile_fragment(SHADER, FragmentKey(color=color, **key))  # type: ignore[arg-type]
    check_rules(shader.words)
    inputs = any_pixels(SHADER, seed)
    rng = np.random.default_rng(seed)
    source = rng.uniform(-0.2, 1.2, (LANES, 4)).astype(np.float32)
    inputs.inputs = {(0, c): np.ascontiguousarray(source[:, c]).view(np.uint32) for c in range(4)}
    destination = rng.integers(0, 256, (LANES, 4)).astype(np.uint8)
    words = np.ascontiguousarray(destination).view(np.uint32).ravel()
    ran = run_compiled(shader, inputs, varyings_for(SHADER, inputs), destination=words)
    result = ran.colour.view(np.uint8).reshape(LANES, 4)
    result = np.where(ran.coloured[:, None], result, destination)
    places = ["rgba".index(letter) for letter in color.order.replace("x", "a")]
    bytes_of_source = np.rint(np.clip(source, 0, 1) * 255)[:, places]
    return bytes_of_source, destination.astype(float), result.astype(float)


def factor_of(factor: BlendFactor, source: Floats, destination: Floats, alpha: int) -> Floats:
    """A factor in bytes, for each byte."""
    name = factor.name
    if name.startswith("INV_"):
        return 255 - factor_of(BlendFactor[name[4:]], source, destination, alpha)
    ones = np.full_like(source, 255.0)
    if name == "SRC_ALPHA_SATURATE":
        least = np.minimum(source[:, 3:4], 255 - destination[:, 3:4]) * np.ones(4)
        least[:, 3] = 255
        return least
    return {
        "ONE": ones,
        "ZERO": 0 * ones,
        "SRC_COLOR": source,
        "SRC_ALPHA": ones / 255 * source[:, 3:4],
        "DST_COLOR": destination,
        "DST_ALPHA": ones / 255 * destination[:, 3:4],
        "CONST_COLOR": ones / 255 * CONSTANT,
        "CONST_ALPHA": ones / 255 * CONSTANT[3],
    }[name]


def combined(function: BlendFunc, first: Floats, second: Floats) -> Floats:
    """What an equation makes of two products."""
    if function is BlendFunc.ADD:
        return np.minimum(first + second, 255)
    if function is BlendFunc.SUBTRACT:
        return np.maximum(first - second, 0)
    if function is BlendFunc.REVERSE_SUBTRACT:
        return np.maximum(second - first, 0)
    return np.minimum(first, second) if function is BlendFunc.MIN else np.maximum(first, second)


@pytest.mark.parametrize("name", [one.name for one in FACTORS])
@pytest.mark.parametrize("side", ["src", "dst"])
def test_factors(name: str, side: str) -> None:
    factor = BlendFactor[name]
    fields = {f"rgb_{side}_factor": factor, f"alpha_{side}_factor": factor}
    if side == "dst":
        fields |= {"rgb_src_factor": BlendFactor.ZERO, "alpha_src_factor": BlendFactor.ZERO}
    source, destination, result = drawn(ColorTarget(blend=target(**fields)))
    factors = factor_of(factor, source, destination, 3)
    expected = (source if side == "src" else destination) * factors / 255
    assert np.abs(result - expected).max() <= 2


@pytest.mark.parametrize("function", list(BlendFunc), ids=lambda one: one.name)
def test_equations(function: BlendFunc) -> None:
    one, alpha = BlendFactor.ONE, BlendFactor.SRC_ALPHA
    fields = {"rgb_func": function, "alpha_func": function}
    fields |= {"rgb_src_factor": alpha, "alpha_src_factor": alpha}
    blend = target(**fields, rgb_dst_factor=one, alpha_dst_factor=one)
    source, destination, result = drawn(ColorTarget(blend=blend))
    first = source if function in (BlendFunc.MIN, BlendFunc.MAX) else source * source[:, 3:] / 255
    assert np.abs(result - combined(function, first, destination)).max() <= 2


def test_colour_and_alpha_by_their_own_rules() -> None:
    blend = target(
        rgb_src_factor=BlendFactor.SRC_ALPHA,
        rgb_dst_factor=BlendFactor.INV_SRC_ALPHA,
        alpha_src_factor=BlendFactor.ZERO,
        alpha_dst_factor=BlendFactor.ONE,
    )
    source, destination, result = drawn(ColorTarget(blend=blend))
    alpha = source[:, 3:] / 255
    expected = source * alpha + destination * (1 - alpha)
    assert np.abs(result - expected)[:, :3].max() <= 2
    assert (result[:, 3] == destination[:, 3]).all()


@pytest.mark.parametrize("mask", range(16))
def test_colour_masks(mask: int) -> None:
    source, destination, result = drawn(ColorTarget(colormask=mask))
    for component in range(4):
        expected = source if mask >> component & 1 else destination
        assert np.abs(result - expected)[:, component].max() <= 1


def test_the_order_of_bytes() -> None:
    source, _, result = drawn(ColorTarget(order="bgra"))
    assert np.abs(result - source).max() <= 1
    source, _, result = drawn(ColorTarget(order="bgrx"))
    assert np.abs(result - source)[:, :3].max() <= 1
    assert (result[:, 3] == 255).all()


def test_absent_alpha_is_one() -> None:
    blend = target(rgb_src_factor=BlendFactor.DST_ALPHA, rgb_dst_factor=BlendFactor.INV_DST_ALPHA)
    source, _, result = drawn(ColorTarget(order="rgbx", blend=blend))
    assert np.abs(result - source)[:, :3].max() <= 1


LOGIC = {
    LogicOp.CLEAR: lambda s, d: 0 * s,
    LogicOp.NOR: lambda s, d: ~(s | d),
    LogicOp.AND_INVERTED: lambda s, d: ~s & d,
    LogicOp.COPY_INVERTED: lambda s, d: ~s,
    LogicOp.AND_REVERSE: lambda s, d: s & ~d,
    LogicOp.INVERT: lambda s, d: ~d,
    LogicOp.XOR: lambda s, d: s ^ d,
    LogicOp.NAND: lambda s, d: ~(s & d),
    LogicOp.AND: lambda s, d: s & d,
    LogicOp.EQUIV: lambda s, d: ~(s ^ d),
    LogicOp.NOOP: lambda s, d: d,
    LogicOp.OR_INVERTED: lambda s, d: ~s | d,
    LogicOp.COPY: lambda s, d: s,
    LogicOp.OR_REVERSE: lambda s, d: s | ~d,
    LogicOp.OR: lambda s, d: s | d,
    LogicOp.SET: lambda s, d: s | 255,
}


@pytest.mark.parametrize("operation", list(LogicOp), ids=lambda one: one.name)
def test_logic_operations(operation: LogicOp) -> None:
    copied = drawn(ColorTarget(logic_op=LogicOp.COPY))[2].astype(np.uint8)
    _, destination, result = drawn(ColorTarget(logic_op=operation))
    expected = LOGIC[operation](copied, destination.astype(np.uint8))
    assert (result == expected.astype(np.uint8)).all()


@pytest.mark.parametrize("test", list(Compare), ids=lambda one: one.name)
def test_alpha_tests(test: Compare) -> None:
    """The reference is 1/2; pixels that fail keep what they have, and their depth."""
    shader = compile_fragment(SHADER, FragmentKey(alpha_test=test, writes_z=True))
    check_rules(shader.words)
    inputs = any_pixels(SHADER, 1)
    alpha = np.resize(np.array([0.25, 0.5, 0.75, 1.0], np.float32), LANES)
    inputs.inputs = {(0, 3): alpha.view(np.uint32)}
    ran = run_compiled(shader, inputs, varyings_for(SHADER, inputs))
    compare = {
        Compare.NEVER: alpha != alpha,
        Compare.LESS: alpha < 0.5,
        Compare.EQUAL: alpha == 0.5,
        Compare.LEQUAL: alpha <= 0.5,
        Compare.GREATER: alpha > 0.5,
        Compare.NOTEQUAL: alpha != 0.5,
        Compare.GEQUAL: alpha >= 0.5,
        Compare.ALWAYS: alpha == alpha,
    }
    assert (ran.coloured == compare[test]).all()
    assert (ran.deep == compare[test]).all()


def test_stencil_and_depth_come_before_the_colour() -> None:
    shader = compile_fragment(SHADER, FragmentKey(writes_z=True, stencil_words=3))
    check_rules(shader.words)
    inputs = any_pixels(SHADER, 1)
    ran = run_compiled(shader, inputs, varyings_for(SHADER, inputs))
    assert ran.stencil == [0xC0000000, 0xC0000001, 0xC0000002]
    assert (ran.depth == 1 << 23).all()
    assert ran.coloured.all()


def test_no_colour_at_all() -> None:
    shader = compile_fragment(SHADER, FragmentKey(color=None, writes_z=True))
    check_rules(shader.words)
    assert shader.varyings == ()
    inputs = any_pixels(SHADER, 1)
    ran = run_compiled(shader, inputs, varyings_for(SHADER, inputs))
    assert ran.deep.all()
    assert not ran.coloured.any()
