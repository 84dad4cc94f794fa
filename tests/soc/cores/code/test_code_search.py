"""The native search finds what a comparison of each word with each trapped instruction finds."""

import random
import struct

import pytest

from vc4lab.soc.cores.code.code_search import LONGEST, search
from vc4lab.soc.cores.code.float_trap import FLOAT_TRAPS
from vc4lab.soc.cores.code.traps import A64_TRAPS, ARM_TRAPS, HYP_TRAPS, Action


def _compared(words, traps):
    return [
        (4 * place, trap.action)
        for place, word in enumerate(words)
        for trap in traps
        if word & trap.mask == trap.match
    ]


def _code(traps, seed):
    """Random words, one in five of them a trapped instruction with random registers."""
    chance = random.Random(seed)
    words = []
    for _ in range(1152):
        word = chance.getrandbits(32)
        if chance.random() < 0.2:
            trap = chance.choice(traps)
            word = word & ~trap.mask | trap.match
        words.append(word)
    return words


@pytest.mark.parametrize("more", [(), FLOAT_TRAPS])
def test_aarch64(more):
    words = _code(A64_TRAPS + more, 1)
    found = search(struct.pack("<1152I", *words), more, wide=True)
    assert found == _compared(words, more + A64_TRAPS)
    assert len({action for _place, action in found}) > 5


@pytest.mark.parametrize("more", [(), HYP_TRAPS])
def test_arm(more):
    traps = tuple(trap for trap in more + ARM_TRAPS if not trap.thumb)
    words = _code(traps, 2)
    found = search(struct.pack("<1152I", *words), more, wide=False)
    expected = _compared(words, traps)
    assert found[: len(expected)] == expected
    assert len(expected) > 200


def test_thumb():
    code = struct.pack("<6H", 0xBF00, 0xBF40, 0xEE07, 0x0F15, 0xBF40, 0xBF50)
    found = search(code, (), wide=False)
    events = [(2, Action.SEND_EVENT), (8, Action.SEND_EVENT), (10, Action.SEND_LOCAL_EVENT)]
    assert found == [(4, Action.CODE_CHANGED), *events]


def test_the_ends():
    sev = struct.pack("<I", 0xD503209F)
    nop = struct.pack("<I", 0xD503201F)
    code = sev + nop * (LONGEST // 4 - 2) + sev
    expected = [(0, Action.SEND_EVENT), (LONGEST - 4, Action.SEND_EVENT)]
    assert search(code, (), wide=True) == expected
    assert search(b"", (), wide=True) == []
    assert search(code[: LONGEST - 1], (), wide=True) == expected[:1]
    with pytest.raises(ValueError, match="8196 bytes"):
        search(code + nop, (), wide=True)
