"""The dialect of qasm2 (qpu-assembler2): every instruction is its fields, by name.

    alu sig=ldtmu0 cond_add=al op_add=add waddr_add=ra3 add_a=r0 add_b=rb raddr_b=rb7  ; comment
    li cond_add=al waddr_add=vpmvcd_wr_setup ws=1 imm=`0xa00 1 12 << |`
    :loop
    bra cond_br=anyzc rel=1 imm=:loop

What is not named has the value that does nothing. Numbers between ` and ` are in reverse Polish notation;
a label is the distance to it from the third instruction after this one. Sources with macros of
m4 are expanded first, as their users do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from vc4lab.bits import Bits
from vc4lab.qpu.dialects.m4 import M4
from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES, Alu, Branch, LoadImmediate, Semaphore
from vc4lab.qpu.isa.operations import AddOp, LoadMode, MulOp, Signal
from vc4lab.qpu.text.assembly import Assembly
from vc4lab.qpu.text.syntax import MAX_ERRORS, MAX_INSTRUCTIONS, AssemblyError, Mistake, SourceError, unknown

NOP_ADDRESS: Final = 39
BRANCH_FROM: Final = 4
"""A branch counts from the instruction after its delay slots."""


def _numbered(names: str) -> dict[str, int]:
    return {name: number for number, name in enumerate(names.split()) if name != "-"}


_PACKS: Final = _numbered(
    "3232 3216a 3216b 328888 328a 328b 328c 328d 3232s 3216as 3216bs 328888s 328as 328bs 328cs 328cd"
)
_ADDRESSES: Final = {
    **{f"r{file}{number}": number for file in "ab" for number in range(64)},
    **{"uniform_read": 32, "r0": 32, "r1": 33, "r2": 34, "r3": 35, "tmu_noswap": 36, "r5": 37},
    "nop": NOP_ADDRESS,
    **dict.fromkeys(("element_number", "qpu_number", "host_int"), 38),
    **{"uniforms_address": 40, "vpm_read": 48, "vpm_write": 48},
    **dict.fromkeys(("vpm_ld_busy", "vpm_st_busy", "vpmvcd_rd_setup", "vpmvcd_wr_setup"), 49),
    **dict.fromkeys(("vpm_ld_wait", "vpm_st_wait", "vpm_ld_addr", "vpm_st_addr"), 50),
    **{"mutex_acquire": 51, "mutex_release": 51, "sfu_recip": 52, "sfu_recipsqrt": 53},
    **{"sfu_exp": 54, "sfu_log": 55},
    **{f"tmu{unit}{part}": 56 + 4 * unit + number for unit in (0, 1) for number, part in enumerate("strb")},
}
_CONDITIONS: Final = _numbered("nv al zs zc ns nc cs cc")
_MUX: Final = _numbered("r0 r1 r2 r3 r4 r5 ra rb")
_BIT: Final = {"0": 0, "1": 1}
_ADD: Final = {f"x{n}": n for n in (9, 10, 11, 25, 26, 27, 28, 29)} | {
    one.name.lower(): int(one) for one in AddOp if not one.name.startswith("RESERVED")
}  # fmt: skip
_SHARED: Final[dict[str, Mapping[str, int]]] = {
    "pm": _BIT, "pack": _PACKS, "cond_add": _CONDITIONS, "cond_mul": _CONDITIONS, "sf": _BIT, "ws": _BIT,
    "waddr_add": _ADDRESSES, "waddr_mul": _ADDRESSES,
}  # fmt: skip
_VALUES: Final[dict[str, dict[str, Mapping[str, int]]]] = {
    "alu": {
        "sig": _numbered("sb ns ts pe ws su lts ldcov ldcol ldcol_pe ldtmu0 ldtmu1 al simm"),
        "unpack": _numbered("3232 16a32 16b32 8d8888 8a32 8b32 8c32 8d32"),
        **_SHARED,
        "op_mul": {one.name.lower(): int(one) for one in MulOp},
        "op_add": _ADD,
        "raddr_a": _ADDRESSES,
        "raddr_b": _ADDRESSES,
        **dict.fromkeys(("add_a", "add_b", "mul_a", "mul_b"), _MUX),
    },
    "bra": {
        "cond_br": _numbered("allzs allzc anyzs anyzc allns allnc anyns anync allcs allcc anycs anycc x12 "
                             "x13 x14 al"),
        "rel": _BIT, "reg": _BIT, "raddr_a": {f"ra{n}": n for n in range(32)}, "ws": _BIT,
        "waddr_add": _ADDRESSES, "waddr_mul": _ADDRESSES,
    },
    "li": {"esig": _numbered("32 pes x2 peu - x5 x6 x7"), **_SHARED},
    "sem": {"sa": {"inc": 0, "dec": 1}, "sem": {str(n): n for n in range(16)}, **_SHARED},
}  # fmt: skip
"""Kind of instruction -> field -> what it may be."""
_SIMM: Final = {
    **{str(n): n & 31 for n in range(-16, 16)},
    **{f"{1 << n}.0": 32 + n for n in range(8)},
    **{f"1{a}/{1 << n}{b}": 48 - n for n in range(1, 9) for a in ("", ".0") for b in ("", ".0")},
    **{f"vr{n}": 48 + n for n in range(1, 16)},
    "vrr5": 48,
}
_FORMS: Final = {"alu": Alu, "bra": Branch, "li": LoadImmediate, "sem": Semaphore}
_WORD: Final = re.compile(r"[^\s`]*`[^`]*`|[^\s;]+|;.*")
_SPECIAL: Final = {"simm": ("alu",), "imm": ("bra", "li")}


def assemble(
    text: str,
    *,
    path: str = "",
    folders: Sequence[str | os.PathLike[str]] = (),
    symbols: Mapping[str, int | float] | None = None,
) -> Assembly:
    """Assemble a source of qasm2; raises AssemblyError."""
    source = text.splitlines()
    lines = list(zip(source, range(1, len(source) + 1), strict=True))
    if re.search(r"^\s*(?:define|ifdef|ifelse|changequote|include)\(", text, re.MULTILINE):
        lines = M4(_no_files).expand(text)
    return _Assembler(lines, source).run()


def _no_files(name: str) -> str:
    raise AssemblyError([SourceError(1, 1, f"include of {name!r}: expand it by m4 before")])


class _Assembler:
    """A source on its way."""

    def __init__(self, lines: list[tuple[str, int]], source: list[str]) -> None:
        self._lines = lines
        self._source = source
        self._labels: dict[str, int] = {}
        self._errors: list[SourceError] = []
        self._more = 0

    def run(self) -> Assembly:
        code: list[tuple[list[re.Match[str]], int]] = []
        for line, number in self._lines:
            words = [one for one in _WORD.finditer(line) if not one[0].startswith(";")]
            if words and words[0][0].startswith(":"):
                self._define(words[0], number, len(code))
            elif words:
                code.append((words, number))
        if len(code) > MAX_INSTRUCTIONS:
            raise AssemblyError([SourceError(1, 1, f"a program has at most {MAX_INSTRUCTIONS} instructions")])
        made = [self._instruction(words, number, at) for at, (words, number) in enumerate(code)]
        if self._errors:
            raise AssemblyError(self._errors, self._more)
        return Assembly(
            tuple(made),
            {name: INSTRUCTION_BYTES * at for name, at in self._labels.items()},
            lines=tuple((number, self._text(number).strip()) for _, number in code),
        )

    def _text(self, number: int) -> str:
        return self._source[number - 1] if number <= len(self._source) else ""

    def _define(self, word: re.Match[str], number: int, at: int) -> None:
        name = word[0][1:]
        if name in self._labels:
            self._fail(Mistake(f"label {name!r} exists already", word.start()), number)
        self._labels[name] = at

    def _fail(self, mistake: Mistake, number: int) -> None:
        if len(self._errors) == MAX_ERRORS:
            self._more += 1
            return
        self._errors.append(SourceError(number, mistake.column + 1, str(mistake), self._text(number)))

    def _instruction(self, words: list[re.Match[str]], number: int, at: int) -> int:
        try:
            return self._encoded(words, at)
        except Mistake as mistake:
            self._fail(mistake, number)
            return 0

    def _encoded(self, words: list[re.Match[str]], at: int) -> int:
        kind = words[0][0]
        if kind not in _VALUES:
            raise unknown("instruction", kind, list(_VALUES), words[0].start())
        values, found = _VALUES[kind], dict[str, int]()
        for word in words[1:]:
            name, equals, value = word[0].partition("=")
            names = [*values, *(one for one, kinds in _SPECIAL.items() if kind in kinds)]
            if not equals or name not in names:
                raise unknown("field", name, names, word.start())
            if name in found:
                raise Mistake(f"{name} has a value already", word.start())
            column = word.start() + len(name) + 1
            if name in values:
                if value not in values[name]:
                    raise unknown(f"value of {name}", value, list(values[name]), column)
                found[name] = values[name][value]
            else:
                found[name] = self._number(name, value, column, at)
        return _word(kind, found, words[0].start())

    def _number(self, name: str, value: str, column: int, at: int) -> int:
        """An immediate: a name or number of the field, a label, or an expression."""
        if name == "simm" and value in _SIMM:
            return _SIMM[value]
        rotates = name == "simm" and value.startswith("vr`")
        number = self._evaluated(value.removeprefix("vr").strip("`"), column, at)
        if rotates:
            if not number % 16:
                raise Mistake("a rotation by 0 lanes is none", column)
            return 48 + number % 16
        if name == "simm" and not -16 <= number < 16:
            raise Mistake(f"{number} is no small immediate: -16 to 15", column)
        return number & (31 if name == "simm" else 0xFFFFFFFF)

    def _evaluated(self, text: str, column: int, at: int) -> int:
        """Reverse Polish notation, in 32 bits with a sign."""
        stack: list[int] = []
        for token in text.split():
            if token in _OPERATORS:
                count, compute = _OPERATORS[token]
                if len(stack) < count:
                    raise Mistake(f"{token!r} takes {count} numbers", column)
                operands = [stack.pop() for _ in range(count)][::-1]
                try:
                    stack.append(_signed(compute(*operands)))
                except (ZeroDivisionError, ValueError, OverflowError):
                    raise Mistake(f"{token!r} of {operands} is no number", column) from None
            elif token.startswith(":"):
                if token[1:] not in self._labels:
                    raise unknown("label", token[1:], list(self._labels), column)
                stack.append(INSTRUCTION_BYTES * (self._labels[token[1:]] - at - BRANCH_FROM))
            else:
                stack.append(_literal(token, column))
        if len(stack) != 1:
            raise Mistake(f"an expression gives one number, this {len(stack)}", column)
        return stack[0]


def _word(kind: str, found: dict[str, int], column: int) -> int:
    """The word of an instruction's fields, with those that are not named."""
    fields: Mapping[str, Bits] = _FORMS[kind].layout_fields
    if kind == "bra" and "cond_br" not in found:
        raise Mistake("a branch has a condition: cond_br", column)
    if kind == "sem" and not {"sa", "sem"} <= found.keys():
        raise Mistake("a semaphore operation has sa and sem", column)
    values = {"waddr_add": NOP_ADDRESS, "waddr_mul": NOP_ADDRESS, **found}
    word = 0
    if kind == "alu":
        values = {"sig": int(Signal.NONE), "raddr_a": NOP_ADDRESS, "raddr_b": NOP_ADDRESS, **values}
        has_small = values["sig"] == Signal.SMALL_IMMEDIATE
        if has_small != ("simm" in found) or (has_small and "raddr_b" in found):
            raise Mistake("sig=simm and simm go together, in place of raddr_b", column)
        values["raddr_b"] = values.pop("simm", values["raddr_b"])
        word = values.pop("sig") << 60
    elif kind == "bra":
        word = int(Signal.BRANCH) << 60
    else:
        mode = values.pop("esig", 0) if kind == "li" else int(LoadMode.SEMAPHORE)
        word = int(Signal.LOAD_IMMEDIATE) << 60 | mode << 57
        if kind == "sem":
            word |= values.pop("sa") << 4 | values.pop("sem")
    if "imm" in values:
        word |= values.pop("imm")
    for name, value in values.items():
        word |= value << fields[_RENAMED.get((kind, name), name)].lo
    return word


_RENAMED: Final = {("bra", "cond_br"): "condition", ("bra", "rel"): "relative", ("bra", "reg"): "register"}


def _signed(value: int) -> int:
    return (int(value) + (1 << 31)) % (1 << 32) - (1 << 31)


def _literal(token: str, column: int) -> int:
    plain = token.replace("_", "")
    digits = plain.lstrip("+-")
    try:
        value = int(digits, 8 if re.fullmatch(r"0[0-7]+", digits) else 0)
    except ValueError:
        raise Mistake(f"{token!r} is no number", column) from None
    return _signed(-value if plain.startswith("-") else value)


def _shifted(a: int, b: int, left: bool) -> int:
    if not 0 <= b < 32:
        raise ValueError
    return a << b if left else a >> b


def _divided(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_OPERATORS: Final[dict[str, tuple[int, Callable[..., int]]]] = {
    "+": (2, lambda a, b: a + b), "-": (2, lambda a, b: a - b), "*": (2, lambda a, b: a * b),
    "/": (2, _divided), "%": (2, lambda a, b: a - _divided(a, b) * b),
    "<<": (2, lambda a, b: _shifted(a, b, True)), ">>": (2, lambda a, b: _shifted(a, b, False)),
    "&": (2, lambda a, b: a & b), "|": (2, lambda a, b: a | b), "^": (2, lambda a, b: a ^ b),
    "~": (1, lambda a: ~a), "!": (1, lambda a: int(not a)), "!!": (1, lambda a: int(bool(a))),
    "==": (2, lambda a, b: int(a == b)), "!=": (2, lambda a, b: int(a != b)),
    "<": (2, lambda a, b: int(a < b)), ">": (2, lambda a, b: int(a > b)),
    "<=": (2, lambda a, b: int(a <= b)), ">=": (2, lambda a, b: int(a >= b)),
    "&&": (2, lambda a, b: int(bool(a and b))), "||": (2, lambda a, b: int(bool(a or b))),
    "?": (3, lambda a, b, c: b if a else c),
}  # fmt: skip
