"""The program of a session as its author wrote it: source lines of words, labels, files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from vc4lab.files import read_file
from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES
from vc4lab.qpu.text.assembly import Assembly
from vc4lab.v3d.user_programs.experiment import CODE

LARGEST_SOURCE = 4 << 20
"""Bytes of a source that is shown."""


class Place(NamedTuple):
    """A line of a source. file: its path as it was named; line counts from 1."""

    file: str
    line: int
    text: str


@dataclass(frozen=True)
class Source:
    """A program's words, and where they are from.

    path: the file that the program is in. entry: byte offset; lines: source line and text of each
    word, if there are any; files: of each word, "" for `path`; raw: indices of words that need not be
    instructions; labels: byte offsets. text: the source, if it is in no file. base: guest address of the
    first word.
    """

    path: Path
    code: bytes
    entry: int = 0
    lines: tuple[tuple[int, str] | None, ...] = ()
    raw: frozenset[int] = frozenset()
    files: tuple[str, ...] = ()
    labels: Mapping[str, int] = field(default_factory=dict)
    text: str | None = None
    base: int = CODE

    @classmethod
    def of(cls, path: Path, assembly: Assembly, entry: int = 0, text: str | None = None) -> Source:
        """An assembled program."""
        return cls(
            path, assembly.bytes, entry, assembly.lines, assembly.raw, assembly.files, assembly.labels, text
        )

    def line(self, address: int) -> tuple[int, str] | None:
        """The source line of an instruction, if there is one."""
        index, rest = divmod(address - self.base, INSTRUCTION_BYTES)
        return self.lines[index] if rest == 0 and 0 <= index < len(self.lines) else None

    def line_text(self, address: int) -> str:
        """An instruction's line, if it has one, for a row of a table."""
        line = self.line(address)
        return f"line {line[0]}, " if line is not None else ""

    def place(self, address: int) -> Place | None:
        """Return the file and the source line of an instruction; None: it has none."""
        found = self.line(address)
        if found is None:
            return None
        index = (address - self.base) // INSTRUCTION_BYTES
        file = self.files[index] if index < len(self.files) else ""
        return Place(file or str(self.path), *found)

    @cached_property
    def _by_line(self) -> dict[tuple[str, int], list[int]]:
        found: dict[tuple[str, int], list[int]] = {}
        for index in range(len(self.lines)):
            place = self.place(self.base + INSTRUCTION_BYTES * index)
            if place is None:
                continue
            found.setdefault((place.file, place.line), []).append(self.base + INSTRUCTION_BYTES * index)
        return found

    def words_of(self, file: str, line: int) -> list[int]:
        """The addresses of all words of a line."""
        return self._by_line.get((file, line), [])

    def addresses(self, line: int, file: str | None = None) -> list[int]:
        """Return the addresses of a line's words, or of the next line with any; one for each run of words.

        file: its path or the end of it; None: the program's own. Empty if no such line follows.
        """
        wanted = str(self.path) if file is None else file
        here = {
            at: places
            for (name, at), places in self._by_line.items()
            if name == wanted or Path(name).name == Path(wanted).name
        }
        following = [at for at in here if at >= line]
        if not following:
            return []
        places = here[min(following)]
        return [at for at in places if at - INSTRUCTION_BYTES not in places]

    def label_before(self, address: int) -> str:
        """`name` or `name+16`: the nearest label before an address; "" without one."""
        offset = address - self.base
        best = max(
            ((at, name) for name, at in self.labels.items() if at <= offset < len(self.code)), default=None
        )
        if best is None or offset < 0:
            return ""
        return best[1] if best[0] == offset else f"{best[1]}+{offset - best[0]}"

    def is_text(self, file: str) -> bool:
        """Whether a source is in no file, but in `text`."""
        return self.text is not None and file == str(self.path) and not self.path.is_file()

    def text_of(self, file: str) -> list[str]:
        """The lines of a source file; empty if it cannot be read, or there is none."""
        if file in self._texts:
            return self._texts[file]
        if self.text is not None and file == str(self.path):
            lines = self.text.splitlines()
        else:
            try:
                lines = read_file(Path(file), LARGEST_SOURCE).decode("utf-8-sig", "replace").splitlines()
            except OSError:
                lines = []
        self._texts[file] = lines
        return lines

    @cached_property
    def _texts(self) -> dict[str, list[str]]:
        return {}
