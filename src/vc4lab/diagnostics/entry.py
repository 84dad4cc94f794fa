"""Defines a diagnostic: its catalogue entry, its severity, and one occurrence of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum


class Severity(IntEnum):
    """The severity of a finding. Strict mode stops at ERROR."""

    NOTE = 0
    """Worth knowing."""
    HINT = 1
    """Works, but slowly or by luck."""
    WARNING = 2
    """Probably not what the author intended."""
    ERROR = 3
    """The hardware stops, hangs or draws garbage here."""


@dataclass(frozen=True)
class Entry:
    """One entry of the catalogue: what a code means, the source of the rule, and the cure.

    `fails_on_boards`: what happened works here but not, or not always, on a board, so strict mode
    takes the finding for an error.
    """

    code: str
    title: str
    explanation: str
    reference: str
    cure: str
    severity: Severity = Severity.ERROR
    fails_on_boards: bool = False

    @property
    def severities(self) -> str:
        """The severity in words, and that in strict mode if it is another."""
        usual = self.severity.name.lower()
        return f"{usual}; error with --strict" if self.fails_on_boards else usual

    def text(self) -> str:
        """The whole entry as `vc4lab explain` prints it."""
        return (
            f"{self.code}  {self.title}  [{self.severities}]\n\n{self.explanation}\n\n"
            f"Reference: {self.reference}\nCure: {self.cure}\n"
        )


@dataclass(frozen=True)
class Diagnostic:
    """One finding: a code, a sentence, and where in guest memory and in which hardware block."""

    code: str
    message: str
    address: int | None = None
    block: str | None = None
    detail: str | None = None
    severity: Severity = Severity.ERROR
    pc: str | None = field(default=None, compare=False)
    """The address of the CPU's instruction, with the name of the function if that is known."""

    def __str__(self) -> str:
        block = f" [{self.block}]" if self.block else ""
        place = f" at 0x{self.address:08x}" if self.address is not None else ""
        cpu = f" (CPU near {self.pc})" if self.pc and self.pc not in self.message else ""
        detail = f"\n{self.detail}" if self.detail else ""
        return f"{self.code}{block}{place}: {self.message}{cpu}{detail}"
