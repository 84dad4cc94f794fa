"""Collects the findings of every hardware block: without repeats, counted, passed to listeners."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from vc4lab.diagnostics.catalogue import severity_of
from vc4lab.diagnostics.catalogue.texture import CONFIGURATIONS
from vc4lab.diagnostics.entry import Diagnostic, Severity

KEEP_PER_CODE = 32
"""A program that makes one mistake a million times gets 32 messages and a count."""

Listener = Callable[[Diagnostic], None]


class StrictStop(Exception):  # noqa: N818 - it stops the machine, it is not a programming error
    """Strict mode stops at an error: `diagnostic`."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(str(diagnostic))
        self.diagnostic = diagnostic


class Reporter:
    """Collects findings. Repeats are only counted: same code, message and address, or for a
    texture's configuration same code and message.

    Attributes
    ----------
    items
        Distinct findings in order, at most `KEEP_PER_CODE` for each code.
    counts
        How often each code was reported, repeats included.
    listeners
        Called with each new finding that is kept.
    where
        Returns the CPU's position for a finding that is kept.
    """

    def __init__(self, strict: bool = False) -> None:
        self.strict = strict
        self.items: list[Diagnostic] = []
        self.counts: Counter[str] = Counter()
        self.listeners: list[Listener] = []
        self.where: Callable[[], str | None] | None = None
        self._seen: dict[str, dict[tuple[str, int | None], Diagnostic]] = {}
        self._lock = threading.Lock()

    def report(
        self,
        code: str,
        message: str,
        *,
        address: int | None = None,
        block: str | None = None,
        detail: str | None = None,
    ) -> Diagnostic:
        """Record a finding and return it. Raises StrictStop for an error in strict mode."""
        key = (message, None if code in CONFIGURATIONS else address)
        with self._lock:
            self.counts[code] += 1
            seen = self._seen.setdefault(code, {})
            known = seen.get(key)
            if known is not None and not self.strict:
                return known  # a repeat: only counted
            item = Diagnostic(code, message, address, block, detail, severity_of(code, self.strict))
            new = known is None and len(seen) < KEEP_PER_CODE
            if new:
                if self.where is not None:
                    item = replace(item, pc=self.where())
                seen[key] = item
                self.items.append(item)
        if new:
            for listener in list(self.listeners):
                listener(item)
        if self.strict and item.severity >= Severity.ERROR:
            raise StrictStop(item)
        return item

    def __repr__(self) -> str:
        codes = ", ".join(f"{code} {count}x" for code, count in self.counts.most_common(5))
        more = ", …" if len(self.counts) > 5 else ""
        return f"<Reporter: {codes or 'nothing reported'}{more}>"

    @property
    def worst(self) -> Severity | None:
        """The highest severity seen, None if nothing was reported."""
        return max((item.severity for item in self.items), default=None)

    def has(self, code: str) -> bool:
        """Whether `code` was reported."""
        return self.counts[code] > 0

    def clear(self) -> None:
        """Forget everything reported so far (listeners stay)."""
        with self._lock:
            self.items.clear()
            self.counts.clear()
            self._seen.clear()

    def summary(self) -> str:
        """All findings, one per line, and how many more of each code were not kept."""
        lines = [str(item) for item in self.items]
        shown = Counter(item.code for item in self.items)
        lines += [
            f"{code}: {count - shown[code]} more like this"
            for code, count in self.counts.items()
            if count > shown[code]
        ]
        return "\n".join(lines)
