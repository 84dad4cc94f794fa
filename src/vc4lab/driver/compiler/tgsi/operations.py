"""The operations of TGSI: what each takes and gives, as a table.

Those that Mesa 22.3 uses for OpenGL ES 2.0 and desktop OpenGL 2.0 with integers; those for 64-bit
numbers, memory, images and the other stages are absent. Source: Mesa 22.3,
src/gallium/auxiliary/tgsi/tgsi_info_opcodes.h, and docs/gallium/tgsi.rst for what they compute.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Shape(Enum):
    """Which components of the sources a component of the result depends on."""

    COMPONENT = "component"
    """A component of the result depends on that component of each source."""
    SCALAR = "scalar"
    """The first ones; every component of the result is the same."""
    DOT = "dot"
    """Several of them; every component of the result is the same."""
    VECTOR = "vector"
    """Each component has a rule of its own."""
    TEXTURE = "texture"
    """A coordinate, and what a sampler gives for it."""
    FLOW = "flow"
    """None: it says what is executed."""
    KILL = "kill"
    """None: it ends a pixel."""


class Kind(Enum):
    """Names the type of the words of sources and results."""

    FLOAT = "float"
    INT = "int"
    UINT = "uint"
    BOOL = "bool"
    """All bits or none, as integer comparisons give it."""
    ANY = "any"
    """Words as they are."""


@dataclass(frozen=True)
class Operation:
    """One operation.

    Attributes
    ----------
    targets, sources
        How many there are; the sampler of a texture operation is one of the sources.
    takes, gives
        The type of the words. Source modifiers of FLOAT act on the sign bit, those of INT negate.
    opens, closes
        Whether a block begins after it, or ends before it.
    """

    name: str
    targets: int
    sources: int
    shape: Shape
    takes: Kind = Kind.FLOAT
    gives: Kind = Kind.FLOAT
    opens: bool = False
    closes: bool = False
    text: str = ""

    @property
    def is_texture(self) -> bool:
        """Whether it has a sampler."""
        return self.shape is Shape.TEXTURE


_C, _S, _D, _V, _T = Shape.COMPONENT, Shape.SCALAR, Shape.DOT, Shape.VECTOR, Shape.TEXTURE
_F, _I, _U, _B, _A = Kind.FLOAT, Kind.INT, Kind.UINT, Kind.BOOL, Kind.ANY

_COMPUTING: tuple[tuple[str, int, Shape, Kind, Kind, str], ...] = (
    # name, sources, shape, takes, gives, what it computes
    ("MOV", 1, _C, _A, _A, "a"),
    ("ADD", 2, _C, _F, _F, "a + b"),
    ("MUL", 2, _C, _F, _F, "a * b"),
    ("MAD", 3, _C, _F, _F, "a * b + c"),
    ("DIV", 2, _C, _F, _F, "a / b"),
    ("MIN", 2, _C, _F, _F, "the smaller"),
    ("MAX", 2, _C, _F, _F, "the larger"),
    ("FRC", 1, _C, _F, _F, "a - floor a"),
    ("FLR", 1, _C, _F, _F, "floor"),
    ("CEIL", 1, _C, _F, _F, "ceiling"),
    ("TRUNC", 1, _C, _F, _F, "towards 0"),
    ("ROUND", 1, _C, _F, _F, "to the nearest, ties to even"),
    ("SSG", 1, _C, _F, _F, "-1, 0 or 1"),
    ("LRP", 3, _C, _F, _F, "a * b + (1 - a) * c"),
    ("CMP", 3, _C, _F, _F, "a < 0 ? b : c"),
    ("SEQ", 2, _C, _F, _F, "a == b ? 1.0 : 0.0"),
    ("SNE", 2, _C, _F, _F, "a != b ? 1.0 : 0.0"),
    ("SLT", 2, _C, _F, _F, "a < b ? 1.0 : 0.0"),
    ("SGE", 2, _C, _F, _F, "a >= b ? 1.0 : 0.0"),
    ("SGT", 2, _C, _F, _F, "a > b ? 1.0 : 0.0"),
    ("SLE", 2, _C, _F, _F, "a <= b ? 1.0 : 0.0"),
    ("DDX", 1, _C, _F, _F, "difference to the pixel beside"),
    ("DDY", 1, _C, _F, _F, "difference to the pixel below"),
    ("RCP", 1, _S, _F, _F, "1 / a"),
    ("RSQ", 1, _S, _F, _F, "1 / sqrt |a|"),
    ("SQRT", 1, _S, _F, _F, "square root"),
    ("EX2", 1, _S, _F, _F, "2 to the a"),
    ("LG2", 1, _S, _F, _F, "logarithm to base 2"),
    ("POW", 2, _S, _F, _F, "a to the b"),
    ("SIN", 1, _S, _F, _F, "sine of radians"),
    ("COS", 1, _S, _F, _F, "cosine of radians"),
    ("DP2", 2, _D, _F, _F, "sum of two products"),
    ("DP3", 2, _D, _F, _F, "sum of three products"),
    ("DP4", 2, _D, _F, _F, "sum of four products"),
    ("DST", 2, _V, _F, _F, "(1, a.y * b.y, a.z, b.w)"),
    ("LIT", 1, _V, _F, _F, "(1, max(x, 0), x > 0 ? max(y, 0) to the w : 0, 1)"),
    ("FSEQ", 2, _C, _F, _B, "a == b"),
    ("FSNE", 2, _C, _F, _B, "a != b"),
    ("FSLT", 2, _C, _F, _B, "a < b"),
    ("FSGE", 2, _C, _F, _B, "a >= b"),
    ("UCMP", 3, _C, _A, _A, "a != 0 ? b : c"),
    ("AND", 2, _C, _U, _U, "a & b"),
    ("OR", 2, _C, _U, _U, "a | b"),
    ("XOR", 2, _C, _U, _U, "a ^ b"),
    ("NOT", 1, _C, _U, _U, "~a"),
    ("SHL", 2, _C, _U, _U, "a << (b & 31)"),
    ("USHR", 2, _C, _U, _U, "a >> (b & 31)"),
    ("ISHR", 2, _C, _I, _I, "a >> (b & 31), with the sign"),
    ("UADD", 2, _C, _I, _I, "a + b"),
    ("UMUL", 2, _C, _I, _I, "a * b, the low word"),
    ("UMAD", 3, _C, _I, _I, "a * b + c, the low word"),
    ("INEG", 1, _C, _I, _I, "-a"),
    ("IABS", 1, _C, _I, _I, "|a|"),
    ("ISSG", 1, _C, _I, _I, "-1, 0 or 1"),
    ("IMIN", 2, _C, _I, _I, "the smaller"),
    ("IMAX", 2, _C, _I, _I, "the larger"),
    ("UMIN", 2, _C, _U, _U, "the smaller"),
    ("UMAX", 2, _C, _U, _U, "the larger"),
    ("IDIV", 2, _C, _I, _I, "a / b towards 0; b = 0: 0"),
    ("UDIV", 2, _C, _U, _U, "a / b; b = 0: all bits"),
    ("MOD", 2, _C, _I, _I, "rest with the sign of a; b = 0: all bits"),
    ("UMOD", 2, _C, _U, _U, "rest; b = 0: all bits"),
    ("USEQ", 2, _C, _U, _B, "a == b"),
    ("USNE", 2, _C, _U, _B, "a != b"),
    ("USLT", 2, _C, _U, _B, "a < b"),
    ("USGE", 2, _C, _U, _B, "a >= b"),
    ("ISLT", 2, _C, _I, _B, "a < b"),
    ("ISGE", 2, _C, _I, _B, "a >= b"),
    ("F2I", 1, _C, _F, _I, "towards 0"),
    ("F2U", 1, _C, _F, _U, "towards 0"),
    ("I2F", 1, _C, _I, _F, "the nearest"),
    ("U2F", 1, _C, _U, _F, "the nearest"),
    ("ARL", 1, _C, _F, _I, "floor, as an index"),
    ("ARR", 1, _C, _F, _I, "the nearest, as an index"),
    ("UARL", 1, _C, _I, _I, "as an index"),
    ("TEX", 2, _T, _F, _F, "a sample at a"),
    ("TXB", 2, _T, _F, _F, "the same, a.w added to the level"),
    ("TXL", 2, _T, _F, _F, "of level a.w"),
    ("TXP", 2, _T, _F, _F, "at a / a.w"),
    ("TXF", 2, _T, _I, _F, "sample a.w of the texel a.x, a.y"),
    ("TXD", 4, _T, _F, _F, "with the derivatives b and c"),
    ("TEX_LZ", 2, _T, _F, _F, "of level 0"),
    ("TEX2", 3, _T, _F, _F, "compared with b.x"),
    ("TXB2", 3, _T, _F, _F, "b.x added to the level"),
    ("TXL2", 3, _T, _F, _F, "of level b.x"),
)
_OTHERS = (
    Operation("IF", 0, 1, Shape.FLOW, opens=True, text="a.x != 0.0"),
    Operation("UIF", 0, 1, Shape.FLOW, Kind.ANY, opens=True, text="a.x != 0"),
    Operation("ELSE", 0, 0, Shape.FLOW, opens=True, closes=True),
    Operation("ENDIF", 0, 0, Shape.FLOW, closes=True),
    Operation("BGNLOOP", 0, 0, Shape.FLOW, opens=True),
    Operation("ENDLOOP", 0, 0, Shape.FLOW, closes=True),
    Operation("BRK", 0, 0, Shape.FLOW, text="leaves the innermost loop"),
    Operation("CONT", 0, 0, Shape.FLOW, text="goes on with the innermost loop"),
    Operation("KILL", 0, 0, Shape.KILL, text="always"),
    Operation("KILL_IF", 0, 1, Shape.KILL, text="if any component is below 0"),
    Operation("NOP", 0, 0, Shape.FLOW),
    Operation("END", 0, 0, Shape.FLOW),
)
OPERATIONS: dict[str, Operation] = {
    one.name: one
    for one in (
        *(
            Operation(name, 1, sources, shape, takes, gives, text=text)
            for name, sources, shape, takes, gives, text in _COMPUTING
        ),
        *_OTHERS,
    )
}
"""By name."""
