"""The QPU assembler: text in the dialect of hermanhermitage's qpuasm.js → instruction words.

    assembly = assemble(text)      # raises AssemblyError with lines, columns and what is allowed
    assembly.words, assembly.labels["entry"], assembly.listing()

Beyond qpuasm.js: ``li`` and ``load_imm`` for ``ldi``, ``mov`` of a large immediate becomes ``ldi``,
branches without a link register, two link registers, ``src << n`` (rotate down), ``read reg``
(trigger a read that is not used), ``pm0``/``pm1`` as a last slot, ``.quad`` for raw words,
``with field=value, …`` after all slots for bits that have no effect.
``src >> n`` rotates upward (lane i goes to lane i+n), as in qpuasm.js and vc4asm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES, WORD_MASK
from vc4lab.qpu.text.assembly import Assembly
from vc4lab.qpu.text.encoder import AluEncoder
from vc4lab.qpu.text.expressions import Macro, Value, parse_macro
from vc4lab.qpu.text.mnemonics import BRANCHES, LOADS, SEMAPHORES
from vc4lab.qpu.text.operands import NotSmall, value_of
from vc4lab.qpu.text.special import encode_branch, encode_load, is_only_move, with_fields
from vc4lab.qpu.text.syntax import (
    MAX_ERRORS,
    MAX_INSTRUCTIONS,
    MAX_SOURCE,
    AssemblyError,
    Line,
    Mistake,
    Slot,
    SourceError,
    Text,
    parse_slot,
    read_lines,
    split_outside,
    unknown,
)

DIRECTIVES: Final = (".global", ".set", ".quad")


def assemble(text: str, *, symbols: Mapping[str, Value] | None = None, address: int = 0) -> Assembly:
    """Assemble a source text that will stand at byte ``address``.

    Parameters
    ----------
    text
        The source; see the module's docstring for the dialect.
    symbols
        Names known beforehand, like ``.set`` lines in front of the text.

    Raises
    ------
    AssemblyError
        With the first 20 mistakes, each with line and column, and the number of the others.
    """
    return _Assembler(text, dict(symbols or {}), address).run()


class _Names(dict[str, Value | Macro]):
    """The symbols, and whether anyone asked for one since `asked` was cleared."""

    asked = False

    def get(self, name: str, default: Any = None) -> Any:
        self.asked = True
        return super().get(name, default)


class _Assembler:
    def __init__(self, text: str, symbols: dict[str, Value], address: int) -> None:
        if len(text) > MAX_SOURCE:
            raise AssemblyError([SourceError(1, 1, f"a source has at most {MAX_SOURCE} characters")])
        self.source, self.open_comment = read_lines(text)
        self.symbols = _Names(symbols)
        self.known: dict[str, int] = {}  # words of instructions without symbols, by their text
        self.start = address
        self.address = address
        self.labels: dict[str, int] = {}
        self.label_lines: dict[str, int] = {}
        self.exported: dict[str, tuple[Line, Text]] = {}
        self.words: list[int] = []
        self.lines: list[tuple[int, str]] = []
        self.raw: list[int] = []
        self.errors: list[SourceError] = []
        self.kept = self.more = 0  # mistakes of this pass: kept; of all passes: only counted

    def run(self) -> Assembly:
        for line in self.source:
            self.guarded(line, self.place)
        if self.address - self.start > INSTRUCTION_BYTES * MAX_INSTRUCTIONS:
            count = (self.address - self.start) // INSTRUCTION_BYTES
            limit = f"{count} instructions: a program has at most {MAX_INSTRUCTIONS}"
            raise AssemblyError([SourceError(1, 1, limit)])
        self.symbols.update(self.labels)
        self.address = self.start
        self.kept = 0
        for line in self.source:
            self.guarded(line, self.translate)
        for name, (line, place) in self.exported.items():
            if name not in self.labels and name not in self.symbols:
                self.fail(line, Mistake(f"no label {name!r} to export", place.column))
        errors = sorted(self.errors, key=lambda e: (e.line, e.column))
        if self.open_comment is not None:  # first, because it explains what is missing
            errors.insert(0, self.open_comment)
        if errors:
            raise AssemblyError(errors[:MAX_ERRORS], self.more + len(errors[MAX_ERRORS:]))
        values = {
            name: value
            for name, value in self.symbols.items()
            if name not in self.labels and not isinstance(value, Macro)
        }
        return Assembly(
            tuple(self.words), self.labels, self.start, tuple(self.exported), values,
            tuple(self.lines), frozenset(self.raw),
        )  # fmt: skip

    def fail(self, line: Line, mistake: Mistake) -> None:
        if self.kept == MAX_ERRORS:
            self.more += 1
            return
        self.kept += 1
        error = SourceError(line.number, mistake.column + 1, str(mistake), line.source)
        self.errors.append(error)

    def guarded(self, line: Line, action: object) -> None:
        assert callable(action)
        try:
            action(line)
        except Mistake as mistake:
            self.fail(line, mistake)

    def place(self, line: Line) -> None:
        """First pass: addresses of labels."""
        for label in line.labels:
            if label.text in self.labels:
                text = f"label {label.text!r} exists already, in line {self.label_lines[label.text]}"
                self.fail(line, Mistake(text, label.column))
                continue
            self.labels[label.text] = self.address
            self.label_lines[label.text] = line.number
        if line.body is not None:
            self.address += INSTRUCTION_BYTES
        if line.directive is not None:
            name, arguments = line.directive
            if name.text == ".quad":
                self.address += INSTRUCTION_BYTES * len(split_outside(arguments, ","))

    def translate(self, line: Line) -> None:
        """Second pass: directives and words."""
        if line.directive is not None:
            self.directive(line, *line.directive)
        if line.body is not None:
            body = line.body
            self.emit(line, 0)  # keeps later addresses right if this line fails
            word = self.known.get(body.text)
            self.words[-1] = self.instruction(body) if word is None else word

    def emit(self, line: Line, word: int) -> None:
        text = line.body or (line.directive[0] if line.directive else None)
        shown = text.text if line.body and text else line.source.strip()
        self.words.append(word)
        self.lines.append((line.number, " ".join(shown.split())))
        self.address += INSTRUCTION_BYTES

    # Directives ------------------------------------------------------------------------------

    def directive(self, line: Line, name: Text, arguments: Text) -> None:
        if name.text == ".global":
            for piece in split_outside(arguments, ","):
                if not piece.text:
                    raise Mistake(".global needs a label", name.column)
                self.exported[piece.text.lstrip(":")] = (line, piece)
        elif name.text == ".set":
            self.set_symbol(name, arguments)
        elif name.text == ".quad":
            for piece in split_outside(arguments, ","):
                self.emit(line, 0)
                value = value_of(piece, self.symbols)
                if not isinstance(value, int) or not -(1 << 63) <= value <= WORD_MASK:
                    raise Mistake(".quad takes 64-bit integers", piece.column)
                self.words[-1] = value & WORD_MASK
                self.raw.append(len(self.words) - 1)
        else:
            raise unknown("directive", name.text, DIRECTIVES, name.column)

    def set_symbol(self, name: Text, arguments: Text) -> None:
        symbol, *rest = split_outside(arguments, ",")
        if not rest or not symbol.text.isidentifier():
            raise Mistake("write .set name, expression", name.column)
        if symbol.text in self.labels:
            raise Mistake(f"{symbol.text!r} is a label", symbol.column)
        start = rest[0].column - arguments.column
        expression = arguments.part(start)
        macro = parse_macro(expression.text)
        value = macro if macro is not None else value_of(expression, self.symbols)
        self.symbols[symbol.text] = value

    # Instructions ----------------------------------------------------------------------------

    def instruction(self, body: Text) -> int:
        slots = [parse_slot(piece) for piece in split_outside(body, ";") if piece.text]
        fields = slots.pop() if slots and slots[-1].name == "with" else None
        if not slots:
            raise Mistake("expected an operation", body.column)
        if fields is not None:
            return with_fields(self._word(slots, body), fields, self.symbols)
        return self._word(slots, body)

    def _word(self, slots: list[Slot], body: Text) -> int:
        first = next((s for s in slots if s.name != "nop"), slots[0])
        if first.name in BRANCHES:
            return encode_branch(slots, self.symbols, self.address - INSTRUCTION_BYTES)
        if first.name in LOADS or first.name in SEMAPHORES:
            return encode_load(slots, first, self.symbols)
        encoder = AluEncoder(self.symbols)
        self.symbols.asked = False
        try:
            for slot in slots:
                encoder.take(slot)
            word = encoder.encode()
            if not self.symbols.asked and "with" not in body.text:
                self.known[body.text] = word
            return word
        except NotSmall:
            if not is_only_move(slots):
                raise
            return encode_load(slots, first, self.symbols)


__all__ = ["MAX_SOURCE", "Assembly", "AssemblyError", "SourceError", "assemble"]
