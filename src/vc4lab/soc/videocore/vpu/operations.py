"""The VPU's integer operations, by the number that every form encodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

WORD = 0xFFFFFFFF
SIGN = 0x80000000
CMN, CMP, BTEST, BREV = 1, 10, 12, 29
"""Numbers of operations that the executor treats in their own way."""

Compute = Callable[[int, int], int]
"""Left and right operand (32 bits, unsigned) → result, of which the low 32 bits count."""


class DivisionByZero(Exception):  # noqa: N818 - the executor turns it into a fault
    """A division whose divisor is 0."""


def signed(word: int) -> int:
    """A 32-bit word as a two's complement number."""
    return word - (1 << 32) if word & SIGN else word


def extend(value: int, bits: int) -> int:
    """The low `bits` of `value` as a two's complement number."""
    sign = 1 << bits - 1
    return (value & (sign << 1) - 1 ^ sign) - sign


def _mask(count: int) -> int:
    return (1 << (count & 31)) - 1


def _bit(number: int) -> int:
    return 1 << (number & 31)


def _rotate(a: int, count: int) -> int:
    count &= 31
    return a >> count | a << 32 - count


def _reversed(word: int) -> int:
    return int(f"{word:032b}"[::-1], 2)


def _clamped(value: int) -> int:
    return max(-SIGN, min(value, SIGN - 1))


def _sign_width(a: int, count: int) -> int:
    count &= 31
    return extend(a, count) if count else a


def _quotient(a: int, b: int) -> int:
    if b == 0:
        raise DivisionByZero
    magnitude = abs(a) // abs(b)
    return -magnitude if (a < 0) != (b < 0) else magnitude


@dataclass(frozen=True)
class Operation:
    """One row.

    Attributes
    ----------
    name
        Mnemonic.
    compute
        What it does; a value of its switch among the unknowns → what it does then.
    shift
        By how much the right operand is shifted left first (it is written so).
    unary
        Whether the left operand plays no part (it is then not written).
    compares
        Whether only the flags are written.
    like
        Number of the comparison whose flags it sets as well where the unknowns say "flags".
    refused
        Why the operation is not done; "" if it is.
    """

    name: str
    compute: Compute | dict[str, Compute] = lambda a, b: 0
    shift: int = 0
    unary: bool = False
    compares: bool = False
    like: int = -1
    refused: str = ""

    def chosen(self, choices: Mapping[str, str]) -> Compute:
        """The function, as the unknowns decide: name of the operation → value of its switch."""
        if isinstance(self.compute, dict):
            return self.compute[choices[self.name]]
        return self.compute


def _scaled(name: str, shift: int, sign: int) -> Operation:
    return Operation(name, lambda a, b: a + sign * (b << shift), shift=shift)


def _high(name: str, left: Callable[[int], int], right: Callable[[int], int]) -> Operation:
    return Operation(f"mulhd.{name}", lambda a, b: left(a) * right(b) >> 32)


def _division(name: str, left: Callable[[int], int], right: Callable[[int], int]) -> Operation:
    def divide(a: int, b: int) -> int:
        return _quotient(left(a), right(b))

    return Operation(f"div.{name}", divide)


def _saturating(name: str, compute: Compute, like: int) -> Operation:
    choices: dict[str, Compute] = {
        "saturate": lambda a, b: _clamped(compute(signed(a), signed(b))),
        "flags": compute,
    }
    return Operation(name, choices, like=like)


def _unsigned(word: int) -> int:
    return word


_PAIRS = (
    ("ss", signed, signed),
    ("su", signed, _unsigned),
    ("us", _unsigned, signed),
    ("uu", _unsigned, _unsigned),
)
_DISAGREE = "the sources disagree about what it does"
_UNDEFINED = "an undefined operation"

OPERATIONS: tuple[Operation, ...] = (
    Operation("mov", lambda a, b: b, unary=True),
    Operation("cmn", lambda a, b: a + b, compares=True),
    Operation("add", lambda a, b: a + b),
    Operation("bic", lambda a, b: a & ~b),
    Operation("mul", lambda a, b: a * b),
    Operation("eor", lambda a, b: a ^ b),
    Operation("sub", lambda a, b: a - b),
    Operation("and", lambda a, b: a & b),
    Operation("not", lambda a, b: ~b, unary=True),
    Operation("ror", _rotate),
    Operation("cmp", lambda a, b: a - b, compares=True),
    Operation("rsub", lambda a, b: b - a),
    Operation("btest", lambda a, b: a & _bit(b), compares=True),
    Operation("or", lambda a, b: a | b),
    Operation("bmask", lambda a, b: a & _mask(b)),
    Operation("max", lambda a, b: max(signed(a), signed(b))),
    Operation("bitset", lambda a, b: a | _bit(b)),
    Operation("min", lambda a, b: min(signed(a), signed(b))),
    Operation("bitclear", lambda a, b: a & ~_bit(b)),
    _scaled("addscale", 1, 1),
    Operation("bitflip", lambda a, b: a ^ _bit(b)),
    _scaled("addscale", 2, 1),
    _scaled("addscale", 3, 1),
    _scaled("addscale", 4, 1),
    Operation("signext", {"width": _sign_width, "bit": lambda a, b: extend(a, (b & 31) + 1)}),
    Operation("neg", lambda a, b: -b, unary=True),
    Operation("lsr", lambda a, b: a >> (b & 31)),
    Operation(
        "msb",
        {"index": lambda a, b: b.bit_length() - 1, "leading_zeros": lambda a, b: 32 - b.bit_length()},
        unary=True,
    ),
    Operation("shl", lambda a, b: a << (b & 31)),
    Operation(
        "brev",
        {"operand": lambda a, b: _reversed(b), "shifted": lambda a, b: _reversed(a) >> (b & 31)},
        unary=True,
    ),
    Operation("asr", lambda a, b: signed(a) >> (b & 31)),
    Operation("abs", lambda a, b: abs(signed(b)), unary=True),
    *(_high(*pair) for pair in _PAIRS),
    *(_division(*pair) for pair in _PAIRS),
    _saturating("adds", lambda a, b: a + b, CMN),
    _saturating("subs", lambda a, b: a - b, CMP),
    *(Operation(name, refused=_DISAGREE) for name in ("shls", "clamp16")),
    *(_scaled("addscale", shift, 1) for shift in range(5, 9)),
    Operation("count", lambda a, b: b.bit_count(), unary=True),
    *(_scaled("subscale", shift, -1) for shift in range(1, 9)),
    *(Operation("undefined", refused=_UNDEFINED) for _number in range(57, 64)),
)
"""By number: 0–31 in every form with a second operand, all 64 in the three-operand ones."""
