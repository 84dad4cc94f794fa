"""The meaning of every QPU operation, written once over the primitives of `Ops`.

An operation gives a `Result`: the word and how its flags follow. Float operations here are
complete (infinities, denormals, signs of zero); `../jit/fast_float.py` overrides exactly these for
the native fast path. Source: hardware reference 4.4, 4.6 to 4.8.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vc4lab.qpu.isa.conversions import byte_to_float, colour_byte
from vc4lab.qpu.isa.operations import AddOp, MulOp
from vc4lab.qpu.isa.ops import FTOI_PLAIN, Mask, Ops, Word
from vc4lab.qpu.isa.qpu_unknowns import DEFAULTS, Settings
from vc4lab.qpu.isa.sfu import FUNCTIONS

EXPONENT = 0x7F800000
SIGN = 0x80000000
LARGEST = 0x7F7FFFFF


class Flags:
    """Z, N and C of a result, computed when first asked for."""

    def __init__(
        self, z: Callable[[], Mask], n: Callable[[], Mask], c: Callable[[], Mask] | None = None
    ) -> None:
        self._thunks = {"z": z, "n": n, "c": c}
        self._values: dict[str, Mask] = {}

    @classmethod
    def known(cls, values: dict[str, Mask | None]) -> Flags:
        """Flags that are already computed."""
        flags = cls(lambda: None, lambda: None)
        flags._values = dict(values)
        return flags

    def get(self, name: str) -> Mask | None:
        """The mask of flag "z", "n" or "c"; None means: clear in all lanes."""
        if name not in self._values:
            thunk = self._thunks[name]
            self._values[name] = thunk() if thunk else None
        return self._values[name]


@dataclass(slots=True, eq=False)
class Result:
    """Outcome of an ALU operation.

    overflow: signed 32-bit overflow (add and sub only); operands: the two words of add and sub,
    whose saturation the chip derives from them; is_float: how a regfile pack must read the word.
    """

    word: Word
    flags: Flags
    is_float: bool = False
    overflow: Callable[[], Mask] | None = None
    operands: tuple[Word, Word] | None = None


class Semantics:
    """The operations of both ALUs over one back end and one choice of unknowns."""

    def __init__(self, ops: Ops, settings: Settings = DEFAULTS) -> None:
        self.ops = ops
        self.settings = settings

    # ---------------------------------------------------------------- results
    def word_flags(self, word: Word, c: Callable[[], Mask] | None = None) -> Flags:
        """Flags of a 32-bit result; C clear unless given."""
        ops = self.ops
        zero = ops.const(0)
        return Flags(lambda: ops.eq(word, zero), lambda: ops.gt(zero, word), c)

    def integer(self, word: Word, c: Callable[[], Mask] | None = None) -> Result:
        return Result(word, self.word_flags(word, c))

    def floating(self, word: Word, c: Callable[[], Mask] | None = None) -> Result:
        return Result(word, self.word_flags(word, c), is_float=True)

    def positive(self, word: Word) -> Mask:
        """Result > 0: sign clear and not zero."""
        return self.ops.gt(word, self.ops.const(0))

    # ---------------------------------------------------------------- floats
    def key(self, x: Word) -> Word:
        """Order of raw floats as signed integers: sign-magnitude, -0 = +0, NaN at both ends."""
        ops = self.ops
        negative = ops.sub(ops.const(0), ops.andc(x, 0x7FFFFFFF))
        return ops.select(ops.gt(ops.const(0), x), negative, x)

    def _is_infinite(self, x: Word) -> Mask:
        ops = self.ops
        return ops.eq(ops.andc(x, EXPONENT), ops.const(EXPONENT))

    def largest_for_infinity(self, x: Word) -> Word:
        """x, or the largest number of its sign if its exponent is 255."""
        ops = self.ops
        largest = ops.or_(ops.andc(x, SIGN), ops.const(LARGEST))
        return ops.select(self._is_infinite(x), largest, x)

    def _finite(self, x: Word) -> Word:
        """x, or +0 if it is a denormal, a zero, an infinity or NaN."""
        ops = self.ops
        exponent = ops.andc(x, EXPONENT)
        ordinary = ops.ugt(
            ops.const(EXPONENT - 1), ops.sub(exponent, ops.const(1))
        )  # 0 wraps to the top, EXPONENT is the limit
        return ops.select(ordinary, x, ops.const(0))

    def _plus_zero(self, x: Word) -> Word:
        """A sum or product of finite numbers, without -0: that can only be an underflow."""
        if self.settings["underflow_sign"] == "kept":
            return x
        ops = self.ops
        return ops.select(ops.test(x, 0x7FFFFFFF), x, ops.const(0))

    def _sum(self, a: Word, b: Word) -> Word:
        ops = self.ops
        result = self._plus_zero(ops.fadd_rtz(self._finite(a), self._finite(b)))
        order = (b, a) if self.settings["infinity_order"] == "b-first" else (a, b)
        for operand in reversed(order):  # the last select wins
            infinity = ops.or_(ops.andc(operand, SIGN), ops.const(EXPONENT))
            result = ops.select(self._is_infinite(operand), infinity, result)
        return result

    def fadd(self, a: Word, b: Word) -> Result:
        word = self._sum(a, b)
        return self.floating(word, lambda: self.positive(word))

    def fsub(self, a: Word, b: Word) -> Result:
        word = self._sum(a, self.ops.xor(b, self.ops.const(SIGN)))
        return self.floating(word, lambda: self.positive(word))

    def fmul(self, a: Word, b: Word) -> Result:
        ops = self.ops
        product = self._plus_zero(ops.fmul_rtz(self._finite(a), self._finite(b)))
        infinity = ops.or_(ops.andc(ops.xor(a, b), SIGN), ops.const(EXPONENT))
        infinite = ops.mor(self._is_infinite(a), self._is_infinite(b))
        product = ops.select(infinite, infinity, product)
        nonzero = ops.mand(ops.test(a, EXPONENT), ops.test(b, EXPONENT))
        word = ops.select(nonzero, product, ops.const(0))
        if self.settings["fmul_carry"] == "positive":
            return self.floating(word, lambda: self.positive(word))
        return self.floating(word)

    def greater(self, a: Word, b: Word) -> Mask:
        """key(a) > key(b)."""
        return self.ops.gt(self.key(a), self.key(b))

    def fmin(self, a: Word, b: Word) -> Result:
        greater = self.greater(a, b)
        return self.floating(self.ops.select(greater, b, a), lambda: greater)

    def fmax(self, a: Word, b: Word) -> Result:
        greater = self.greater(a, b)
        return self.floating(self.ops.select(greater, a, b), lambda: greater)

    def _magnitudes(self, a: Word, b: Word) -> tuple[Word, Word]:
        return self.ops.andc(a, 0x7FFFFFFF), self.ops.andc(b, 0x7FFFFFFF)

    def fminabs(self, a: Word, b: Word) -> Result:
        x, y = self._magnitudes(a, b)
        greater = self.ops.gt(x, y)
        return self.floating(self.ops.select(greater, y, x), lambda: greater)

    def fmaxabs(self, a: Word, b: Word) -> Result:
        x, y = self._magnitudes(a, b)
        greater = self.ops.gt(x, y)
        return self.floating(self.ops.select(greater, x, y), lambda: greater)

    def ftoi(self, a: Word, _: Word) -> Result:
        ops, rule = self.ops, self.settings["ftoi_out_of_range"]
        if rule == "modulo":
            return self.integer(ops.ftoi_low(a))
        small = ops.ugt(ops.const(FTOI_PLAIN), ops.andc(a, 0x7FFFFFFF))
        whole = ops.ftoi_trunc(ops.select(small, a, ops.const(0)))
        beyond = ops.const(0)
        if rule == "saturate":
            beyond = ops.add(ops.const(0x7FFFFFFF), ops.shrc(a, 31))
        return self.integer(ops.select(small, whole, beyond))

    def itof(self, a: Word, _: Word) -> Result:
        return self.floating(self.ops.itof_rtz(a), lambda: self.positive(a))

    def byte_to_float(self, byte: Word) -> Word:
        """byte/255 truncated, for the unpack of a byte (already 0..255)."""
        return byte_to_float(self.ops, byte)

    def colour_byte(self, word: Word) -> Word:
        """Float to 0..255, for the mul ALU's colour pack."""
        return colour_byte(self.ops, word, self.settings)

    def special(self, address: int, word: Word) -> Word:
        """The special function that a write to `address` (52..55) starts."""
        return FUNCTIONS[address](self.ops, word, self.settings)

    # ---------------------------------------------------------------- integers
    def reserved(self, a: Word, b: Word) -> Result:
        return self.integer(self.ops.const(0))

    def add(self, a: Word, b: Word) -> Result:
        ops = self.ops
        word = ops.add(a, b)

        def overflow() -> Mask:  # both operands differ in sign from the result
            return ops.test(ops.and_(ops.xor(a, word), ops.xor(b, word)), SIGN)

        flags = self.word_flags(word, lambda: ops.ugt(a, word))
        return Result(word, flags, overflow=overflow, operands=(a, b))

    def sub(self, a: Word, b: Word) -> Result:
        ops = self.ops
        word = ops.sub(a, b)

        def overflow() -> Mask:
            return ops.test(ops.and_(ops.xor(a, b), ops.xor(a, word)), SIGN)

        flags = self.word_flags(word, lambda: ops.ugt(b, a))
        return Result(word, flags, overflow=overflow)

    def _shift(self, b: Word) -> tuple[Word, Word, Mask]:
        """Shift count, index of the last bit shifted out to the right, and whether there is one."""
        ops = self.ops
        count = ops.andc(b, 31)
        last = ops.andc(ops.sub(count, ops.const(1)), 31)
        return count, last, ops.mnot(ops.eq(count, ops.const(0)))

    def shr(self, a: Word, b: Word) -> Result:
        ops = self.ops
        count, last, some = self._shift(b)
        return self.integer(ops.shr(a, count), lambda: ops.mand(some, ops.test(ops.shr(a, last), 1)))

    def asr(self, a: Word, b: Word) -> Result:
        ops = self.ops
        count, last, some = self._shift(b)
        return self.integer(ops.sar(a, count), lambda: ops.mand(some, ops.test(ops.shr(a, last), 1)))

    def ror(self, a: Word, b: Word) -> Result:
        ops = self.ops
        count = ops.andc(b, 31)
        back = ops.andc(ops.sub(ops.const(0), count), 31)
        return self.integer(ops.or_(ops.shr(a, count), ops.shl(a, back)))

    def shl(self, a: Word, b: Word) -> Result:
        ops = self.ops
        count, last, some = self._shift(b)
        return self.integer(ops.shl(a, count), lambda: ops.mand(some, ops.test(ops.shl(a, last), SIGN)))

    def min(self, a: Word, b: Word) -> Result:
        return self.integer(self.ops.min_s(a, b), lambda: self.ops.gt(a, b))

    def max(self, a: Word, b: Word) -> Result:
        return self.integer(self.ops.max_s(a, b), lambda: self.ops.gt(a, b))

    def bit_and(self, a: Word, b: Word) -> Result:
        return self.integer(a if a is b else self.ops.and_(a, b))

    def bit_or(self, a: Word, b: Word) -> Result:
        return self.integer(a if a is b else self.ops.or_(a, b))

    def bit_xor(self, a: Word, b: Word) -> Result:
        return self.integer(self.ops.xor(a, b))

    def bit_not(self, a: Word, _: Word) -> Result:
        return self.integer(self.ops.not_(a))

    def clz(self, a: Word, _: Word) -> Result:
        return self.integer(self.ops.clz(a))

    def v8adds(self, a: Word, b: Word) -> Result:
        return self.integer(self.ops.bytes_add(a, b))

    def v8subs(self, a: Word, b: Word) -> Result:
        return self.integer(self.ops.bytes_sub(a, b))

    def mul24(self, a: Word, b: Word) -> Result:
        ops = self.ops
        x, y = ops.andc(a, 0xFFFFFF), ops.andc(b, 0xFFFFFF)
        limit = 0xFFFFFF if self.settings["mul24_carry"] == "over-24-bits" else 0xFFFFFFFF
        return self.integer(ops.mul(x, y), lambda: ops.product_exceeds(x, y, limit))

    def v8muld(self, a: Word, b: Word) -> Result:
        return self.integer(self.ops.bytes_mul(a, b))

    def v8min(self, a: Word, b: Word) -> Result:
        return self.integer(a if a is b else self.ops.bytes_min(a, b))

    def v8max(self, a: Word, b: Word) -> Result:
        return self.integer(a if a is b else self.ops.bytes_max(a, b))

    # ---------------------------------------------------------------- dispatch
    def add_alu(self, op: int, a: Word, b: Word) -> Result:
        """The result of add ALU operation `op` (not NOP)."""
        method: Callable[[Word, Word], Result] = getattr(self, _ADD_METHODS.get(op, "reserved"))
        return method(a, b)

    def mul_alu(self, op: int, a: Word, b: Word) -> Result:
        """The result of mul ALU operation `op` (not NOP)."""
        method: Callable[[Word, Word], Result] = getattr(self, _MUL_METHODS[op])
        return method(a, b)


_BIT_OPS = {AddOp.AND: "bit_and", AddOp.OR: "bit_or", AddOp.XOR: "bit_xor", AddOp.NOT: "bit_not"}
_ADD_METHODS: dict[int, str] = {
    int(op): _BIT_OPS.get(op, op.name.lower())
    for op in AddOp
    if op != AddOp.NOP and (not op.is_reserved or hasattr(Semantics, op.name.lower()))
}
"""A reserved code has a method while an operation is designed for it (docs/extending.md)."""
_MUL_METHODS: dict[int, str] = {int(op): op.name.lower() for op in MulOp if op != MulOp.NOP}
