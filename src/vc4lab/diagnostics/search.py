"""Finds entries of the catalogue by what a person sees or remembers."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from vc4lab.diagnostics.catalogue import catalogue
from vc4lab.diagnostics.catalogue.symptoms import SYMPTOMS
from vc4lab.diagnostics.entry import Entry

MOST = 12
"""Entries found by their words."""
CODE = re.compile(r"[A-Za-z]+-\d+")
_WORD = re.compile(r"[a-z0-9]{2,}")
_ENDINGS = ("ings", "ing", "ies", "ed", "es", "s", "y")
_SMALL = (
    "an and are as at be but by do does for from get gets if in is it its my no not of on or "
    "so some that the then there to was when why with"
)
_WEIGHTS = ("title", 5), ("explanation", 2), ("cure", 1)


@dataclass(frozen=True)
class Answer:
    """Holds what a question found.

    symptom: what the first symptom that fits is called; None if none does. causes: its causes.
    entries: entries that have the question's words, the best first, without those of `causes`.
    """

    symptom: str | None
    causes: Sequence[Entry | str]
    entries: Sequence[Entry]


def search(question: str) -> Answer:
    """Search the catalogue for a question in plain words."""
    words = _stems(question)
    name, causes = _symptom(words)
    named = {cause.code for cause in causes if isinstance(cause, Entry)}
    asked = words - _stems(_SMALL)
    scores = {code: _score(entry, asked) for code, entry in catalogue().items() if code not in named}
    best = sorted((code for code in scores if scores[code]), key=lambda code: -scores[code])
    return Answer(name, causes, [catalogue()[code] for code in best[:MOST]])


def _symptom(words: frozenset[str]) -> tuple[str | None, list[Entry | str]]:
    """The symptom of whose names the longest is among the words, and its causes."""
    found = [
        (len(_stems(name)), symptom)
        for symptom in SYMPTOMS
        for name in symptom.names
        if _stems(name) <= words
    ]
    if not found:
        return None, []
    _, symptom = max(found, key=lambda one: one[0])
    return symptom.names[0], [catalogue().get(cause, cause) for cause in symptom.causes]


def _score(entry: Entry, asked: frozenset[str]) -> int:
    """How well an entry fits; 0 if it lacks a word of two, or more than a third of many."""
    parts = [(_stems(getattr(entry, part)), weight) for part, weight in _WEIGHTS]
    has = sum(any(word in words for words, _ in parts) for word in asked)
    if 3 * (len(asked) - has) >= max(len(asked), 3):
        return 0
    return sum(weight * len(asked & words) for words, weight in parts)


@functools.lru_cache(1 << 13)  # all texts of the catalogue
def _stems(text: str) -> frozenset[str]:
    return frozenset(_stem(word) for word in _WORD.findall(text.lower()))


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word
