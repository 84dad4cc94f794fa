"""Random QPU programs that keep every restriction, and show all that they compute: for the tests of
what rearranges programs.
"""

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from qpu_programs import END, REGISTERS, alu, branch, random_alu, random_ldi

from vc4lab.qpu.isa.encoding import NOP_WORD, Alu
from vc4lab.qpu.isa.operations import AddOp, Mux, Signal
from vc4lab.qpu.isa.registers import Write
from vc4lab.qpu.lint.lint import pairs
from vc4lab.qpu.lint.parts import parts
from vc4lab.qpu.optimise.pieces import is_odd

COUNTER = 20
"""A register of file A that random instructions leave alone."""
SWITCHES = (Signal.THREAD_SWITCH, Signal.LAST_THREAD_SWITCH, Signal.PROGRAM_END, Signal.LOAD_COLOUR_END)


def shown(file: str, number: int) -> int:
    """A word that writes a register into the VPM."""
    mux = {"a": Mux.A, "b": Mux.B}.get(file, Mux(number) if file == "r" else Mux.A)
    ports = {"raddr_a": number} if file == "a" else {"raddr_b": number} if file == "b" else {}
    return alu(op_add=AddOp.OR, add_a=mux, add_b=mux, waddr_add=Write.VPM, cond_add=1, **ports)


def one_operation(rng: random.Random, word: int) -> int:
    """The instruction without one of its operations."""
    if word >> 60 == Signal.LOAD_IMMEDIATE:
        return word
    single = Alu(word)
    if rng.random() < 0.7:
        single = single.replace(pm=0, pack=0, unpack=0)
    if rng.random() < 0.5:
        return single.replace(op_mul=0, waddr_mul=39).encode()
    return single.replace(op_add=0, waddr_add=39).encode()


def random_words(rng: random.Random, count: int) -> list[int]:
    """So many random instructions, most of them with one operation."""
    found: list[int] = []
    while len(found) < count:
        word = random_ldi(rng) if rng.random() < 0.15 else random_alu(rng)
        if rng.random() < 0.6:
            word = one_operation(rng, word)
        if word >> 60 not in SWITCHES and not is_odd(word):
            found.append(word)
    return found


def spaced(words: list[int]) -> list[int]:
    """The words with empty instructions where two stand too close. There are no branches in them."""
    words = list(words)
    while True:
        found = next((pair for part in parts(words) for pair in pairs(part)), None)
        if found is None:
            return words
        words.insert(found.after, NOP_WORD)


def results(rng: random.Random, share: float) -> list[int]:
    """Words that show a share of the registers."""
    keys = [(file, n) for file in "ab" for n in range(REGISTERS)] + [("r", n) for n in range(6)]
    return [shown(*key) for key in keys if rng.random() < share]


def straight(rng: random.Random) -> list[int]:
    """A program without branches."""
    body = random_words(rng, rng.choice([4, 8, 16, 30]))
    return [*spaced([*body, *results(rng, rng.choice([0.5, 1.0]))]), NOP_WORD, NOP_WORD, *END]


def looping(rng: random.Random) -> list[int]:
    """A loop of a few rounds; what it computes is shown in it and after it."""
    start = alu(
        signal=13, op_add=AddOp.OR, add_a=Mux.B, add_b=Mux.B, raddr_b=rng.randrange(1, 5), waddr_add=COUNTER,
        cond_add=1,
    )  # fmt: skip
    count = alu(
        signal=13, op_add=AddOp.SUB, add_a=Mux.A, add_b=Mux.B, raddr_a=COUNTER, raddr_b=1,
        waddr_add=COUNTER, cond_add=1, sf=1,
    )  # fmt: skip
    before = spaced([start, *random_words(rng, rng.randrange(6)), NOP_WORD, NOP_WORD])
    body = spaced([*random_words(rng, rng.randrange(4, 14)), *results(rng, 0.2), NOP_WORD, NOP_WORD, count])
    slots = [word for word in random_words(rng, 9) if not Alu(word).sf][:3] if rng.random() < 0.5 else []
    slots = slots if spaced([*body, NOP_WORD, *slots, NOP_WORD, NOP_WORD, *body]) == [
        *body, NOP_WORD, *slots, NOP_WORD, NOP_WORD, *body,
    ] else []  # fmt: skip
    body = [
        *body,
        branch(-len(body), condition=3),
        *slots,
        *[NOP_WORD] * (3 - len(slots)),
    ]  # any lane not zero
    after = spaced([NOP_WORD, NOP_WORD, *results(rng, 1.0)])
    return [*before, *body, *after, NOP_WORD, NOP_WORD, *END]
