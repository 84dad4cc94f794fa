"""Expands each TGSI instruction that computes something to scalar operations, by component."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from vc4lab.driver.compiler.ssa.values import Value
from vc4lab.driver.compiler.tgsi.operations import Kind, Shape
from vc4lab.driver.compiler.tgsi.program import COMPONENTS, Instruction, Register, Source, Texture

ONE = 0x3F800000
SIMPLE = {
    **{"ADD": "fadd", "MUL": "fmul", "DIV": "fdiv", "MIN": "fmin", "MAX": "fmax"},
    **{"FRC": "ffract", "FLR": "ffloor", "CEIL": "fceil", "TRUNC": "ftrunc", "ROUND": "fround"},
    **{"SSG": "fsign", "DDX": "ddx", "DDY": "ddy", "RCP": "frcp", "RSQ": "frsq", "SQRT": "fsqrt"},
    **{"EX2": "fexp2", "LG2": "flog2", "POW": "fpow", "SIN": "fsin", "COS": "fcos"},
    **{"FSEQ": "feq", "FSNE": "fne", "FSLT": "flt", "FSGE": "fge", "UCMP": "select"},
    **{"AND": "and", "OR": "or", "XOR": "xor", "NOT": "not", "SHL": "shl", "USHR": "shr"},
    **{"ISHR": "asr", "UADD": "iadd", "UMUL": "imul", "INEG": "ineg", "IABS": "iabs"},
    **{"ISSG": "isign", "IMIN": "imin", "IMAX": "imax", "UMIN": "umin", "UMAX": "umax"},
    **{"IDIV": "idiv", "UDIV": "udiv", "MOD": "imod", "UMOD": "umod", "USEQ": "ieq"},
    **{"USNE": "ine", "USLT": "ult", "USGE": "uge", "ISLT": "ilt", "ISGE": "ige"},
    **{"F2I": "f2i", "F2U": "f2u", "I2F": "i2f", "U2F": "u2f"},
}
"""Operations with one counterpart."""
SETS = {
    **{"SEQ": ("feq", False), "SNE": ("fne", False), "SLT": ("flt", False)},
    **{"SGE": ("fge", False), "SGT": ("flt", True), "SLE": ("fge", True)},
}
"""Comparisons that give 1.0 or 0.0, and whether their operands change places."""
COORDINATES = {
    **{Texture.T1D: "x", Texture.T2D: "xy", Texture.RECT: "xy", Texture.T3D: "xyz"},
    **{Texture.CUBE: "xyz", Texture.SHADOW1D: "xz", Texture.SHADOW2D: "xyz"},
    **{Texture.SHADOWRECT: "xyz", Texture.SHADOWCUBE: "xyzw", Texture.T2D_MSAA: "xyw"},
}
"""Components of the first operand that are read, the value of a shadow comparison included."""


class Maker(Protocol):
    """Makes values, as the translation of a program does."""

    def make(self, op: str, *args: Value, attributes: tuple[object, ...] = ()) -> Value:
        """A new value."""

    def constant(self, word: int) -> Value:
        """A word."""

    def source(self, source: Source, component: int, kind: Kind) -> Value:
        """A component of an operand."""

    def index(self, register: Register) -> Value:
        """The number that a register's index adds to its own."""

    def samplers(self) -> int:
        """How many samplers there are, up to the last that is declared."""

    def write(self, instruction: Instruction, values: dict[int, Value]) -> None:
        """The result by component."""


def expand(maker: Maker, instruction: Instruction) -> None:
    """Make the values of an instruction, and write them."""
    shape = instruction.operation.shape
    components = [COMPONENTS.index(letter) for letter in instruction.targets[0].mask]
    if shape is Shape.COMPONENT:
        values = _by_component(maker, instruction, components)
    elif shape is Shape.TEXTURE:
        values = _sample(maker, instruction, components)
    elif shape is Shape.VECTOR:
        values = _VECTORS[instruction.operation.name](maker, instruction, components)
    else:
        one = _dot(maker, instruction) if shape is Shape.DOT else _scalar(maker, instruction)
        values = dict.fromkeys(components, one)
    maker.write(instruction, values)


def _read(maker: Maker, instruction: Instruction, component: int) -> list[Value]:
    """This component of each operand. The first of UCMP is a word, the others may be floats."""
    kind = instruction.operation.takes
    return [maker.source(source, component, kind) for source in instruction.sources]


def _by_component(maker: Maker, instruction: Instruction, components: list[int]) -> dict[int, Value]:
    """Components that read the same words share their value. All are read before one is written."""
    made: dict[tuple[str, ...], Value] = {}
    values = {}
    for component in components:
        key = tuple(source.swizzle[component] for source in instruction.sources)
        if key not in made:
            made[key] = _component(maker, instruction, component)
        values[component] = made[key]
    return values


def _component(maker: Maker, instruction: Instruction, component: int) -> Value:
    name = instruction.operation.name
    args = _read(maker, instruction, component)
    if name in SIMPLE:
        return maker.make(SIMPLE[name], *args)
    if name in SETS:
        op, swapped = SETS[name]
        return maker.make("b2f", maker.make(op, *(args[::-1] if swapped else args)))
    return _COMPONENTS[name](maker, args)


def _multiply_add(maker: Maker, args: list[Value]) -> Value:
    return maker.make("fadd", maker.make("fmul", args[0], args[1]), args[2])


def _mix(maker: Maker, args: list[Value]) -> Value:
    """a * b + (1 - a) * c = a * (b - c) + c"""
    a, b, c = args
    difference = maker.make("fadd", b, maker.make("fneg", c))
    return maker.make("fadd", maker.make("fmul", a, difference), c)


def _compare(maker: Maker, args: list[Value]) -> Value:
    below = maker.make("flt", args[0], maker.constant(0))
    return maker.make("select", below, args[1], args[2])


def _multiply_add_words(maker: Maker, args: list[Value]) -> Value:
    return maker.make("iadd", maker.make("imul", args[0], args[1]), args[2])


_COMPONENTS: dict[str, Callable[[Maker, list[Value]], Value]] = {
    "MOV": lambda _maker, args: args[0],
    "UARL": lambda _maker, args: args[0],
    "ARL": lambda maker, args: maker.make("f2i", maker.make("ffloor", args[0])),
    "ARR": lambda maker, args: maker.make("f2i", maker.make("fround", args[0])),
    "MAD": _multiply_add,
    "UMAD": _multiply_add_words,
    "LRP": _mix,
    "CMP": _compare,
}


def _scalar(maker: Maker, instruction: Instruction) -> Value:
    return maker.make(SIMPLE[instruction.operation.name], *_read(maker, instruction, 0))


def _dot(maker: Maker, instruction: Instruction) -> Value:
    count = int(instruction.operation.name[-1])
    total: Value | None = None
    for component in range(count):
        product = maker.make("fmul", *_read(maker, instruction, component))
        total = product if total is None else maker.make("fadd", total, product)
    assert total is not None
    return total


def _dst(maker: Maker, instruction: Instruction, components: list[int]) -> dict[int, Value]:
    first, second = instruction.sources
    makers: tuple[Callable[[], Value], ...] = (
        lambda: maker.constant(ONE),
        lambda: maker.make("fmul", *_read(maker, instruction, 1)),
        lambda: maker.source(first, 2, Kind.FLOAT),
        lambda: maker.source(second, 3, Kind.FLOAT),
    )
    return {component: makers[component]() for component in components}


def _lit(maker: Maker, instruction: Instruction, components: list[int]) -> dict[int, Value]:
    (source,) = instruction.sources
    zero, one = maker.constant(0), maker.constant(ONE)

    def positive(component: int) -> Value:
        return maker.make("fmax", maker.source(source, component, Kind.FLOAT), zero)

    def specular() -> Value:
        power = maker.make("fpow", positive(1), maker.source(source, 3, Kind.FLOAT))
        x = maker.source(source, 0, Kind.FLOAT)
        return maker.make("select", maker.make("flt", zero, x), power, zero)

    makers = (lambda: one, lambda: positive(0), specular, lambda: one)
    return {component: makers[component]() for component in components}


_VECTORS = {"DST": _dst, "LIT": _lit}


def _sample(maker: Maker, instruction: Instruction, components: list[int]) -> dict[int, Value]:
    """One sample, and its components. TXP divides before; what TXB and TXL have in w comes last."""
    name, texture = instruction.operation.name, instruction.texture
    assert texture is not None
    source = instruction.sources[0]
    letters = COORDINATES[texture]
    kind = instruction.operation.takes
    args = [maker.source(source, COMPONENTS.index(letter), kind) for letter in letters]
    if name == "TXP":
        w = maker.make("frcp", maker.source(source, 3, Kind.FLOAT))
        args = [maker.make("fmul", arg, w) for arg in args]
    elif name in ("TXB", "TXL"):
        args.append(maker.source(source, 3, Kind.FLOAT))
    elif name in ("TXB2", "TXL2", "TEX2"):
        if name == "TEX2" and texture.is_shadow:
            args.pop()
        args.append(maker.source(instruction.sources[1], 0, Kind.FLOAT))
    elif name == "TXD":
        for derivative in instruction.sources[1:3]:
            args += [
                maker.source(derivative, COMPONENTS.index(letter), Kind.FLOAT)
                for letter in letters[: len(letters) - texture.is_shadow]
            ]
    register = instruction.sources[-1].register

    def sampled(number: int) -> dict[int, Value]:
        sample = maker.make("sample", *args, attributes=(name, texture.value, number))
        return {one: maker.make("component", sample, attributes=(one,)) for one in components}

    if register.index is None:
        return sampled(register.number)
    # The texture's parameters are uniforms, equal for all lanes: each is sampled, and one chosen.
    index = maker.index(register)
    found = sampled(0)
    for number in range(1, maker.samplers()):
        same = maker.make("ieq", index, maker.constant((number - register.number) & 0xFFFFFFFF))
        for component, value in sampled(number).items():
            found[component] = maker.make("select", same, value, found[component])
    return found
