"""vc4asm's dialect: words as vc4asm gives them, its directives, and messages for mistakes.

The words of ENCODINGS were made by vc4asm 0.3 from these lines, which are written for this test.
"""

import struct
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vc4lab.qpu.dialects.choose import assemble_source, detect
from vc4lab.qpu.dialects.vc4asm.assembler import assemble
from vc4lab.qpu.text.assembler import assemble as assemble_qpuasm
from vc4lab.qpu.text.syntax import AssemblyError

PROGRAM = """
.include <vc4.qinc>
.set out, ra1
mov out, unif
:again
mov vw_setup, vpm_setup(1, 1, h32(0))
mov vpm, elem_num
mov vw_setup, vdw_setup_0(1, 16, dma_h32(0, 0))
mov vw_addr, out
mov -, vw_wait
sub.setf -, elem_num, 5
mov.ifz r0, 1
brr.anyn -, :done
nop
nop
nop
:done
mov interrupt, 1
thrend
nop
nop
"""

FRAGMENT = (
    """
        nop                     ; fmul r0, vary, ra15
        fadd r0, r0, r5         ; fmul r1, vary, ra15
        fadd r1, r1, r5         ; fmul r2, vary, ra15
        fadd r2, r2, r5         ; mov r3.8a, r0
        nop                     ; mov r3.8b, r1
        nop                     ; mov r3.8c, r2; sbwait
        mov tlbc, r3            ; nop; thrend
        nop
        nop                     ; nop; sbdone
""",
    """
        nop;                      fmul r0, vary, ra15
        fadd r0, r0, r5;          fmul r1, vary, ra15
        fadd r1, r1, r5;          fmul r2, vary, ra15
        fadd r2, r2, r5;          mov r3.8asf, r0
        nop;                      mov r3.8bsf, r1
        nop;                      mov r3.8csf, r2;  sbwait
        mov tlbc, r3;             thrend
        nop
        nop;                      sbdone
""",
)
"""A varying colour to the tile buffer, in qpuasm's dialect and in vc4asm's."""

ENCODINGS = [
    ("mov r0, 0x80000000; mov tmurs, 1", "d0024824909c1fff"),
    ("mov ra1, 0x10101010; mov rb1, r0", "d03240418c9c8fc0"),
    ("mov r0, [0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3]", "e6020827ccccaaaa"),
    ("mov.setf -, [0,-1,-2,1,0,0,0,0,0,0,0,0,0,0,0,-1]", "e20229e78006800a"),
    ("ldi ra3, rb4, 0x1234", "e00240c400001234"),
    ("mov ra3, r1, 7", "e00240e100000007"),
    ("nop; mov r0, r1 << 3", "d00049e0809fd009"),
    ("fmul r0<<2, r1, r2", "d00049e0209f200a"),
    ("fmul r0, r1>>8, ra2", "d00049e0200b800e"),
    ("add r0, r0, 16", "d00208270d9d01c0"),
    ("shl r1, r1, -8; v8adds r0, r0, r1", "d0024860d19d83c1"),
    ("mov.ifz interrupt, 1", "e00409a700000001"),
    ("mov r0.ifnz, rb7", "10060827159c7fc0"),
    ("mov r0.nz, 5; nop", "e006082700000005"),
    ("add.unpack8b r0, ra1, r2", "1a0208270c067c80"),
    ("mov.unpack8c r0, ra5", "1c02082715167d80"),
    ("mov r3.8csf, r1; mov r1, 0.25", "d1624863959eefc9"),
    ("fmul r3.8asf, r1, 0.5; mov recip, r1", "d1424d23359ef24f"),
    ("mov.pack8a ra1, r0", "10420067159e7000"),
    ("mov ra2.16b, 0; nop", "e02200a700000000"),
    ("mov r0, ra3.16bf", "14020827030e7d80"),
    ("fadd r0, r0, ra7.8af", "18020827011e7180"),
    ("v8adds r0, r1, r2; v8subs r1, r1, r2", "10024860df9e728a"),
    ("read vw_wait; nop", "100009e7009f2000"),
    ("read unif; add r0, r1, r2; ldtmu0", "a00208270c827280"),
    ("mov -, sacq(5)", "e80009e700000015"),
    ("mov -, srel3", "e80009e700000003"),
    ("srel -, 2", "e80009e700000002"),
    ("bra -, ra5", "f0f4a9e700000000"),
    ("brr ra2, rb3, r:x, ra7", "f0fce083ffffffe8"),
    ("mov r0, rb1; mov r1, elem_num", "1002482195981ff6"),
    ("add r0, unif, ra1", "100208270c060f80"),
    ("add r0, ra1, unif; mov r1, ra1", "100248218c060df6"),
    ("mov r0, unif; mov r1, rb5; ldtmu1", "b002482195805dbf"),
    ("mov r4, r1", "10020927159e7240"),
    ("mov r0, r5rep", "10020827159e7b40"),
    ("mov vpm, r0; mov r1, vpm", "10024c2195c27036"),
    ("xor r0, r1, r1", "e002082700000000"),
    ("and r0, r1, 0xf; mul24 r2, r1, 15", "d0024822549cf3cf"),
    ("mov -, mutex_acq", "100009e715ce7d80"),
    ("mov mutex_rel, 0", "e0020ce700000000"),
    ("mmov r0, r1; amov r2, r3", "100248a0959e76c9"),
    ("mnop; add r0, r1, r2", "100208270c9e7280"),
    ("not r0, r1; mov rb1, 0; thrend", "30024801f79e727f"),
    ("itof r0, ra1.8ai", "1802082708067d80"),
    ("mov r2, M_PI", "e00208a740490fdb"),
    ("mov r0, vpm_setup(16, -1, v16l(16, 3, 1))", "e00208270003f527"),
    ("mov r0, vdr_setup_0(3, 16, 2, vdr_v32(1, 2, 5))", "e002082783021825"),
    ("mov r0, vdw_setup_0(128, 4, dma_v8p(7, 3, 2))", "e00208278004039e"),
    ("mov r0, ilog2(0x40) + countBits(0xff) * reverseBits4(1)", "e002082700000046"),
]


def words(text: str) -> list[str]:
    return [f"{word:016x}" for word in assemble(text).words]


def mistake(text: str) -> str:
    with pytest.raises(AssemblyError) as caught:
        assemble(text)
    return caught.value.shown("p.qasm")


@pytest.mark.parametrize(("text", "word"), ENCODINGS)
def test_words_are_those_of_vc4asm(text: str, word: str) -> None:
    assert words(f"{text}\n:x\n" if "r:x" in text else text) == [word]


def test_a_program_with_the_usual_constructs() -> None:
    assembly = assemble(PROGRAM)
    assert len(assembly.words) == 16
    assert assembly.labels == {"again": 8, "done": 96}
    assert assembly.lines[4][0] == 9
    assert assembly.words[:2] == (0x1002006715827D80, 0xE0021C6700101A00)


def test_the_same_words_in_both_dialects() -> None:
    qpuasm, vc4asm = FRAGMENT
    assert assemble_qpuasm(qpuasm).words == assemble(vc4asm).words


def test_lines_join() -> None:
    joined = words("add r0, r0, 1; mov r2, r3")
    assert words("add r0, r0, 1;\n;mov r2, r3") == joined
    assert len(words("add r0, r0, 1;\n:\n;mov r2, r3")) == 2
    assert len(words("add r0, r0, 1;\nx: ;mov r2, r3\nbrr -, r:x")) == 3
    assert len(words("add r0, r0, 1\n;mov r2, r3")) == 2
    assert len(words("mov t0s, r0;\n;mov recip, r1")) == 2  # one unit an instruction


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (".macro m, a, b\nadd a, a, b\n.endm\nm r1, 3", "add r1, r1, 3"),
        (".rep i, 3\nmov r0, i + 1\n.endr", "mov r0, 1\nmov r0, 2\nmov r0, 3"),
        (".foreach r, ra1, rb2\nmov r, 0\n.endfor", "mov ra1, 0\nmov rb2, 0"),
        (".if 2 > 1\nnop\n.else\nthrend\n.endif", "nop"),
        (".if 0\nnop\n.elseif 1\nthrend\n.else\nnop\n.endif", "thrend"),
        (".set x, 5\n.ifset x\nmov r0, x\n.endif\n.ifset y\nnop\n.endif", "mov r0, 5"),
        (".set f(a, b) a * 16 + b\nmov r0, f(1, 2)", "mov r0, 18"),
        (".func f(a)\n.if a > 1\na - 1\n.else\n7\n.endif\n.endf\nmov r0, f(9)", "mov r0, 8"),
        (".macro m\n.lset x, 3\nmov r0, x\n.endm\n.set x, 5\nm\nmov r1, x", "mov r0, 3\nmov r1, 5"),
        (".local\n.lset x, 1\n.endloc\n.ifset x\nnop\n.endif\nnop", "nop"),
        (".macro m, a\n.local\nmov a, 1\n.endm\nm r1\n.ifset a\nnop\n.endif", "mov r1, 1"),
        (".set r, ra1\nmov r + 2, r.8a", "mov ra3, ra1.8a"),
        ("nop\nmov r0, 1\nmov r1, 2\n.back 2\nthrend\n.endb", "nop\nthrend\nmov r0, 1\nmov r1, 2"),
        (":a mov r0, 1\nnop\n.clone :a, 1\nbrr -, r:a", ":a mov r0, 1\nnop\nmov r0, 1\nbrr -, r:a"),
        (":1 nop\nbrr -, r:1f\nbrr -, r:1b\n:1 nop", ":a nop\nbrr -, r:b\nbrr -, r:a\n:b nop"),
        (".set x, 1\n.unset x\n.ifset x\nnop\n.endif\nthrend", "thrend"),
    ],
)  # fmt: skip
def test_directives(text: str, same: str) -> None:
    assert words(text) == words(same)


def test_data() -> None:
    text = ".int 5, -1\n.short 1, 2\n.byte 1, 2, 3, 4\n.float 1.0, 0.5\n.half 1.0\n.align 8\n.long 7\n"
    assembly = assemble(text)
    data = assembly.bytes
    assert struct.unpack_from("<IiHH4B2f", data) == (5, -1, 1, 2, 1, 2, 3, 4, 1.0, 0.5)
    assert struct.unpack_from("<e", data, 24) == (1.0,)
    assert struct.unpack_from("<Q", data, 32) == (7,)
    assert assembly.raw == {0, 1, 2, 3, 4}


def test_exported_labels() -> None:
    assembly = assemble("::main nop\n:other nop\n.global :other\n.global size, :other - :main\n")
    assert assembly.exported == ("main", "other")
    assert assembly.symbols == {"size": 8}


def test_files(tmp_path: Path) -> None:
    (tmp_path / "regs.qinc").write_text(".set acc, ra7\n")
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "more.qinc").write_text(".macro go\nmov acc, 1\nbogus acc\n.endm\n")
    source = tmp_path / "main.qasm"
    text = '.include "regs.qinc"\n.include <more.qinc>\ngo\n'
    with pytest.raises(AssemblyError) as caught:
        assemble(text, path=str(source), folders=[tmp_path / "inc"])
    (error,) = caught.value.errors
    assert error.file == str(tmp_path / "inc" / "more.qinc")
    assert (error.line, error.column) == (3, 1)
    assert error.within == ("in go, used in line 3",)
    (tmp_path / "vc4.qinc").write_text(".set h32(y) 7\n")
    text = '.include "vc4.qinc"\nmov r0, h32(0)\n'
    assert assemble(text, path=str(source)).words[0] & 0xFF == 7
    text = '.include "regs.qinc"\nmov acc, 1\n'
    assembly = assemble(text, path=str(source))
    assert assembly.lines[0] == (2, "mov acc, 1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mov r0, vpm_setp(1, 1, h32(0))", "did you mean vpm_setup"),
        ("mvo r0, r1", "did you mean mov"),
        ("mov.ifx r0, r1", "unknown suffix 'ifx'; did you mean ifz"),
        (".inclde <x>", "did you mean .include"),
        ("mov r0, vpm_setup(17, 1, h32(0))", "num = 17 is not in 0..16"),
        ("mov r0, h32(1, 2)", "h32 takes 1 arguments, 2 given"),
        ("mov ra1, rb2; mov ra3, r0", "both results go to the same register file"),
        ("add r0, ra1, ra2", "both read ports are in use"),
        ("add r0, rb1, 5", "a small immediate or rotation takes the place of the file B read"),
        ("add r0, r1, 100", "0x64 is no small immediate"),
        ("mov r0, r1; mov r2, r3; mov ra1, r2", "both ALUs have already an operation"),
        ("brr -, r:nowher\n:nowhere nop", "unknown label 'nowher'; did you mean nowhere?"),
        (":a nop\n:a nop", "label 'a' exists already, see line 1"),
        (".assert 1 == 2", "this does not hold"),
        (".macro m, a\n.endm\nm", "m takes 1 arguments (a), 0 given"),
        (".const x, 1\n.set x, 2", "'x' is a constant"),
        ("mov r0, 1 +", "expected a value, found the end of the line"),
        ("mov r0, elem_num << 1 << r5", "rotates a register by r5 or by a number"),
        ("mov elem_num, r0", "this register can only be read"),
        ("mov r0, 0x1ffffffff", "doesn't fit in 32 bits"),
        ("mov r0, 5 / 0", "'/' divides by zero"),
        ("mov r0, [1,2,-1,0,0,0,0,0,0,0,0,0,0,0,0,0]", "all in 0..3 or all in -2..1"),
        ("mov r0 r1", "expected ',' between operands, found 'r1'"),
        (".endm", ".endm without the directive that begins the block"),
        (".int 1 2", "expected ',', found '2'"),
        (".byte 300", "300 does not fit in 8 bits"),
        (".include nothing", 'write .include "file"'),
        ('.include "nothing.qinc"', "there is no file 'nothing.qinc' to include"),
        ("fmul.setf r0, r1, r2; add r3, r1, r2", ""),
    ],
)  # fmt: skip
def test_mistakes(text: str, expected: str) -> None:
    if not expected:
        assemble(text)
        return
    shown = mistake(text)
    assert expected in shown
    assert shown.rstrip().endswith("^")


def test_several_mistakes_in_one_run() -> None:
    shown = mistake("\n".join(["mov r9, r0", "nop", "add r0, r1", "bogus", "mov r0, 1"]))
    assert [line.split(":")[1] for line in shown.splitlines() if line.startswith("p.qasm")] == [
        "1", "3", "4",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".macro m\nnop\n", ".macro is never closed"),
        (".rep i, 3\nnop\n", ".rep is never closed"),
        (".func f(x)\nx\n", ".func is never closed"),
        (".macro m\nm\n.endm\nm\n", "macros, functions or files nested"),
        (".rep i, 0x40000000\nnop\n.endr\n", "1073741824 turns"),
        (".rep i, -1\nnop\n.endr\n", "-1 turns"),
        (
            ".rep i, 3000\n.rep j, 3000\n.rep k, 3000\n.set x, i\n.endr\n.endr\n.endr\n",
            "unfold to more than",
        ),
        (".rep i, 200000\nnop\n.endr\n", "a program has at most"),
        (".set f(x) f(x)\nmov r0, f(1)\n", "macros, functions or files nested"),
        (".set f(x) x\n.rep i, 70000\n.set y, f(f(f(f(1))))\n.endr\n", "function calls"),
        ("mov r0, " + "(" * 500 + "1" + ")" * 500, "levels of nesting"),
        ("mov r0, " + "-" * 5000 + "1", "levels of nesting"),
        ("mov r0, 2 ** 2 ** 2 ** 2 ** 2 ** 2 ** 99", "too large"),
        ("mov r0, " + "9" * 5000, "does not fit in 64 bits"),
        ("mov r0, 1 << 99999999999", ""),
        (".macro m, x\nm x + 1\n.endm\nm 1\nm 2\nm 3", "macros, functions or files nested"),
        ("\0\0\0", "unknown operation"),
        ("mov r0, 1\n" * 400_000 + "x" * (1 << 21), "a source has at most"),
    ],
)  # fmt: skip
def test_hostile_sources_end_soon(text: str, expected: str) -> None:
    start = time.process_time()
    if expected:
        assert expected in mistake(text)
    else:
        assemble(text)
    assert time.process_time() - start < 30


def test_files_that_include_each_other(tmp_path: Path) -> None:
    (tmp_path / "a.qinc").write_text('.include "b.qinc"\n')
    (tmp_path / "b.qinc").write_text('.include "a.qinc"\n')
    (tmp_path / "bin.qinc").write_bytes(b"\x00\x01\x02")
    for name, expected in (("a.qinc", "includes itself"), ("bin.qinc", "not a text file")):
        with pytest.raises(AssemblyError, match=expected):
            assemble(f'.include "{name}"\n', path=str(tmp_path / "main.qasm"))
    with pytest.raises(AssemblyError, match=r"not a regular file|there is no file"):
        assemble('.include "/dev/zero"\n')


def test_dialects_are_detected() -> None:
    assert detect(PROGRAM) == "vc4asm"
    assert detect(".set f, function f(a) { return a; } f\nx: mov.zs r0, r1\n") == "qpuasm"
    assert assemble_source(PROGRAM).dialect == "vc4asm"
    assert assemble_source("mov r0, r1").dialect == "qpuasm"
    assert assemble_source("mov r0, ra1.8ai").dialect == "vc4asm"  # only there
    with pytest.raises(AssemblyError, match="unknown dialect 'vc5asm'; did you mean vc4asm"):
        assemble_source("nop", dialect="vc5asm")


@pytest.mark.parametrize(
    "text",
    [
        '.include "vc4.qinc"', ".set a, ra1\nmov a, 1", ":l\nbrr -, :l",
        "mov vr_setup, vpm_setup(1,1,h32(0))",
        ".macro m\nnop\n.endm\nm", ".rep i, 4\nnop\n.endr", ".if 1\nnop\n.elseif 0\n.endif",
        ".const a, 1\n.unset a", ".local\n.endloc", "mov.ifz r0, r1", "mov.ifnc r0, r1",
        "mov interrupt, 1", "mov -, mutex_acq\nmov mutex_rel, 0", "mov -, sacq(1)",
        "mov r0, ra1.unpack8a\nmov.pack8a ra1, r0", ".int 5", ".short 5", ".assert 1",
        "mov r0, [0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3]", "mov sfu_recip, r0", "mov r0, vary_rd",
        "mov uni_addr, r0",
    ],
)  # fmt: skip
def test_each_construct_shows_its_dialect(text: str) -> None:
    assemble_source(text)


PIECES = [
    *"()[],;:.+-*/%<>=!&|^~#\"' \n\t", "r0", "ra1", "rb2", "mov ", "add ", "brr ", "ldi ", "nop",
    ".8a", ".ifz", ".setf", ".rep i, 3\n", ".endr\n", ".macro m, a\n", ".endm\n", "m ", ".if ",
    ".endif\n", ".back 1\n", ".endb\n", ".set x, ", "x", "h32(", "0x1f", "1.5", "7", ".int ",
    ".local\n", ".endloc\n", ".func f(a)\n", ".endf\n", "f(", "1f", ":1 ", "r:", "unif", "<< ",
]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_any_text_is_words_or_mistakes(text: str) -> None:
    try:
        assemble(text)
    except AssemblyError as error:
        error.shown("x.qasm")


def test_conditions_nest_so_deep_and_no_deeper() -> None:
    deep = ".if 1\n" * 40 + "mov r0, r1\n" + ".endif\n" * 40
    assert len(assemble(deep).words) == 1
    with pytest.raises(AssemblyError, match="more than 40 conditions nested"):
        assemble(".if 1\n" * 20000)
