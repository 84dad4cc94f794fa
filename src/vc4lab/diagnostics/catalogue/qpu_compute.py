"""Messages about user programs: their queue, their waits, the VPM and its DMA."""

from vc4lab.diagnostics.entry import Entry, Severity

COMPUTE_ENTRIES = [
    Entry(
        "QPU-050",
        "User programs wait for each other",
        "No QPU can go on: each waits for a mutex that is held or for a semaphore that nothing "
        "changes any more. On the chip they hang, and the program that polls SRQCS with them.",
        "AG100-R p. 37, MUTEX_ACQUIRE; p. 33, semaphore instruction",
        "Release the mutex on every path; start as many programs as the semaphores expect; a "
        "semaphore counts from 0 to 15 and keeps its value between programs.",
        Severity.ERROR,
    ),
    Entry(
        "QPU-051",
        "User program waits for what is never sent",
        "A read of the VPM without a read setup, a texture result without a request, or requests "
        "that do not fit into the texture unit stall a QPU for ever.",
        "AG100-R pp. 39-40 and 55; vc4asm's notes on the VPM FIFO",
        "Write vr_setup with the number of vectors before reading vpm; count ldtmu against writes "
        "of the S coordinate.",
        Severity.ERROR,
    ),
    Entry(
        "QPU-052",
        "User program dropped",
        "The queue of user programs holds 16. A request to a full queue is lost, QPURQERR is set, "
        "and all later requests are lost until it is cleared.",
        "AG100-R p. 91, V3D_SRQPC and V3D_SRQCS",
        "Wait until SRQCS shows room (QPURQL), write 1 to its bit 7 after an error.",
        Severity.ERROR,
    ),
    Entry(
        "QPU-053",
        "Uniforms read past their end",
        "The program read more uniforms than SRQUL words. It gets zeros.",
        "AG100-R p. 91, V3D_SRQUL",
        "Write the number of words to SRQUL before SRQPC, or more than 1023 for no limit.",
        Severity.WARNING,
    ),
    Entry(
        "QPU-054",
        "VPM read setup ignored",
        "A read setup is taken only while at most one vector of the previous ones is unread. The "
        "reads that follow deliver the rest of the earlier block.",
        "vc4asm's notes (measured); AG100-R p. 55 allows two setups in flight",
        "Read exactly as many vectors as the setup says (0 means 16) before the next setup.",
        Severity.WARNING,
    ),
    Entry(
        "QPU-055",
        "Reserved VPM setup",
        "The two top bits of the setup word are 01: no such setup exists.",
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
        "Check the address the program computes: it is a bus address in bytes.",
        Severity.WARNING,
    ),
    Entry(
        "QPU-057",
        "Program runs in the interpreter",
        "The program cannot be compiled, so it runs instruction by instruction: right, but slowly.",
        "the reason is in the message",
        "Follow the cure of the message's reason, if speed matters.",
        Severity.HINT,
    ),
    Entry(
        "QPU-058",
        "All QPUs are reserved",
        "SQRSV0 and SQRSV1 keep user programs away from every QPU: the queue is never served.",
        "AG100-R p. 90, V3D_SQRSV0",
        "Clear bit 0 of the four bits of at least one QPU.",
        Severity.ERROR,
    ),
    Entry(
        "QPU-059",
        "VPM write outside the reserved rows",
        "VPMBASE reserves 4 rows for each unit; writes of user programs after them are dropped, "
        "and ERRSTAT.VPMEWNA is set.",
        "AG100-R p. 93, V3D_VPMBASE; p. 96, V3D_ERRSTAT",
        "Write 16 to VPMBASE for all 64 rows, while the V3D is idle.",
        Severity.WARNING,
    ),
    Entry(
        "QPU-060",
        "Instruction budget ignored",
        "VC4LAB_BUDGET is set to something that is not a whole number above 0, so programs have "
        "the usual limit.",
        "`vc4lab explain QPU-041`",
        "Write a number of instructions, as 4000000000 or 0x100000000.",
        Severity.WARNING,
    ),
    Entry(
        "QPU-061",
        "A broken restriction was executed",
        "`vc4lab run` watched the program come along a way on which it breaks a restriction that "
        "the hardware does not check, so that the result is not what the program says.",
        "the code in the message: `vc4lab explain` has its rule",
        "Follow the cure of that code.",
        Severity.ERROR,
    ),
    Entry(
        "QPU-062",
        "Uniforms read past the list that was given",
        "The program takes more uniforms than `vc4lab run -u` gave it, texture parameters "
        "included, or reads them from an address that belongs to no named memory. It gets "
        "whatever lies there.",
        "AG100-R p. 22, uniforms: read in order, without a check",
        "Give as many words as the program reads; each texture request takes one for each "
        "coordinate that it writes.",
        Severity.ERROR,
    ),
    Entry(
        "QPU-063",
        "DMA outside the named memory",
        "A VPM DMA reads or writes memory that `vc4lab run -m` did not name. On a board that is "
        "someone else's memory.",
        "AG100-R pp. 57-59: VDW and VDR",
        "Check the address, the number of rows and the stride (of a store: the gap between rows; "
        "of a load: from row to row), or make the memory larger.",
        Severity.ERROR,
    ),
    Entry(
        "QPU-064",
        "Lookup outside the named memory",
        "The texture unit reads memory that `vc4lab run -m` did not name. All 16 lanes are looked "
        "up, also those whose result is not used.",
        "AG100-R p. 40, general memory lookups",
        "Check the address in the lane of the message. A program that reads ahead past the end of "
        "its data on purpose needs a memory that much larger.",
        Severity.ERROR,
    ),
    Entry(
        "QPU-065",
        "VPM read before its DMA load was waited for",
        "A DMA load (a write of vr_addr) takes its time. The program reads rows of the VPM that "
        "it fills without having read vr_wait: on a board it may get what was there before.",
        "AG100-R p. 57; hardware reference 5.6",
        "Read vr_wait (`mov -, vr_wait`) before the first read of the loaded rows.",
        Severity.ERROR,
    ),
    Entry(
        "QPU-066",
        "Program ends before its DMA store was waited for",
        "A DMA store (a write of vw_addr) takes its time. The program ends without having read "
        "vw_wait: on a board the data may not be in memory when the host looks.",
        "AG100-R p. 57; hardware reference 5.6",
        "Read vw_wait (`mov -, vw_wait`) after the last store.",
        Severity.ERROR,
    ),
]
