"""An error that ends the start of a board."""

from __future__ import annotations

from vc4lab.diagnostics import Diagnostic, Reporter


class BootError(Exception):
    """The board would not start; `diagnostic` says why and what its LED would flash."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(str(diagnostic))
        self.diagnostic = diagnostic


def boot_error(reporter: Reporter, code: str, text: str) -> BootError:
    """Report it; the caller raises what is returned."""
    return BootError(reporter.report(code, text, block="firmware"))
