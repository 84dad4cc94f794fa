"""qasm2's dialect: instructions as their fields, numbers in reverse Polish notation, m4 before it."""

import pytest

from vc4lab.qpu.dialects.choose import assemble_source, detect
from vc4lab.qpu.dialects.qasm2 import assemble
from vc4lab.qpu.text.assembler import assemble as assemble_qpuasm
from vc4lab.qpu.text.disassembler import disassemble
from vc4lab.qpu.text.syntax import AssemblyError

PROGRAM = """
; counts down from 5, and writes the element numbers
li cond_add=al waddr_add=ra0 imm=`1 2 << 1 |`
alu
:loop  ; here
alu sig=simm cond_add=al op_add=sub sf=1 waddr_add=ra0 raddr_a=ra0 simm=1 add_a=ra add_b=rb
bra cond_br=anyzc rel=1 imm=:loop
alu
alu
alu
alu cond_mul=al op_mul=mul24 waddr_mul=vpm_write ws=1 raddr_a=element_number raddr_b=rb7 mul_a=ra mul_b=rb
sem cond_add=al sa=dec sem=9
alu sig=pe
alu
alu
"""
SAME = """
        ldi ra0, 5
        nop
loop:   sub.setf ra0, ra0, 1
        brr.anynz -, loop
        nop
        nop
        nop
        nop ; mul24 vpm, elem_num, rb7
        sacq -, 9
        nop ; nop ; thrend
        nop
        nop
"""


def test_a_program_does_what_that_of_qpuasm_does() -> None:
    made, same = assemble(PROGRAM), assemble_qpuasm(SAME)
    assert [disassemble(word, 0) for word in made.words] == [disassemble(word, 0) for word in same.words]
    assert made.labels == {"loop": 16}
    assert made.lines[2] == (6, PROGRAM.splitlines()[5])


def test_the_dialect_shows() -> None:
    assert detect(PROGRAM) == "qasm2"
    assert assemble_source(PROGRAM).dialect == "qasm2"


def test_what_is_not_named_does_nothing() -> None:
    (word,) = assemble("alu").words
    assert f"{word:016x}" == "100009e7009e7000"
    (word,) = assemble("li").words
    assert f"{word:016x}" == "e00009e700000000"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("imm=-5", 0xFFFFFFFB), ("imm=0b1_01", 5), ("imm=0777", 0o777), ("imm=`7 2 /`", 3),
        ("imm=`-7 2 /`", 0xFFFFFFFD), ("imm=`-7 2 %`", 0xFFFFFFFF), ("imm=`1 31 <<`", 1 << 31),
        ("imm=`3 2 > 10 20 ?`", 10), ("imm=`0 ~`", 0xFFFFFFFF), ("imm=`2 3 ^ 1 == !`", 0),
    ],
)  # fmt: skip
def test_numbers(text: str, value: int) -> None:
    (word,) = assemble(f"li {text}").words
    assert word & 0xFFFFFFFF == value


def test_small_immediates_and_rotations() -> None:
    for text, code in (("-16", 16), ("128.0", 39), ("1/2", 47), ("1.0/256.0", 40), ("vrr5", 48), ("vr15", 63),
                       ("`3 4 +`", 7), ("vr`8 5 -`", 51)):  # fmt: skip
        (word,) = assemble(f"alu sig=simm simm={text}").words
        assert word >> 12 & 63 == code, text


def test_macros_of_m4_come_first() -> None:
    text = (
        "define(`N', `0')\ndefine(`NEXT', `define(`N', incr(N))')\nNEXT()\n"
        "ifdef(`N', `', `errprint(`no')m4exit(`1')')\n"
        "ifelse(eval(N >= 1), `1', `li imm=N', `alu')\nchangequote(`', `')\nli imm=`1 N +`\n"
    )
    assert [word & 15 for word in assemble(text).words] == [1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("alu op_add=ad", "did you mean"), ("alu foo=1", "field"), ("alo", "alu"),
        ("alu sf=1 sf=0", "already"),
        ("alu sig=simm", "go together"), ("alu simm=1", "go together"),
        ("alu sig=simm simm=99", "small immediate"),
        ("bra rel=1", "cond_br"), ("sem sa=inc", "sa and sem"), ("bra cond_br=al imm=:x", "label"),
        ("li imm=`1 +`", "takes 2"), ("li imm=`1 2`", "one number"), ("li imm=`1 0 /`", "no number"),
        ("li imm=`1 99 <<`", "no number"), ("li imm=x", "no number"), (":a\n:a\nalu", "exists already"),
        ("alu sig=simm simm=vr`16`", "rotation by 0"), ("define(`a', `b')\ninclude(`x')", "include"),
    ],
)  # fmt: skip
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(AssemblyError) as caught:
        assemble(text)
    assert message in caught.value.shown("x")
