"""Decoding and printing: an instruction is a form of the table and the values of its fields."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache, lru_cache

from vc4lab.soc.videocore.vpu.floats import CONVERSIONS, NAMES, SHIFTED, UNARY, small_float
from vc4lab.soc.videocore.vpu.floats import REFUSED as REFUSED_FLOATS
from vc4lab.soc.videocore.vpu.forms import (
    ACCESSES,
    BASES,
    CONDITIONS,
    FIRST,
    FORMS,
    GP,
    REGISTERS,
    SR,
    UNDEFINED,
    Form,
)
from vc4lab.soc.videocore.vpu.operations import OPERATIONS, WORD, Operation

CLASSES = (
    (0x8000, 2, "a 16-bit scalar instruction"),
    (0xE000, 4, "a 32-bit scalar instruction"),
    (0xF000, 6, "a 48-bit scalar instruction"),
    (0xF800, 6, "a 48-bit vector instruction"),
    (0x10000, 10, "an 80-bit vector instruction"),
)
"""First halfwords below a limit → bytes and class of the instruction."""
FIRST_VECTOR = 0xF000
VECTORS = "the vector unit"
SPECIAL = "sr or pc as an operand"
RANGE = "a range of registers beyond gp"
DECODED = 1 << 14
"""Instruction words whose decoding is remembered."""


@dataclass(frozen=True)
class Instruction:
    """A decoded instruction. `refused`: what of the VPU it needs that is not there; "" if none."""

    word: int
    size: int
    form: Form | None
    fields: dict[str, int]
    refused: str

    def text(self, address: int) -> str:
        """How it is written, at `address`."""
        if self.form is None:
            return class_of(self.word >> 8 * (self.size - 2))[1]
        return self.form.text.format_map(_words(self, address))


def class_of(first: int) -> tuple[int, str]:
    """Bytes of the instruction whose first halfword this is, and its class in words."""
    for limit, size, name in CLASSES:
        if first < limit:
            return size, name
    raise ValueError(f"0x{first:x} is not a halfword")


def operation_of(fields: dict[str, int]) -> Operation:
    """The row of an instruction that has one (p, q)."""
    return OPERATIONS[2 * fields["q"] if "q" in fields else fields["p"]]


@lru_cache(maxsize=DECODED)
def decode(word: int, size: int) -> Instruction:
    """The instruction of `size` bytes whose bits are `word`: the first halfword uppermost, a
    word after it as a number."""
    if word >> 8 * (size - 2) >= FIRST_VECTOR:
        return Instruction(word, size, None, {}, VECTORS)
    for form in _candidates()[size, word >> 8 * size - 8]:
        if word & form.mask == form.match:
            fields = form.extract(word)
            return Instruction(word, size, form, fields, form.refused or _refused(form, fields))
    return Instruction(word, size, None, {}, UNDEFINED)


@cache
def _candidates() -> dict[tuple[int, int], list[Form]]:
    """Forms by size and upper byte."""
    found: dict[tuple[int, int], list[Form]] = defaultdict(list)
    for form in FORMS:
        shift = 8 * form.size - 8
        for upper in range(256):
            if upper & form.mask >> shift == form.match >> shift:
                found[form.size, upper].append(form)
    return found


def _refused(form: Form, fields: dict[str, int]) -> str:
    """Name what such an instruction needs of the VPU that is not there."""
    letters = {"a", "b", "d"}
    if "p" in fields or "q" in fields:
        operation = operation_of(fields)
        if operation.refused:
            return f"{operation.name}: {operation.refused}"
        if operation.unary:
            letters.remove("a")
        if operation.compares and "a" in fields:
            letters.remove("d")
    if "f" in fields and form.kind == "float":
        if fields["f"] in REFUSED_FLOATS:
            return f"{NAMES[fields['f']]}: {REFUSED_FLOATS[fields['f']]}"
        if fields["f"] in UNARY:
            letters.remove("a")
    if "n" in fields and FIRST[fields["k"]] + fields["n"] > GP:
        return RANGE
    if any(fields.get(letter, 0) >= SR for letter in letters):
        return SPECIAL
    return ""


# -- printing --------------------------------------------------------------------------------------


def _words(instruction: Instruction, address: int) -> dict[str, object]:
    """The words that may stand in the text of a form."""
    fields = instruction.fields
    words: dict[str, object] = dict(fields)
    for letter in "abd":
        if letter in fields:
            words[letter] = REGISTERS[fields[letter]]
    if "c" in fields:
        name = CONDITIONS[fields["c"]]
        words["c"], words["cc"] = name, f".{name}" if name else ""
    if "w" in fields:
        access = ACCESSES[fields["w"]]
        words["access"], words["lg"] = access.name, access.size.bit_length() - 1
    if "o" in fields:
        words["target"] = f"0x{address + fields['o'] & WORD:08x}"
    if "n" in fields:
        first = FIRST[fields["k"]]
        last = REGISTERS[first + fields["n"] & 31]
        words["range"] = f"{REGISTERS[first]}-{last}" if fields["n"] else REGISTERS[first]
    elif "k" in fields:
        words["base"] = REGISTERS[BASES[fields["k"]]]
    if "f" in fields:
        words["float"], words["conversion"] = _float(words, fields), _conversion(words, fields)
    if "p" in fields or "q" in fields:
        operation = operation_of(fields)
        right = f"{_right(words)}<<{operation.shift}" if operation.shift else f"{_right(words)}"
        words["two"] = f"{operation.name} {words['d']}, {right}"
        left = [words["d"], words.get("a")]
        if operation.compares:
            left = left[1:]
        elif operation.unary:
            left = left[:1]
        operands = ", ".join(str(one) for one in [*left, right])
        words["three"] = f"{operation.name}{words.get('cc', '')} {operands}"
    return words


def _right(words: dict[str, object]) -> object:
    """The right operand, register or number."""
    return next(words[letter] for letter in "biu" if letter in words)


def _float(words: dict[str, object], fields: dict[str, int]) -> str:
    number = fields["f"]
    right = words["b"] if "b" in fields else small_float(fields["i"] & 63)
    left = [words["d"], words["a"]]
    if number in UNARY:
        left = left[:1]
    elif NAMES[number] == "fcmp":
        left = left[1:]
    return f"{NAMES[number]}{words['cc']} " + ", ".join(str(one) for one in [*left, right])


def _conversion(words: dict[str, object], fields: dict[str, int]) -> str:
    number = fields["f"] & 3
    text = f"{CONVERSIONS[number]}{words['cc']} {words['d']}, {words['a']}"
    if fields.get("i") == 0:
        return text
    return f"{text}, {SHIFTED[number]} {words['b'] if 'b' in fields else fields['i']}"
