"""Lanes and elementary functions: shuffles, permutes, masks, reductions, min/max, bit tricks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vc4lab.simd.memory import gather, table
from vc4lab.simd.operators import Operand
from vc4lab.simd.trace import current, staged_error
from vc4lab.simd.types import Type, f32, i1, i8, i16, i32, i64, vec
from vc4lab.simd.value import Value, as_value, coerce, const, select, splat, unify, unordered


def iota(n: int = 16) -> Value:
    """0, 1, 2, … as i32."""
    return const(vec(i32, n), list(range(n)))


def _intrinsic(name: str, result: Type, *operands: Value, extra: str = "", tag: Type | None = None) -> Value:
    """A call of `llvm.name.<type>`."""
    trace = current()
    if trace.eager:
        found: Value = trace.eager.intrinsic(name, result, *operands)
        return found
    kind = tag or operands[0].type
    prefix = f"v{kind.lanes}" if kind.lanes else ""
    types = ", ".join([o.type.text for o in operands] + (["i1"] if extra else []))
    full = trace.module.declare(f"llvm.{name}.{prefix}{kind.elem.name}", f"{result.text} @{{}} ({types})")
    args = ", ".join(f"{o.type.text} {o.text}" for o in operands)
    if extra:
        args += f", i1 {extra}"
    return Value(result, trace.once(f"call {result.text} @{full}({args})"))


# -- shuffles


def shuffle(a: Value, b: Value | Sequence[int], lanes: Sequence[int] | None = None) -> Value:
    """`shuffle(a, [..])` or `shuffle(a, b, [..])`: lanes by fixed index, b's follow a's."""
    if lanes is None:
        if isinstance(b, Value):
            raise staged_error("shuffle wants a list of lane numbers")
        second, order = Value(a.type, "poison"), list(b)
        limit = a.type.lanes
    else:
        assert isinstance(b, Value)
        second = coerce(b, a.type)
        order, limit = list(lanes), 2 * a.type.lanes
    if not a.type.lanes or any(not 0 <= i < limit for i in order):
        raise staged_error(f"shuffle of {a.type} with lanes {order}")
    result = vec(a.type.elem, len(order))
    if a._bits is not None and (lanes is None or second._bits == a._bits):
        from vc4lab.simd.value import const_bits

        return const_bits(result, a._bits)
    eager = current().eager
    if eager:
        found: Value = eager.shuffle(a, second, order)
        return found
    index = ", ".join(f"i32 {i}" for i in order)
    t = a.type.text
    text = f"shufflevector {t} {a.text}, {t} {second.text}, <{len(order)} x i32> <{index}>"
    return Value(result, current().once(text))


def permute(x: Value, index: Value) -> Value:
    """Lane i of the result is lane `index[i] % lanes` of `x`."""
    lanes = x.type.lanes
    level = current().module.target.level
    if index.type is not vec(i32, lanes):
        raise staged_error(f"permute of {x.type} wants {vec(i32, lanes)} indices, not {index.type}")
    if index._bits is not None:
        return shuffle(x, [index._bits % lanes] * lanes)
    eager = current().eager
    if eager:
        found: Value = eager.permute(x, index)
        return found
    if lanes == 16 and x.type.bits == 32 and level in ("avx512", "avx2"):
        as_int = x.bitcast(i32)
        if level == "avx512":
            moved = _target_call("llvm.x86.avx512.permvar.si.512", as_int.type, as_int, index)
        else:
            moved = _permute_avx2(as_int, index)
        return moved.bitcast(x.type)
    if x.type.elem is i1:
        return permute(x.zext(i32), index) != 0
    if x.type.bits < 32 and x.type.is_int and lanes == 16:
        return permute(x.zext(i32), index).trunc(x.type)
    result = Value(x.type, "poison")
    wrapped = index & (lanes - 1)
    for lane in range(lanes):
        result = result.insert(lane, x[wrapped[lane]])
    return result


def permute_two(a: Value, b: Value, index: Value) -> Value:
    """Lane i of the result is lane `index[i] % 32` of `a` followed by `b` (32-bit lanes)."""
    if a.type.lanes != 16 or a.type.bits != 32 or b.type is not a.type:
        raise staged_error(f"permute_two wants two vectors of 16 words, not {a.type}, {b.type}")
    if current().module.target.level == "avx512":
        words = vec(i32, 16)
        return _target_call(
            "llvm.x86.avx512.vpermi2var.d.512", words, a.bitcast(i32), index, b.bitcast(i32)
        ).bitcast(a.type)
    return select((index & 16) != 0, permute(b, index), permute(a, index))


def compress(x: Value, mask: Value) -> Value:
    """The lanes of `x` where `mask` holds, in their order, in front; what follows is undefined."""
    if not x.type.lanes or mask.type is not i1.like(x.type):
        raise staged_error(f"compress wants a vector and its mask, not {x.type}, {mask.type}")
    rest = Value(x.type, "poison")
    return _intrinsic("experimental.vector.compress", x.type, x, mask, rest)


def scale_round(x: Value, factor: Value) -> Value:
    """`(x * factor + 2**14) >> 15` of signed 16-bit lanes: a multiply by a fraction, rounded."""
    if x.type.bits != 16 or not x.type.is_int or factor.type is not x.type:
        raise staged_error(f"scale_round wants two vectors of i16, not {x.type}, {factor.type}")
    level, lanes = current().module.target.level, x.type.lanes
    names = {
        32: "llvm.x86.avx512.pmul.hr.sw.512" if level == "avx512" else None,
        16: "llvm.x86.avx2.pmul.hr.sw" if level in ("avx512", "avx2") else None,
    }
    name = names.get(lanes)
    if name is not None:
        return _target_call(name, x.type, x, factor)
    if lanes == 32 and level == "avx2":
        halves = [scale_round(*(shuffle(v, list(range(n, n + 16))) for v in (x, factor))) for n in (0, 16)]
        return shuffle(halves[0], halves[1], list(range(32)))
    product = x.sext(i32) * factor.sext(i32)
    return ((product + (1 << 14)) >> 15).trunc(i16)


def _target_call(name: str, result: Type, *operands: Value) -> Value:
    trace = current()
    types = ", ".join(o.type.text for o in operands)
    trace.module.declare(name, f"{result.text} @{{}} ({types})")
    args = ", ".join(f"{o.type.text} {o.text}" for o in operands)
    return Value(result, trace.once(f"call {result.text} @{name}({args})"))


def _permute_avx2(x: Value, index: Value) -> Value:
    """Two 8-lane permutes (which use 3 index bits) of each half, and the fourth bit selects."""
    low, high = shuffle(x, list(range(8))), shuffle(x, list(range(8, 16)))
    halves = []
    for start in (0, 8):
        part = shuffle(index, list(range(start, start + 8)))
        a = _target_call("llvm.x86.avx2.permd", low.type, low, part)
        b = _target_call("llvm.x86.avx2.permd", low.type, high, part)
        halves.append(select((part & 8) != 0, b, a))
    return shuffle(halves[0], halves[1], list(range(16)))


def lookup16(index: Value, numbers: Sequence[int]) -> Value:
    """`numbers[index % 16]` per lane, for sixteen 32-bit constants."""
    if len(numbers) != 16:
        raise staged_error(f"lookup16 wants 16 numbers, not {len(numbers)}")
    if current().module.target.level in ("avx512", "avx2") and index.type.lanes == 16:
        return permute(const(vec(i32, 16), list(numbers)), index)
    return gather(i32, table(i32, list(numbers)), (index & 15) << 2)


def rotate_lanes(x: Value, n: Value | int) -> Value:
    """Lane i goes to lane (i + n) % lanes; n is a Python int or a staged i32."""
    lanes = x.type.lanes
    if isinstance(n, Value) and n.constant is not None:
        n = n.constant
    if isinstance(n, Value):
        return permute(x, (iota(lanes) - n) & (lanes - 1))
    if n % lanes == 0:
        return x
    return shuffle(x, [(i - n) % lanes for i in range(lanes)])


# -- masks and reductions


def mask_bits(mask: Value) -> Value:
    """Bit i of the i32 is lane i of the mask."""
    lanes = mask.type.lanes
    if mask.type.elem is not i1 or not 0 < lanes <= 32:
        raise staged_error(f"mask_bits wants a mask, not {mask.type}")
    return _mask_integer(mask).zext(i32)


def _mask_integer(mask: Value) -> Value:
    lanes = mask.type.lanes
    if mask.type.elem is not i1:
        raise staged_error(f"expected a mask, found {mask.type}")
    whole = Type(f"i{lanes}", f"i{lanes}", lanes, None, 0) if lanes not in _WIDTHS else _WIDTHS[lanes]
    if mask._bits is not None:
        return const(whole, -mask._bits)
    eager = current().eager
    if eager:
        found: Value = eager.mask_integer(mask, whole)
        return found
    return Value(whole, current().once(f"bitcast {mask.type.text} {mask.text} to {whole.text}"))


_WIDTHS: dict[int, Type] = {8: i8, 16: i16, 32: i32, 64: i64}


def mask_from_bits(bits: Value, n: int = 16) -> Value:
    """The mask whose lane i is bit i of the i32."""
    bits = coerce(bits, i32)
    if bits.constant is not None:
        return const(vec(i1, n), [bits.constant >> i & 1 for i in range(n)])
    if n not in _WIDTHS or n > 32:
        return (splat(bits, n).shr(iota(n)) & 1) != 0
    return bits.trunc(_WIDTHS[n]).bitcast(vec(i1, n))


def any_(mask: Value) -> Value:
    """Does the mask hold in any lane?"""
    return mask if mask.type is i1 else _mask_integer(mask) != 0


def all_(mask: Value) -> Value:
    """Does the mask hold in every lane?"""
    return mask if mask.type is i1 else _mask_integer(mask) == -1


def _reduce(name: str, x: Value) -> Value:
    if not (x.type.lanes and x.type.is_int):
        raise staged_error(f"{name} wants a vector of integers, not {x.type}")
    return _intrinsic(f"vector.reduce.{name}", x.type.elem, x)


def _fold_halves(x: Value, combine: Callable[[Value, Value], Value]) -> Value:
    """Pairs lane i with lane i + n/2, then halves again: a fixed order on every processor."""
    while x.type.lanes > 1:
        half = x.type.lanes // 2
        x = combine(shuffle(x, list(range(half))), shuffle(x, list(range(half, 2 * half))))
    return x[0]


def reduce_add(x: Value) -> Value:
    """The sum of the lanes (floats: by halves, lane i + lane i+8 first)."""
    return _fold_halves(x, lambda a, b: a + b) if x.type.is_float else _reduce("add", x)


def reduce_min(x: Value) -> Value:
    return _fold_halves(x, fmin_) if x.type.is_float else _reduce("smin", x)


def reduce_max(x: Value) -> Value:
    return _fold_halves(x, fmax_) if x.type.is_float else _reduce("smax", x)


def reduce_umax(x: Value) -> Value:
    return _reduce("umax", x)


def reduce_or(x: Value) -> Value:
    return _reduce("or", x)


# -- elementary functions


def _integers(name: str, a: Operand, b: Operand) -> Value:
    x, y = unify(a, b, f"operands of {name}")
    if not x.type.is_int:
        raise staged_error(f"{name} wants integers, not {x.type}")
    return _intrinsic(name, x.type, x, y)


def min_(a: Operand, b: Operand) -> Value:
    """The smaller signed integer."""
    return _integers("smin", a, b)


def max_(a: Operand, b: Operand) -> Value:
    """The larger signed integer."""
    return _integers("smax", a, b)


def umin(a: Operand, b: Operand) -> Value:
    return _integers("umin", a, b)


def umax(a: Operand, b: Operand) -> Value:
    return _integers("umax", a, b)


def uadd_sat(a: Operand, b: Operand) -> Value:
    """Unsigned addition that stops at the largest number."""
    return _integers("uadd.sat", a, b)


def usub_sat(a: Operand, b: Operand) -> Value:
    """Unsigned subtraction that stops at 0."""
    return _integers("usub.sat", a, b)


def fmin_(a: Operand, b: Operand) -> Value:
    """`a if a < b else b`, so b when either is NaN.

    In the qpu float mode a denormal result may come out as zero (the processor's minimum does so).
    """
    x, y = unify(a, b, "operands of fmin_")
    return select(x < y, x, y)


def fmax_(a: Operand, b: Operand) -> Value:
    """`a if a > b else b`, so b when either is NaN; denormals as in fmin_."""
    x, y = unify(a, b, "operands of fmax_")
    return select(x > y, x, y)


def has_fused() -> bool:
    """Whether `fused_` is one instruction of the processor the code is for."""
    return current().module.target.level in ("avx512", "avx2")


def fused_(a: Operand, b: Operand, c: Operand) -> Value:
    """`a * b + c` with one rounding; only where `has_fused` says so."""
    x, y = unify(a, b, "factors of fused_")
    return _intrinsic("fma", x.type, x, y, coerce(c, x.type))


def int_or_least(x: Value) -> Value:
    """f32 lanes to i32 toward zero; -2^31 where the number does not fit, and for NaN."""
    result, level = i32.like(x.type), current().module.target.level
    if level == "avx512" and x.type.lanes == 16:
        name = "llvm.x86.avx512.mask.cvttps2dq.512"
        every, mode = const(i16, -1), const(i32, 4)  # the rounding mode of the processor
        return _target_call(name, result, x, const(result, 0), every, mode)
    if level in ("avx512", "avx2") and x.type.lanes == 16:
        halves = (shuffle(x, list(range(start, start + 8))) for start in (0, 8))
        name, half = "llvm.x86.avx.cvtt.ps2dq.256", vec(i32, 8)
        low, high = (_target_call(name, half, part) for part in halves)
        return shuffle(low, high, list(range(16)))
    fits = fabs_(x) < 2147483648.0
    return select(fits, select(fits, x, 0.0)._convert("fptosi", result), -0x80000000)


def abs_(x: Value) -> Value:
    """The absolute value of integers (the most negative one stays)."""
    return _intrinsic("abs", x.type, x, extra="false")


def clz_(x: Value) -> Value:
    """Leading zero bits (the width for 0)."""
    return _intrinsic("ctlz", x.type, x, extra="false")


def popcount_(x: Value) -> Value:
    return _intrinsic("ctpop", x.type, x)


def bswap_(x: Value) -> Value:
    """Bytes reversed."""
    return _intrinsic("bswap", x.type, x)


def fabs_(x: Value) -> Value:
    """The float without its sign bit."""
    return _intrinsic("fabs", x.type, coerce(x, x.type))


def sqrt_(x: Value) -> Value:
    """The square root in the current rounding mode."""
    return _intrinsic("sqrt", x.type, x)


def is_nan(x: Value) -> Value:
    return unordered(x, x)


def floor_(x: Value) -> Value:
    """Toward minus infinity; keeps the sign of zero."""
    return _round("floor", x)


def ceil_(x: Value) -> Value:
    """Toward plus infinity; keeps the sign of zero."""
    return _round("ceil", x)


def nearest_(x: Value) -> Value:
    """To the nearest integer, the even one of two, in every rounding mode."""
    return _round("roundeven", x)


def _round(name: str, x: Operand) -> Value:
    v = as_value(x)
    if not v.type.is_float:
        raise staged_error(f"{name}_ wants floats, not {v.type}")
    if current().module.target.level != "sse2" or v.type.elem is not f32:
        return _intrinsic(name, v.type, v)
    # SSE2 has no rounding instruction (LLVM would call libm per lane): truncate and correct.
    inside = fabs_(v) < 8388608.0
    whole = select(inside, v, 0.0)._convert("fptosi", i32.like(v.type)).to_float(f32)
    if name == "roundeven":
        rest = fabs_(v - whole)
        odd = (whole._convert("fptosi", i32.like(v.type)) & 1) != 0
        away = (rest > 0.5) | ((rest == 0.5) & odd)
        whole = select(away, select(v < 0.0, whole - 1.0, whole + 1.0), whole)
    elif name == "floor":
        whole = select(whole > v, whole - 1.0, whole)
    else:
        whole = select(whole < v, whole + 1.0, whole)
    sign = v.bitcast(i32) & -0x80000000
    signed = (whole.bitcast(i32) | sign).bitcast(f32)
    return select(inside, signed, v)
