"""Registers and condition flags of a VPU core; how a run can end early."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from vc4lab.soc.videocore.vpu.operations import SIGN, WORD


class Refused(Exception):  # noqa: N818 - becomes a sentence for the user
    """An instruction that is not done; the text names it."""


class Endless(Exception):  # noqa: N818 - becomes a sentence for the user
    """The budget of instructions is used up."""


@dataclass
class Flags:
    """The condition flags; c is the borrow of a comparison."""

    z: bool = False
    n: bool = False
    c: bool = False
    v: bool = False


Test = Callable[[Flags], bool]
CONDITION_TESTS: tuple[Test, ...] = (
    lambda f: f.z,
    lambda f: not f.z,
    lambda f: f.c,
    lambda f: not f.c,
    lambda f: f.n,
    lambda f: not f.n,
    lambda f: f.v,
    lambda f: not f.v,
    lambda f: not f.c and not f.z,
    lambda f: f.c or f.z,
    lambda f: f.n == f.v,
    lambda f: f.n != f.v,
    lambda f: f.n == f.v and not f.z,
    lambda f: f.n != f.v or f.z,
    lambda f: True,
    lambda f: False,
)
"""By number of the condition."""


@dataclass
class State:
    """The registers of one VPU core; pc apart."""

    registers: list[int] = field(default_factory=lambda: [0] * 32)
    flags: Flags = field(default_factory=Flags)
    pc: int = 0


def added(a: int, b: int) -> Flags:
    """Flags of a + b."""
    total = a + b
    word = total & WORD
    overflow = bool(~(a ^ b) & (a ^ word) & SIGN)
    return Flags(z=not word, n=bool(word & SIGN), c=total > WORD, v=overflow)


def compared(a: int, b: int) -> Flags:
    """Flags of a - b."""
    word = a - b & WORD
    overflow = bool((a ^ b) & (a ^ word) & SIGN)
    return Flags(z=not word, n=bool(word & SIGN), c=a < b, v=overflow)
