"""Messages about user programs: their queue, their waits, the VPM and its DMA."""

from vc4lab.diagnostics.entry import Entry, Severity

COMPUTE_ENTRIES = [
    Entry(
        "QPU-050",
        "Deadlock of user programs",
        "No QPU can continue: each waits for a mutex that is held, or for a semaphore that no "
        "running program changes. On the chip they hang, and so does the program that polls SRQCS.",
        "AG100-R p. 37, MUTEX_ACQUIRE; p. 33, semaphore instruction",
        "Release the mutex on every path, and start as many programs as the semaphores expect. A "
        "semaphore counts from 0 to 15 and keeps its value between programs.",
    ),
    Entry(
        "QPU-051",
        "User program waits forever",
        "A VPM read without a read setup, a texture result without a request, or more requests "
        "than the texture unit holds stall a QPU forever.",
        "AG100-R pp. 39-40 and 55; vc4asm's notes on the VPM FIFO",
        "Write vr_setup with the number of vectors before reading vpm; compare the number of ldtmu "
        "signals with the number of writes to S.",
    ),
    Entry(
        "QPU-052",
        "User program dropped",
        "The queue of user programs holds 16. A request to a full queue is lost and sets QPURQERR; "
        "all further requests are lost until that is cleared.",
        "AG100-R p. 91, V3D_SRQPC and V3D_SRQCS",
        "Wait until SRQCS shows room (QPURQL); after an error write 1 to its bit 7.",
    ),
    Entry(
        "QPU-053",
        "Uniforms read past their end",
        "The program reads more uniforms than the SRQUL words it was given. It gets zeros.",
        "AG100-R p. 91, V3D_SRQUL",
        "Write the number of words to SRQUL before SRQPC, or more than 1023 for no limit.",
        Severity.WARNING,
    ),
    Entry(
        "QPU-054",
        "VPM read setup ignored",
        "A read setup is accepted only while at most one vector of the previous ones is unread. "
        "The following reads return the rest of the previous block.",
        "vc4asm's notes (measured); AG100-R p. 55 allows two setups in flight",
        "Read exactly as many vectors as the setup says (0 means 16) before the next setup.",
        Severity.WARNING,
    ),
    Entry(
        "QPU-055",
        "Reserved VPM setup",
        "The two top bits of the setup word are 01, which no document defines.",
        "AG100-R tables 31-37",
        "Bits 31:30 are 0 for reads and writes by the program, 2 or 3 for a DMA store; bit 31 is 1 "
        "for a DMA load.",
        Severity.WARNING,
    ),
    Entry(
        "QPU-056",
        "DMA outside RAM",
        "The address of a VPM DMA lies past the end of the memory.",
        "AG100-R p. 57; the two top address bits only choose a cache alias",
        "Check the address that the program computes: it is a bus address in bytes.",
        Severity.WARNING,
    ),
    Entry(
        "QPU-057",
        "Program runs in the interpreter",
        "The program cannot be compiled, so the reference interpreter runs it: the result is correct, "
        "but it takes much longer.",
        "the reason is in the message",
        "If speed matters, follow the cure of the code named in the message.",
        Severity.HINT,
    ),
    Entry(
        "QPU-058",
        "All QPUs are reserved",
        "SQRSV0 and SQRSV1 exclude user programs from every QPU, so queued programs never start.",
        "AG100-R p. 90, V3D_SQRSV0",
        "Clear bit 0 of the four bits of at least one QPU.",
    ),
    Entry(
        "QPU-059",
        "VPM write outside the reserved rows",
        "VPMBASE reserves rows for user programs in units of 4; their writes beyond these rows are "
        "dropped, and ERRSTAT.VPMEWNA is set.",
        "AG100-R p. 93, V3D_VPMBASE; p. 96, V3D_ERRSTAT",
        "Write 16 to VPMBASE for all 64 rows, while the V3D is idle.",
        Severity.WARNING,
    ),
    Entry(
        "QPU-060",
        "Instruction budget ignored",
        "VC4LAB_BUDGET is not a whole number from 1 to 2^40, so the default limit applies.",
        "`vc4lab explain QPU-041`",
        "Write a number of instructions, such as 4000000000 or 0x100000000.",
        Severity.WARNING,
    ),
    Entry(
        "QPU-061",
        "Hardware restriction violated during execution",
        "`vc4lab run` saw the program execute instructions that violate a restriction which the "
        "hardware does not check, so the result is not what the program says.",
        "the code in the message: `vc4lab explain` has its rule",
        "Follow the cure of that code.",
    ),
    Entry(
        "QPU-062",
        "Uniforms read beyond the given list",
        "The program reads more uniforms than `vc4lab run -u` provided, texture parameters "
        "included, or reads them from an address in no named memory. It gets whatever is there.",
        "AG100-R p. 22, uniforms: read in order, without a check",
        "Provide as many words as the program reads; each texture request takes one for each "
        "coordinate that it writes.",
    ),
    Entry(
        "QPU-063",
        "DMA outside the named memory",
        "A VPM DMA reads or writes memory that `vc4lab run -m` did not name. On a board this "
        "memory belongs to something else.",
        "AG100-R pp. 57-59: VDW and VDR",
        "Check the address, the number of rows and the stride (for a store, the gap between rows; "
        "for a load, the distance from row to row), or make the memory larger.",
    ),
    Entry(
        "QPU-064",
        "Lookup outside the named memory",
        "The texture unit reads memory that `vc4lab run -m` did not name. All 16 lanes are looked "
        "up, also those whose result is not used.",
        "AG100-R p. 40, general memory lookups",
        "Check the address in the lane that the message names. If the program reads ahead past the "
        "end of its data on purpose, make the memory that much larger.",
    ),
    Entry(
        "QPU-065",
        "VPM read before its DMA load has finished",
        "A DMA load (a write of vr_addr) takes time. The program reads the VPM rows being loaded "
        "without having read vr_wait; on a board it may get their previous contents.",
        "AG100-R p. 57; hardware reference 5.6",
        "Read vr_wait (`mov -, vr_wait`) before the first read of the loaded rows.",
    ),
    Entry(
        "QPU-066",
        "Program ends before its DMA store has finished",
        "A DMA store (a write of vw_addr) takes time. The program ends without having read "
        "vw_wait; on a board the data may not be in memory yet when the host reads it.",
        "AG100-R p. 57; hardware reference 5.6",
        "Read vw_wait (`mov -, vw_wait`) after the last store.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "QPU-067",
        "A texture result is left at the program's end",
        "The program has asked a TMU for more than it has taken with ldtmu0 or ldtmu1. What becomes of "
        "the rest is not documented: it can come to the next program on this QPU in place of that one's "
        "own results. vc4lab drops it.",
        "AG100-R p. 40, general memory lookups; hardware reference 9.8, unbalanced TMU requests",
        "Take every result, also of look-ups that were made ahead past the end of the data.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "QPU-069",
        "An integer uniform is used as a float",
        "A number without a point or an exponent in `vc4lab run -u` is an integer, and its bits "
        "are those of a very small float (a denormal; of a negative one, of no number), which "
        "most operations take for 0. The program uses it as an operand of a float operation.",
        "hardware reference 4.6: inputs with exponent 0 count as 0; `vc4lab run --help`",
        "Write 2.0 or 2e0 instead of 2, or convert it with itof in the program.",
        Severity.WARNING,
    ),
]
