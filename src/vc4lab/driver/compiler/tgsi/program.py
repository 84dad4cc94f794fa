"""A shader in its typed form: made by `parse`, printed by `print_tgsi` as Mesa prints it."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import Enum

from vc4lab.driver.compiler.tgsi.operations import Operation

COMPONENTS = "xyzw"


class File(Enum):
    """Names a file of registers."""

    IN = "IN"
    OUT = "OUT"
    TEMP = "TEMP"
    CONST = "CONST"
    IMM = "IMM"
    ADDR = "ADDR"
    SAMP = "SAMP"
    SVIEW = "SVIEW"
    SV = "SV"


WRITTEN = (File.OUT, File.TEMP, File.ADDR)
"""Files of registers that instructions write."""


class Texture(Enum):
    """Names the texture target of a sampler."""

    T1D = "1D"
    T2D = "2D"
    T2D_MSAA = "2D_MSAA"
    T3D = "3D"
    CUBE = "CUBE"
    RECT = "RECT"
    SHADOW1D = "SHADOW1D"
    SHADOW2D = "SHADOW2D"
    SHADOWRECT = "SHADOWRECT"
    SHADOWCUBE = "SHADOWCUBE"

    @property
    def is_shadow(self) -> bool:
        """Whether the last coordinate is compared with what is sampled."""
        return self.value.startswith("SHADOW")


@dataclass(frozen=True)
class Index:
    """A register whose number is in another one: `TEMP[ADDR[0].x+3](2)` begins with 3."""

    file: File
    number: int
    component: str
    array: int = 0
    """The declared array that it stays in; 0: none is named."""

    def __str__(self) -> str:
        return f"{self.file.value}[{self.number}].{self.component}"


@dataclass(frozen=True)
class Register:
    """A register: `TEMP[3]`, `CONST[0][3]`, `TEMP[ADDR[0].x+3](2)`."""

    file: File
    number: int
    index: Index | None = None
    dimension: int | None = None

    def __str__(self) -> str:
        outer = "" if self.dimension is None else f"[{self.dimension}]"
        if self.index is None:
            return f"{self.file.value}{outer}[{self.number}]"
        inner = str(self.index) + (f"{self.number:+d}" if self.number else "")
        array = f"({self.index.array})" if self.index.array else ""
        return f"{self.file.value}{outer}[{inner}]{array}"


@dataclass(frozen=True)
class Source:
    """An operand that an instruction reads: four components of a register, in an order of its own."""

    register: Register
    swizzle: str = COMPONENTS
    negate: bool = False
    absolute: bool = False

    def __str__(self) -> str:
        swizzle = "" if self.swizzle == COMPONENTS else f".{self.swizzle}"
        text = f"{self.register}{swizzle}"
        if self.absolute:
            text = f"|{text}|"
        return f"-{text}" if self.negate else text


@dataclass(frozen=True)
class Target:
    """The components of a register that an instruction writes."""

    register: Register
    mask: str = COMPONENTS

    def __str__(self) -> str:
        return str(self.register) + ("" if self.mask == COMPONENTS else f".{self.mask}")


@dataclass(frozen=True)
class Property:
    """A setting of the whole shader: `FS_COORD_ORIGIN LOWER_LEFT`."""

    name: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"PROPERTY {self.name} {', '.join(self.values)}".rstrip()


@dataclass(frozen=True)
class Semantic:
    """The purpose of an input or output: `GENERIC[2]`, `POSITION`."""

    name: str
    index: int = 0

    def __str__(self) -> str:
        shown = self.index or self.name in ("GENERIC", "TEXCOORD")
        return f"{self.name}[{self.index}]" if shown else self.name


@dataclass(frozen=True)
class Declaration:
    """Registers `first` to `last` of a file.

    Attributes
    ----------
    mask
        The components that are used.
    interpolation, location
        For a fragment shader's input: PERSPECTIVE, LINEAR, CONSTANT, COLOR; CENTROID, SAMPLE.
    array
        The number by which indices name these registers; 0: they are no array.
    texture, returns
        For a SVIEW: its texture target, and the type of its components.
    """

    file: File
    first: int
    last: int
    mask: str = COMPONENTS
    dimension: int | None = None
    semantic: Semantic | None = None
    interpolation: str = ""
    location: str = ""
    array: int = 0
    is_local: bool = False
    is_invariant: bool = False
    texture: Texture | None = None
    returns: tuple[str, ...] = ()
    line: int = field(default=0, compare=False)

    def __str__(self) -> str:
        outer = "" if self.dimension is None else f"[{self.dimension}]"
        numbers = str(self.first) if self.first == self.last else f"{self.first}..{self.last}"
        text = f"DCL {self.file.value}{outer}[{numbers}]"
        if self.mask != COMPONENTS:
            text += f".{self.mask}"
        parts = [
            f"ARRAY({self.array})" if self.array else "",
            "LOCAL" if self.is_local else "",
            str(self.semantic) if self.semantic is not None else "",
            self.texture.value if self.texture is not None else "",
            *self.returns,
            self.interpolation,
            self.location,
            "INVARIANT" if self.is_invariant else "",
        ]
        return ", ".join([text, *(part for part in parts if part)])


@dataclass(frozen=True)
class Immediate:
    """Constants of the shader, as words of 32 bits. `kind` says how they are printed, no more."""

    kind: str
    words: tuple[int, ...]

    def __str__(self) -> str:
        texts = [self._text(word) for word in self.words]
        return f"{self.kind} {{{', '.join(texts)}}}"

    def _text(self, word: int) -> str:
        if self.kind == "FLT32":
            return f"0x{word:08x}"
        return str(word - (1 << 32) if self.kind == "INT32" and word >> 31 else word)

    @property
    def floats(self) -> tuple[float, ...]:
        """The words as singles."""
        count = len(self.words)
        return struct.unpack(f"<{count}f", struct.pack(f"<{count}I", *self.words))


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    Attributes
    ----------
    texture
        The texture target of a texture operation.
    label
        The number that Mesa prints after a colon; blocks nest, so that it is not needed.
    line
        The line of the text; no part of the instruction's value.
    """

    operation: Operation
    targets: tuple[Target, ...] = ()
    sources: tuple[Source, ...] = ()
    saturate: bool = False
    precise: bool = False
    texture: Texture | None = None
    label: int | None = None
    line: int = field(default=0, compare=False)

    def __str__(self) -> str:
        name = self.operation.name + ("_SAT" if self.saturate else "")
        name += "_PRECISE" if self.precise else ""
        operands = [str(one) for one in (*self.targets, *self.sources)]
        if self.texture is not None:
            operands.append(self.texture.value)
        text = f"{name} {', '.join(operands)}".rstrip()
        return text if self.label is None else f"{text} :{self.label}"


Item = Property | Declaration | Immediate


@dataclass(frozen=True)
class Program:
    """A shader: `stage` is VERT or FRAG, `items` all that stands before the instructions."""

    stage: str
    items: tuple[Item, ...]
    instructions: tuple[Instruction, ...]

    @property
    def properties(self) -> tuple[Property, ...]:
        """Settings."""
        return tuple(one for one in self.items if isinstance(one, Property))

    @property
    def declarations(self) -> tuple[Declaration, ...]:
        """Registers."""
        return tuple(one for one in self.items if isinstance(one, Declaration))

    @property
    def immediates(self) -> tuple[Immediate, ...]:
        """Constants; IMM[n] is the n-th."""
        return tuple(one for one in self.items if isinstance(one, Immediate))

    def __repr__(self) -> str:
        return f"Program({self.stage}, {len(self.instructions)} instructions)"


class TgsiError(ValueError):
    """A code of the catalogue, a sentence, and the place in the text (both from 1)."""

    def __init__(self, code: str, text: str, line: int, column: int = 1) -> None:
        super().__init__(f"line {line}, column {column}: {text}")
        self.code = code
        self.text = text
        self.line = line
        self.column = column


LINES = 1 << 16
"""Lines of a text."""
LINE = 1 << 12
"""Characters of a line."""
REGISTERS = 1 << 14
"""Registers of a file: numbers are smaller."""
NESTING = 64
"""Loops and conditions inside of each other; virgl says 32 to Mesa."""


def print_tgsi(program: Program) -> str:
    """The text, ending in a newline."""
    lines = [program.stage]
    immediates = 0
    for item in program.items:
        if isinstance(item, Immediate):
            lines.append(f"IMM[{immediates}] {item}")
            immediates += 1
        else:
            lines.append(str(item))
    depth = 0
    for number, instruction in enumerate(program.instructions):
        operation = instruction.operation
        depth -= operation.closes
        lines.append(f"{number:3d}: {'  ' * depth}{instruction}")
        depth += operation.opens
    return "\n".join(lines) + "\n"
