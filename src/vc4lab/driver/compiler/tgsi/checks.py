"""Checks a program beyond its form: declared registers, written files, nested blocks."""

from __future__ import annotations

from vc4lab.driver.compiler.tgsi.program import (
    NESTING,
    REGISTERS,
    WRITTEN,
    File,
    Instruction,
    Program,
    Register,
    Texture,
)

_CLOSED_BY = {"IF": "ENDIF", "UIF": "ENDIF", "ELSE": "ENDIF", "BGNLOOP": "ENDLOOP"}


class Found(Exception):  # noqa: N818 - what the parser makes a Found of
    """A mistake: its code, a sentence, the line, and the text in it that it is about: `where`,
    the last one of several in the line with `is_last`.
    """

    def __init__(self, code: str, text: str, line: int, where: str = "", *, is_last: bool = False) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.line = line
        self.where = where
        self.is_last = is_last


def check_program(program: Program, last_line: int) -> None:
    """Raises Found at the first mistake."""
    declared = _Declared(program)
    for instruction in program.instructions:
        _check_operands(instruction, declared)
    _check_flow(program, last_line)


class _Declared:
    """The registers and arrays that a program declares."""

    def __init__(self, program: Program) -> None:
        self.numbers: dict[File, set[int]] = {file: set() for file in File}
        self.arrays: dict[tuple[File, int], range] = {}
        for one in program.declarations:
            registers = range(one.first, one.last + 1)
            if sum(map(len, self.numbers.values())) + len(registers) > REGISTERS:
                raise Found("TGSI-006", "too many registers", one.line)
            self.numbers[one.file].update(registers)
            if one.array:
                if (one.file, one.array) in self.arrays:
                    raise Found("TGSI-004", f"ARRAY({one.array}) is declared twice", one.line)
                self.arrays[one.file, one.array] = registers
        self.numbers[File.IMM].update(range(len(program.immediates)))

    def check(self, register: Register, line: int) -> None:
        """Raises Found if it is not declared."""
        index = register.index
        if index is None:
            if register.number not in self.numbers[register.file]:
                raise Found("TGSI-004", f"{register} is not declared", line, str(register))
            return
        if index.number not in self.numbers[index.file]:
            raise Found("TGSI-004", f"{index} is not declared", line, str(index))
        if index.array and (register.file, index.array) not in self.arrays:
            raise Found("TGSI-004", f"{register}: ARRAY({index.array}) is not declared", line, str(register))
        if not self.numbers[register.file]:
            raise Found("TGSI-004", f"{register}: none of them is declared", line, str(register))


def _check_operands(instruction: Instruction, declared: _Declared) -> None:
    line, name = instruction.line, instruction.operation.name
    for target in instruction.targets:
        if target.register.file not in WRITTEN:
            raise Found("TGSI-003", f"{name}: {target.register} cannot be written", line, str(target))
        declared.check(target.register, line)
    sources = instruction.sources
    if instruction.operation.is_texture:
        is_fetch, of_samples = name == "TXF", instruction.texture is Texture.T2D_MSAA
        if is_fetch is not of_samples:
            what = "from textures with several samples" if is_fetch else "from others"
            raise Found("TGSI-003", f"{name} reads only {what}", line, name)
        sampler = sources[-1].register
        if sampler.file is not File.SAMP:
            raise Found("TGSI-003", f"{name}: {sampler} is no sampler", line, str(sampler), is_last=True)
    for number, source in enumerate(sources):
        is_sampler = instruction.operation.is_texture and number == len(sources) - 1
        if source.register.file in (File.SAMP, File.SVIEW) and not is_sampler:
            raise Found("TGSI-003", f"{name}: {source.register} cannot be read", line, str(source))
        declared.check(source.register, line)


def _check_flow(program: Program, last_line: int) -> None:
    """Blocks nest, and END is the last instruction."""
    open_: list[Instruction] = []
    for instruction in program.instructions:
        operation, line = instruction.operation, instruction.line
        if operation.closes:
            opener = open_.pop() if open_ else None
            needed = "ENDIF" if operation.name == "ELSE" else operation.name
            wrong = opener is None or _CLOSED_BY[opener.operation.name] != needed
            if wrong or (operation.name == "ELSE" and opener.operation.name == "ELSE"):  # type: ignore[union-attr]
                raise Found("TGSI-005", f"{operation.name} closes nothing", line)
        if operation.opens:
            open_.append(instruction)
            if len(open_) > NESTING:
                raise Found("TGSI-006", f"more than {NESTING} blocks nest", line)
        if operation.name in ("BRK", "CONT"):
            if not any(one.operation.name == "BGNLOOP" for one in open_):
                raise Found("TGSI-005", f"{operation.name} is in no loop", line)
        if operation.name == "END" and (open_ or instruction is not program.instructions[-1]):
            text = "END is not the last instruction"
            if open_:
                opened = open_[-1]
                text = f"{opened.operation.name} of line {opened.line} is not closed"
            raise Found("TGSI-005", text, line)
    if not program.instructions or program.instructions[-1].operation.name != "END":
        raise Found("TGSI-005", "END is missing", last_line)
