"""Random QPU programs and inputs, for the tests that compare engines."""

import random
from typing import Any

import numpy as np
from tests.support.qpu_runner import KEYS

from vc4lab.qpu.isa.encoding import NOP, Alu, Branch, LoadImmediate

END = [NOP.replace(signal=3).encode(), NOP.value, NOP.value]
REGISTERS = 6  # few, so that instructions depend on each other
SPECIAL = [
    0, 0x80000000, 1, 0x80000001, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F7FFFFF,
    0xFF7FFFFF, 0x3F800000, 0xBF800000, 0x00800000, 0x80800000, 0x007FFFFF, 0x3F7FFFFF, 255,
    0x4B000000, 0x7FFFFFFF, 0xFFFFFFFF,
]  # fmt: skip


def alu(**fields: Any) -> int:
    """An ALU instruction word; what is not given does nothing."""
    return Alu(NOP.value).replace(**fields).encode()


def ldi(value: int, **fields: Any) -> int:
    """A load immediate into waddr_add, in all lanes."""
    fields = {"cond_add": 1, "waddr_add": 39, "waddr_mul": 39, "mode": 0, **fields}
    return LoadImmediate(14 << 60).replace(immediate=value & 0xFFFFFFFF, **fields).encode()


def branch(offset: int, **fields: Any) -> int:
    """A relative branch by a number of instructions; condition 15 unless given."""
    defaults = {"condition": 15, "relative": 1, "waddr_add": 39, "waddr_mul": 39}
    defaults["immediate"] = (offset - 4) * 8 & 0xFFFFFFFF
    return Branch(15 << 60).replace(**{**defaults, **fields}).encode()


def number(rng: random.Random, plain: bool) -> int:
    """A 32-bit word: a moderate float if plain, else anything nasty."""
    kind = rng.random()
    span = 6 if plain else 30
    if plain or 0.3 < kind < 0.7:
        return int(np.float32(rng.choice([-1, 1]) * 2.0 ** rng.uniform(-span, span)).view(np.uint32))
    return rng.choice(SPECIAL) if kind < 0.3 else rng.getrandbits(32)


def inputs(rng: random.Random, plain: bool) -> tuple[dict[Any, Any], list[int], list[Any]]:
    """(registers, uniforms, VPM vectors)."""

    def vector() -> Any:
        return np.array([number(rng, plain) for _ in range(16)], np.uint32)

    registers = {key: vector() for key in KEYS if key[1] < REGISTERS}
    return registers, [number(rng, plain) for _ in range(30)], [vector() for _ in range(8)]


def _target(rng: random.Random) -> int:
    choices = [rng.randrange(REGISTERS), rng.randrange(REGISTERS), 32, 33, 34, 35, 37, 39]
    return rng.choice([*choices, rng.choice([52, 53, 54, 55]), rng.choice([39, 48])])


def random_alu(rng: random.Random) -> int:
    small = rng.random() < 0.33
    floats = rng.random() < 0.6
    condition = [1] * 8 + list(range(8))
    register_a = rng.choice([rng.randrange(REGISTERS)] * 5 + [32, 38, 39, 41])
    register_b = rng.choice([rng.randrange(REGISTERS)] * 5 + [32, 39, 41, 48])
    return alu(
        signal=13 if small else rng.choice([1, 1, 1, 1, 1, 2, 5]),
        unpack=rng.choice([0, 0, 0, *range(8)]),
        pm=rng.choice([0, 0, 1]),
        pack=rng.choice([0, 0, 0, 0, *range(16)]),
        cond_add=rng.choice(condition),
        cond_mul=rng.choice(condition),
        sf=rng.choice([0, 0, 1]),
        ws=rng.getrandbits(1),
        waddr_add=_target(rng),
        waddr_mul=_target(rng),
        op_mul=rng.choice([1, 1, rng.randrange(8)]) if floats else rng.randrange(8),
        op_add=rng.choice([1, 2, 3, 4, 7, 8, 21]) if floats else rng.randrange(32),
        raddr_a=register_a,
        raddr_b=rng.randrange(64) if small else register_b,
        add_a=rng.randrange(8),
        add_b=rng.randrange(8),
        mul_a=rng.randrange(8),
        mul_b=rng.randrange(8),
    )


def random_ldi(rng: random.Random) -> int:
    return ldi(
        number(rng, False),
        mode=rng.choice([0, 0, 1, 3]),
        pm=rng.choice([0, 0, 0, 1]),
        pack=rng.choice([0, 0, 0, *range(16)]),
        cond_add=rng.choice([1, 1, 1, *range(8)]),
        cond_mul=rng.choice([1, 1, *range(8)]),
        sf=rng.getrandbits(1),
        ws=rng.getrandbits(1),
        waddr_add=rng.choice([rng.randrange(REGISTERS), 32, 33, 34, 35, 37]),
        waddr_mul=rng.choice([rng.randrange(REGISTERS), 32, 33, 39]),
    )


def random_branch(rng: random.Random, at: int, length: int) -> int:
    relative = rng.getrandbits(1)
    target = rng.randrange(length)
    return branch(
        0,
        condition=rng.choice([*range(12), 15]),
        relative=relative,
        raddr_a=rng.getrandbits(5),
        waddr_add=rng.choice([39, 39, rng.randrange(REGISTERS), 32]),
        ws=rng.getrandbits(1),
        immediate=(target * 8 - (at * 8 + 32 if relative else 0)) & 0xFFFFFFFF,
    )


def random_program(rng: random.Random, length: int, branches: bool = False) -> list[int]:
    """`length` random instructions and a program end."""
    words = []
    for at in range(length):
        kind = rng.random()
        if branches and kind < 0.12:
            words.append(random_branch(rng, at, length))
        elif kind < 0.25:
            words.append(random_ldi(rng))
        else:
            words.append(random_alu(rng))
    return words + END
