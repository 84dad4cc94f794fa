"""The source of a shader: the lines that the capture knows, or its instructions with what they consume."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vc4lab.debug.source import Source
from vc4lab.jobs.uniforms import uniform_uses
from vc4lab.qpu.text.disassembler import disassemble

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vc4lab.memory import GuestMemory
    from vc4lab.qpu.program.program import Program

LINE_BITS = 20
"""Bits of a number in `KnownProgram.lines` that are the line of the text."""


@dataclass(frozen=True)
class KnownProgram:
    """Holds a program's text and its meaning, as a capture knows them.

    Attributes
    ----------
    kind
        fragment, vertex, coordinate.
    words
        The program.
    name
        Of the file of its text.
    text
        The shader as its compiler got it.
    lines
        For each word the lines of the text that it comes from.
    uniforms
        What each word of its stream is, in the order in which it is read.
    """

    kind: str
    words: tuple[int, ...]
    name: str
    text: str
    lines: Sequence[Sequence[int]] = ()
    uniforms: tuple[str, ...] = ()


class Meanings:
    """Says what the words of a uniform stream are for.

    address: of its first word. known: what the capture knows, or None.
    """

    def __init__(
        self, memory: GuestMemory, program: Program, address: int, known: KnownProgram | None
    ) -> None:
        self.address = address
        self.textures: list[str] = []
        """The texture of each request in words, direct lookups left out, in the order of the text."""
        self._of: list[str] = []
        if program.moves_stream:
            return  # the order in which it is read depends on the way
        uses = uniform_uses(memory, program, address)
        self._of = [_real(one.word) if one.is_plain else one.what for one in uses]
        for one in uses:
            if one.texture is not None:
                self.textures.append(one.texture.text())
                self._of[one.request[0]] += f", {self.textures[-1]}"
        if known is not None:
            for number, text in enumerate(known.uniforms[: len(self._of)]):
                self._of[number] = f"{text} = {self._of[number]}"

    def of(self, address: int) -> str:
        """The meaning of the word at a guest address; "": it is not known."""
        number, rest = divmod(address - self.address, 4)
        return self._of[number] if not rest and 0 <= number < len(self._of) else ""

    def at(self, number: int) -> str:
        """The meaning of a word, by its number."""
        return self.of(self.address + 4 * number)


def _real(word: int) -> str:
    """A word as a single."""
    (value,) = struct.unpack("<f", word.to_bytes(4, "little"))
    return f"{value:.7g}"


def source_of(kind: str, program: Program, meanings: Meanings, known: KnownProgram | None) -> Source:
    """The program as a source, with the capture's text if it has one, else its instructions."""
    code = b"".join(word.to_bytes(8, "little") for word in program.words)
    text = known.text.splitlines() if known is not None else []
    lines = tuple(_line(text, numbers) for numbers in known.lines) if known is not None else ()
    if known is not None and any(one is not None for one in lines):
        return Source(Path(known.name), code, lines=lines, text=known.text, base=program.address)
    rows = [f"# {one}" for one in text]
    rows += _listing(program, meanings)
    return Source(
        Path(f"{kind}-0x{program.address:08x}.qasm"),
        code,
        lines=tuple(enumerate(rows, 1))[len(text) :],
        text="\n".join(rows),
        base=program.address,
    )


def _line(text: list[str], numbers: Sequence[int]) -> tuple[int, str] | None:
    """The first of the lines that a word comes from; None: none of them is there."""
    found = [number & ((1 << LINE_BITS) - 1) for number in numbers]
    found = [number for number in found if 1 <= number <= len(text)]
    return (found[0], text[found[0] - 1]) if found else None


def _listing(program: Program, meanings: Meanings) -> list[str]:
    """A line for each instruction, with what it consumes of the uniform stream."""
    notes: dict[int, list[str]] = {}
    for site in program.uniform_sites:
        text = meanings.at(site.index)
        if text:
            notes.setdefault(site.instruction_index, []).append(f"uniform {site.index}: {text}")
    rows = []
    for index, word in enumerate(program.words):
        text = " ".join(disassemble(word, program.address_of(index)).split())
        note = "; ".join(notes.get(index, ()))
        rows.append(f"{text:<40} # {note}" if note else text)
    return rows
