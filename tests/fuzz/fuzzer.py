"""What a fuzzer is: it plans a case from a random generator, and runs a plan.

A plan lists its damage as separate edits, so that the runner can leave edits out one by one and
show the smallest input that still fails.
"""

import random
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Plan:
    """One case: a scene to start from, edits (damage) in order, and how to run it."""

    scene: str
    edits: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    units: int = 0
    """Mutated bytes (a mutated word counts as the bytes it has)."""


class Fuzzer:
    """Base of all fuzzers. Instances are made once per process; a case must not leave traces."""

    name = ""
    quick = 20
    """Cases in `make test`."""
    share = 1
    """Share of the mutated bytes in long mode; expensive bytes have small ones."""
    v3d = False
    """Whether its bytes count for the ten million that the V3D gets in long mode."""

    def plan(self, rng: random.Random) -> Plan:
        """The case that these random numbers say."""
        raise NotImplementedError

    def run(self, plan: Plan) -> None:
        """Runs it; anything raised is a failure."""
        raise NotImplementedError


FUZZERS: dict[str, type[Fuzzer]] = {}
"""All fuzzers by name; filled by `fuzzer` decorators of the modules."""


def fuzzer(kind: type[Fuzzer]) -> type[Fuzzer]:
    """Class decorator: enters a fuzzer into the table."""
    FUZZERS[kind.name] = kind
    return kind


INTERESTING = (
    0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 255, 256, 0x7FF, 0x800, 0xFFF, 0x1000,
    0x7FFF, 0x8000, 0xFFFF, 0x10000, 0xFFFFFF, 0x1000000, 0x3FFFFFFF, 0x3FFFFFFC, 0x40000000,
    0x7FFFFFFF, 0x80000000, 0xBFFFFFFF, 0xC0000000, 0xFFFFFFF0, 0xFFFFFFFE, 0xFFFFFFFF,
    0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x00000001, 0x80000001, 0x7F7FFFFF,
)  # fmt: skip


def word(rng: random.Random) -> int:
    """A 32-bit word: edge values half of the time."""
    if rng.random() < 0.5:
        return (rng.choice(INTERESTING) + rng.choice((0, 0, 0, 1, -1, 4, -4))) & 0xFFFFFFFF
    return rng.getrandbits(32)


def scribble(rng: random.Random, start: int, data: bytes) -> list[tuple[int, bytes]]:
    """Random small writes into `data`, which lies at `start`: (address, bytes) pairs."""
    edits = []
    for _ in range(rng.choice((1, 1, 2, 3, 5, 8, 20, 60))):
        place = rng.randrange(len(data))
        kind = rng.randrange(6)
        if kind == 0:
            new = bytes([data[place] ^ 1 << rng.randrange(8)])
        elif kind == 1:
            new = bytes([rng.choice(INTERESTING) & 0xFF])
        elif kind == 2:
            new = word(rng).to_bytes(4, "little")
        elif kind == 3:
            new = rng.randbytes(rng.choice((1, 2, 3, 4, 8, 16, 64)))
        elif kind == 4:
            source = rng.randrange(len(data))
            new = data[source : source + rng.choice((1, 4, 8, 16, 40))]
        else:
            new = (word(rng) & 0xFFFF).to_bytes(2, "little")
        edits.append((start + place, new[: len(data) - place]))
    return edits


def size_of(edits: list[tuple[int, bytes]]) -> int:
    """Bytes that a list of writes changes."""
    return sum(len(data) for _, data in edits)
