"""What nobody has documented about the V3D's registers."""

from __future__ import annotations

from vc4lab.diagnostics.unknown import Unknown

ROWS: list[Unknown] = [
    Unknown(
        "intdis_reads",
        "What does reading INTDIS give?",
        {"enabled": "the enabled interrupts, as INTENA", "zero": "0"},
        "enabled",
        "Enable one interrupt and read INTDIS.",
        "AG100-R INTDIS says read and write; hardware reference 2.4",
    ),
    Unknown(
        "dbqitc_set",
        "Is a bit of DBQITC set by a QPU whose interrupt is not enabled in DBQITE?",
        {"always": "yes, it only does not reach the interrupt line", "enabled": "no"},
        "always",
        "Write HOST_INT with DBQITE = 0 and read DBQITC.",
        "AG100-R DBQITC; hardware reference 2.4",
    ),
    Unknown(
        "errstat_vcdi",
        "Does ERRSTAT.VCDI (VCD idle) read 1 while nothing runs?",
        {"zero": "no: all of ERRSTAT is 0 without errors", "idle": "yes, it is a status"},
        "zero",
        "Read ERRSTAT on a board that has not drawn anything.",
        "AG100-R prints the reset value 0; hardware reference 2.10",
    ),
]
