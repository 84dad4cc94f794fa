"""sRGB in programs: the chip's textures and its tile buffer do not know it.

Source: OpenGL 2.1 specification, section 3.8.16; GL_ARB_framebuffer_sRGB. Powers are made of the
special functions, whose 2^-11 are finer than a colour of 8 bits needs.
"""

from __future__ import annotations

from vc4lab.driver.compiler.lower.builder import Builder
from vc4lab.driver.compiler.lower.constants import as_float, real
from vc4lab.driver.compiler.machine.code import Const, Operand, Reg
from vc4lab.images import srgb
from vc4lab.qpu.isa.operations import Condition


def to_linear(code: Builder, x: Reg) -> Reg:
    """Of a stored colour, 0 to 1."""
    scaled = code.make("fadd", x, real(srgb.OFFSET))
    base = code.make("fmul", scaled, real(1 / (1 + srgb.OFFSET)))
    power = code.make("fmul", code.special("log", base), real(srgb.EXPONENT))
    curved = code.move(code.special("exp", power))
    flags = code.flags(code.op("fmax", x, real(srgb.STORED_EDGE)))
    low = code.op("fmul", x, real(1 / srgb.SLOPE))
    return code.conditional(low, flags, Condition.CC, curved)


def to_stored(code: Builder, x: Operand) -> Operand:
    """Of a linear colour, 0 to 1."""
    if isinstance(x, Const):
        return real(float(srgb.stored(as_float(x))))
    x = code.as_reg(x)
    power = code.make("fmul", code.special("log", x), real(1 / srgb.EXPONENT))
    scaled = code.make("fmul", code.special("exp", power), real(1 + srgb.OFFSET))
    curved = code.make("fsub", scaled, real(srgb.OFFSET))
    flags = code.flags(code.op("fmax", x, real(srgb.LINEAR_EDGE)))
    low = code.op("fmul", x, real(srgb.SLOPE))
    return code.conditional(low, flags, Condition.CC, curved)
