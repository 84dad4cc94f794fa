"""Undocumented behaviour of user programs, the VPM and its DMA."""

from __future__ import annotations

from vc4lab.diagnostics.unknown import Unknown

USER_PROGRAM_UNKNOWNS: list[Unknown] = [
    Unknown(
        "dma_subword",
        "Which elements of a row does the half or byte offset of an 8- or 16-bit DMA choose?",
        {
            "elements": "packed, starting so many elements after the first word",
            "quarters": "packed, starting at that half or quarter row, as in generic accesses",
            "lanes": "that half or byte of each word, as in laned generic accesses",
        },
        "elements",
        "Load a row of bytes with MODEW 5 and store the VPM rows as 32-bit words.",
        "AG100-R tables 34 and 36 do not say; hardware reference 5.4",
    ),
    Unknown(
        "dma_row_end",
        "Where does a horizontal DMA row go on after word column 15?",
        {"next": "in the next VPM row", "wrap": "at the beginning of the same row"},
        "next",
        "Store 32 words from X = 8 and look at the memory.",
        "not measured; V3DLib's emulator wraps; hardware reference 5.4",
    ),
    Unknown(
        "vdw_blockmode",
        "What does BLOCKMODE of a DMA store change?",
        {
            "ignored": "nothing: every memory row comes from its own VPM row or column",
            "packed": "memory rows follow each other without a gap in the VPM, but for 32-bit "
            "horizontal stores of 16 units of depth 1, which boards do not pack",
        },
        "ignored",
        "Store two units of depth 4 with BLOCKMODE = 1.",
        "AG100-R table 35 says packed; every store of QPULib, right on Pi 1-3 since 2016, sets "
        "the bit with 16 units of depth 1 and is not packed; other shapes were not measured; "
        "hardware reference 5.4",
    ),
    Unknown(
        "vdw_vertical_wrap",
        "Where does a vertical DMA store go on after 16 rows, if Y is not a multiple of 16?",
        {
            "group": "at the end of Y's group of 16 rows it returns to the group's first row",
            "start": "after 16 rows it returns to Y",
        },
        "group",
        "Store one unit of depth 20 from Y = 4.",
        "vc4asm issue 27, on a board: depth 32 from Y = 0 repeats the first 16 elements, which "
        "both choices do; hardware reference 5.4",
    ),
    Unknown(
        "vdr_vertical_wrap",
        "Where does a row of a vertical DMA load go on at the end of a group of 16 VPM rows?",
        {"next": "in the next group", "group": "in the group's first row, as a vertical store does"},
        "next",
        "Load one row of 16 words from Y = 4.",
        "published programs load vertically from multiples of 16 only; hardware reference 5.5",
    ),
    Unknown(
        "vdw_stride_bits",
        "How many bits has the STRIDE of a DMA store?",
        {"16": "bits 15:0", "13": "bits 12:0"},
        "16",
        "Store two rows with a stride of 8192.",
        "AG100-R table 35 prints 13; hardware reference 5.4",
        settled="vc4asm measured 16; py-videocore's and qmkl's sgemm with gaps of 18,368 and "
        "61,376 leaves no element unwritten on a Pi 3 (qmkl issue 42)",
    ),
    Unknown(
        "vdr_stride_bits",
        "How many bits has the MPITCHB of a DMA load?",
        {
            "14": "bits 13:0",
            "13": "bits 12:0, as the guide prints",
            "16": "bits 15:0, as the STRIDE of a store has",
        },
        "14",
        "Load two rows with pitches of 8192 and 16384.",
        "AG100-R table 37 prints 13; hardware reference 5.5",
        settled="sgemm of py-videocore and qmkl on a Pi 3: a pitch of 12,288 is exact (qmkl "
        "issue 1), pitches of 18,432 and 61,440 give wrong sums (qmkl issue 42), and 14 bits give "
        "the reported maximum of the latter to the digit",
    ),
    Unknown(
        "uniforms_length",
        "What do uniform reads past SRQUL words give?",
        {"limit": "0", "prefetch": "the words in memory: SRQUL only limits what is fetched ahead"},
        "limit",
        "Run a program that reads three uniforms with SRQUL = 2.",
        "AG100-R SRQUL; programs that never write SRQUL (0) do read uniforms; hardware reference 2.7",
    ),
    Unknown(
        "vpm_unreserved",
        "What may user programs do with the VPM while VPMBASE is 0?",
        {"all": "use all 64 rows, as if all were reserved", "none": "write nothing"},
        "all",
        "Write VPM rows with VPMBASE = 0 on a board whose firmware has not run any program.",
        "hello_fft and py-videocore never write VPMBASE; the firmware may have; hardware reference 2.8",
    ),
    Unknown(
        "vpm_read_extension",
        "How are 8- and 16-bit elements extended when the VPM is read?",
        {"zero": "with zeros", "sign": "with copies of their highest bit"},
        "zero",
        "Read a row of 0xFF bytes in 8-bit mode.",
        "AG100-R is silent, VC4C's emulator uses zeros; hardware reference 5.2",
    ),
    Unknown(
        "vdr_pitch_carry",
        "Does the VPITCH of a DMA load carry into the higher bits of Y?",
        {"full": "yes", "low": "no: 4 bits of {Y, B}, {Y, H} or Y count, and wrap"},
        "full",
        "Load rows that cross VPM row 16.",
        "AG100-R table 36 names only the low bits; hardware reference 5.5",
    ),
    Unknown(
        "dma_setup_start",
        "What is in the DMA setup and stride registers of a program that never writes them?",
        {"zero": "0, for each QPU its own", "kept": "what the QPU's last program has left"},
        "zero",
        "Store without a stride after another program has set one.",
        "several demos expect a gap of 0; hardware reference 5.4. Registers that all QPUs share "
        "are no choice: published programs set up their DMA on 12 QPUs at a time",
    ),
    Unknown(
        "dma_alignment",
        "What does a DMA do with an address that is not a multiple of its element size?",
        {"free": "as it stands", "rounded": "its low bits do not count"},
        "free",
        "Store a row of words at an odd address.",
        "Broadcom's driver aligns to 4 bytes; hardware reference 5.5",
    ),
]
