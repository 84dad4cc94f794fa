"""Shader texts: what Mesa printed comes back to the byte; mistakes are named with their place."""

from pathlib import Path

import pytest
from tests.support.shader_runs import SAMPLES

from vc4lab.diagnostics import catalogue
from vc4lab.driver.compiler.tgsi.operations import OPERATIONS, Kind, Shape
from vc4lab.driver.compiler.tgsi.parser import immediate_word, parse
from vc4lab.driver.compiler.tgsi.program import (
    Declaration,
    File,
    Immediate,
    Index,
    Instruction,
    Register,
    Semantic,
    Source,
    Target,
    Texture,
    TgsiError,
    print_tgsi,
)

START = "FRAG\nDCL IN[0].xy, GENERIC[1], PERSPECTIVE\nDCL OUT[0], COLOR\nDCL TEMP[0..3]\n"


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_texts_of_mesa_come_back(path: Path) -> None:
    text = path.read_text()
    program = parse(text)
    assert print_tgsi(program) == text
    assert parse(print_tgsi(program)) == program


def test_there_are_samples() -> None:
    assert len(SAMPLES) > 15
    text = "".join(path.read_text() for path in SAMPLES)
    for part in ("BGNLOOP", "UIF", "TEMP[ADDR[0].x+3](2)", "CONST[ADDR[0].x", "KILL_IF", "|TEMP["):
        assert part in text


def test_the_typed_form() -> None:
    """Declarations, immediates, and one instruction with everything that a source can have."""
    program = parse(
        START + "DCL TEMP[4..6], ARRAY(2), LOCAL\nDCL ADDR[0]\nDCL SAMP[1]\nDCL SVIEW[1], 2D, FLOAT\n"
        "DCL CONST[0][0..3]\n"
        "IMM[0] UINT32 {1065353216, 0, 0, 0}\nIMM[1] INT32 {-1, 2, 0, 0}\n"
        "  0: MAD_SAT TEMP[0].xz, -|IN[0].yxxx|, CONST[0][2].xxxx, TEMP[ADDR[0].x+1](2)\n"
        "  1: TEX TEMP[1], IN[0].xyyy, SAMP[1], 2D\n"
        "  2: END\n"
    )
    assert program.declarations[0] == Declaration(
        File.IN, 0, 0, "xy", semantic=Semantic("GENERIC", 1), interpolation="PERSPECTIVE"
    )
    assert program.declarations[3] == Declaration(File.TEMP, 4, 6, array=2, is_local=True)
    assert program.declarations[6].texture is Texture.T2D
    assert program.declarations[6].returns == ("FLOAT",)
    one, two = program.immediates
    assert one == Immediate("UINT32", (0x3F800000, 0, 0, 0))
    assert one.floats == (1.0, 0.0, 0.0, 0.0)
    assert two.words[0] == 0xFFFFFFFF
    temp, inputs = Register(File.TEMP, 0), Register(File.IN, 0)
    indexed = Register(File.TEMP, 1, Index(File.ADDR, 0, "x", 2))
    assert program.instructions[0] == Instruction(
        OPERATIONS["MAD"],
        (Target(temp, "xz"),),
        (
            Source(inputs, "yxxx", negate=True, absolute=True),
            Source(Register(File.CONST, 2, None, 0), "xxxx"),
            Source(indexed),
        ),
        saturate=True,
    )
    assert program.instructions[1].texture is Texture.T2D
    assert program.instructions[1].sources[1].register == Register(File.SAMP, 1)
    assert program.instructions[0].line == 12


def test_what_people_write() -> None:
    """Without numbers, with comments and empty lines, floats as people write them."""
    written = (
        "FRAG   # a comment\n\nDCL OUT[0], COLOR\nIMM FLT32 {1, 0.5, -2e3, 0x3f000000}\n"
        "  MOV OUT[0], IMM[0].y   # one component for all\n END\n"
    )
    program = parse(written)
    assert program.immediates[0].floats == (1.0, 0.5, -2000.0, 0.5)
    assert print_tgsi(program) == (
        "FRAG\nDCL OUT[0], COLOR\n"
        "IMM[0] FLT32 {0x3f800000, 0x3f000000, 0xc4fa0000, 0x3f000000}\n"
        "  0: MOV OUT[0], IMM[0].yyyy\n  1: END\n"
    )


@pytest.mark.parametrize(
    ("body", "code", "line", "column", "part"),
    [
        ("  0: MOW TEMP[0], IN[0]\n", "TGSI-002", 5, 6, "or MOV?"),
        ("  0: DADD TEMP[0], IN[0], IN[0]\n", "TGSI-002", 5, 6, "no operation 'DADD'"),
        ("  0: MOV TEMP[0] IN[0]\n", "TGSI-001", 5, 17, "comma"),
        ("  0: MOV TEMP[0],\n", "TGSI-001", 5, 18, "expected a register"),
        ("  0: MOV TEMP[0]\n", "TGSI-003", 5, 17, "MOV has 2 operands"),
        ("  0: MOV TEMP[0], IN[0], IN[0]\n", "TGSI-003", 5, 24, "not more"),
        ("  0: MOV TEMP[0], TMP[0]\n", "TGSI-001", 5, 19, "did you mean TEMP"),
        ("  0: MOV TEMP[0], IN[0].xy\n", "TGSI-001", 5, 25, "four components"),
        ("  0: MOV TEMP[0], IN[0].xyzq\n", "TGSI-003", 5, 24, "not more"),
        ("  0: MOV TEMP[0].yx, IN[0]\n", "TGSI-001", 5, 18, "in order"),
        ("  0: MOV -TEMP[0], IN[0]\n", "TGSI-003", 5, 10, "no sign"),
        ("  0: MOV TEMP[0], |IN[0]\n", "TGSI-001", 5, 19, "both sides"),
        ("  0: MOV IN[0], TEMP[0]\n", "TGSI-003", 5, 10, "IN[0] cannot be written"),
        ("  0: MOV TEMP[9], IN[0]\n", "TGSI-004", 5, 10, "TEMP[9] is not declared"),
        ("  0: MOV TEMP[0], CONST[ADDR[0].x]\n", "TGSI-004", 5, 25, "ADDR[0].x is not"),
        ("DCL ADDR[0]\n MOV TEMP[0], TEMP[ADDR[0].x](3)\n", "TGSI-004", 6, 15, "ARRAY(3)"),
        ("  0: TEX TEMP[0], IN[0], SAMP[0], 2D\n", "TGSI-004", 5, 26, "SAMP[0] is not declared"),
        ("  0: TEX TEMP[0], IN[0], IN[0], 2D\n", "TGSI-003", 5, 26, "no sampler"),
        ("  0: TEX TEMP[0], IN[0], SAMP[0], 4D\n", "TGSI-003", 5, 35, "'4D' is no texture"),
        ("  0: TEX TEMP[0], IN[0], SAMP[0]\n", "TGSI-003", 5, 33, "3 operands and a texture"),
        ("  0: ENDIF\n", "TGSI-005", 5, 3, "closes nothing"),
        ("  0: BRK\n", "TGSI-005", 5, 3, "in no loop"),
        ("  0: UIF IN[0].xxxx :2\n  1: ENDLOOP\n", "TGSI-005", 6, 3, "closes nothing"),
        ("  0: UIF IN[0].xxxx :2\n ELSE\n ELSE\n", "TGSI-005", 7, 2, "closes nothing"),
        ("  0: BGNLOOP :0\n  1: END\n", "TGSI-005", 6, 3, "BGNLOOP of line 5 is not closed"),
        ("  0: END\n  1: NOP\n", "TGSI-005", 5, 3, "not the last"),
        ("  0: NOP\n", "TGSI-005", 6, 1, "END is missing"),
        ("  0: NOP\nDCL TEMP[4]\n", "TGSI-001", 6, 1, "before instructions"),
        ("DCL TEMP[5..4]\n", "TGSI-006", 5, 10, "no registers 5 to 4"),
        ("DCL TEMP[0..99999999]\n", "TGSI-006", 5, 10, "no registers"),
        ("DCL IN[1], GENERC[0]\n", "TGSI-001", 5, 12, "did you mean GENERIC"),
        ("IMM[1] FLT32 {0, 0, 0, 0}\n", "TGSI-001", 5, 1, "this is IMM[0], not IMM[1]"),
        ("IMM[0] FLT64 {0, 0, 0, 0}\n", "TGSI-001", 5, 8, "FLT64"),
        ("IMM[0] UINT32 {0, -1, 0, 0}\n", "TGSI-001", 5, 19, "'-1' is no UINT32"),
        ("IMM[0] UINT32 {0, 0, 0, 0, 0}\n", "TGSI-001", 5, 16, "5 values"),
        ("PROPERTY FS_COORD_ORIGN 1\n", "TGSI-001", 5, 10, "did you mean FS_COORD_ORIGIN"),
        ("  0: ,\n", "TGSI-001", 5, 3, "expected an instruction"),
        ("  BGNLOOP\n" * 70, "TGSI-006", 69, 3, "more than 64 blocks"),
    ],
)  # fmt: skip
def test_mistakes_are_named_with_their_place(body: str, code: str, line: int, column: int, part: str) -> None:
    with pytest.raises(TgsiError) as caught:
        parse(START + body)
    error = caught.value
    assert part in error.text
    assert (error.code, error.line, error.column) == (code, line, column)
    assert str(error).startswith(f"line {line}, column {column}: ")
    assert code in catalogue()


@pytest.mark.parametrize("text", ["", "\n\n", "GEOM\n", "VERT", "x" * 5000, "VERT\n" * 70000])
def test_texts_that_are_no_shaders(text: str) -> None:
    with pytest.raises(TgsiError):
        parse(text)


@pytest.mark.parametrize(
    ("text", "kind", "word"),
    [
        ("1", "FLT32", 0x3F800000),
        ("0x10", "FLT32", 16),
        ("1e99", "FLT32", None),
        ("nan", "FLT32", 0x7FC00000),
        ("-1", "INT32", 0xFFFFFFFF),
        ("4294967295", "UINT32", 0xFFFFFFFF),
        ("4294967296", "UINT32", None),
        ("1.5", "UINT32", None),
        ("", "UINT32", None),
    ],
)
def test_words_of_immediates(text: str, kind: str, word: int | None) -> None:
    assert immediate_word(text, kind) == word


def test_the_table_of_operations() -> None:
    """Everything that design notes list for glmark2 and piglit is in it."""
    listed = """
        MOV MAD MUL ADD TEX DP3 RSQ DIV MAX FRC FLR RCP UCMP FSGE LRP AND FSLT POW UADD MIN BGNLOOP
        ISGE UIF BRK ENDIF ENDLOOP UARL FSEQ DP4 EX2 SIN KILL_IF SHL USHR SSG DP2 CEIL TRUNC COS LG2
        ELSE KILL DDX DDY TXB TXP SGE USEQ USNE ISLT USGE OR NOT XOR UMUL INEG IMIN UMAX IDIV I2F
        F2I TXD CMP SLT SEQ IF ARL TXL CONT END
    """.split()  # noqa: SIM905
    assert set(listed) <= set(OPERATIONS)
    assert OPERATIONS["FSLT"].gives is Kind.BOOL
    assert OPERATIONS["DP3"].shape is Shape.DOT
    for one in OPERATIONS.values():
        assert one.targets == (one.shape not in (Shape.FLOW, Shape.KILL))
