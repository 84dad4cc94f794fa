"""State that cuts pixels out of primitives, written into shaders: clip planes, polygon stipple.

The chip clips to the view volume alone. A vertex shader gives the distances from the planes, and a
fragment shader leaves out the pixels where one is negative; a stipple's bit is looked up by place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from vc4lab.driver.compiler.tgsi.operations import OPERATIONS
from vc4lab.driver.compiler.tgsi.program import (
    COMPONENTS,
    Declaration,
    File,
    Immediate,
    Index,
    Instruction,
    Item,
    Program,
    Register,
    Semantic,
    Source,
    Target,
)

CLIP_PLANES, STIPPLE = 254, 255
"""Constant buffers that the driver fills: a plane in each register; a row in each register's x."""
DISTANCES = "CLIPDIST"
_SIGN, _ONE, _ROWS = 0x80000000, 0x3F800000, 31


def with_distances(program: Program, planes: int) -> Program:
    """A vertex shader that gives the distance from each plane, of CLIPVERTEX or the position.

    planes: a bit for each plane. Shaders that write distances themselves stay as they are.
    """
    known = {
        one.semantic.name: one.first
        for one in program.declarations
        if one.file is File.OUT and one.semantic is not None
    }
    if not planes or DISTANCES in known or "POSITION" not in known:
        return program
    place = known.get("CLIPVERTEX", known["POSITION"])
    output, vertex = Register(File.OUT, place), Register(File.TEMP, _free(program, File.TEMP))
    added: list[Item] = [Declaration(File.TEMP, vertex.number, vertex.number)]
    after = [_make("MOV", Target(output), Source(vertex))]
    first = _free(program, File.OUT)
    for group in range(-(-planes.bit_length() // 4)):
        number = first + group
        semantic = Semantic(DISTANCES, group)
        added.append(Declaration(File.OUT, number, number, semantic=semantic))
        for part in range(4):
            plane = Register(File.CONST, 4 * group + part, dimension=CLIP_PLANES)
            if planes >> plane.number & 1:
                target = Target(Register(File.OUT, number), COMPONENTS[part])
                after.append(_make("DP4", target, Source(vertex), Source(plane)))
    moved = [_moved(one, output, vertex) for one in program.instructions]
    return replace(program, items=(*program.items, *added), instructions=(*moved[:-1], *after, moved[-1]))


def without_clipped(program: Program, planes: int) -> Program:
    """A fragment shader that discards pixels beyond one of the planes."""
    added: list[Item] = []
    before = []
    first = _free(program, File.IN)
    for group in range(-(-planes.bit_length() // 4)):
        used = [part for part in range(4) if planes >> 4 * group + part & 1]
        if used:
            number = first + group
            added.append(
                Declaration(File.IN, number, number, semantic=Semantic(DISTANCES, group),
                            interpolation="PERSPECTIVE")
            )  # fmt: skip
            parts = "".join(COMPONENTS[used[min(one, len(used) - 1)]] for one in range(4))
            before.append(_make("KILL_IF", Source(Register(File.IN, number), parts)))
    return _begun(program, added, before)


def with_stipple(program: Program) -> Program:
    """A fragment shader that discards pixels whose bit of the pattern is 0.

    Bit 31 of the pattern's first row is the first pixel in memory.
    """
    place = Register(File.IN, _free(program, File.IN))
    work = Register(File.TEMP, _free(program, File.TEMP))
    address = Register(File.ADDR, _free(program, File.ADDR))
    numbers = Source(Register(File.IMM, len(program.immediates)))
    added: list[Item] = [
        Declaration(
            File.IN, place.number, place.number, semantic=Semantic("POSITION"),
            interpolation="LINEAR",
        ),
        Declaration(File.TEMP, work.number, work.number),
        Declaration(File.ADDR, address.number, address.number),
        Immediate("UINT32", (_ROWS, _SIGN, _ONE, 0)),
    ]  # fmt: skip
    index = Index(File.ADDR, address.number, "x")
    row = Source(Register(File.CONST, 0, index, STIPPLE), "xxxx")
    x, z = Target(work, "x"), Target(work, "z")
    of = {name: Source(work, name * 4) for name in "xyz"}
    last, sign, one = (replace(numbers, swizzle=name * 4) for name in "xyz")
    before = [
        _make("F2I", Target(work, "xy"), Source(place)),
        _make("AND", Target(work, "xy"), Source(work), last),
        _make("UARL", Target(address, "x"), of["y"]),
        _make("MOV", z, row),
        _make("SHL", z, of["z"], of["x"]),
        # The bit is the sign of 1: the other way round, as KILL_IF wants it.
        _make("AND", z, of["z"], sign),
        _make("XOR", z, of["z"], sign),
        _make("OR", x, of["z"], one),
        _make("KILL_IF", of["x"]),
    ]
    return _begun(program, added, before)


def _begun(program: Program, items: Iterable[Item], before: Iterable[Instruction]) -> Program:
    return replace(program, items=(*program.items, *items), instructions=(*before, *program.instructions))


def _free(program: Program, file: File) -> int:
    """The first register number that nothing declares."""
    numbers = [one.last for one in program.declarations if one.file is file]
    return max(numbers, default=-1) + 1


def _make(name: str, *operands: Target | Source) -> Instruction:
    return Instruction(
        OPERATIONS[name],
        tuple(one for one in operands if isinstance(one, Target)),
        tuple(one for one in operands if isinstance(one, Source)),
    )


def _moved(one: Instruction, old: Register, new: Register) -> Instruction:
    """An instruction with another register in the place of one."""
    return replace(
        one,
        targets=tuple(replace(part, register=new) if part.register == old else part for part in one.targets),
        sources=tuple(replace(part, register=new) if part.register == old else part for part in one.sources),
    )
