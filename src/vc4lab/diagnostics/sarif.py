"""Findings in source files as SARIF 2.1.0, which code hosts and editors show beside the lines.

Source: OASIS, Static Analysis Results Interchange Format 2.1.0, sections 3.13 to 3.28.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from vc4lab.diagnostics.catalogue import catalogue
from vc4lab.diagnostics.entry import Severity

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {
    Severity.NOTE: "note",
    Severity.HINT: "note",
    Severity.WARNING: "warning",
    Severity.ERROR: "error",
}


@dataclass(frozen=True)
class Placed:
    """A finding with its place: a file's line (0: it has none) and the index of an instruction."""

    code: str
    severity: Severity
    message: str
    file: str
    line: int
    index: int
    text: str = ""

    def to_json(self) -> dict[str, Any]:
        """As an object of JSON."""
        return {
            "file": self.file,
            "line": self.line,
            "instruction": self.index,
            "severity": self.severity.name.lower(),
            "code": self.code,
            "message": self.message,
            "text": self.text,
        }

    def shown(self) -> str:
        """As a line for people."""
        place = f"{self.file}:{self.line}" if self.line else f"{self.file}: 0x{8 * self.index:x}"
        return f"{place}: {self.severity.name.lower()} {self.code}: {self.message}: {self.text}"


def sarif(findings: Iterable[Placed], version: str) -> dict[str, Any]:
    """A log with one run. version: of vc4lab."""
    found = list(findings)
    entries = catalogue()
    rules = []
    for code in sorted({finding.code for finding in found}):
        entry = entries.get(code)
        rule: dict[str, Any] = {"id": code}
        if entry is not None:
            rule |= {
                "shortDescription": {"text": entry.title},
                "fullDescription": {"text": entry.explanation},
                "help": {"text": f"{entry.cure} ({entry.reference})"},
                "defaultConfiguration": {"level": _LEVELS[entry.severity]},
            }
        rules.append(rule)
    results = [
        {
            "ruleId": finding.code,
            "level": _LEVELS[finding.severity],
            "message": {"text": f"{finding.message}: {finding.text}"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": finding.file},
                        "region": {"startLine": max(finding.line, 1)},
                    }
                }
            ],
        }
        for finding in found
    ]
    driver = {"name": "vc4lab", "version": version, "rules": rules}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
