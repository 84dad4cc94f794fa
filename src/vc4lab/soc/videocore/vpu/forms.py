"""The VPU's scalar instruction forms: one table, from which instructions are decoded and printed.

A pattern is written from the first halfword's most significant bit on; of a 48-bit instruction
the last 32 bits are the word after the first halfword. 0 and 1 are fixed, a letter is a field:

=====  =============================================================================
a b d  registers (left and right operand, destination; b may be a base)
c      condition
p q    operation: number in `OPERATIONS`, half of the number
f      floating-point operation
w      memory access: width and direction, number in `ACCESSES`
i o    signed number, signed offset
u v n  unsigned number, unsigned offset in words, number of registers less one
k      first register of a range (`FIRST`), base register (`BASES`)
=====  =============================================================================

Earlier rows come first where patterns overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

CONDITIONS = (
    "eq", "ne", "lo", "hs", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le", "", "f",
)  # fmt: skip
ALWAYS = 14
GP, SP, LR, SR, PC = 24, 25, 26, 30, 31
REGISTERS = (*(f"r{n}" for n in range(24)), "gp", "sp", "lr", "r27", "r28", "r29", "sr", "pc")
FIRST = (0, 6, 16, GP)
"""First registers of ldm and stm."""
BASES = (GP, SP, PC, 0)
"""Base registers of loads and stores with a 16-bit offset."""


@dataclass(frozen=True)
class Access:
    """A width of memory access and its direction."""

    name: str
    size: int
    store: bool = False
    signed: bool = False


ACCESSES = (
    Access("ld", 4),
    Access("st", 4, store=True),
    Access("ldh", 2),
    Access("sth", 2, store=True),
    Access("ldb", 1),
    Access("stb", 1, store=True),
    Access("ldsh", 2, signed=True),
    Access("ldsb", 1, signed=True),
)
"""By the two bits of width and the bit of direction below them; there is no signed store."""

SIGNED = frozenset("io")
SCALES = {"v": 4}


@dataclass(frozen=True)
class Form:
    """One row: `kind` names the handler of the executor; `text` is how it is written.

    `scale` multiplies signed offsets. `refused`: why the executor does not do it.
    """

    pattern: str
    kind: str
    text: str
    scale: int = 1
    refused: str = ""

    @cached_property
    def bits(self) -> str:
        """The pattern without its spaces."""
        return self.pattern.replace(" ", "")

    @cached_property
    def size(self) -> int:
        """Bytes of the instruction."""
        return len(self.bits) // 8

    @cached_property
    def mask(self) -> int:
        """The bits that are fixed."""
        return int("".join("1" if bit in "01" else "0" for bit in self.bits), 2)

    @cached_property
    def match(self) -> int:
        """Their values."""
        return int("".join(bit if bit in "01" else "0" for bit in self.bits), 2)

    @cached_property
    def fields(self) -> tuple[tuple[str, tuple[tuple[int, int], ...], int], ...]:
        """Letter, its runs of bits from the left (shift, number of bits), and its bits in all."""
        runs: dict[str, list[tuple[int, int]]] = {}
        start = 0
        while start < len(self.bits):
            letter, end = self.bits[start], start + 1
            while end < len(self.bits) and self.bits[end] == letter:
                end += 1
            if letter not in "01":
                runs.setdefault(letter, []).append((len(self.bits) - end, end - start))
            start = end
        return tuple(
            (letter, tuple(parts), sum(count for _shift, count in parts)) for letter, parts in runs.items()
        )

    def extract(self, word: int) -> dict[str, int]:
        """The fields of an instruction of this form, extended and scaled."""
        found = {}
        for letter, parts, total in self.fields:
            value = 0
            for shift, count in parts:
                value = value << count | word >> shift & (1 << count) - 1
            if letter in SIGNED and value >> total - 1:
                value -= 1 << total
            found[letter] = value * SCALES.get(letter, self.scale if letter == "o" else 1)
        return found


_INTERRUPTS = "interrupts and exceptions of the VPU"
_MODES = "sleeping and privileged modes"
_SYSTEM = "the VPU's processor registers, except reads of p0 to p15"
_BANKS = "the vector register file"
UNDEFINED = "no known instruction has this encoding"
_NO_RANGE = ("1111111", "1101111", "0011111", "0111111", "1011111")
"""First register and number of registers of an stm or ldm that has none but lr or pc."""

FORMS = (
    # 16 bits
    Form("0000000000000000", "system", "bkpt", refused=_INTERRUPTS),
    Form("0000000000000001", "nop", "nop"),
    Form("0000000000000010", "system", "sleep", refused=_MODES),
    Form("0000000000000011", "system", "user", refused=_MODES),
    Form("0000000000000100", "system", "ei", refused=_INTERRUPTS),
    Form("0000000000000101", "system", "di", refused=_INTERRUPTS),
    Form("0000000000000110", "system", "cbclr", refused=_BANKS),
    Form("0000000000000111", "system", "cbadd1", refused=_BANKS),
    Form("0000000000001000", "system", "cbadd2", refused=_BANKS),
    Form("0000000000001001", "system", "cbadd3", refused=_BANKS),
    Form("0000000000001010", "system", "rti", refused=_INTERRUPTS),
    Form("00000000001ddddd", "system", "swi {d}", refused=_INTERRUPTS),
    Form("00000000010ddddd", "jump", "b {d}"),
    Form("00000000011ddddd", "call", "bl {d}"),
    Form("00000000100ddddd", "switch_byte", "switch.b {d}"),
    Form("00000000101ddddd", "switch_half", "switch {d}"),
    Form("00000000111ddddd", "version", "version {d}"),
    Form("0000000111uuuuuu", "system", "swi {u}", refused=_INTERRUPTS),
    *(Form("000000111" + bits, "push_lr", "stm lr, (--sp)") for bits in _NO_RANGE),
    *(Form("000000110" + bits, "pop_pc", "ldm pc, (sp++)") for bits in _NO_RANGE),
    Form("000000100kknnnnn", "pop", "ldm {range}, (sp++)"),
    Form("000000101kknnnnn", "push", "stm {range}, (--sp)"),
    Form("000000110kknnnnn", "pop_with_pc", "ldm {range}, pc, (sp++)"),
    Form("000000111kknnnnn", "push_with_lr", "stm {range}, lr, (--sp)"),
    Form("0000010vvvvvdddd", "load_sp", "ld {d}, (sp+{v})"),
    Form("0000011vvvvvdddd", "store_sp", "st {d}, (sp+{v})"),
    Form("00001wwwbbbbdddd", "access", "{access} {d}, ({b})"),
    Form("00010oooooo11001", "add_sp", "add sp, {o}", scale=4),
    Form("00010ooooooddddd", "lea_sp", "lea {d}, (sp+{o})", scale=4),
    Form("00011ccccooooooo", "branch", "b{c} {target}", scale=2),
    Form("0010vvvvbbbbdddd", "load_near", "ld {d}, ({b}+{v})"),
    Form("0011vvvvbbbbdddd", "store_near", "st {d}, ({b}+{v})"),
    Form("010pppppbbbbdddd", "alu_register", "{two}"),
    Form("011qqqquuuuudddd", "alu_small", "{two}"),
    # 32 bits
    Form("1000ccccaaaadddd 00bbbboooooooooo", "addcmpb", "addcmpb{c} {d}, {a}, {b}, {target}", 2),
    Form("1000cccciiiidddd 01bbbboooooooooo", "addcmpb", "addcmpb{c} {d}, {i}, {b}, {target}", 2),
    Form("1000ccccaaaadddd 10uuuuuuoooooooo", "addcmpb", "addcmpb{c} {d}, {a}, {u}, {target}", 2),
    Form("1000cccciiiidddd 11uuuuuuoooooooo", "addcmpb", "addcmpb{c} {d}, {i}, {u}, {target}", 2),
    Form("1001cccc0ooooooo oooooooooooooooo", "branch", "b{c} {target}", 2),
    Form("1001oooo1ooooooo oooooooooooooooo", "call_relative", "bl {target}", 2),
    Form("10100000wwwddddd aaaaacccc00bbbbb", "indexed", "{access}{cc} {d}, ({a}+{b}<<{lg})"),
    Form("10100000wwwddddd aaaaacccc10uuuuu", "offset_if", "{access}{cc} {d}, ({a}+{u})"),
    Form("1010001owwwddddd bbbbbooooooooooo", "offset", "{access} {d}, ({b}+{o})"),
    Form("10100100wwwddddd bbbbbcccc0000000", "before", "{access}{cc} {d}, (--{b})"),
    Form("10100101wwwddddd bbbbbcccc0000000", "after", "{access}{cc} {d}, ({b}++)"),
    Form("101010kkwwwddddd oooooooooooooooo", "based", "{access} {d}, ({base}+{o})"),
    Form("101100pppppddddd iiiiiiiiiiiiiiii", "alu_number", "{two}"),
    Form("101101bbbbbddddd iiiiiiiiiiiiiiii", "add_number", "add {d}, {b}, {i}"),
    Form("10111111111ddddd oooooooooooooooo", "lea_pc", "lea {d}, {target}"),
    Form("11000ppppppddddd aaaaacccc00bbbbb", "alu_three", "{three}"),
    Form("11000ppppppddddd aaaaacccc1iiiiii", "alu_three", "{three}"),
    Form("1100100ffffddddd aaaaacccc00bbbbb", "float", "{float}"),
    Form("1100100ffffddddd aaaaacccc1iiiiii", "float", "{float}"),
    Form("11001010 0ffddddd aaaaacccc00bbbbb", "convert", "{conversion}"),
    Form("11001010 0ffddddd aaaaacccc1iiiiii", "convert", "{conversion}"),
    Form("11001100001ddddd 00000000000uuuuu", "read_p", "mov {d}, p{u}"),
    Form("11001100000uuuuu 00000000000ddddd", "system", "mov p{u}, {d}", refused=_SYSTEM),
    # 48 bits: the operation, then a word
    Form("1110000000000000 " + "u" * 32, "jump_absolute", "j {u:#010x}"),
    Form("1110000100000000 " + "o" * 32, "jump_relative", "b {target}"),
    Form("1110001000000000 " + "u" * 32, "call_absolute", "jl {u:#010x}"),
    Form("1110001100000000 " + "o" * 32, "call_relative", "bl {target}"),
    Form("11100101000ddddd " + "o" * 32, "lea_pc", "lea {d}, {target}"),
    Form("11100110wwwddddd bbbbb" + "o" * 27, "offset", "{access} {d}, ({b}+{o})"),
    Form("11100111wwwddddd 11111" + "o" * 27, "near_pc", "{access} {d}, ({target})"),
    Form("111010pppppddddd " + "u" * 32, "alu_word", "{two}"),
    Form("111011bbbbbddddd " + "u" * 32, "add_word", "add {d}, {b}, {u:#x}"),
)
