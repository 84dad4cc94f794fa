"""Cases of `test_operations_drawn.py`: for each operation of TGSI a piece of a fragment shader, and
what numpy says that it computes.

A piece computes `T[9]` from operands A, B and C (floats), I, J and K (integers).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from vc4lab.driver.compiler.tgsi.operations import OPERATIONS

SIZE = 16
Array = np.ndarray[Any, Any]
Operands = dict[str, Array]
"""By letter: (4, rows, columns) of singles, or of integers."""

VERTEX = """VERT
DCL IN[0]
DCL IN[1]
DCL IN[2]
DCL IN[3]
DCL IN[4]
DCL IN[5]
DCL OUT[0], POSITION
DCL OUT[1], GENERIC[0]
DCL OUT[2], GENERIC[1]
DCL OUT[3], GENERIC[2]
DCL OUT[4], GENERIC[3]
DCL OUT[5], GENERIC[4]
MOV OUT[0], IN[0]
MOV OUT[1], IN[1]
MOV OUT[2], IN[2]
MOV OUT[3], IN[3]
MOV OUT[4], IN[4]
MOV OUT[5], IN[5]
END
"""
FRAGMENT = """FRAG
PROPERTY FS_COLOR0_WRITES_ALL_CBUFS 1
DCL IN[0], GENERIC[0], PERSPECTIVE
DCL IN[1], GENERIC[1], PERSPECTIVE
DCL IN[2], GENERIC[2], PERSPECTIVE
DCL IN[3], GENERIC[3], PERSPECTIVE
DCL IN[4], GENERIC[4], PERSPECTIVE
DCL OUT[0], COLOR
DCL SAMP[0]
DCL SVIEW[0], {texture}, FLOAT
DCL CONST[0..7]
DCL TEMP[0..15], LOCAL
DCL ADDR[0]
IMM[0] FLT32 {{64.0, 0.015625, 1000.0, 4.0}}
IMM[1] UINT32 {{0, 8, 16, 24}}
IMM[2] UINT32 {{255, 1, 2654435761, 3}}
IMM[3] FLT32 {{0.003921569, 0.0, 1.0, 2.0}}
IMM[4] FLT32 {{0.0625, 0.0, 0.03125, 0.5}}
MUL TEMP[0], IN[0], IMM[0].xxxx
ROUND TEMP[0], TEMP[0]
MUL TEMP[0], TEMP[0], IMM[0].yyyy
MUL TEMP[1], IN[1], IMM[0].xxxx
ROUND TEMP[1], TEMP[1]
MUL TEMP[1], TEMP[1], IMM[0].yyyy
MUL TEMP[2], IN[2], IMM[0].xxxx
ROUND TEMP[2], TEMP[2]
MUL TEMP[2], TEMP[2], IMM[0].yyyy
MUL TEMP[3], TEMP[0], IMM[0].zzzz
F2I TEMP[3], TEMP[3]
UMUL TEMP[3], TEMP[3], IMM[2].zzzz
MUL TEMP[4], TEMP[1], IMM[0].wwww
F2I TEMP[4], TEMP[4]
MUL TEMP[5], TEMP[2], IMM[0].zzzz
F2I TEMP[5], TEMP[5]
{body}
FSLT TEMP[10], IMM[4].wwww, IN[4]
AND TEMP[10], TEMP[9], TEMP[10]
OR TEMP[10].xy, TEMP[10].xyyy, TEMP[10].zwww
OR TEMP[10].x, TEMP[10].xxxx, TEMP[10].yyyy
USHR TEMP[11], TEMP[10].xxxx, IMM[1]
AND TEMP[11], TEMP[11], IMM[2].xxxx
U2F TEMP[11], TEMP[11]
MUL OUT[0], TEMP[11], IMM[3].xxxx
END
"""
CONSTANTS = np.arange(28, dtype=np.float32).reshape(7, 4) * 1.5 - 3
"""CONST[1] and the following."""
PLACES = np.mgrid[0:SIZE, 0:SIZE][::-1] + 0.5
X, Y = PLACES


def planes() -> dict[str, list[tuple[float, float, float]]]:
    """Of A, B and C by component: what they change by to the right and upwards, and where they
    begin. B.y is A.y."""
    return {
        "A": [(0.5, 0.0, -4.125), (0.0, 0.5, -4.125), (0.25, 0.25, -4.125), (-0.25, 0.5, 0.1875)],
        "B": [(0.0, 0.25, 0.375), (0.0, 0.5, -4.125), (0.5, -0.25, -2.125), (0.25, 0.0, -2.125)],
        "C": [(-0.25, -0.25, 3.125), (0.5, 0.0, -3.125), (0.0, 0.5, -3.125), (0.125, 0.125, 0.4375)],
    }


def snapped(plane: tuple[float, float, float]) -> Array:
    right, up, start = plane
    return (np.rint((right * X + up * Y + start) * 64) / 64).astype(np.float32)


def operands() -> Operands:
    """What the shaders make of their varyings."""
    found = {letter: np.array([snapped(one) for one in four]) for letter, four in planes().items()}
    thousand = np.trunc(found["A"] * np.float32(1000)).astype(np.int64)
    found["I"] = (thousand * 2654435761 & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
    found["J"] = np.trunc(found["B"] * np.float32(4)).astype(np.int32)
    found["K"] = np.trunc(found["C"] * np.float32(1000)).astype(np.int32)
    return found


REGISTERS = {"A": 0, "B": 1, "C": 2, "I": 3, "J": 4, "K": 5}


class Case:
    """A body, and what its T[9] is: four components of each pixel, or only the first ones."""

    def __init__(self, body: str, expected: Callable[[Operands], Any], *, texture: str = "2D") -> None:
        self.body = body
        for letter, number in REGISTERS.items():
            self.body = self.body.replace(f"[{letter}]", f"TEMP[{number}]")
        self.body = self.body.replace("T[9]", "TEMP[9]").replace("T[8]", "TEMP[8]")
        self.expected, self.texture = expected, texture


def words_of(values: Any) -> Array:
    """(4, rows, columns) words of singles, integers or truth values."""
    array = np.asarray(values)
    if array.dtype == np.bool_:
        array = np.where(array, 0xFFFFFFFF, 0)
    if array.dtype.kind == "f":
        array = array.astype(np.float32).view(np.uint32)
    else:
        array = (array.astype(np.int64) & 0xFFFFFFFF).astype(np.uint32)
    return np.broadcast_to(array, (4, SIZE, SIZE))


def float_case(name: str, compute: Callable[..., Any], letters: str = "ABC") -> Case:
    """An operation on components of floats."""
    given = letters[: OPERATIONS[name].sources]
    text = ", ".join(f"[{letter}]" for letter in given)
    return Case(
        f"{name} T[9], {text}", lambda table: compute(*(table[letter].astype(np.float64) for letter in given))
    )


def scalar_case(name: str, compute: Callable[..., Any]) -> Case:
    """An operation on first components: those of A above 0, and of B."""
    is_power = name == "POW"
    text = "|[A].yyyy|, [B].xxxx" if is_power else "|[A].yyyy|"
    if name in ("SIN", "COS", "EX2", "RCP"):
        text = "[A].yyyy"

    def expected(table: Operands) -> Any:
        a = table["A"][1].astype(np.float64)
        if name not in ("SIN", "COS", "EX2", "RCP"):
            a = np.abs(a)
        return compute(a, table["B"][0].astype(np.float64)) if is_power else compute(a)

    return Case(f"{name} T[9], {text}", expected)


def integer_case(name: str, compute: Callable[..., Any], letters: str = "IJK") -> Case:
    """An operation on components of integers; `compute` gets them as Python would, 64 bits wide."""
    operation = OPERATIONS[name]
    given = letters[: operation.sources]
    mask = 0xFFFFFFFF if operation.takes.value == "uint" else -1
    return Case(
        f"{name} T[9], " + ", ".join(f"[{letter}]" for letter in given),
        lambda table: compute(*(table[letter].astype(np.int64) & mask for letter in given)),
    )


def divided(a: Array, b: Array) -> tuple[Array, Array]:
    """Quotient towards 0 and rest; of a division by 0 anything."""
    by = np.where(b == 0, 1, b)
    quotient = np.sign(a) * np.sign(by) * (np.abs(a) // np.abs(by))
    return quotient, a - quotient * by


def lit(a: Array) -> Any:
    x, y, w = a[0], a[1], np.abs(a[3])
    power = np.where(x > 0, np.maximum(y, 0) ** w, 0)
    return np.array([np.ones_like(x), np.maximum(x, 0), power, np.ones_like(x)])


def quad_difference(values: Array, axis: int) -> Array:
    """Of each pixel's quad, in the pixel's own row or column."""
    low = np.take(values, range(0, SIZE, 2), axis)
    high = np.take(values, range(1, SIZE, 2), axis)
    return np.repeat(high - low, 2, axis)


def constant_of(number: Array) -> Array:
    """CONST[4 + number]."""
    return np.moveaxis(CONSTANTS[np.clip(number + 3, 0, 6)], -1, 0)


CASES: dict[str, Case] = {
    "MOV": Case("MOV T[9], -[A].wzyx", lambda t: -t["A"][::-1]),
    "ADD": float_case("ADD", lambda a, b: a + b),
    "MUL": float_case("MUL", lambda a, b: a * b),
    "MAD": float_case("MAD", lambda a, b, c: a * b + c),
    "DIV": float_case("DIV", lambda a, b: a / b, "BA"),
    "MIN": float_case("MIN", np.minimum),
    "MAX": float_case("MAX", np.maximum),
    "FRC": float_case("FRC", lambda a: a - np.floor(a)),
    "FLR": float_case("FLR", np.floor),
    "CEIL": float_case("CEIL", np.ceil),
    "TRUNC": float_case("TRUNC", np.trunc),
    "ROUND": float_case("ROUND", np.rint),
    "SSG": float_case("SSG", np.sign, "B"),
    "LRP": float_case("LRP", lambda a, b, c: a * b + (1 - a) * c),
    "CMP": float_case("CMP", lambda a, b, c: np.where(a < 0, b, c)),
    "SEQ": float_case("SEQ", lambda a, b: (a == b) * 1.0),
    "SNE": float_case("SNE", lambda a, b: (a != b) * 1.0),
    "SLT": float_case("SLT", lambda a, b: (a < b) * 1.0),
    "SGE": float_case("SGE", lambda a, b: (a >= b) * 1.0),
    "SGT": float_case("SGT", lambda a, b: (a > b) * 1.0),
    "SLE": float_case("SLE", lambda a, b: (a <= b) * 1.0),
    "DDX": Case("MUL T[8], [A], [A]\nDDX T[9], T[8]", lambda t: quad_difference(t["A"] ** 2, 2)),
    "DDY": Case("MUL T[8], [A], [A]\nDDY T[9], T[8]", lambda t: quad_difference(t["A"] ** 2, 1)),
    "RCP": scalar_case("RCP", lambda a: 1 / a),
    "RSQ": scalar_case("RSQ", lambda a: 1 / np.sqrt(a)),
    "SQRT": scalar_case("SQRT", np.sqrt),
    "EX2": scalar_case("EX2", np.exp2),
    "LG2": scalar_case("LG2", np.log2),
    "POW": scalar_case("POW", lambda a, b: a**b),
    "SIN": scalar_case("SIN", np.sin),
    "COS": scalar_case("COS", np.cos),
    "DP2": float_case("DP2", lambda a, b: (a * b)[:2].sum(0)),
    "DP3": float_case("DP3", lambda a, b: (a * b)[:3].sum(0)),
    "DP4": float_case("DP4", lambda a, b: (a * b).sum(0)),
    "DST": float_case("DST", lambda a, b: np.array([np.ones_like(a[0]), a[1] * b[1], a[2], b[3]])),
    "LIT": Case("MOV T[8], [A]\nMOV T[8].w, |[A].wwww|\nLIT T[9], T[8]", lambda t: lit(t["A"])),
    "FSEQ": float_case("FSEQ", lambda a, b: a == b),
    "FSNE": float_case("FSNE", lambda a, b: a != b),
    "FSLT": float_case("FSLT", lambda a, b: a < b),
    "FSGE": float_case("FSGE", lambda a, b: a >= b),
    "UCMP": Case("UCMP T[9], [J], [A], [B]", lambda t: np.where(t["J"], t["A"], t["B"])),
    "AND": integer_case("AND", lambda a, b: a & b, "IK"),
    "OR": integer_case("OR", lambda a, b: a | b, "IK"),
    "XOR": integer_case("XOR", lambda a, b: a ^ b, "IK"),
    "NOT": integer_case("NOT", lambda a: ~a),
    "SHL": integer_case("SHL", lambda a, b: a << (b & 31)),
    "USHR": integer_case("USHR", lambda a, b: a >> (b & 31)),
    "ISHR": integer_case("ISHR", lambda a, b: a >> (b & 31)),
    "UADD": integer_case("UADD", lambda a, b: a + b, "IK"),
    "UMUL": integer_case("UMUL", lambda a, b: a * b, "IK"),
    "UMAD": integer_case("UMAD", lambda a, b, c: a * b + c),
    "INEG": integer_case("INEG", lambda a: -a),
    "IABS": integer_case("IABS", np.abs),
    "ISSG": integer_case("ISSG", np.sign, "J"),
    "IMIN": integer_case("IMIN", np.minimum, "IK"),
    "IMAX": integer_case("IMAX", np.maximum, "IK"),
    "UMIN": integer_case("UMIN", np.minimum, "IK"),
    "UMAX": integer_case("UMAX", np.maximum, "IK"),
    "IDIV": integer_case("IDIV", lambda a, b: np.where(b == 0, 0, divided(a, b)[0])),
    "UDIV": integer_case("UDIV", lambda a, b: np.where(b == 0, -1, divided(a, b)[0])),
    "MOD": integer_case("MOD", lambda a, b: np.where(b == 0, -1, divided(a, b)[1])),
    "UMOD": integer_case("UMOD", lambda a, b: np.where(b == 0, -1, divided(a, b)[1])),
    "USEQ": integer_case("USEQ", lambda a, b: a == b, "JK"),
    "USNE": integer_case("USNE", lambda a, b: a != b, "JK"),
    "USLT": integer_case("USLT", lambda a, b: a < b, "IK"),
    "USGE": integer_case("USGE", lambda a, b: a >= b, "IK"),
    "ISLT": integer_case("ISLT", lambda a, b: a < b, "IK"),
    "ISGE": integer_case("ISGE", lambda a, b: a >= b, "IK"),
    "F2I": Case("F2I T[9], [A]", lambda t: np.trunc(t["A"]).astype(np.int64)),
    "F2U": Case("F2U T[9], |[A]|", lambda t: np.trunc(np.abs(t["A"])).astype(np.int64)),
    "I2F": Case("I2F T[9], [I]", lambda t: t["I"].astype(np.float64)),
    "U2F": Case("U2F T[9], [I]", lambda t: t["I"].view(np.uint32).astype(np.float64)),
    "ARL": Case(
        "ARL ADDR[0].x, [C].wwww\nMOV T[9], CONST[ADDR[0].x+1]",
        lambda t: constant_of(np.floor(t["C"][3]).astype(int) - 3),
    ),
    "ARR": Case(
        "ARR ADDR[0].x, [C].wwww\nMOV T[9], CONST[ADDR[0].x+1]",
        lambda t: constant_of(np.rint(t["C"][3]).astype(int) - 3),
    ),
    "UARL": Case(
        "AND T[8].x, [K].xxxx, IMM[2].wwww\nUARL ADDR[0].x, T[8].xxxx\nMOV T[9], CONST[ADDR[0].x+4]",
        lambda t: constant_of(t["K"][0] & 3),
    ),
}

# ------------------------------------------------------------------------------------ flow
KEPT = 0x40302010
"""The colour of pixels that nothing is drawn to."""
CASES |= {
    "IF": Case(
        "MOV T[9], [B]\nMAX T[8], [A], IMM[3].yyyy\nIF T[8].xxxx\nMOV T[9], [C]\nENDIF",
        lambda t: np.where(t["A"][0] > 0, t["C"], t["B"]),
    ),
    "UIF": Case(
        "MOV T[9], [B]\nAND T[8], [K], IMM[2].yyyy\nUIF T[8].xxxx\nMUL T[9], [C], [A]\nENDIF",
        lambda t: np.where(t["K"][0] & 1, t["C"] * t["A"], t["B"]),
    ),
    "ELSE": Case(
        "FSLT T[8], [A], [B]\nUIF T[8].xxxx\nMOV T[9], [C]\nELSE\nUIF T[8].yyyy\nMOV T[9], [A]\n"
        "ELSE\nMOV T[9], [B]\nENDIF\nENDIF",
        lambda t: np.where(t["A"][0] < t["B"][0], t["C"], np.where(t["A"][1] < t["B"][1], t["A"], t["B"])),
    ),
    "BRK": Case(
        "MOV T[9], IMM[3].yyyy\nBGNLOOP\nFSGE T[8], T[9], [A]\nUIF T[8].xxxx\nBRK\nENDIF\n"
        "ADD T[9], T[9], IMM[3].zzzz\nENDLOOP",
        lambda t: np.maximum(np.ceil(t["A"][0]), 0),
    ),
    "CONT": Case(
        # the sum of the odd numbers up to A.x
        "MOV T[9], IMM[3].yyyy\nMOV TEMP[12], IMM[3].yyyy\nBGNLOOP\nFSGE T[8], TEMP[12], [A].xxxx\n"
        "UIF T[8].xxxx\nBRK\nENDIF\nADD TEMP[12], TEMP[12], IMM[3].zzzz\nF2I TEMP[13], TEMP[12]\n"
        "AND TEMP[13], TEMP[13], IMM[2].yyyy\nUIF TEMP[13].xxxx\nELSE\nCONT\nENDIF\n"
        "ADD T[9], T[9], TEMP[12]\nENDLOOP",
        lambda t: np.floor((np.maximum(np.ceil(t["A"][0]), 0) + 1) / 2) ** 2,
    ),
    "KILL": Case(
        "FSLT T[8], [A], [B]\nUIF T[8].xxxx\nKILL\nENDIF\nMOV T[9], [C]",
        lambda t: np.where(t["A"][0] < t["B"][0], np.uint32(KEPT), words_of(t["C"])),
    ),
    "KILL_IF": Case(
        "KILL_IF [A].xxyy\nMOV T[9], [C]",
        lambda t: np.where((t["A"][:2] < 0).any(0), np.uint32(KEPT), words_of(t["C"])),
    ),
    "NOP": Case("MOV T[9], [A]\nNOP\nADD T[9], T[9], [B]", lambda t: t["A"] + t["B"]),
}
CASES["ENDIF"] = CASES["ELSE"]
CASES["BGNLOOP"] = CASES["ENDLOOP"] = CASES["BRK"]
CASES["END"] = CASES["MOV"]

# ------------------------------------------------------------------------------------ textures
SIDE, LEVELS = 16, 4


def texels(level: int) -> Array:
    """(rows, columns, 4) bytes: column, row, level and neither 0 nor 255."""
    side = SIDE >> level
    rows, columns = np.mgrid[0:side, 0:side]
    return np.stack(
        [columns * 15 + 3, rows * 13 + 5, np.full_like(rows, 60 * level + 20), rows * 0 + 77], -1
    ).astype(np.uint8)


def sampled(level: Any, scale: Any = 1.0) -> Array:
    """The texel of a level that lies at each pixel's place."""
    level = np.broadcast_to(np.asarray(level), (SIZE, SIZE))
    found = np.zeros((4, SIZE, SIZE))
    for number in range(LEVELS):
        side = SIDE >> number
        x, y = (np.clip((place * scale / SIZE * side).astype(int), 0, side - 1) for place in PLACES)
        here = np.moveaxis(texels(number)[y, x], -1, 0) / 255
        found = np.where(level == number, here, found)
    return found


def sample_texels(sample: int) -> Array:
    """The same of one of four samples."""
    found = texels(0)
    found[..., 2] = 50 * sample + 10
    return found


def fetched(samples: Array) -> Array:
    """The texel of a sample at each pixel's place."""
    places = (PLACES[1].astype(int), PLACES[0].astype(int))
    each = np.stack([sample_texels(number)[places] for number in range(4)])
    rows, columns = np.mgrid[0:SIZE, 0:SIZE]
    return np.moveaxis(each[samples, rows, columns], -1, 0) / 255


LOOK = [(1 / SIZE, 0, 0), (0, 1 / SIZE, 0), (0.25, 0, 0), (0, 0, 0)]
"""The fourth varying: coordinates of a texel for each pixel, and a level."""


def column_level(_t: Operands) -> Array:
    """0 to 3 by groups of four columns."""
    return (X // 4).astype(int)


CASES |= {
    "TEX": Case("TEX T[9], IN[3], SAMP[0], 2D", lambda t: sampled(0)),
    "TEX_LZ": Case("MUL T[8], IN[3], IMM[3].wwww\nTEX_LZ T[9], T[8], SAMP[0], 2D", lambda t: sampled(0, 2)),
    "TXP": Case(
        "MOV T[8], [C].wwww\nMUL T[8].xy, IN[3], [C].wwww\nTXP T[9], T[8], SAMP[0], 2D", lambda t: sampled(0)
    ),
    "TXB": Case(
        "MOV T[8], IN[3]\nFLR T[8].w, IN[3].zzzz\nTXB T[9], T[8], SAMP[0], 2D",
        lambda t: sampled(column_level(t)),
    ),
    "TXL": Case(
        "MOV T[8], IN[3]\nFLR T[8].w, IN[3].zzzz\nTXL T[9], T[8], SAMP[0], 2D",
        lambda t: sampled(column_level(t)),
    ),
    "TXB2": Case(
        "FLR T[8].x, IN[3].zzzz\nTXB2 T[9], IN[3], T[8], SAMP[0], 2D", lambda t: sampled(column_level(t))
    ),
    "TXL2": Case(
        "FLR T[8].x, IN[3].zzzz\nTXL2 T[9], IN[3], T[8], SAMP[0], 2D", lambda t: sampled(column_level(t))
    ),
    "TXF": Case(
        "MUL T[8], IN[3], IMM[0].wwww\nMUL T[8], T[8], IMM[0].wwww\nF2I T[8].xy, T[8]\n"
        "F2I T[8].w, IN[3].zzzz\nTXF T[9], T[8], SAMP[0], 2D_MSAA",
        lambda t: fetched(column_level(t)),
        texture="2D_MSAA",
    ),
    "TXD": Case(
        # in texels: 1, 2, 4 or 8 to the right, half of it upwards
        "FLR T[8].x, IN[3].zzzz\nEX2 T[8].x, T[8].xxxx\nMUL TEMP[12], T[8].xxxx, IMM[4].xyyy\n"
        "MUL TEMP[13], T[8].xxxx, IMM[4].yzzz\nTXD T[9], IN[3], TEMP[12], TEMP[13], SAMP[0], 2D",
        lambda t: sampled(column_level(t)),
    ),
    "TEX2": Case(
        # a face of a cube, all of one depth; the reference grows to the right
        "MOV T[8].x, IMM[3].zzzz\nMOV T[8].yzw, IMM[3].yyyy\nMOV TEMP[12].x, IN[3].xxxx\n"
        "TEX2 T[9], T[8], TEMP[12], SAMP[0], SHADOWCUBE",
        lambda t: np.array([*[(X / SIZE <= 0.5) * 1.0] * 3, np.ones_like(X)]),
        texture="SHADOWCUBE",
    ),
}
