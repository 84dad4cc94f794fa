"""Reads TGSI text, as Mesa prints it and as people edit it.

A line is a declaration, an immediate, a property or an instruction; instructions may be without
their numbers, and empty lines and what follows a `#` do not count. What is not TGSI raises
TgsiError with line and column.
"""

from __future__ import annotations

import difflib
import re
import struct
from typing import NoReturn

from vc4lab.driver.compiler.tgsi.checks import Found, check_program
from vc4lab.driver.compiler.tgsi.operations import OPERATIONS, Operation
from vc4lab.driver.compiler.tgsi.program import (
    COMPONENTS,
    LINE,
    LINES,
    REGISTERS,
    Declaration,
    File,
    Immediate,
    Index,
    Instruction,
    Item,
    Program,
    Property,
    Register,
    Semantic,
    Source,
    Target,
    Texture,
    TgsiError,
)

STAGES = ("VERT", "FRAG")
_FILES = {one.value: one for one in File}
_TEXTURES = {one.value: one for one in Texture}
_INTERPOLATIONS = ("PERSPECTIVE", "LINEAR", "CONSTANT", "COLOR")
_LOCATIONS = ("CENTROID", "SAMPLE", "CENTER")
_RETURNS = ("FLOAT", "UNORM", "SNORM", "SINT", "UINT")
_SEMANTICS = {
    *("POSITION", "COLOR", "BCOLOR", "FOG", "PSIZE", "GENERIC", "NORMAL", "FACE", "EDGEFLAG"),
    *("CLIPDIST", "CLIPVERTEX", "TEXCOORD", "PCOORD", "STENCIL", "INSTANCEID", "VERTEXID"),
    *("BASEVERTEX", "BASEINSTANCE", "VERTEXID_NOBASE", "DRAWID", "HELPER_INVOCATION"),
}
_PROPERTIES = {
    *("FS_COORD_ORIGIN", "FS_COORD_PIXEL_CENTER", "FS_COLOR0_WRITES_ALL_CBUFS"),
    *("FS_DEPTH_LAYOUT", "FS_EARLY_DEPTH_STENCIL", "VS_PROHIBIT_UCPS", "VS_WINDOW_SPACE_POSITION"),
    *("NUM_CLIPDIST_ENABLED", "NUM_CULLDIST_ENABLED", "LEGACY_MATH_RULES", "NEXT_SHADER"),
    *("SEPARABLE_PROGRAM", "FS_BLEND_EQUATION_ADVANCED"),
}
_OPERAND = re.compile(
    r"(?P<negate>-)?(?P<open>\|)?(?P<file>[A-Z]+)(?:\[(?P<outer>\d{1,9})\](?=\[))?"
    r"\[(?:(?P<of>[A-Z]+)\[(?P<at>\d{1,9})\]\.(?P<component>[xyzw])(?P<first>[+-]\d{1,9})?"
    r"|(?P<number>\d{1,9}))\]"
    r"(?:\((?P<array>\d{1,9})\))?(?:\.(?P<components>[xyzw]{1,4})(?![A-Za-z]))?(?P<close>\|)?"
)
_DECLARED = re.compile(
    r"(?P<file>[A-Z]+)(?:\[(?P<outer>\d{1,9})\](?=\[))?"
    r"\[(?P<first>\d{1,9})(?:\.\.(?P<last>\d{1,9}))?\](?:\.(?P<mask>[xyzw]{1,4}))?"
)
_WITH_NUMBER = re.compile(r"([A-Z_0-9]+?)(?:\[(\d{1,9})\]|\((\d{1,9})\))?$")
_IMMEDIATE = re.compile(r"IMM(?:\[(\d{1,9})\])? +(\w+) *\{([^{}]*)\}$")
_INSTRUCTION = re.compile(r"(?:\d{1,9}:)?\s*([A-Z][A-Z0-9_]*)\s*")
_LABEL = re.compile(r"\s*:(\d{1,9})$")


def parse(text: str) -> Program:
    """The program that a text says. Raises TgsiError."""
    return _Parser(text).program()


class _Parser:
    """A text on its way to a program; `line` and `text` are where it is."""

    def __init__(self, text: str) -> None:
        self._lines = text.replace("\r\n", "\n").rstrip("\0").split("\n")
        self.line = 1
        self.text = ""
        self._items: list[Item] = []
        self._immediates = 0

    def program(self) -> Program:
        if len(self._lines) > LINES:
            raise TgsiError("TGSI-006", f"{len(self._lines)} lines are too many", 1, 1)
        stage = ""
        instructions: list[Instruction] = []
        for number, whole in enumerate(self._lines, 1):
            self.line = number
            if len(whole) > LINE:
                raise TgsiError("TGSI-006", "the line is too long", self.line, LINE)
            self.text = whole.partition("#")[0].rstrip()
            start = len(self.text) - len(self.text.lstrip())
            if start == len(self.text):
                continue
            if not stage:
                if self.text[start:] not in STAGES:
                    self.fail("TGSI-001", f"the first line must be {' or '.join(STAGES)}", start)
                stage = self.text[start:]
            elif self.text.startswith(("DCL ", "IMM", "PROPERTY "), start):
                if instructions:
                    self.fail("TGSI-001", "declarations must be before instructions", start)
                self._items.append(self._item(start))
            else:
                instructions.append(self._instruction(start))
        if not stage:
            raise TgsiError("TGSI-001", "there is no shader in the text", 1, 1)
        program = Program(stage, tuple(self._items), tuple(instructions))
        try:
            check_program(program, self.line)
        except Found as found:
            line = self._lines[found.line - 1]
            start = len(line) - len(line.lstrip())
            find = line.rfind if found.is_last else line.find
            column = max(find(found.where), start) if found.where else start
            raise TgsiError(found.code, found.text, found.line, column + 1) from None
        return program

    def fail(self, code: str, text: str, at: int) -> NoReturn:
        raise TgsiError(code, text, self.line, at + 1)

    def _item(self, start: int) -> Item:
        if self.text.startswith("DCL ", start):
            return self._declaration(start + 4)
        if self.text.startswith("IMM", start):
            return self._immediate(start)
        return self._property(start + len("PROPERTY "))

    def _property(self, at: int) -> Property:
        name, _, values = self.text[at:].partition(" ")
        if name not in _PROPERTIES:
            self.fail("TGSI-001", f"no property {name!r}{near(name, _PROPERTIES)}", at)
        words = [word.strip() for word in values.split(",")] if values else []
        if not all(re.fullmatch(r"-?\w{1,40}", word) for word in words):
            self.fail("TGSI-001", f"{values!r} are no values of a property", at + len(name) + 1)
        return Property(name, tuple(words))

    def _immediate(self, at: int) -> Immediate:
        found = _IMMEDIATE.match(self.text, at)
        if found is None:
            self.fail("TGSI-001", "expected IMM[n] KIND {a, b, c, d}", at)
        if found[1] is not None and int(found[1]) != self._immediates:
            self.fail("TGSI-001", f"this is IMM[{self._immediates}], not IMM[{found[1]}]", at)
        self._immediates += 1
        kind = found[2]
        if kind not in ("FLT32", "UINT32", "INT32"):
            self.fail("TGSI-001", f"{kind}: immediates are FLT32, UINT32, INT32", found.start(2))
        parts = found[3].split(",")
        if not 1 <= len(parts) <= 4:
            self.fail("TGSI-001", f"{len(parts)} values, not 1 to 4", found.start(3))
        words = []
        place = found.start(3)
        for part in parts:
            place += len(part) - len(part.lstrip())
            word = immediate_word(part.strip(), kind)
            if word is None:
                self.fail("TGSI-001", f"{part.strip()!r} is no {kind} of 32 bits", place)
            words.append(word)
            place += len(part.lstrip()) + 1
        return Immediate(kind, tuple(words))

    def _declaration(self, at: int) -> Declaration:
        found = _DECLARED.match(self.text, at)
        if found is None:
            self.fail("TGSI-001", "expected a register, such as TEMP[0..3]", at)
        file = self._file(found["file"], at)
        first, last = int(found["first"]), int(found["last"] or found["first"])
        if last < first or last >= REGISTERS:
            self.fail("TGSI-006", f"no registers {first} to {last}", found.start("first"))
        mask = self._mask(found["mask"] or COMPONENTS, found.start("mask"))
        outer = None if found["outer"] is None else int(found["outer"])
        more = self._attributes(file, found.end())
        return Declaration(file, first, last, mask, outer, line=self.line, **more)  # type: ignore[arg-type]

    def _attributes(self, file: File, at: int) -> dict[str, object]:
        """Parse the attributes that follow a declaration's register, after commas."""
        more: dict[str, object] = {}
        while at < len(self.text):
            if self.text[at] != ",":
                self.fail("TGSI-001", "expected a comma", at)
            at += 1
            end = self.text.find(",", at)
            end = len(self.text) if end < 0 else end
            part = self.text[at:end]
            at += len(part) - len(part.lstrip())
            self._attribute(file, part.strip(), at, more)
            at = end
        return more

    def _attribute(self, file: File, part: str, at: int, more: dict[str, object]) -> None:
        found = _WITH_NUMBER.match(part)
        name = part if found is None else found[1]
        number = 0 if found is None else int(found[2] or found[3] or 0)
        if file is File.SVIEW and part in _TEXTURES and "texture" not in more:
            more["texture"] = _TEXTURES[part]
        elif file is File.SVIEW and part in _RETURNS:
            more["returns"] = (*more.get("returns", ()), part)  # type: ignore[misc]
        elif name == "ARRAY" and number:
            more["array"] = number
        elif part == "LOCAL":
            more["is_local"] = True
        elif part == "INVARIANT":
            more["is_invariant"] = True
        elif name in _SEMANTICS and "semantic" not in more:
            more["semantic"] = Semantic(name, number)
        elif part in _INTERPOLATIONS and "interpolation" not in more:
            more["interpolation"] = part
        elif part in _LOCATIONS:
            more["location"] = part
        else:
            known = {*_SEMANTICS, *_INTERPOLATIONS, *_LOCATIONS, *_TEXTURES}
            self.fail("TGSI-001", f"{part!r} says nothing about a register{near(name, known)}", at)

    def _instruction(self, at: int) -> Instruction:
        found = _INSTRUCTION.match(self.text, at)
        if found is None:
            self.fail("TGSI-001", "expected an instruction or a declaration", at)
        operation, saturate, precise = self._operation(found[1], found.start(1))
        end = len(self.text)
        label = _LABEL.search(self.text)
        if label is not None:
            end = label.start()
        at = found.end()
        targets, sources = [], []
        texture = None
        for number in range(operation.targets + operation.sources + operation.is_texture):
            if number:
                at = self._comma(operation, at, end)
            if number < operation.targets:
                target, at = self._target(at, end)
                targets.append(target)
            elif number < operation.targets + operation.sources:
                source, at = self._source(at, end)
                sources.append(source)
            else:
                name = self.text[at:end].strip()
                texture = _TEXTURES.get(name)
                if texture is None:
                    self.fail("TGSI-003", f"{name!r} is no texture{near(name, _TEXTURES)}", at)
                at = end
        if self.text[at:end].strip():
            count = operation.targets + operation.sources
            self.fail("TGSI-003", f"{operation.name} has {count} operands, not more", at)
        return Instruction(
            *(operation, tuple(targets), tuple(sources), saturate, precise, texture),
            None if label is None else int(label[1]),
            self.line,
        )

    def _operation(self, name: str, at: int) -> tuple[Operation, bool, bool]:
        base = name.removesuffix("_PRECISE")
        precise, saturate = base != name, base.endswith("_SAT")
        operation = OPERATIONS.get(base.removesuffix("_SAT"))
        if operation is None:
            self.fail("TGSI-002", f"no operation {name!r}{near(name, OPERATIONS)}", at)
        return operation, saturate, precise

    def _comma(self, operation: Operation, at: int, end: int) -> int:
        """The place after a comma and blanks."""
        rest = self.text[at:end]
        if not rest.startswith(","):
            if rest.strip():
                self.fail("TGSI-001", "expected a comma", at)
            count = operation.targets + operation.sources
            texture = " and a texture" if operation.is_texture else ""
            self.fail("TGSI-003", f"{operation.name} has {count} operands{texture}", end)
        return at + len(rest) - len(rest[1:].lstrip())

    def _target(self, at: int, end: int) -> tuple[Target, int]:
        found = self._operand(at, end)
        if found["negate"] or found["open"] or found["close"]:
            self.fail("TGSI-003", "what is written has no sign", at)
        place = found.start("components")
        mask = self._mask(found["components"] or COMPONENTS, place)
        return Target(self._register(found), mask), found.end()

    def _source(self, at: int, end: int) -> tuple[Source, int]:
        found = self._operand(at, end)
        swizzle = found["components"] or COMPONENTS
        if len(swizzle) not in (1, 4):
            text = f".{swizzle}: a source has four components, or one for all"
            self.fail("TGSI-001", text, found.start("components"))
        if bool(found["open"]) != bool(found["close"]):
            self.fail("TGSI-001", "| must be on both sides", at)
        source = Source(
            *(self._register(found), swizzle if len(swizzle) == 4 else swizzle * 4),
            *(found["negate"] is not None, found["open"] is not None),
        )
        return source, found.end()

    def _operand(self, at: int, end: int) -> re.Match[str]:
        found = _OPERAND.match(self.text, at, end)
        if found is None:
            rest = self.text[at:end].partition(",")[0].strip()
            what = f"{rest!r} is no register" if rest else "expected a register"
            self.fail("TGSI-001", f"{what}, such as TEMP[0].xyzw", at)
        return found

    def _register(self, found: re.Match[str]) -> Register:
        file = self._file(found["file"], found.start("file"))
        outer = None if found["outer"] is None else int(found["outer"])
        if found["number"] is not None:
            if found["array"] is not None:
                self.fail("TGSI-001", "only an indexed register names an array", found.end())
            return Register(file, int(found["number"]), None, outer)
        of = self._file(found["of"], found.start("of"))
        index = Index(of, int(found["at"]), found["component"], int(found["array"] or 0))
        return Register(file, int(found["first"] or 0), index, outer)

    def _file(self, name: str, at: int) -> File:
        file = _FILES.get(name)
        if file is None:
            self.fail("TGSI-001", f"no registers are called {name!r}{near(name, _FILES)}", at)
        return file

    def _mask(self, mask: str, at: int) -> str:
        if mask != "".join(one for one in COMPONENTS if one in mask):
            self.fail("TGSI-001", f".{mask}: written components are in order, each once", at)
        return mask


def immediate_word(text: str, kind: str) -> int | None:
    """The 32 bits of a constant; None if it is none. 0x… are bits of any kind."""
    try:
        if kind == "FLT32" and not text.lower().startswith("0x"):
            return int.from_bytes(struct.pack("<f", float(text)), "little")
        number = int(text, 0)
    except (ValueError, OverflowError):
        return None
    least = -(1 << 31) if kind == "INT32" else 0
    return number & 0xFFFFFFFF if least <= number < 1 << 32 else None


def near(name: str, known: object) -> str:
    """A question about similar names, or nothing."""
    found = difflib.get_close_matches(name, list(known), n=2)  # type: ignore[call-overload]
    return f" (did you mean {' or '.join(found)}?)" if found else ""
