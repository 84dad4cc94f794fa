"""Messages about QPU programs."""

from vc4lab.diagnostics.catalogue.qpu_lint import LINT_ENTRIES
from vc4lab.diagnostics.entry import Entry, Severity

ENTRIES = [
    Entry(
        "QPU-001",
        "Program without an end",
        "No instruction with a program-end signal was found before the limit of instructions that "
        "are read. The hardware would run on through whatever lies behind.",
        "AG100-R p. 29, signalling bits: program end takes effect after two delay slots",
        "Check the code address in the shader record, and that the program ends with thrend and "
        "two more instructions.",
        Severity.ERROR,
    ),
    Entry(
        "QPU-002",
        "Branch out of sight",
        "A branch goes to a register value, in front of the program's entry, or to an address that "
        "is not a multiple of 8: its target cannot be compiled with the program.",
        "AG100-R p. 34, branch instruction",
        "Use relative branches inside the program (brr with a label).",
        Severity.WARNING,
    ),
    *LINT_ENTRIES,
]
