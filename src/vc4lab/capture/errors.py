"""Reports what is wrong with a capture: a code, the file, the line, a sentence."""

from __future__ import annotations


class CaptureError(Exception):
    """A capture or an edited folder that cannot be used.

    Attributes
    ----------
    code
        Code in the catalogue of messages: CAP-…
    text
        The sentence.
    file, line
        The place in the capture; "" and 0 if it is about the whole.
    """

    def __init__(self, code: str, text: str, file: str = "", line: int = 0) -> None:
        self.code = code
        self.text = text
        self.file = file
        self.line = line
        place = f"{file}:{line}" if line else file
        super().__init__(f"{code}: {place}: {text}" if place else f"{code}: {text}")

    def within(self, file: str) -> CaptureError:
        """Return the error with the file's name, if it has none yet."""
        return CaptureError(self.code, self.text, self.file or file, self.line)
