"""Registers, accumulators and flags that a program reads before anything has been written there."""

import numpy as np
import pytest

from vc4lab.qpu.lint.lint import lint
from vc4lab.qpu.text.assembler import assemble

END = "\nnop; nop; thrend\nnop\nnop\n"
LOOP = "mov r1, unif\nl: add r0, r0, unif\nsub.setf r1, r1, 1\nbrr.anynz l\nnop\nnop\nnop\nmov vpm, r0"
CALL = "mov r0, 1\nbrr ra31, sub\nnop\nnop\nnop\nmov vpm, r1\n{}sub: bra ra31\nnop\nmov r1, r0\nnop"


def unset(text: str) -> list[tuple[int, str]]:
    """Instruction and name of what is read too early."""
    found = [finding for finding in lint(assemble(text).words) if finding.code == "QPU-131"]
    return [(finding.index, finding.message.split(" is ")[0].split(" are ")[0]) for finding in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LOOP, [(1, "r0")]),
        ("mov r0, ra5\nmov r1, rb5\nmov vpm, r0; mov vpm, r1", [(0, "ra5"), (1, "rb5")]),
        ("mov r0, r5\nmov vpm, r4", [(0, "r5"), (1, "r4")]),
        ("mov r1, r1\nmov vpm, r1", [(0, "r1")]),
        ("mov r0, 1\nbrr.allz n\nnop\nnop\nnop\nn: mov vpm, r0", [(1, "the flags")]),
        ("mov r0, 1\nmov.zs r0, 2\nmov vpm, r0", [(1, "the flags")]),
        ("mov.setf -, ra7\nmov.zs vpm, 1", [(0, "ra7")]),
        ("fadd r0, r1, 1.0\nmov vpm, r0", [(0, "r1")]),
        ("mov r0, 1; mov r0, r0", [(0, "r0")]),
        ("brr n\nnop\nnop\nnop\nmov r0, 1\nn: mov vpm, r0", [(5, "r0")]),
        ("bra ra9\nnop\nnop\nnop", [(0, "ra9")]),
        ("sub r0, r0, r1\nmov vpm, r0", [(0, "r0"), (0, "r1")]),
    ],
)
def test_what_was_forgotten(text: str, expected: list[tuple[int, str]]) -> None:
    assert unset(text + END) == expected


@pytest.mark.parametrize(
    "text",
    [
        "mov r0, 0\n" + LOOP,
        "xor r0, r0, r0\n" + LOOP,
        "sub r0, r0, r0; v8subs r2, r2, r2\n" + LOOP,
        "mov r0, ra15\nmov r1, rb15\nadd vpm, r0, r1",  # a fragment's W and Z
        "nop\nnop\nmov r0, vary\nfadd vpm, r0, r5",
        "mov r0, unif\nmov recip, r0\nnop\nnop\nmov vpm, r4",
        "mov t0s, unif\nnop; nop; ldtmu0\nmov vpm, r4",
        "ldi r5rep, 3\nmov vpm, r5",
        "mov -, ra5\nmov -, rb6; mov -, r3",  # goes nowhere
        "mov.setf r0, unif\nbrr.allz n\nnop\nnop\nnop\nmov r1, 1\nn: mov vpm, r1",  # on the other way
        CALL.format("nop; nop; thrend\nnop\nnop\n"),
        "mov r0, elem_num; mov r1, 4\nadd vpm, r0, r1",
        "mov ra1, 1; mov rb1, 1\nnop\nadd vpm, ra1, rb1",
    ],
)
def test_what_is_no_mistake(text: str) -> None:
    assert unset(text + END) == []


def test_any_words_end() -> None:
    noise = np.random.default_rng(5)
    for _ in range(50):
        words = [int(word) for word in noise.integers(0, 1 << 63, 40, dtype=np.uint64)]
        assert all(0 <= finding.index < 40 for finding in lint(words))
