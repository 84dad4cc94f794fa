"""Integer operations on compile-time constants, done while tracing.

Operands are raw (unsigned) element bits and their width; None means "leave it to run time". Floats
are never computed here: their result depends on the rounding mode.
"""

from __future__ import annotations

from typing import Any


def _signed(bits: int, width: int) -> int:
    return bits - (1 << width) if bits >> (width - 1) else bits


FOLD: dict[str, Any] = {
    "add": lambda a, b, w: a + b,
    "sub": lambda a, b, w: a - b,
    "mul": lambda a, b, w: a * b,
    "and": lambda a, b, w: a & b,
    "or": lambda a, b, w: a | b,
    "xor": lambda a, b, w: a ^ b,
    "shl": lambda a, b, w: a << b if b < w else None,
    "lshr": lambda a, b, w: a >> b if b < w else None,
    "ashr": lambda a, b, w: _signed(a, w) >> b if b < w else None,
    "eq": lambda a, b, w: a == b,
    "ne": lambda a, b, w: a != b,
    "ult": lambda a, b, w: a < b,
    "ule": lambda a, b, w: a <= b,
    "ugt": lambda a, b, w: a > b,
    "uge": lambda a, b, w: a >= b,
    "slt": lambda a, b, w: _signed(a, w) < _signed(b, w),
    "sle": lambda a, b, w: _signed(a, w) <= _signed(b, w),
    "sgt": lambda a, b, w: _signed(a, w) > _signed(b, w),
    "sge": lambda a, b, w: _signed(a, w) >= _signed(b, w),
}

NEUTRAL: dict[str, int] = {
    "add": 0, "sub": 0, "mul": 1, "and": -1, "or": 0, "xor": 0, "shl": 0, "lshr": 0, "ashr": 0,
}  # fmt: skip
"""The second operand with which an operation gives back its first."""

ABSORBING: dict[str, int] = {"and": 0, "mul": 0, "or": -1}
"""The operand with which an operation gives that operand, whatever the other one is."""

COMMUTATIVE = ("add", "mul", "and", "or", "xor")
"""Operations whose operands may change places."""

_INVERSE = {
    "icmp": (("eq", "ne"), ("ult", "uge"), ("ule", "ugt"), ("slt", "sge"), ("sle", "sgt")),
    "fcmp": (
        ("oeq", "une"), ("olt", "uge"), ("ole", "ugt"), ("ogt", "ule"), ("oge", "ult"),
        ("ord", "uno"),
    ),
}  # fmt: skip
INVERSE = {
    (kind, test): other
    for kind, pairs in _INVERSE.items()
    for pair in pairs
    for test, other in (pair, pair[::-1])
}
"""The test that holds exactly where this one does not."""
