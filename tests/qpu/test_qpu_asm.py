"""The dialect of qpu-asm: m4 macros, flags on every add operation, signals as suffixes."""

from pathlib import Path

import pytest

from vc4lab.qpu.dialects.choose import assemble_source, detect
from vc4lab.qpu.dialects.m4 import M4
from vc4lab.qpu.dialects.qpu_asm import assemble
from vc4lab.qpu.text.assembler import assemble as assemble_qpuasm
from vc4lab.qpu.text.syntax import AssemblyError

PROGRAM = """
define(`NOP', `nop ra39, ra39, ra39;  nop rb39, rb39, rb39')
define(`SETUP', `eval(($1 << 12) | 0xa00)') # a comment with NOP
define(`BOTH', `or $1, $2, 0; nop
add $1, $1, 1; nop')
ldi rb49, SETUP(1)
BOTH(ra1, ra32)
add rb48, ra1, rb32;       nop
nop rb39, r0, <<4; v8max r0, r0, r0
sub ra2, ra2, 1;  nop
loop: NOP
brr.ze ra39, loop
NOP
NOP
NOP
sema down, 3
not ra32, r0, 0; mul24 rb1, r1, r2
or.ldtmu0 ra39, ra39, ra39; nop
bra ra39, ZERO, ra0
nop.tend ra39, ra39, ra39;       nop rb39, rb39, rb39
NOP
NOP
"""

SAME = """
ldi rb49, 0x1a00
or.setf ra1, ra32, 0
add.setf ra1, ra1, 1
add.setf rb48, ra1, rb32
nop; v8max r0, r0 >> 4, r0 >> 4
sub.setf ra2, ra2, 1
loop: nop
brr.allnz -, loop
nop
nop
nop
sacq -, 3
not.setf ra32, r0; mul24 rb1, r1, r2
or.setf ra39, ra39, ra39; nop; ldtmu0
bra -, ra0
nop; nop; thrend
nop
nop
"""


def expanded(text: str) -> str:
    return "\n".join(line for line, _ in M4(lambda name: f"[{name}]").expand(text)).strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("define(`a', `<$1|$2>')a(1, `2,3')", "<1|2,3>"),
        ("define(a, b)define(`b', `c')a", "c"),
        ("define(`n', 3)eval(n * (n + 1))", "12"),
        ("ifelse(1, 2, yes, no) ifelse(a, a, yes, no)", "no yes"),
        ("one dnl two\nthree", "one three"),
        ("`quoted define(a)'", "quoted define(a)"),
        ("# define(`x', y)\nx", "# define(`x', y)\nx"),
        ("define(`x', 1)undefine(`x')x", "x"),
        ("include(file)", "[file]"),
        ("define(`f', `$#: $*')f(a, b)", "2: a,b"),
        ("incr(4) decr(4)", "5 3"),
    ],
)  # fmt: skip
def test_macros(text: str, expected: str) -> None:
    assert expanded(text) == expected


def test_a_program() -> None:
    assembly = assemble(PROGRAM)
    assert assembly.words == assemble_qpuasm(SAME).words
    assert detect(PROGRAM) == "qpu-asm"
    assert assemble_source(PROGRAM).dialect == "qpu-asm"
    assert assembly.lines[3][0] == 8  # of the source, not of the text that macros made of it


def test_files(tmp_path: Path) -> None:
    (tmp_path / "helpers.asm").write_text("define(`IN', `ra32')\n")
    text = "include(`helpers.asm')\nor ra1, IN, 0; nop\n"
    assert len(assemble(text, path=str(tmp_path / "main.asm")).words) == 1
    with pytest.raises(AssemblyError, match=r"there is no file 'helpers\.asm'"):
        assemble(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("define(`a', `a')a", "macro expansions"),
        ("define(`a', `a a')a", "macro expansions|unfold"),
        ("define(`a', `bb', ", "never closed"),
        ("`abc", "a quote"),
        ("eval(1 / 0)", "division by zero"),
        ("x" * 100 + "\nmvo ra1, ra2, ra3; nop", "did you mean"),
        ("define(`m', `bogus ra1, ra2, ra3; nop')\nm", "in 'bogus ra1, ra2, ra3; nop'"),
    ],
)  # fmt: skip
def test_mistakes(text: str, expected: str) -> None:
    with pytest.raises(AssemblyError, match=expected):
        assemble(text)


def test_a_line_without_an_operation_is_a_mistake() -> None:
    for text in (";", "a: ; ;", "nop\n;;;\n"):
        with pytest.raises(AssemblyError):
            assemble(text)
