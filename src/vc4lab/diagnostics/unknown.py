"""A question about the hardware that no source answers, and the choice this simulator makes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Unknown:
    """One undocumented behaviour. `choices` are the values its switch can take.

    Attributes
    ----------
    name
        Name of the switch, lower case with underscores.
    question
        What is not known, one sentence.
    choices
        Value → what it means, every alternative the code can really do.
    default
        The value chosen.
    decided_by
        Which measurement or document would decide it.
    reference
        Where the question comes up in the hardware documents.
    """

    name: str
    question: str
    choices: dict[str, str]
    default: str
    decided_by: str
    reference: str

    def __post_init__(self) -> None:
        if self.default not in self.choices:
            raise ValueError(f"unknown {self.name}: default {self.default!r} is not a choice")

    def __hash__(self) -> int:
        return hash(self.name)
