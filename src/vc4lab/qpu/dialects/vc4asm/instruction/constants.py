"""Constants that one ALU operation makes of a small immediate: 64 is 8 * 8, 0x80000000 is 1 ror 1.

Both operands are the same immediate, as `mov` writes it; what comes out is computed by the
semantics of the instruction set. Where several ways lead to a value, their order is vc4asm's, so
that the same words come out.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from vc4lab.qpu.isa.operations import SMALL_IMMEDIATES, AddOp, MulOp, Pack
from vc4lab.qpu.isa.packing import pack_colour, pack_register
from vc4lab.qpu.isa.semantics import Result, Semantics
from vc4lab.qpu.run.numpy_ops import NumpyOps

ROTATIONS: Final = 48
"""Codes from here on deliver the same words as 16 to 31, and rotate."""


class Way(NamedTuple):
    """How a constant is made. is_mul: by the mul ALU; op: the operation there; code: the small
    immediate; pack: of the result, is_colour: by the mul ALU's colour pack.
    """

    is_mul: bool
    op: int
    code: int
    pack: int = 0
    is_colour: bool = False


_ADD: Final = (
    AddOp.OR, AddOp.ROR, AddOp.ADD, AddOp.FADD, AddOp.FTOI, AddOp.ITOF, AddOp.SHL, AddOp.NOT,
    AddOp.CLZ, AddOp.SHR, AddOp.V8ADDS, AddOp.ASR,
)  # fmt: skip
_MUL: Final = (MulOp.V8MIN, MulOp.FMUL, MulOp.MUL24, MulOp.V8ADDS, MulOp.V8MULD)
_PACKS: Final = (Pack.B8_ALL, Pack.SAT8_ALL, Pack.SAT32)


def _semantics() -> Semantics:
    return Semantics(NumpyOps(len(SMALL_IMMEDIATES)))


def _result(semantics: Semantics, is_mul: bool, op: int) -> Result:
    words = np.array(SMALL_IMMEDIATES, np.uint32)
    return (semantics.mul_alu if is_mul else semantics.add_alu)(op, words, words)


@lru_cache(maxsize=1)
def ways() -> dict[int, tuple[Way, ...]]:
    """Constant -> the ways to it, the preferred one first. 0 needs no immediate and is left out."""
    semantics = _semantics()
    zero = semantics.ops.const(0)
    plain: list[tuple[int, Way]] = []
    packed: list[tuple[int, int, Way]] = []
    for is_mul, operations in ((False, _ADD), (True, _MUL)):
        for op in operations:
            result = _result(semantics, is_mul, op)
            codes = range(len(SMALL_IMMEDIATES))
            plain += [(int(result.word[c]), Way(is_mul, int(op), c)) for c in codes]
            for order, pack in enumerate(_PACKS):
                words = pack_register(semantics, pack, result, zero)
                packed += [(order, int(words[c]), Way(is_mul, int(op), c, int(pack))) for c in codes]
            if is_mul:
                words = pack_colour(semantics, Pack.B8_ALL, result.word, zero)
                packed += [
                    (len(_PACKS), int(words[c]), Way(is_mul, int(op), c, int(Pack.SAT8_ALL), True))
                    for c in codes
                ]
    packed.sort(key=lambda entry: entry[0])
    found: dict[int, list[Way]] = {}
    for word, way in (*plain, *((word, way) for _, word, way in packed)):
        if word:
            found.setdefault(word, []).append(way)
    return {
        word: tuple(sorted(choices, key=lambda way: way.code >= ROTATIONS)) for word, choices in found.items()
    }


def constant_of(is_mul: bool, op: int, code: int) -> int:
    """Return the result of an operation that has a small immediate as both operands."""
    return int(_result(_semantics(), is_mul, op).word[code])
