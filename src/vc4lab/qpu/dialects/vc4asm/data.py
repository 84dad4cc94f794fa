"""The words of a program while it is written: instructions that may still change, and data."""

from __future__ import annotations

import struct
from typing import Final

from vc4lab.qpu.dialects.vc4asm.instruction.draft import Draft
from vc4lab.qpu.dialects.vc4asm.sources import SourceLine
from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES, NOP_WORD
from vc4lab.qpu.text.syntax import MAX_INSTRUCTIONS, Mistake

WORD_BITS: Final = 64


class Code:
    """Instructions and data in order. position: where the next word goes, which `.back` moves."""

    def __init__(self) -> None:
        self.words: list[Draft | int] = []
        self.lines: list[SourceLine] = []
        self.targets: set[int] = set()
        self.position = 0
        self.back = 0
        self.bits = 0
        """Bits of the data word at `position` that are used."""

    @property
    def offset(self) -> int:
        """Byte offset of what comes next."""
        return INSTRUCTION_BYTES * self.position + self.bits // 8

    def add(self, word: Draft | int, line: SourceLine) -> None:
        if len(self.words) >= MAX_INSTRUCTIONS:
            raise Mistake(f"a program has at most {MAX_INSTRUCTIONS} instructions", 0)
        self.words.insert(self.position, word)
        self.lines.insert(self.position, line)
        if self.back:
            self.targets = {t + (t > self.position) for t in self.targets}
        self.position += 1

    def mark(self, position: int) -> None:
        """Nothing at this position joins the instruction before it."""
        self.targets.add(position)

    def joinable(self) -> Draft | None:
        """The instruction that a line with a semicolon in front may join."""
        if not self.position or self.bits or self.position in self.targets:
            return None
        word = self.words[self.position - 1]
        return word if isinstance(word, Draft) and word.joins_next else None

    def replace_last(self, draft: Draft) -> None:
        self.words[self.position - 1] = draft

    # Data ---------------------------------------------------------------------------------------

    def put(self, value: int, width: int, line: SourceLine) -> None:
        """Data of a width in bits, after what is there."""
        value &= (1 << width) - 1
        if not self.bits:
            self._open(line)
        low = self.words[self.position]
        assert isinstance(low, int)
        self.words[self.position] = (low | value << self.bits) & ((1 << WORD_BITS) - 1)
        left = self.bits + width - WORD_BITS
        self.bits += width
        if left >= 0:
            self.position += 1
            self.bits = 0
            if left:
                self._open(line)
                self.words[self.position] = value >> (width - left)
                self.bits = left

    def _open(self, line: SourceLine) -> None:
        self.add(0, line)
        self.position -= 1

    def align_word(self) -> bool:
        """Fill a data word that has been begun; whether there was one."""
        if not self.bits:
            return False
        self.bits = 0
        self.position += 1
        return True

    def align(self, size: int, base: int, line: SourceLine) -> None:
        """Go on at a multiple of `size` bytes from a base: zeros in a word, then `nop`."""
        if self.bits and size:
            missing = -(self.offset - base) % min(size, INSTRUCTION_BYTES) * 8
            self.bits += missing
            if self.bits >= WORD_BITS:
                self.bits -= WORD_BITS
                self.position += 1
        while size > INSTRUCTION_BYTES and not self.bits and (self.offset - base) % size:
            self.add(NOP_WORD, line)

    def encoded(self) -> tuple[tuple[int, ...], frozenset[int]]:
        """The words, and which of them are data."""
        words, raw = [], []
        for index, word in enumerate(self.words):
            words.append(word.encode() if isinstance(word, Draft) else word)
            if not isinstance(word, Draft) and word != NOP_WORD:
                raw.append(index)
        return tuple(words), frozenset(raw)

    def map(self) -> tuple[tuple[int, str], ...]:
        """Line number and text of each word."""
        return tuple((line.number, " ".join(_code_of(line.text).split())) for line in self.lines)


def _code_of(text: str) -> str:
    return text.partition("#")[0].strip()


def half_bits(value: float) -> int:
    """A number as half precision; denormals are 0, as the QPU reads them, the rest is truncated."""
    word = int.from_bytes(struct.pack("<f", value), "little")
    sign = word >> 16 & 0x8000
    if abs(value) < 2.0**-14:
        return sign
    if abs(value) > 65504 and value == value:
        return sign | 0x7C00
    exponent = (word >> 23 & 0xFF) - 127 + 15
    return sign | (0x1F if exponent > 0x1F else exponent) << 10 | word >> 13 & 0x3FF
