"""The result of every dialect's assembler: the words of a program, and where each came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES
from vc4lab.qpu.text.expressions import Value
from vc4lab.qpu.text.syntax import SourceError


@dataclass(frozen=True)
class Assembly:
    """An assembled program, of whatever dialect.

    Attributes
    ----------
    labels, symbols
        Byte addresses, and values that the source gave names.
    lines, files
        Source line number and text of each word, and the file it is in if that is not the source
        itself: the map that debuggers and messages follow.
    raw
        Indices of words that are data.
    notes
        What is odd in the source, but no mistake.
    dialect
        Which one the source is in.
    """

    words: tuple[int, ...]
    labels: Mapping[str, int]
    address: int = 0
    exported: tuple[str, ...] = ()
    symbols: Mapping[str, Value] = field(default_factory=dict)
    lines: tuple[tuple[int, str], ...] = ()
    raw: frozenset[int] = frozenset()
    files: tuple[str, ...] = ()
    notes: tuple[SourceError, ...] = ()
    dialect: str = "qpuasm"

    def __repr__(self) -> str:
        labels = ", ".join(list(self.labels)[:5]) + (", …" if len(self.labels) > 5 else "")
        return f"<Assembly of {len(self.words)} instructions, labels: {labels or 'none'}>"

    @property
    def bytes(self) -> bytes:
        """The words, little-endian."""
        return b"".join(word.to_bytes(INSTRUCTION_BYTES, "little") for word in self.words)

    def labels_at(self) -> dict[int, list[str]]:
        """Byte address -> the labels there."""
        found: dict[int, list[str]] = {}
        for name, address in self.labels.items():
            found.setdefault(address, []).append(name)
        return found

    def text(self, index: int) -> str:
        """The source of a word."""
        return self.lines[index][1] if index < len(self.lines) else ""

    def file(self, index: int) -> str:
        """The file of a word's source line; "" for the source itself."""
        return self.files[index] if index < len(self.files) else ""

    def listing(self) -> str:
        """Address, word and source text of every instruction, labels in between."""
        labels = self.labels_at()
        rows = []
        for index, word in enumerate(self.words):
            address = self.address + INSTRUCTION_BYTES * index
            rows += [f"{name}:" for name in labels.get(address, ())]
            rows.append(f"  {address:08x}: {word:016x}  {self.text(index)}".rstrip())
        end = self.address + INSTRUCTION_BYTES * len(self.words)
        return "\n".join([*rows, *(f"{name}:" for name in labels.get(end, ()))]) + "\n"
