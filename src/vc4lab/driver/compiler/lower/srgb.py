"""sRGB in programs: the chip's textures and its tile buffer do not know it.

Source: OpenGL 2.1 specification, section 3.8.16; GL_ARB_framebuffer_sRGB. Powers are made of the
special functions, whose 2^-11 are finer than a colour of 8 bits needs.

Colours for a buffer in sRGB are blended as linear floats, and stored by the curve: the
bytes that the other blending works on (`blend.py`) are not linear here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from vc4lab.driver.compiler.interface import ColorTarget, Uniform, UniformKind
from vc4lab.images import srgb
from vc4lab.mesa.protocol.codes import BlendFactor, BlendFunc
from vc4lab.mesa.protocol.objects import BlendTarget
from vc4lab.qpu.isa.operations import AddOp, Condition, MulOp, Unpack
from vc4lab.qpu.machine.builder import ONE, ZERO, Builder, as_float, real
from vc4lab.qpu.machine.code import Const, Op, Operand, Reg


def to_linear(code: Builder, x: Reg) -> Reg:
    """Return the linear value of a stored colour, both from 0 to 1."""
    scaled = code.make("fadd", x, real(srgb.OFFSET))
    base = code.make("fmul", scaled, real(1 / (1 + srgb.OFFSET)))
    power = code.make("fmul", code.special("log", base), real(srgb.EXPONENT))
    curved = code.move(code.special("exp", power))
    flags = code.flags(code.op("fmax", x, real(srgb.STORED_EDGE)))
    low = code.op("fmul", x, real(1 / srgb.SLOPE))
    return code.conditional(low, flags, Condition.CC, curved)


def to_stored(code: Builder, x: Operand) -> Operand:
    """Return the stored value of a linear colour, both from 0 to 1."""
    if isinstance(x, Const):
        return real(float(srgb.stored(as_float(x))))
    x = code.as_reg(x)
    power = code.make("fmul", code.special("log", x), real(1 / srgb.EXPONENT))
    scaled = code.make("fmul", code.special("exp", power), real(1 + srgb.OFFSET))
    curved = code.make("fsub", scaled, real(srgb.OFFSET))
    flags = code.flags(code.op("fmax", x, real(srgb.LINEAR_EDGE)))
    low = code.op("fmul", x, real(srgb.SLOPE))
    return code.conditional(low, flags, Condition.CC, curved)


ALPHA = 3
INVERTED = {
    BlendFactor.INV_SRC_COLOR: BlendFactor.SRC_COLOR,
    BlendFactor.INV_SRC_ALPHA: BlendFactor.SRC_ALPHA,
    BlendFactor.INV_DST_ALPHA: BlendFactor.DST_ALPHA,
    BlendFactor.INV_DST_COLOR: BlendFactor.DST_COLOR,
    BlendFactor.INV_CONST_COLOR: BlendFactor.CONST_COLOR,
    BlendFactor.INV_CONST_ALPHA: BlendFactor.CONST_ALPHA,
}
UNPACKS = (Unpack.B8A, Unpack.B8B, Unpack.B8C, Unpack.B8D)


class LinearPixel(Protocol):
    """The members of a fragment program with which a colour is made."""

    code: Builder

    def color_value(self, component: int) -> Operand: ...
    def saturate(self, operand: Operand) -> Reg: ...


class LinearColour:
    """One pixel's colour on its way. read: gives the word that the pixel, or the sample, has."""

    def __init__(self, pixel: LinearPixel, target: ColorTarget, read: Callable[[], Reg]) -> None:
        self._pixel, self._code, self._target, self._read = pixel, pixel.code, target, read
        self._sources: dict[int, Operand] = {}
        self._destinations: dict[int, Operand] = {}

    def next_sample(self) -> None:
        """Begin the next sample: drop what the one before had."""
        self._destinations = {}

    def parts(self) -> list[Operand]:
        """A float for each byte of the tile buffer's word, in its order; masked ones are 0."""
        made: list[Operand] = []
        for letter in self._target.order:
            component = "rgba".find(letter)
            if component < 0:
                made.append(ONE)
            elif not self._target.colormask >> component & 1:
                made.append(ZERO)
            else:
                made.append(self._part(component))
        return made

    def _part(self, component: int) -> Operand:
        blend = self._target.blend
        if blend is None or not blend.blend_enable or self._target.logic_op is not None:
            value = self._source(component)
        else:
            value = self._blended(blend, component)
        return value if component == ALPHA else to_stored(self._code, value)

    def _source(self, component: int) -> Operand:
        if component not in self._sources:
            value = self._pixel.color_value(component)
            self._sources[component] = (
                clamped(value) if isinstance(value, Const) else self._pixel.saturate(value)
            )
        return self._sources[component]

    def _destination(self, component: int) -> Operand:
        """Return a component that the pixel has; alpha that the buffer has not is 1."""
        place = self._target.order.find("rgba"[component])
        if place < 0:
            return ONE
        if component not in self._destinations:
            op = Op("unpack", AddOp.OR, MulOp.V8MIN, [self._read()])
            op.is_unpack = True
            op.unpacks = (int(UNPACKS[place]),)
            made = self._code.add(op)
            assert made is not None
            self._destinations[component] = made if component == ALPHA else to_linear(self._code, made)
        return self._destinations[component]

    def _blended(self, blend: BlendTarget, component: int) -> Operand:
        code = self._code
        function, first, second = (
            (blend.alpha_func, blend.alpha_src_factor, blend.alpha_dst_factor)
            if component == ALPHA
            else (blend.rgb_func, blend.rgb_src_factor, blend.rgb_dst_factor)
        )
        if function in (BlendFunc.MIN, BlendFunc.MAX):
            name = "fmin" if function is BlendFunc.MIN else "fmax"
            return code.make(name, self._source(component), self._destination(component))
        new = self._product(self._source, component, first)
        old = self._product(self._destination, component, second)
        if function is BlendFunc.REVERSE_SUBTRACT:
            new, old = old, new
        if old == ZERO:
            return new
        return self._pixel.saturate(code.make("fadd" if function is BlendFunc.ADD else "fsub", new, old))

    def _product(self, value: Callable[[int], Operand], component: int, factor: BlendFactor) -> Operand:
        """A colour times its factor."""
        if factor is BlendFactor.ZERO:
            return ZERO
        if factor is BlendFactor.ONE:
            return value(component)
        return self._code.make("fmul", value(component), self._factor(factor, component))

    def _factor(self, factor: BlendFactor, component: int) -> Operand:
        code = self._code
        if factor in INVERTED:
            return code.make("fsub", ONE, self._factor(INVERTED[factor], component))
        if factor is BlendFactor.SRC_COLOR:
            return self._source(component)
        if factor is BlendFactor.SRC_ALPHA:
            return self._source(ALPHA)
        if factor is BlendFactor.DST_COLOR:
            return self._destination(component)
        if factor is BlendFactor.DST_ALPHA:
            return self._destination(ALPHA)
        if factor is BlendFactor.CONST_COLOR:
            return Uniform(UniformKind.BLEND_COMPONENT, component)
        if factor is BlendFactor.CONST_ALPHA:
            return Uniform(UniformKind.BLEND_COMPONENT, ALPHA)
        if factor is BlendFactor.SRC_ALPHA_SATURATE and component != ALPHA:
            rest = code.make("fsub", ONE, self._destination(ALPHA))
            return code.make("fmin", self._source(ALPHA), rest)
        return ONE if factor is BlendFactor.SRC_ALPHA_SATURATE else ZERO


def clamped(value: Const) -> Const:
    """A float between 0 and 1; NaN is 0."""
    number = as_float(value)
    return real(min(max(number, 0.0), 1.0) if number == number else 0.0)
