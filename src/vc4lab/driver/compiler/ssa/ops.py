"""The operations of the SSA form: what each computes, for one word per lane (numpy).

This is their meaning, with the floats of IEEE 754 rounded to the nearest; how the QPU computes them
is the business of later steps. Words are uint32 arrays; an operation says as what it reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Op:
    """One operation: f for float, i for signed, u for unsigned words, as operands and result.

    `compute` is None for what needs more than its operands: inputs, textures, memory, effects.
    """

    name: str
    takes: str
    gives: str
    compute: Callable[..., Any] | None = None
    has_effect: bool = False


def _bool(condition: NDArray[np.bool_]) -> Words:
    return np.where(condition, np.uint32(0xFFFFFFFF), np.uint32(0))


def _one(condition: NDArray[np.bool_]) -> Floats:
    return condition.astype(np.float32)


def _choose(a: Floats, b: Floats, first: NDArray[np.bool_]) -> Floats:
    """`a` where `first` says so, or where `b` is no number. Of two zeros it is `b`.

    numpy's own minimum and maximum take the one or the other zero, as vector units have it.
    """
    return np.where(first | np.isnan(b), a, b)


def _to_int(value: Floats) -> NDArray[np.int32]:
    """Towards 0; what does not fit is the nearest that does, and no number is 0."""
    whole = np.nan_to_num(np.trunc(value.astype(np.float64)), nan=0.0)
    found: NDArray[np.int32] = np.clip(whole, -(2.0**31), 2.0**31 - 1).astype(np.int32)
    return found


def _to_uint(value: Floats) -> Words:
    whole = np.nan_to_num(np.trunc(value.astype(np.float64)), nan=0.0)
    found: Words = np.clip(whole, 0, 2.0**32 - 1).astype(np.uint32)
    return found


def _divide(a: NDArray[np.int32], b: NDArray[np.int32]) -> NDArray[Any]:
    """Towards 0; by 0 it is 0."""
    wide, by = a.astype(np.int64), b.astype(np.int64)
    size = np.abs(wide) // np.where(by == 0, 1, np.abs(by))
    return np.where(by == 0, 0, size * np.sign(wide) * np.sign(by))


def _rest(a: NDArray[np.int32], b: NDArray[np.int32]) -> NDArray[Any]:
    """With the sign of `a`; by 0 all bits are set."""
    wide, by = a.astype(np.int64), b.astype(np.int64)
    return np.where(by == 0, -1, wide - _divide(a, b) * by)


def _unsigned(rest: bool) -> Callable[[Words, Words], Words]:
    def compute(a: Words, b: Words) -> Words:
        by = np.where(b == 0, np.uint32(1), b)
        return np.where(b == 0, np.uint32(0xFFFFFFFF), a % by if rest else a // by)

    return compute


def _wide(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """On 64 bits, of which the low word counts: nothing overflows."""
    return lambda a, b: function(a.astype(np.int64), b.astype(np.int64))


def _ddx(value: Words) -> Floats:
    quads = value.view(np.float32).reshape(-1, 2, 2)
    return np.repeat(quads[:, :, 1] - quads[:, :, 0], 2, axis=1).ravel()


def _ddy(value: Words) -> Floats:
    quads = value.view(np.float32).reshape(-1, 2, 2)
    return np.tile(quads[:, 1, :] - quads[:, 0, :], (1, 2)).ravel()


_TABLE: tuple[Op, ...] = (
    Op("fadd", "ff", "f", lambda a, b: a + b),
    Op("fmul", "ff", "f", lambda a, b: a * b),
    Op("fdiv", "ff", "f", lambda a, b: a / b),
    Op("fmin", "ff", "f", lambda a, b: _choose(a, b, a < b)),
    Op("fmax", "ff", "f", lambda a, b: _choose(a, b, a > b)),
    Op("fneg", "u", "u", lambda a: a ^ np.uint32(1 << 31)),
    Op("fabs", "u", "u", lambda a: a & np.uint32((1 << 31) - 1)),
    Op("fsat", "f", "f", lambda a: np.where(a > 1, 1, np.where(a > 0, a, np.float32(0)))),
    Op("ffloor", "f", "f", np.floor),
    Op("fceil", "f", "f", np.ceil),
    Op("ftrunc", "f", "f", np.trunc),
    Op("fround", "f", "f", np.rint),
    Op("ffract", "f", "f", lambda a: a - np.floor(a)),
    Op("fsign", "f", "f", lambda a: np.where(a > 0, 1, np.where(a < 0, -1, 0))),
    Op("frcp", "f", "f", lambda a: np.float32(1) / a),
    Op("frsq", "f", "f", lambda a: np.float32(1) / np.sqrt(np.abs(a))),
    Op("fsqrt", "f", "f", np.sqrt),
    Op("fexp2", "f", "f", np.exp2),
    Op("flog2", "f", "f", np.log2),
    Op("fpow", "ff", "f", np.power),
    Op("fsin", "f", "f", np.sin),
    Op("fcos", "f", "f", np.cos),
    Op("ddx", "u", "f", _ddx),
    Op("ddy", "u", "f", _ddy),
    Op("feq", "ff", "u", lambda a, b: _bool(a == b)),
    Op("fne", "ff", "u", lambda a, b: _bool(a != b)),
    Op("flt", "ff", "u", lambda a, b: _bool(a < b)),
    Op("fge", "ff", "u", lambda a, b: _bool(a >= b)),
    Op("b2f", "u", "f", lambda a: _one(a != 0)),
    Op("select", "uuu", "u", lambda a, b, c: np.where(a != 0, b, c)),
    Op("and", "uu", "u", lambda a, b: a & b),
    Op("or", "uu", "u", lambda a, b: a | b),
    Op("xor", "uu", "u", lambda a, b: a ^ b),
    Op("not", "u", "u", lambda a: ~a),
    Op("shl", "uu", "u", lambda a, b: a << (b & np.uint32(31))),
    Op("shr", "uu", "u", lambda a, b: a >> (b & np.uint32(31))),
    Op("asr", "iu", "i", lambda a, b: a >> (b & np.uint32(31)).astype(np.int32)),
    Op("iadd", "ii", "i", _wide(lambda a, b: a + b)),
    Op("imul", "uu", "u", lambda a, b: a.astype(np.uint64) * b.astype(np.uint64)),
    Op("ineg", "i", "i", lambda a: -a.astype(np.int64)),
    Op("iabs", "i", "i", lambda a: np.abs(a.astype(np.int64))),
    Op("isign", "i", "i", np.sign),
    Op("imin", "ii", "i", np.minimum),
    Op("imax", "ii", "i", np.maximum),
    Op("umin", "uu", "u", np.minimum),
    Op("umax", "uu", "u", np.maximum),
    Op("idiv", "ii", "i", _divide),
    Op("imod", "ii", "i", _rest),
    Op("udiv", "uu", "u", _unsigned(rest=False)),
    Op("umod", "uu", "u", _unsigned(rest=True)),
    Op("ieq", "uu", "u", lambda a, b: _bool(a == b)),
    Op("ine", "uu", "u", lambda a, b: _bool(a != b)),
    Op("ilt", "ii", "u", lambda a, b: _bool(a < b)),
    Op("ige", "ii", "u", lambda a, b: _bool(a >= b)),
    Op("ult", "uu", "u", lambda a, b: _bool(a < b)),
    Op("uge", "uu", "u", lambda a, b: _bool(a >= b)),
    Op("f2i", "f", "i", _to_int),
    Op("f2u", "f", "u", _to_uint),
    Op("i2f", "i", "f", lambda a: a.astype(np.float32)),
    Op("u2f", "u", "f", lambda a: a.astype(np.float32)),
    # What needs more than operands; attributes in brackets.
    Op("constant", "", "u"),  # [word]
    Op("input", "", "u"),  # [register, component]
    Op("system", "", "u"),  # [register, component]
    Op("uniform", "", "u"),  # [buffer, register, component]
    Op("uniform_at", "i", "u"),  # [buffer, first register, component]
    Op("load", "i", "u"),  # [array, first register, component]
    Op("store", "iu", "", has_effect=True),  # [array, first register, component]
    Op("sample", "f*", ""),  # [TEX…, texture, sampler]; operands: all coordinates
    Op("component", "u", "u"),  # [number]; of a sample
    Op("output", "u", "", has_effect=True),  # [register, component]
    Op("discard_if", "u", "", has_effect=True),
)
OPS: dict[str, Op] = {op.name: op for op in _TABLE}
"""By name."""


def compute(op: Op, operands: list[Words]) -> Words:
    """The result, of operations that need only their operands."""
    assert op.compute is not None
    kinds = {"f": np.float32, "i": np.int32, "u": np.uint32}
    read = [word.view(kinds[kind]) for word, kind in zip(operands, op.takes, strict=True)]
    with np.errstate(all="ignore"):
        result = np.asarray(op.compute(*read))
    if op.gives == "f":
        return np.ascontiguousarray(result, np.float32).view(np.uint32)
    return np.ascontiguousarray(result).astype(np.int64, copy=False).astype(np.uint32)
