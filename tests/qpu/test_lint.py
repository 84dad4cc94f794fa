"""Each lint rule catches its mistake; programs of a real driver and the examples pass."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vc4lab.diagnostics.catalogue import catalogue
from vc4lab.qpu.isa.hazards import FORMS, HAZARDS, LATENCIES, PAIRINGS, PLACEMENTS
from vc4lab.qpu.lint import lint as lint_module
from vc4lab.qpu.lint.lint import lint
from vc4lab.qpu.text.assembler import assemble

END = "\nnop; nop; thrend\nnop\nnop\n"
PAD = "nop\nnop\n"
BROKEN = [
    ("QPU-101", PAD + "mov ra1, r0\nmov r1, ra1" + END, 3),
    ("QPU-102", PAD + "mov recip, r0\nnop\nmov r1, r4" + END, 4),
    ("QPU-102", PAD + "mov recip, r0\nnop; nop; ldtmu0\nnop" + END, 3),
    ("QPU-103", PAD + "mov r0, r1; mov r0, r2" + END, 2),
    ("QPU-103", PAD + "mov r0, r1; mov r0, r1 >> 1" + END, 2),
    ("QPU-103", PAD + "mov.zs r0, r1; mov.nc r0, r2" + END, 2),
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
    ("QPU-110", PAD + "mov unif_addr, r0\nnop\nmov r1, unif" + END, 4),
    ("QPU-111", PAD + "mov t0t, unif" + END, 2),
    ("QPU-112", PAD + "brr -, +0\nnop\nbrr -, +0\nnop\nnop\nnop" + END, 4),
    ("QPU-113", PAD + "nop; nop; thrsw\nnop\nnop; nop; lthrsw\nnop\nnop" + END, 4),
    ("QPU-114", PAD + "mov.zs t0s, r0" + END, 2),
    ("QPU-115", PAD + "mov tmurs, 1\nnop\nmov t0s, r0" + END, 4),
    ("QPU-116", PAD + "add.never.setf -, r0, r1" + END, 2),
    ("QPU-117", PAD + "nop; mov vpm.8a, r0" + END, 2),
    ("QPU-119", PAD + "mov tlbz, r0\nmov r1, ms_mask" + END, 3),
    ("QPU-120", PAD + "add r0, ra32, rb32" + END, 2),
    ("QPU-101", PAD + "mov rev_flag, r0\nmov r1, rev_flag" + END, 3),
    ("QPU-102", PAD + "mov recip, r0\nnop\nmov exp, r1" + END, 4),
    ("QPU-109", PAD + "mov r0, mutex; mov t0s, r1" + END, 2),
    ("QPU-121", "nop\nmov r0, 1", 1),
    ("QPU-121", "nop\nnop; nop; thrend\nnop", 2),
    ("QPU-121", "l: nop\nbrr l\nnop\nnop\nnop", 4),
    ("QPU-121", "l: nop\nbrr.allz l\nnop\nnop\nnop", 4),
    ("QPU-121", "l: nop\nbrr l\nnop\nnop", 3),
    ("QPU-122", PAD + "nop; nop; thrend\nbrr -, -8\nnop", 3),
    ("QPU-122", PAD + "nop; nop; thrend\nnop\nmov recip, r0", 4),
    ("QPU-122", PAD + "mov t0s, r0; nop; thrend\nnop\nnop", 2),
    ("QPU-122", PAD + "nop; nop; thrend\nnop; nop; thrsw\nnop", 3),
    ("QPU-123", "mov r1, 1\nnop; nop; thrsw\nnop\nnop\nmov r0, 1\nadd ra0, r0, r1" + END, 5),
    ("QPU-123", "sub.setf -, ra0, r1; nop; thrsw\nnop\nnop\nmov.zs r0, 1" + END, 3),
    ("QPU-124", PAD + "mov r0, ra1 >> 3" + END, 2),
    ("QPU-125", PAD + "brr -, +8\nnop\nnop\nbrr -, +0\nnop\nnop\nnop" + END, 5),
    ("QPU-126", PAD + "brr.allz -, -8\nnop; nop; thrend\nnop\nnop", 3),
    ("QPU-127", PAD + "mov r0, vpm; nop; ldtmu0" + END, 2),
    ("QPU-128", PAD + "mov tlbc, r0; nop; sbdone\nmov tlbc, r0" + END, 3),
    ("QPU-128", PAD + "nop; nop; sbwait\nnop; nop; sbdone\nmov tlbz, r0" + END, 4),
    ("QPU-128", PAD + "brr.allz f\nnop\nnop\nnop\nnop; nop; sbdone\nf: mov tlbc, r0" + END, 7),
    ("QPU-129", PAD + "mov tlbz, r0\nnop; nop; thrsw\nnop\nnop" + END, 3),
    ("QPU-129", PAD + "nop; nop; sbwait\nnop; nop; lthrsw\nnop\nmov tlbc, r0" + END, 3),
    ("QPU-130", PAD + "mov tlbc, r0; nop; thrend\nnop\nnop; nop; sbdone", 2),
]
CLEAN = [
    "mov ra1, r0\nnop\nmov r1, ra1" + END,
    "mov recip, r0\nnop\nnop\nmov r1, r4" + END,
    PAD + "mov tlbz, r0; nop; sbwait\nnop; nop; sbdone" + END,
    PAD + "mov tlbc, r0; nop; loadc\nnop; nop; sbdone" + END,
    PAD + "nop; nop; sbwait\nmov tlbc, r0; nop; thrend\nnop\nnop; nop; sbdone",
    PAD + "mov tlbz, r0\nmov tlbc, r0; nop; sbdone" + END,
    PAD + "nop; nop; lthrsw\nnop\nnop\nmov tlbc, ra0; nop; sbdone" + END,
    PAD + "nop; nop; thrsw\nnop\nnop\nmov r1, 1\nadd ra0, r1, r1" + END,
    PAD + "mov r3, r1; mov t0s, r1" + END,
    PAD + "mov.zs r0, r2; mov.zc r0, r1" + END,
    PAD + "mov r0, r2; mov r0, r2" + END,
    PAD + "ldi r0, 5; ldi r0, 5" + END,
    PAD + "nop; nop; thrend\nnop; nop; ldtmu0\nmov r0, r4\nnop\nnop",
    "brr ra0, f\nnop\nnop\nnop" + END + "f: bra ra0\nnop\nnop\nnop",
    PAD + "brr.allz -, -8\nnop\nnop\nnop" + END,
    PAD + END + ".quad 1, 2, 0xf0f80027ffffffe0, 3",
    PAD + "mov r0, r1 >> 3" + END,
    PAD + END + "ldi.never -, 0\nnop\nldi.never -, 0",
]


@pytest.mark.parametrize(("code", "text", "index"), BROKEN)
def test_each_rule_finds_its_mistake(code: str, text: str, index: int) -> None:
    findings = lint(assemble(text).words)
    assert (code, index) in [(finding.code, finding.index) for finding in findings]
    assert code in catalogue()


@pytest.mark.parametrize("text", CLEAN)
def test_what_is_allowed_is_not_reported(text: str) -> None:
    """Others have written the registers of these few lines."""
    assembly = assemble(text)
    assert [one for one in lint(assembly.words, assembly.raw) if one.code != "QPU-131"] == []


def test_every_rule_of_the_tables_has_its_mistake() -> None:
    tested = {code for code, _, _ in BROKEN}
    rules = [*HAZARDS, *PAIRINGS, *FORMS, *PLACEMENTS]
    assert {rule.code for rule in rules} <= tested
    assert len({rule.name for rule in rules}) == len(rules)
    assert tested <= catalogue().keys()


def test_unprotected_latencies_are_hazards() -> None:
    """A result that the hardware does not wait for has a rule that says so."""
    distances = {hazard.distance for hazard in HAZARDS}
    for latency in LATENCIES:
        if latency.instructions and latency.instructions > 1 and not latency.interlocked:
            assert latency.instructions in distances


def test_long_programs_are_linted_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every instruction is compared with a few others, however many ends and branches there are."""
    one = assemble("mov.setf ra1, 1\nmov r1, ra1\nbrr.allz +0\nnop\nnop\nnop" + END).words
    compared = 0

    def counted(*arguments: Any) -> Iterator[lint_module.Pair]:
        nonlocal compared
        compared += 1
        return between(*arguments)

    between = lint_module.between
    monkeypatch.setattr(lint_module, "between", counted)
    findings = lint(one * 3000)
    assert [finding.code for finding in findings] == ["QPU-101"] * 3000
    assert compared <= 6 * 3000 * len(one)


def test_neighbours_along_a_branch() -> None:
    text = PAD + "loop: mov r0, ra1\nbrr.anyz -, loop\nnop\nnop\nmov ra1, r1" + END
    found = [(f.code, f.index) for f in lint(assemble(text).words) if f.code != "QPU-131"]
    assert found == [("QPU-101", 2)]


@pytest.mark.parametrize("source", sorted((Path(__file__).parents[2] / "examples").rglob("*.qasm")))
def test_examples_are_clean(source: Path) -> None:
    assert lint(assemble(source.read_text()).words) == []


@given(st.lists(st.integers(0, (1 << 64) - 1), max_size=30))
def test_any_words(words: list[int]) -> None:
    assert all(0 <= finding.index < len(words) for finding in lint(words))
