"""What is wrong with a shader's text, and where."""

from __future__ import annotations


class TgsiError(ValueError):
    """A code of the catalogue, a sentence, and the place in the text (both from 1)."""

    def __init__(self, code: str, text: str, line: int, column: int = 1) -> None:
        super().__init__(f"line {line}, column {column}: {text}")
        self.code = code
        self.text = text
        self.line = line
        self.column = column
