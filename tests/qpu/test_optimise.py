"""Rearranged programs do the same: random ones on every engine, and each kind of change by itself."""

import random
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.support.qpu_runner import run_program

from vc4lab.qpu.isa.encoding import NOP_WORD
from vc4lab.qpu.lint.lint import lint
from vc4lab.qpu.optimise.checking import check
from vc4lab.qpu.optimise.optimise import MOST_WORDS, TooLarge, optimise
from vc4lab.qpu.optimise.pairs import together
from vc4lab.qpu.optimise.pieces import split
from vc4lab.qpu.text.assembler import assemble
from vc4lab.qpu.text.disassembler import disassemble

sys.path.insert(0, str(Path(__file__).parent))
from clean_programs import looping, straight
from qpu_programs import inputs

END = "nop; nop; thrend\nnop\nnop\n"


def lines(words: tuple[int, ...] | list[int]) -> list[str]:
    return [disassemble(word).partition("  # ")[0] for word in words]


def optimised(text: str) -> list[str]:
    return lines(optimise(assemble(text).words).words)


# ------------------------------------------------------------------------------- what comes out


@pytest.mark.parametrize("engine", ["interpreter", "exact", "jit"])
@pytest.mark.parametrize("kind", [straight, looping])
def test_random_programs_do_the_same(kind: object, engine: str) -> None:
    saved = 0
    for seed in range(24):
        rng = random.Random(seed)
        words = kind(rng)  # type: ignore[operator]
        found = optimise(words)
        registers, uniforms, vectors = inputs(rng, rng.random() < 0.5)
        given = {"uniforms": uniforms, "vectors": vectors}
        old = run_program(words, registers, **given)
        new = run_program(list(found.words), registers, engine=engine, **given)
        assert old.why == new.why == "end"
        assert len(old.log) == len(new.log) > 0
        differing = [
            n for n, pair in enumerate(zip(old.log, new.log, strict=True)) if not np.array_equal(*pair)
        ]
        assert not differing, f"seed {seed}"
        saved += len(words) - len(found.words)
    assert saved > 24, "some gain"


@pytest.mark.parametrize("kind", [straight, looping])
def test_random_programs_keep_restrictions_and_accesses(kind: object) -> None:
    for seed in range(100, 130):
        words = kind(random.Random(seed))  # type: ignore[operator]
        found = optimise(words)
        assert len(found.words) <= len(words)
        assert len(found.words) == len(found.sources)
        assert {one.code for one in lint(found.words)} <= {one.code for one in lint(words)}
        assert check(words, found.words, runs=2).difference is None


def test_pieces_of_random_instructions_are_what_they_were() -> None:
    """Taken apart and put together an instruction does the same."""
    rejoined = 0
    for seed in range(300):
        for word in straight(random.Random(seed))[:4]:
            parts = split(word)
            if len(parts) == 2:
                both = together(*parts)
                assert both is not None, disassemble(word)
                rejoined += disassemble(both) == disassemble(word)
    assert rejoined > 100


# ------------------------------------------------------------------------------- kinds of changes


def test_two_operations_become_a_pair() -> None:
    found = optimised(f"add r0, ra0, r1\nfmul r2, rb0, r1\nadd vpm, r0, r2\n{END}")
    assert found[0] == "add r0, ra0, r1; fmul r2, rb0, r1"


def test_a_move_goes_to_the_other_alu_and_a_small_load_becomes_a_move() -> None:
    found = optimised(f"add r0, ra0, r1\nldi r2, 3\nadd vpm, r0, r2\n{END}")
    assert found[0] == "add r0, ra0, r1; mov r2, 3"


def test_a_latency_is_filled() -> None:
    text = (
        "mov recip, ra0\nnop\nnop\nmov ra2, r4\nadd r0, ra3, rb3\nadd r1, ra4, rb4\n"
        "nop\nadd vpm, r0, ra2\nmov vpm, r1\n"
    )
    found = optimised(text + END)
    assert found.index("mov r0, r4") == 3
    assert "nop" not in found[:3]


def test_delay_slots_are_filled_and_the_branch_leads_where_it_led() -> None:
    text = """
        mov ra1, 4
        nop
    loop:
        add ra2, ra2, 1
        mov vpm, ra0
        add ra0, ra0, rb4
        sub.setf ra1, ra1, 1
        brr.anynz -, loop
        nop
        nop
        nop
    """
    words = assemble(text + END).words
    found = optimise(words)
    assert len(found.words) < len(words)
    (at,) = [index for index, word in enumerate(found.words) if word >> 60 == 15]
    assert found.words[at + 1 : at + 4].count(NOP_WORD) < 3
    target = (found.words[at] & 0xFFFFFFFF) - (1 << 32)
    assert at + 4 + target // 8 == found.moved[2]
    assert check(words, found.words).difference is None


def test_a_register_that_is_used_twice_does_not_hold_up() -> None:
    """The second value gets another register, so that both loads stand together."""
    text = "mov r0, ra0\nadd r1, r0, ra1\nmov vpm, r1\nmov r0, ra2\nadd r1, r0, ra3\nmov vpm, r1\n"
    words = assemble(f"{text}mov r0, 0\nmov r1, 0\n{END}").words
    found = optimise(words)
    assert len(found.words) < len(words) - 1
    assert check(words, found.words).difference is None


def test_calls_return_to_what_followed_them() -> None:
    text = """
        brr ra31, -, sub
        nop
        nop
        nop
        mov vpm, ra5
        brr ra31, -, sub
        nop
        nop
        nop
        mov vpm, ra5
        nop; nop; thrend
        nop
        nop
    sub:
        mov r0, unif
        mov r1, unif
        nop
        fadd ra5, r0, r1
        bra -, -, ra31
        nop
        nop
        nop
    """
    words = assemble(text).words
    found = optimise(words)
    assert len(found.words) < len(words)
    checked = check(words, found.words)
    assert checked.difference is None
    assert checked.ended == checked.runs


# ------------------------------------------------------------------------------- what keeps its order


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("mov vpm, r0", "mov vw_setup, r1"),
        ("mov vw_addr, ra0", "mov t0s, ra1"),
        ("mov t0s, ra1", "mov -, vw_wait"),
        ("mov t0s, ra1", "nop; nop; ldtmu0"),
        ("mov t0t, ra1", "mov r0, unif"),
        ("mov unif_addr, ra1", "mov r0, unif"),
        ("mov -, mutex", "mov vpm, r0"),
        ("mov mutex, r0", "add ra3, r0, r1"),
        ("srel -, 3", "mov ra1, r0"),
        ("mov irq, r0", "mov vw_addr, r1"),
        ("mov.setf -, r0", "mov.setf -, r1"),
        ("nop; nop; sbwait", "mov tlbc, r0"),
    ],
)
def test_order_that_counts(first: str, second: str) -> None:
    """However urgent the second is made by what waits for it."""
    text = (
        f"mov ra9, rb9\nnop\n{first}\n{second}\nnop\nnop\nnop\nadd.zs ra4, r0, r1\nnop\nmov vpm, ra4\n{END}"
    )
    found = optimised(text)

    def place(wanted: str) -> int:
        parts = set(wanted.split("; ")) - {"nop"}
        return next(index for index, line in enumerate(found) if parts <= set(line.split("; ")))

    assert place(first) < place(second) or first == second


def test_broken_restrictions_are_left_alone() -> None:
    """The old value is read: that depends on where both stand."""
    text = f"mov ra1, unif\nadd vpm, ra1, 1\nmov r0, 1\nnop\nnop\n{END}"
    found = optimise(assemble(text).words)
    assert found.words == assemble(text).words
    assert "breaks a restriction" in found.notes[0][1]


def test_what_is_not_moved_is_named() -> None:
    switch = assemble(f"mov r0, 1\nnop; nop; thrsw\nnop\nnop\nmov vpm, ra0\nnop\nnop\n{END}").words
    assert any("threads are switched" in text for _, text in optimise(switch).notes)
    jump = assemble(f"ldi ra1, 8\nnop\nnop\nbra -, -, ra1\nnop\nnop\nnop\n{END}").words
    found = optimise(jump)
    assert found.notes[0][1] == "blocks begin where they did: it branches to an address that it computes"
    data = assemble(f"mov vpm, r0\nnop\nnop\n{END}.quad 0x123456789abcdef0\n")
    assert "data lies" in optimise(data.words, raw={len(data.words) - 1}).notes[0][1]


def test_limits() -> None:
    with pytest.raises(TooLarge, match="at most"):
        optimise([NOP_WORD] * (MOST_WORDS + 1))
    assert optimise([]).words == ()


def test_random_words_do_no_harm() -> None:
    rng = random.Random(9)
    for _ in range(30):
        words = [rng.getrandbits(64) for _ in range(rng.randrange(1, 40))]
        assert len(optimise(words, raw={0} if rng.random() < 0.3 else ()).words) <= len(words)


# ------------------------------------------------------------------------------- the check itself


@pytest.mark.parametrize(
    ("old", "new", "stream"),
    [
        ("mov vpm, r0\nmov vpm, r1", "mov vpm, r1\nmov vpm, r0", "vpm"),
        ("mov vpm, unif", "mov vpm, unif\nmov -, unif", "uniforms"),
        ("mov t0s, ra0\nmov vw_addr, ra1", "mov vw_addr, ra1\nmov t0s, ra0", "memory"),
        ("mov t0s, ra0\nnop; nop; ldtmu0\nmov vpm, r4", "mov t0s, ra0\nmov vpm, r4\nnop; nop; ldtmu0", "vpm"),
        ("srel -, 1\nmov vpm, r0", "srel -, 2\nmov vpm, r0", "uniforms"),
        ("mov -, vary\nmov vpm, r5", "mov vpm, r5\nmov -, vary", "vpm"),
        ("mov tlbc, r0", "mov tlbc, r1", "uniforms"),
    ],
)
def test_other_accesses_are_seen(old: str, new: str, stream: str) -> None:
    first, second = (assemble(f"{text}\nnop\nnop\n{END}").words for text in (old, new))
    assert check(first, first).difference is None
    found = check(first, second).difference
    assert found is not None
    assert found.stream == stream
