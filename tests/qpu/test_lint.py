"""Each lint rule catches its mistake; programs of a real driver and the examples pass."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vc4lab.diagnostics.catalogue import catalogue
from vc4lab.qpu.assembler import assemble
from vc4lab.qpu.lint import lint

END = "\nnop; nop; thrend\nnop\nnop\n"
PAD = "nop\nnop\n"
BROKEN = [
    ("QPU-101", PAD + "mov ra1, r0\nmov r1, ra1" + END, 3),
    ("QPU-102", PAD + "mov recip, r0\nnop\nmov r1, r4" + END, 2),
    ("QPU-102", PAD + "mov recip, r0\nnop; nop; ldtmu0\nnop" + END, 2),
    ("QPU-103", PAD + "mov r0, r1; mov r0, r2" + END, 2),
    ("QPU-104", PAD + "nop; nop; thrend\nmov r0, unif\nnop", 3),
    ("QPU-104", PAD + "mov vpm, r0; nop; thrend\nnop\nnop", 2),
    ("QPU-105", PAD + "mov ra1, r0; nop; thrend\nnop\nnop", 2),
    ("QPU-105", PAD + "nop; nop; thrend\nmov r0, ra14\nnop", 3),
    ("QPU-107", "nop\nnop; nop; sbwait" + END, 1),
    ("QPU-107", "mov tlbc, r0" + END, 0),
    ("QPU-108", PAD + "mov r1, r0\nnop; mov r2, r1 >> 3" + END, 3),
    ("QPU-108", PAD + "mov r5rep, r0\nnop; mov r2, r1 >> r5" + END, 3),
    ("QPU-109", PAD + "mov t0s, r0; mov recip, r1" + END, 2),
    ("QPU-109", PAD + "mov tlbz, r0; nop; loadc" + END, 2),
    ("QPU-110", PAD + "mov unif_addr, r0\nnop\nmov r1, unif" + END, 2),
    ("QPU-111", PAD + "mov t0t, unif" + END, 2),
    ("QPU-112", PAD + "brr -, +0\nnop\nbrr -, +0\nnop\nnop\nnop" + END, 4),
    ("QPU-113", PAD + "nop; nop; thrsw\nnop\nnop; nop; lthrsw\nnop\nnop" + END, 2),
    ("QPU-114", PAD + "mov.zs t0s, r0" + END, 2),
    ("QPU-115", PAD + "mov tmurs, 1\nnop\nmov t0s, r0" + END, 2),
    ("QPU-116", PAD + "add.never.setf -, r0, r1" + END, 2),
    ("QPU-117", PAD + "nop; mov vpm.8a, r0" + END, 2),
    ("QPU-119", PAD + "mov tlbz, r0\nmov r1, ms_mask" + END, 2),
    ("QPU-120", PAD + "add r0, ra32, rb32" + END, 2),
]


@pytest.mark.parametrize(("code", "text", "index"), BROKEN)
def test_each_rule_finds_its_mistake(code: str, text: str, index: int) -> None:
    findings = lint(assemble(text).words)
    assert (code, index) in [(finding.code, finding.index) for finding in findings]
    assert code in catalogue()


def test_neighbours_along_a_branch() -> None:
    text = PAD + "loop: mov r0, ra1\nbrr.anyz -, loop\nnop\nnop\nmov ra1, r1" + END
    assert [(f.code, f.index) for f in lint(assemble(text).words)] == [("QPU-101", 2)]


@pytest.mark.parametrize("source", sorted((Path(__file__).parents[2] / "examples").rglob("*.qasm")))
def test_examples_are_clean(source: Path) -> None:
    assert lint(assemble(source.read_text()).words) == []


@given(st.lists(st.integers(0, (1 << 64) - 1), max_size=30))
def test_any_words(words: list[int]) -> None:
    assert all(0 <= finding.index < len(words) for finding in lint(words))
