"""Messages to the user, each with a stable code, a plain sentence, the reference and the cure."""

from vc4lab.diagnostics.catalogue import AREAS, catalogue, explain, severity_of
from vc4lab.diagnostics.entry import Diagnostic, Entry, Severity
from vc4lab.diagnostics.reporter import Reporter, StrictStop

__all__ = [
    "AREAS",
    "Diagnostic",
    "Entry",
    "Reporter",
    "Severity",
    "StrictStop",
    "catalogue",
    "explain",
    "severity_of",
]
