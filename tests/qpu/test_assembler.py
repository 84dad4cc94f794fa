"""The assembler: published programs, the dialect's corners, and messages for mistakes."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vc4lab.qpu.text.assembler import Assembly, AssemblyError, assemble
from vc4lab.qpu.text.disassembler import disassemble
from vc4lab.qpu.text.outputs import c_source

VPM_PROGRAM = """
.set vw_layout, function vw_layout(a, b, c) { return (c | 0xa00 | a << 12 | b << 20); } vw_layout
.set first, 2<<30
.global entry
entry:
        mov rb3, unif            # comment
        ldi vw_setup, vw_layout(1, 1)
        mov vpm, 1               // comment
        mov vpm, elem_num
        ldi vw_setup, first | 5<<23 | 16<<16
        nop; mov vw_addr, unif
        mov.never -, vw_wait
exit:   mov irq, rb3
        nop; nop; thrend
        nop
        nop
"""


def words(text: str) -> list[str]:
    return [f"{word:016x}" for word in assemble(text).words]


def word(text: str) -> str:
    (only,) = words(text)
    return only


def test_program_with_macros_and_labels() -> None:
    """Encodings as qpuasm.js documents them for its second tutorial program."""
    assert words(VPM_PROGRAM) == [
        "100210e715827d80",
        "e0021c6700101a00",
        "d0020c27159c1fc0",
        "10020c27159a7d80",
        "e0021c6782900000",
        "100049f280827036",
        "100009e7159f2fc0",
        "100209a7159c3fc0",
        "300009e7009e7000",
        "100009e7009e7000",
        "100009e7009e7000",
    ]
    assembly = assemble(VPM_PROGRAM)
    assert assembly.labels == {"entry": 0, "exit": 0x38}
    assert assembly.exported == ("entry",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mov r0, vary ; nop", "10020827158e7d80"),
        ("nop ; mov r3.8a, r0", "114049e3809e7000"),
        ("fmul r0, vary, ra15", "100049e0203e303e"),
        ("mov tlbc, r4 ; nop; thrend", "30020ba7159e7900"),
        ("fmul r0, r4.8a, r2     ; nop", "190049e0209e7022"),
        ("and r2, r0, r1 ; fmul r0, vary, ra15", "100248a0343e307e"),
        ("ftoi ra0.16a, r1 ; fmul r0, r2, unif", "1012402027827256"),
        ("fadd.ns ra1, ra1, 1.0", "d008006701060dc0"),
        ("itof rb2, ra0.8a", "180210a708027d80"),
        ("nop ; mov r2.8d, 1.0", "d17049e2809e003f"),
        ("brr.allz -, +0x2b8", "f00809e7000002b8"),
        ("ldi r1, 0x40", "e002086700000040"),
        ("ldi r0, [1,1,1,1,1,1,1,1,0,0,0,0,0,0,0,-2]", "e2020827800000ff"),
        ("nop; mov r0, r1 >> 3", "d00049e0809f3009"),
        ("nop; mov r0, r1 << 13", "d00049e0809f3009"),
        ("nop; mov r0, r1 >> r5", "d00049e0809f0009"),
        ("sacq -, 5", "e80209e700000015"),
        ("srel -, 5", "e80209e700000005"),
        ("bra ra5, ra6", "f0f4c16700000000"),
        ("sub.setf -, ra31, 2 ; nop", "d00229e70d7c2dc0"),
        (".quad 0x0123456789abcdef", "0123456789abcdef"),
    ],
)
def test_encodings(text: str, expected: str) -> None:
    assert word(text) == expected


def test_names_and_aliases() -> None:
    assert word("mov rsqrt, r0") == word("mov recipsqrt, r0")
    assert word("mov host_int, r0") == word("mov irq, r0")
    assert word("mov r0, w") == word("mov r0, ra15")
    assert word("li r0, 5") == word("load_imm r0, 5") == word("ldi r0, 5")
    assert word("mov r0, 0x12345") == word("ldi r0, 0x12345")
    assert word("mov r0, 100 ; mov r1, 100") == word("ldi r0, 100 ; ldi r1, 100")
    assert word("MOV.ZS r0, r1") == word("mov.zs r0, r1")


def test_shared_peripherals_find_a_free_port() -> None:
    (alone, second) = assemble("mov r0, unif\nadd r0, ra1, unif; fmul r1, unif, ra1").words
    assert alone >> 12 & 0xFFF == 32 << 6 | 39
    assert second >> 12 & 0xFFF == 1 << 6 | 32


def test_pack_and_unpack_choose_pm() -> None:
    assert word("nop ; mov ra3.8a, r0")[1] == "1"  # mul pack
    assert word("nop ; mov ra3.8a, r0; pm0")[1] == "0"  # regfile pack
    assert word("nop ; mov ra3.16a, r0")[1] == "0"
    assert word("mov ra3.8a, r0")[1] == "0"
    assert word("mov r0, r4.8a ; mov r3.8b, r1")[1] == "9"
    with pytest.raises(AssemblyError, match="pack and unpack disagree"):
        assemble("mov ra2.16a, r4.8a")


def test_branches_and_labels() -> None:
    loop = assemble("start: nop\n brr.anynz -, start\n bra -, start\n nop\nend:", address=0x100)
    assert loop.words[1] & 0xFFFFFFFF == (0x100 - 0x128) & 0xFFFFFFFF
    assert loop.words[2] & 0xFFFFFFFF == 0x100
    assert loop.labels["end"] == 0x120
    assert word("brr -, ra2+0") == "f0fc49e700000000"
    assert word("brr -, -8")[-8:] == "fffffff8"
    assert word("brr.allz -, 0x40")[-8:] == "00000020"


def test_branch_forms() -> None:
    """As docs/qpu-assembly.md lists them."""
    for short, full in (
        ("brr a", "brr -, a"),
        ("brr.anynz a", "brr.anynz -, -32"),
        ("bra a", "bra -, 0"),
        ("bra ra5", "bra -, ra5"),
        ("brr ra5 + 8", "brr -, ra5+0x8"),
        ("brr +8", "brr -, b + 8"),
        ("brr.all_zs a", "brr.allz a"),
    ):
        text = f"a: {short}\nnop\nnop\nnop\nb: nop"
        assert words(text) == words(text.replace(short, full)), short
    assert assemble("brr ra1, rb2, +0").words[0] >> 32 & 0xFFF == 1 << 6 | 2
    assert assemble("brr.setf +0").words[0] >> 45 & 1


def test_symbols_from_outside() -> None:
    assert assemble("ldi r0, base + 4", symbols={"base": 0x100}).words[0] & 0xFFFF == 0x104


def test_comments_and_check_words() -> None:
    text = "/* 00000000: 15827d80 10020827 */  mov r0, unif\n/* more\n than one line */ nop"
    assert words(text) == ["1002082715827d80", "100009e7009e7000"]


def test_outputs() -> None:
    assembly = assemble(VPM_PROGRAM)
    assert isinstance(assembly, Assembly)
    assert assembly.bytes[:8] == bytes.fromhex("807d8215e7100210")
    listing = assembly.listing().splitlines()
    assert listing[0] == "entry:"
    assert listing[1] == "  00000000: 100210e715827d80  mov rb3, unif"
    source = c_source(assembly, "shader")
    assert "#define SHADER_ENTRY 0x0u" in source
    assert "SHADER_EXIT" not in source  # not exported
    assert "0x15827d80, 0x100210e7, /* mov rb3, unif */" in source


MISTAKES = [
    ("foo r0", 1, "unknown operation 'foo'"),
    ("fad r0, r1, r2", 1, "did you mean fadd"),
    ("mov r4, r1", 5, "r4 cannot be written"),
    ("mov r5, r1", 5, "r5quad"),
    ("mov r0, bogus", 9, "unknown source 'bogus'"),
    ("mov unif, r0", 5, "unif can only be read"),
    ("mov r0, tlbc", 9, "tlbc can only be written"),
    ("add r0, ra1, ra2", 14, "only one register of file A"),
    ("add r0, rb1, 3", 9, "takes the place of the file B read"),
    ("add r0, r1, 100", 13, "no small immediate"),
    ("add r0, 1, 2", 12, "only one small immediate"),
    ("mov ra0, r1; mov ra1, r2", 18, "same address space"),
    ("fadd r0, r1", 1, "takes 3 operands"),
    ("mov r0, r1; fadd r2, r1, r0", 13, "add ALU has already"),
    ("mov r0, r1, ; nop", 12, "operand is missing"),
    ("mov.xy r0, r1", 1, "unknown suffix 'xy'"),
    ("brr.zz -, +8", 1, "unknown branch condition"),
    ("bra r0", 5, "a branch register is one of ra0..ra31"),
    ("brr -, nowhere", 8, "unknown symbol 'nowhere'"),
    (".foo", 1, "unknown directive"),
    (".set x", 1, r"write .set name, expression"),
    (".global x", 9, "no label 'x'"),
    ("mov r0.8q, r1", 8, "unknown pack"),
    ("mov r0, ra1.9", 13, "unknown unpack"),
    ("mov r0, rb1.8a", 9, "can be unpacked"),
    ("mov r0.8a, r1", 5, "add ALU can only pack"),
    ("ldi r0, 1; ldi r1, 2", 20, "the same value"),
    ("ldi r0, [1, 2]", 9, "16 elements"),
    ("sacq -, 16", 9, "not in 0..15"),
    ("mov r0, 1; nop; ldtmu0", 1, "leaves no room for a signal"),
    ("nop; nop; ldtmu0; sbwait", 19, "only one signal"),
    ("add r0, r1 >> 3, r2", 9, "only the mul ALU rotates: write `nop; mov r0, r1 >> 3` before"),
    ("fsub r0, r1, ra2 << r5", 21, "r5 rotates upward only"),
    ("nop; fmul r0, r1 >> 3, r2", 24, "every operand rotates alike: r2 too"),
    ("mov r0, r1 >> 3; mov r2, r3 >> r5", 26, "`nop; mov r0, r3 >> r5` before"),
    ("nop; mov r0, r1 >> 16", 20, "1 to 15"),
    ("a: nop\na: nop", 1, "exists already, in line 1"),
    ("mov r0, r1 /* why\n*/ nop /* x */ /* never\nnop\nnop", 16, "this comment is never closed"),
    ("nop\n/* nop", 1, "this comment is never closed"),
    (".quad 1<<63<<1", 7, "64-bit"),
    ("ldi r0, 1/0", 10, "division by zero"),
    ("ldi r0, 0x100000000", 9, "doesn't fit in 32 bits"),
    ("ldi r0, " + "(" * 60 + "1" + ")" * 60, 9, "nesting"),
]


@pytest.mark.parametrize(("text", "column", "message"), MISTAKES)
def test_mistakes(text: str, column: int, message: str) -> None:
    with pytest.raises(AssemblyError, match=message) as caught:
        assemble(text)
    error = caught.value.errors[0]
    assert error.column == column
    assert error.line == (text.split("/* n")[0].count("\n") + 1)
    assert "^" in error.shown("file.s")


def test_all_mistakes_are_collected() -> None:
    with pytest.raises(AssemblyError) as caught:
        assemble("foo\nnop\nbar\n")
    assert [error.line for error in caught.value.errors] == [1, 3]


def test_a_label_given_twice_hides_nothing() -> None:
    with pytest.raises(AssemblyError) as caught:
        assemble("foo r0\na: nop\na: nop\nb: bar r0\nb: b: nop\nbrr a\n")
    assert [error.line for error in caught.value.errors] == [1, 3, 4, 5, 5]


def test_more_mistakes_are_counted() -> None:
    with pytest.raises(AssemblyError) as caught:
        assemble("foo\n" * 30 + "x: nop\n" * 30)
    assert [error.line for error in caught.value.errors] == list(range(1, 21))
    assert caught.value.more == 30 + 29 - 20
    assert str(caught.value).endswith("\nand 39 more mistakes")


def test_hints_are_made_for_what_is_shown() -> None:
    """Among many labels similar names are not looked for, and not for every mistake."""
    with pytest.raises(AssemblyError) as caught:
        assemble("".join(f"l{n}: mov r0, zz{n}\n" for n in range(20000)))
    assert caught.value.more == 19980
    assert str(caught.value.errors[0]) == "line 1, column 13: unknown source 'zz0'"
    with pytest.raises(AssemblyError, match="did you mean loop"):
        assemble("loop: mov r0, lop")


def test_a_comment_that_is_never_closed_comes_first() -> None:
    with pytest.raises(AssemblyError) as caught:
        assemble("brr -, later\nnop /* open\nlater: nop\n")
    assert str(caught.value.errors[0]) == "line 2, column 5: this comment is never closed"


def test_reserved_operations_are_not_suggested() -> None:
    for name in ("addop", "addop8", "frob"):
        with pytest.raises(AssemblyError) as caught:
            assemble(f"{name} r0, r1, r2")
        assert "addop" not in str(caught.value).split("; ", 1)[1]
    with pytest.raises(AssemblyError) as caught:
        assemble("brr.zz -, 0")
    assert "cc1" not in str(caught.value)
    assert "all_" not in str(caught.value)


def test_a_rotation_goes_to_the_mul_alu() -> None:
    assert words("mov r0, r1 >> 3") == words("nop; mov r0, r1 >> 3")
    assert words("mov r0, r1 >> 3; add r2, r0, r1") == words("add r2, r0, r1; mov r0, r1 >> 3")
    two = "fmul r0, r1 >> 1, r2 >> 1"
    assert words(two) == words(f"nop; {two}")


@pytest.mark.parametrize("mul", ["nop r1", "nop.zs ra3", "nop.cc rb5"])
def test_a_nop_of_the_mul_alu_may_have_a_target(mul: str) -> None:
    """What it writes there is the unknown `mul_nop_result`."""
    (only,) = assemble(f"fadd r0, r1, r2; {mul}").words
    assert disassemble(only) == f"fadd r0, r1, r2; {mul}"


def test_sizes_have_limits() -> None:
    with pytest.raises(AssemblyError, match="at most 4194304 characters"):
        assemble(" " * (4 << 20) + "\n")
    with pytest.raises(AssemblyError, match="131073 instructions: a program has at most 131072"):
        assemble(".quad " + "0," * (1 << 17) + "0")


def test_macros_that_double_their_work_end() -> None:
    lines = [".set f0, function f0(a) { return a; } f0"]
    for n in range(1, 36):
        body = f"f{n - 1}(a) + f{n - 1}(a)"
        lines.append(f".set f{n}, function f{n}(a) {{ return {body}; }} f{n}")
    with pytest.raises(AssemblyError, match="more than 10000 macro calls"):
        assemble("\n".join([*lines, "ldi r0, f35(1)"]))


def test_long_lines_are_cut_in_messages() -> None:
    with pytest.raises(AssemblyError) as caught:
        assemble("nop; " * 3000 + "foo")
    message, line, mark = caught.value.errors[0].shown("x").splitlines()
    assert len(message) < 200
    assert len(line) <= 130
    assert line[mark.index("^") :].startswith("nop") or line[mark.index("^") :].startswith("foo")


@given(st.text(alphabet=st.sampled_from("mov r0a1,;.8#/*:<>[](){}fn-+|\n\t0x9_brldi"), max_size=60))
def test_no_text_makes_anything_but_words_or_mistakes(text: str) -> None:
    with contextlib.suppress(AssemblyError):
        assert all(0 <= w < 1 << 64 for w in assemble(text).words)
