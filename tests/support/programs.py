"""QPU programs, or parts of them, that several tests draw with; and programs of the host."""

from pathlib import Path

GOURAUD = """
    mov r0, vary ; nop
    fmul r0, r0, ra15
    fadd r0, r0, r5 ; mov r1, vary
    nop ; mov r3.8a, r0
    fmul r1, r1, ra15
    fadd r1, r1, r5 ; mov r2, vary
    nop ; mov r3.8b, r1
    fmul r2, r2, ra15
    fadd r2, r2, r5
    nop ; mov r3.8c, r2
"""
"""Three varyings become the colour in r3."""

LOOP = """
    mov ra0, unif
    nop
    nop
loop:
    sub.setf ra0, ra0, 1
    nop
    nop
    brr.allnz -, loop
    nop
    nop
    nop
    nop ; nop ; thrend
    nop
    nop
"""
"""Ends after so many rounds of 7 instructions."""


def is_alive(process: int) -> bool:
    """Whether the process runs: neither gone nor a zombie."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
