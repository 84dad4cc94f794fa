"""Disassembly that assembles to the same bits: those without any effect are said too."""

from __future__ import annotations

from functools import lru_cache

from vc4lab.qpu.isa.encoding import Instruction
from vc4lab.qpu.isa.operations import Signal
from vc4lab.qpu.text.assembler import assemble
from vc4lab.qpu.text.disassembler import disassemble


def disassemble_exactly(word: int, address: int | None = None) -> str:
    """One instruction as a line that `assemble` makes the same word of.

    What `disassemble` leaves out, because it has no effect, is in a slot `with` at the end.
    """
    if word >> 60 == Signal.BRANCH:
        text, mark, comment = disassemble(word, address).partition("  # ")
        return text + _missing(word, text) + mark + comment
    return _no_branch(word)


@lru_cache(maxsize=16384)
def _no_branch(word: int) -> str:
    text, mark, comment = disassemble(word).partition("  # ")
    return text + _missing(word, text) + mark + comment


def _missing(word: int, text: str) -> str:
    (made,) = assemble(text).words
    if made == word:
        return ""
    wanted, got = Instruction.decode(word), Instruction.decode(made)
    if type(wanted) is not type(got):
        return ""  # cannot be: a word is disassembled in its own form
    fields = type(wanted).layout_fields
    differing = [
        f"{name}={(word & bits.mask) >> bits.lo}"
        for name, bits in fields.items()
        if word & bits.mask != made & bits.mask
    ]
    return f"; with {', '.join(differing)}"
