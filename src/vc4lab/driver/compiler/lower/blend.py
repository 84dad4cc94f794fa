"""A pixel's colour as a word of the tile buffer: packed, blended, masked.

Blending happens on bytes, four at a time, as the hardware's v8 operations have it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Protocol

from vc4lab.driver.compiler.interface import ColorTarget, Uniform, UniformKind
from vc4lab.driver.compiler.lower.srgb import INVERTED, LinearColour
from vc4lab.mesa.protocol.codes import BlendFactor, BlendFunc, LogicOp
from vc4lab.mesa.protocol.objects import BlendTarget
from vc4lab.qpu.isa.operations import MulOp, Pack, Signal
from vc4lab.qpu.isa.registers import Write
from vc4lab.qpu.machine.builder import Builder
from vc4lab.qpu.machine.code import Const, Op, Operand, Reg, Wants

ALL = Const(0xFFFFFFFF)
SAMPLES = 4
BYTES = (Pack.B8A, Pack.B8B, Pack.B8C, Pack.B8D)


class Pixel(Protocol):
    """The members of a fragment program with which a colour is made."""

    code: Builder
    reads_color: bool

    def color_value(self, component: int) -> Operand: ...
    def saturate(self, operand: Operand) -> Reg: ...
    def tlb(self, op: Op) -> None: ...


def colour_words(pixel: Pixel, target: ColorTarget) -> Iterator[tuple[int, Operand]]:
    """The words that are written, and to which address; each before the next is made.

    One for all samples, or one for each where it depends on what the sample has.
    """
    colour = _Colour(pixel, target)
    word = colour.word()
    if word is None:
        return
    if not (target.is_sampled and colour.reads):
        yield int(Write.TLB_COLOUR_ALL), word
        return
    for _ in range(1, SAMPLES):
        yield int(Write.TLB_COLOUR_MS), word
        colour.next_sample()
        word = colour.word()
        assert word is not None
    yield int(Write.TLB_COLOUR_MS), word


class _Colour:
    """One pixel's colour on its way."""

    def __init__(self, pixel: Pixel, target: ColorTarget) -> None:
        self._pixel = pixel
        self._code = pixel.code
        self._target = target
        self._alpha = target.order.find("a")
        self._destination: Reg | None = None
        self._factors: dict[BlendFactor, Operand] = {}
        self._source_word: Operand | None = None
        self._singles: set[Operand] = set()
        """Parts of the colour that are no other part of it."""
        self._linear = LinearColour(pixel, target, self._read)

    @property
    def reads(self) -> bool:
        """Whether the word depends on what the sample has."""
        return self._destination is not None

    def next_sample(self) -> None:
        """Begin the next sample: drop all values that depend on the one before."""
        self._destination = None
        self._factors = {factor: made for factor, made in self._factors.items() if "DST" not in factor.name}
        self._factors.pop(BlendFactor.SRC_ALPHA_SATURATE, None)
        self._linear.next_sample()

    def word(self) -> Operand | None:
        target = self._target
        mask = 0
        for place, letter in enumerate(target.order):
            if letter == "x" or target.colormask >> "rgba".index(letter) & 1:
                mask |= 255 << 8 * place
        if not target.colormask & sum(1 << "rgba".index(one) for one in set(target.order) - {"x"}):
            return None
        if target.is_srgb:
            result = self._pack(self._linear.parts())
        elif target.logic_op is not None:
            result = self._logic(target.logic_op)
        elif target.blend is not None and target.blend.blend_enable:
            result = self._blended(target.blend)
        else:
            result = self._source()
        if mask == ALL.word:
            return result
        kept = self._code.make("and", self._read(), Const(~mask & ALL.word))
        new = self._code.make("and", result, Const(mask))
        return self._code.make("or", new, kept)

    # ---------------------------------------------------------------- packing

    def _source(self) -> Operand:
        """The shader's colour."""
        parts = [
            Const(0x3F800000) if letter == "x" else self._pixel.color_value("rgba".index(letter))
            for letter in self._target.order
        ]
        return self._pack(parts)

    def _pack(self, parts: list[Operand]) -> Operand:
        """Four floats as bytes."""
        if all(isinstance(one, Const) for one in parts):
            word = 0
            for place, one in enumerate(parts):
                assert isinstance(one, Const)
                word |= _byte(one.word) << 8 * place
            return Const(word)
        most = max(parts, key=lambda one: (parts.count(one), isinstance(one, Const)))
        self._singles = {one for one in parts if parts.count(one) == 1}
        if self._target.is_sampled:
            self._singles.clear()  # the next sample's word may have the same parts
        if self._needs_alpha():
            self._singles.discard(self._pixel.color_value(3))
        packed = self._packed(most, Pack.B8_ALL, None)
        for place, one in enumerate(parts):
            if one != most:
                packed = self._packed(one, BYTES[place], packed)
        return packed

    def _needs_alpha(self) -> bool:
        """Whether the source's alpha is read as a float once more, as a factor."""
        blend = self._target.blend
        if blend is None or not blend.blend_enable or self._target.logic_op is not None:
            return False
        factors = {
            *(blend.rgb_src_factor, blend.rgb_dst_factor),
            *(blend.alpha_src_factor, blend.alpha_dst_factor),
        }
        return any("SRC_ALPHA" in factor.name for factor in factors)

    def _packed(self, operand: Operand, pack: Pack, old: Reg | None) -> Reg:
        """A float as a byte; what makes it packs it itself if it is a product for nothing else."""
        maker = self._code.may_change(operand)
        if maker is not None and maker.name == "fmul" and operand in self._singles:
            assert isinstance(operand, Reg)
            maker.pack, maker.pm = int(pack), True
            if old is not None:
                self._code.over(maker, old)
            else:
                self._code.to_end(maker)
            return operand
        op = Op(f"pack {pack.name.lower()}", None, MulOp.V8MIN, [operand])
        op.pack, op.pm = int(pack), True
        op.tied = old
        result = self._code.add(op)
        assert result is not None
        return result

    # ---------------------------------------------------------------- the tile buffer

    def _read(self) -> Reg:
        """Return the word of the pixel in the tile buffer, an x byte as all ones; load it at first use."""
        if self._destination is None:
            load = Op("load colour")
            load.signal = Signal.LOAD_COLOUR
            word = self._code.add(load, Wants.R4)
            self._pixel.tlb(load)
            self._pixel.reads_color = True
            assert word is not None
            place = self._target.order.find("x")
            if place >= 0:
                self._destination = self._code.make("or", word, Const(255 << 8 * place))
            else:
                self._destination = self._code.move(word)
        return self._destination

    # ---------------------------------------------------------------- blending

    def _blended(self, blend: BlendTarget) -> Operand:
        """Colour and alpha by their own rules, if they differ."""
        color = blend.rgb_func, blend.rgb_src_factor, blend.rgb_dst_factor
        alpha = blend.alpha_func, blend.alpha_src_factor, blend.alpha_dst_factor
        has_alpha = self._alpha >= 0
        first = self._equation(*color)
        if not has_alpha or _for_alpha(color) == _for_alpha(alpha):
            return first
        second = self._equation(*alpha)
        alpha_mask = 255 << 8 * self._alpha
        code = self._code
        return code.make(
            "or",
            code.make("and", first, Const(~alpha_mask & ALL.word)),
            code.make("and", second, Const(alpha_mask)),
        )

    def _equation(self, function: BlendFunc, source: BlendFactor, destination: BlendFactor) -> Operand:
        code = self._code
        new = self._new()
        if function in (BlendFunc.MIN, BlendFunc.MAX):
            name = "v8min" if function is BlendFunc.MIN else "v8max"
            return code.make(name, new, self._read())
        first = self._product(new, source)
        second: Operand | None = None
        if destination is not BlendFactor.ZERO:
            second = self._product(self._read(), destination)
        if function is BlendFunc.ADD:
            if second is None:
                return Const(0) if first is None else first
            return second if first is None else code.make("v8adds", first, second)
        pair = (first or Const(0), second or Const(0))
        return code.make("v8subs", *(pair if function is BlendFunc.SUBTRACT else pair[::-1]))

    def _new(self) -> Operand:
        if self._source_word is None:
            self._source_word = self._source()
        return self._source_word

    def _product(self, word: Operand, factor: BlendFactor) -> Operand | None:
        """A colour times its factor; None: 0."""
        if factor is BlendFactor.ZERO:
            return None
        if factor is BlendFactor.ONE:
            return word
        return self._code.make("v8muld", word, self._factor(factor))

    def _factor(self, factor: BlendFactor) -> Operand:
        if factor not in self._factors:
            self._factors[factor] = self._make_factor(factor)
        return self._factors[factor]

    def _make_factor(self, factor: BlendFactor) -> Operand:
        code = self._code
        if factor in INVERTED:
            return code.make("not", self._factor(INVERTED[factor]))
        if factor is BlendFactor.SRC_COLOR:
            return self._new()
        if factor is BlendFactor.DST_COLOR:
            return self._read()
        if factor is BlendFactor.SRC_ALPHA:
            alpha = self._pixel.color_value(3)
            if isinstance(alpha, Const):
                return Const(_byte(alpha.word) * 0x01010101)
            return self._packed(alpha, Pack.B8_ALL, None)
        if factor is BlendFactor.DST_ALPHA:
            return self._replicated(self._read()) if self._alpha >= 0 else ALL
        if factor is BlendFactor.CONST_COLOR:
            return Uniform(UniformKind.BLEND_COLOR)
        if factor is BlendFactor.CONST_ALPHA:
            return Uniform(UniformKind.BLEND_ALPHA)
        if factor is BlendFactor.SRC_ALPHA_SATURATE:
            return self._saturate_factor()
        return Const(0)

    def _replicated(self, word: Reg) -> Operand:
        """The word's alpha in all bytes."""
        code = self._code
        low = code.make("and", code.make("shr", word, Const(8 * self._alpha)), Const(255))
        double = code.make("or", low, code.make("shl", low, Const(8)))
        sixteen = code.move(Const(16))
        return code.make("or", double, code.make("shl", double, sixteen))

    def _saturate_factor(self) -> Operand:
        """min(source alpha, 1 - destination alpha) for colours, 1 for alpha."""
        code = self._code
        least = code.make(
            "v8min", self._factor(BlendFactor.SRC_ALPHA), self._factor(BlendFactor.INV_DST_ALPHA)
        )
        if self._alpha < 0:
            return least
        return code.make("or", least, Const(255 << 8 * self._alpha))

    # ---------------------------------------------------------------- logic

    def _logic(self, operation: LogicOp) -> Operand:
        """Bit by bit."""
        code = self._code
        if operation is LogicOp.CLEAR:
            return Const(0)
        if operation is LogicOp.SET:
            return ALL
        if operation is LogicOp.NOOP:
            return self._read()
        if operation is LogicOp.INVERT:
            return code.make("not", self._read())
        new = self._new()
        if operation is LogicOp.COPY:
            return new
        if operation is LogicOp.COPY_INVERTED:
            return code.make("not", new)
        old = self._read()
        name, invert_new, invert_old, invert = LOGIC[operation]
        first = code.make("not", new) if invert_new else new
        second = code.make("not", old) if invert_old else old
        result = code.make(name, first, second)
        return code.make("not", result) if invert else result


LOGIC: dict[LogicOp, tuple[str, bool, bool, bool]] = {
    # operation, whether source, destination and result are inverted
    LogicOp.NOR: ("or", False, False, True),
    LogicOp.AND_INVERTED: ("and", True, False, False),
    LogicOp.AND_REVERSE: ("and", False, True, False),
    LogicOp.XOR: ("xor", False, False, False),
    LogicOp.NAND: ("and", False, False, True),
    LogicOp.AND: ("and", False, False, False),
    LogicOp.EQUIV: ("xor", False, False, True),
    LogicOp.OR_INVERTED: ("or", True, False, False),
    LogicOp.OR_REVERSE: ("or", False, True, False),
    LogicOp.OR: ("or", False, False, False),
}


def _for_alpha(
    rule: tuple[BlendFunc, BlendFactor, BlendFactor],
) -> tuple[BlendFunc, BlendFactor, BlendFactor]:
    """A rule with factors as alpha sees them: a colour's is its alpha."""
    same = {
        BlendFactor.SRC_COLOR: BlendFactor.SRC_ALPHA,
        BlendFactor.DST_COLOR: BlendFactor.DST_ALPHA,
        BlendFactor.CONST_COLOR: BlendFactor.CONST_ALPHA,
        BlendFactor.INV_SRC_COLOR: BlendFactor.INV_SRC_ALPHA,
        BlendFactor.INV_DST_COLOR: BlendFactor.INV_DST_ALPHA,
        BlendFactor.INV_CONST_COLOR: BlendFactor.INV_CONST_ALPHA,
        BlendFactor.SRC_ALPHA_SATURATE: BlendFactor.ONE,
    }
    function, source, destination = rule
    if function in (BlendFunc.MIN, BlendFunc.MAX):
        return function, BlendFactor.ONE, BlendFactor.ONE
    return function, same.get(source, source), same.get(destination, destination)


def _byte(word: int) -> int:
    """A float as a colour byte, to the nearest."""
    (value,) = struct.unpack("<f", struct.pack("<I", word))
    if not value > 0:
        return 0
    return min(255, int(value * 255 + 0.5))
