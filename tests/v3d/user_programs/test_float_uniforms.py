"""Integers given where a program takes floats: QPU-069."""

import pytest

from vc4lab.qpu.text.assembler import assemble
from vc4lab.v3d.user_programs.experiment import CODE, Experiment
from vc4lab.v3d.user_programs.float_uniforms import float_uses, is_small_integer

DELAY = "\nmov r2, unif\nnop\nnop"
END = "\nnop; nop; thrend\nnop\nnop"


def uses(text: str) -> list[tuple[int, int]]:
    return [(use.uniform, use.at) for use in float_uses(assemble(text + END).words)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("fadd r0, unif, r1", [(0, 0)]),
        ("mov r0, unif\nmov r1, unif\nfmul r2, r1, r0", [(1, 2), (0, 2)]),
        ("mov ra3, unif\nmov rb7, ra3\nnop\nfsub r0, ra3, rb7", [(0, 3)]),
        ("mov r0, unif\nadd r0, r0, 1\nfadd r1, r0, r0", []),
        ("mov r0, unif\nitof r0, r0\nfadd r1, r0, r0", []),
        ("mov r0, unif\nldi r0, 1.0\nfadd r1, r0, r0", []),
        ("add r0, unif, r1\nfadd r1, unif, r1", [(1, 1)]),
        ("mov recip, unif", [(0, 0)]),
        ("ftoi r0, unif", [(0, 0)]),
        ("mov r5rep, unif\nfmul r0, r5, r1", [(0, 1)]),
        (f"mov r0, unif\na:\nfadd r1, r1, r0\nbrr -, a{DELAY}\nfadd r0, unif, r1", [(0, 1)]),
        ("mov unif_addr, r0\nfadd r0, unif, r1", []),
        ("mov.zs r0, unif\nfadd r1, r0, r0", [(0, 1)]),
    ],
)  # fmt: skip
def test_what_is_used_as_a_float(text, found):
    assert uses(text) == found


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ("2", True), ("-2", True), ("1000000", True), ("2.0", False), ("0", False),
        ("0x40000000", False), ("0.0", False), ("2e0", False),
    ],
)  # fmt: skip
def test_what_is_given(given, reported):
    experiment = Experiment(assemble("nop\nfadd r0, unif, 1.0" + END).bytes)
    experiment.run(2, [given])
    items = [item for item in experiment.reporter.items if item.code == "QPU-069"]
    assert len(items) == reported
    if reported:
        assert f"uniform 0 of QPU 0 is the integer {given} " in items[0].message
        assert f"write {given}.0" in items[0].message
        assert items[0].address == CODE + 8


def test_without_checks_nothing_is_said():
    experiment = Experiment(assemble("fadd r0, unif, 1.0" + END).bytes, check=False)
    experiment.run(1, ["2"])
    assert not experiment.reporter.items


def test_small_integers():
    assert [is_small_integer(word) for word in (0, 1, 0x7FFFFF, 0x800000, 0x3F800000)] == [
        False, True, True, False, False,
    ]  # fmt: skip
    assert is_small_integer(0xFFFFFFFF)
    assert not is_small_integer(0x80000000)
