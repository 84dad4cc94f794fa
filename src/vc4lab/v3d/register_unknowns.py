"""Undocumented behaviour of the V3D's registers."""

from __future__ import annotations

from vc4lab.diagnostics.unknown import Unknown

REGISTER_UNKNOWNS: list[Unknown] = [
    Unknown(
        "intdis_reads",
        "What does reading INTDIS give?",
        {"enabled": "the enabled interrupts, as INTENA", "zero": "0"},
        "enabled",
        "Enable one interrupt and read INTDIS.",
        "AG100-R INTDIS says read and write; hardware reference 2.4",
    ),
    Unknown(
        "l2c_at_power_on",
        "Is the V3D's L2 cache enabled when the firmware has powered the V3D?",
        {
            "enabled": "yes: a program that changes code, uniforms or textures must clear it",
            "disabled": "no, until L2CACTL bit 0 is written",
        },
        "enabled",
        "Read L2CACTL bit 0 right after property tag 0x00030012.",
        "AG100-R prints the reset value 0, but drivers clear the cache and never enable it; "
        "hardware reference 2.3",
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
    Unknown(
        "l2cactl_both",
        "What does writing both L2CENA and L2CDIS of L2CACTL do?",
        {"disable": "the cache is off", "enable": "the cache is on"},
        "disable",
        "Write 3 to L2CACTL and read it.",
        "AG100-R L2CACTL; hardware reference 2.3",
    ),
    Unknown(
        "count_write_zero",
        "What does writing 0 to BFC or RFC do?",
        {"nothing": "nothing: only a 1 clears", "clear": "it clears the count"},
        "nothing",
        "Draw a frame, write 0 to RFC and read it.",
        "AG100-R says that writing 1 clears; hardware reference 2.6",
    ),
    Unknown(
        "counter_coverage",
        "What do the performance counters 7 and 8 (quads with zero and with some coverage) count?",
        {
            "written": "quads of colour writes in which no pixel, or some pixel, is written",
            "paths": "coverage of paths only: 0 in frames without the coverage pipe",
        },
        "written",
        "Draw triangles without the coverage pipe and read both counters.",
        "AG100-R p. 99 names them without saying more; counter 9 counts as 8 does; hardware reference 2.9",
    ),
    Unknown(
        "undocumented_registers",
        "What are IDENT3, SQCSTAT and the debug registers DB... that no document describes?",
        {
            "plain": "they are 0 at first; those that can be written keep what is written",
            "zero": "they are 0 and stay so",
        },
        "plain",
        "Read and write them on a board.",
        "vc4asm and PeterLemon list their names; hardware reference 2.1",
    ),
    Unknown(
        "dbcfg_interrupts",
        "Do interrupts of QPUs (DBQITC, DBQITE) reach the host without DBCFG bit 0?",
        {"free": "yes: the bit changes nothing", "needed": "no"},
        "free",
        "Write HOST_INT with DBQITE = 1 and DBCFG = 0.",
        "one program sets the bit first, hello_fft clears it; hardware reference 2.1",
    ),
]
