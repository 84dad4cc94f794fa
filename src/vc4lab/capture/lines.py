"""Text of lines `path = value`, the form in which state is read and edited.

    # a comment
    depth_enabled = yes
    stencil[0].func = always
    scale = 400.0 -300.0 0.5

A line that is missing means the default. What is wrong is named by file and line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from vc4lab.capture.errors import CaptureError

TEXT_BYTES = 16 << 20
_INDEX = re.compile(r"\[\d{1,5}\]")
_PATH = re.compile(r"(\.?\w+(\.\w+)*)?")


@dataclass
class Line:
    """A value and where it stands."""

    path: str
    value: str
    number: int
    is_used: bool = False


@dataclass
class Lines:
    """The lines of a file, by their paths."""

    file: str
    lines: dict[str, Line] = field(default_factory=dict)

    def wrong(self, line: Line | None, text: str) -> CaptureError:
        """An error about a line."""
        return CaptureError("CAP-006", text, self.file, line.number if line is not None else 0)

    def take(self, path: str) -> Line | None:
        """The line of a path."""
        found = self.lines.get(path)
        if found is not None:
            found.is_used = True
        return found

    def count(self, prefix: str, most: int) -> int:
        """How many items there are with indices: `prefix[0]`, `prefix[1]`. Raises CaptureError."""
        found = 0
        for path, line in self.lines.items():
            if path.startswith(f"{prefix}["):
                number = int(path[len(prefix) + 1 :].partition("]")[0])
                if number >= most:
                    raise self.wrong(line, f"{path}: there are at most {most}")
                found = max(found, number + 1)
        return found

    def has(self, prefix: str) -> bool:
        """Whether there is a line of this object."""
        return any(path == prefix or path.startswith((f"{prefix}.", f"{prefix}[")) for path in self.lines)

    def check_used(self, known: str = "") -> None:
        """Raises CaptureError for the first line that no one asked for."""
        for line in self.lines.values():
            if not line.is_used:
                raise self.wrong(line, f"there is no {line.path!r} here{known}")


def decoded(data: bytes, file: str) -> str:
    """A file's text. Raises CaptureError."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise CaptureError("CAP-006", "no text in UTF-8", file, line) from None


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """The lines that have something besides a comment, by their numbers."""
    for number, line in enumerate(text.split("\n"), 1):
        content = line.partition("#")[0].strip()
        if content:
            yield number, content


def read_lines(text: str, file: str) -> Lines:
    """The lines of a text. Raises CaptureError."""
    found = Lines(file)
    for number, content in numbered(text):
        path, equals, value = content.partition("=")
        path, value = path.strip(), value.strip()
        if not equals or _PATH.fullmatch(_INDEX.sub("", path)) is None or not path:
            raise CaptureError("CAP-006", f"{content[:60]!r} is no path = value", file, number)
        if path in found.lines:
            before = found.lines[path].number
            raise CaptureError("CAP-006", f"{path} stands in line {before}, too", file, number)
        found.lines[path] = Line(path, value, number)
    return found
