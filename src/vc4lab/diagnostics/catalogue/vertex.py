"""Messages about vertices: attribute fetch, coordinate and vertex shaders, binning of draws."""

from vc4lab.diagnostics.entry import Entry, Severity

ENTRIES = [
    Entry(
        "VTX-001",
        "Draw with an enormous number of vertices",
        "The length of a primitive record, or of all primitive records of one binning list "
        "together, exceeds any sensible frame. vc4lab processes the first 16 million vertices "
        "only.",
        "AG100-R p. 67, records 32 and 33",
        "The length counts indices or vertices, not bytes, and is in bits 39:8 of the record.",
    ),
    Entry(
        "VTX-002",
        "Vertex shader uses an unsupported feature",
        "A coordinate or vertex shader uses a unit in a way that vc4lab does not implement for "
        "vertex shaders. Its vertices are lost, so the draw is missing.",
        "AG100-R pp. 53-57 (VPM) and the unit's own chapter",
        "The message names the access; a fragment shader may be the better place for it.",
    ),
    Entry(
        "VTX-003",
        "Vertex shader reads beyond its attributes",
        "The shader reads more VPM rows than the shader record's total attribute size provides. "
        "The hardware returns other data and sets ERRSTAT.VPMERNA; vc4lab returns zero.",
        "AG100-R p. 53 and ERRSTAT",
        "The total size is in bytes: four times the number of words the shader reads.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "VTX-004",
        "Vertex shader writes too few words",
        "The primitive setup or the binner reads more words of each vertex (3 + varyings, or 7; "
        "one more with a point size) than the shader writes. On the chip the missing ones are "
        "undefined; vc4lab reads zero.",
        "AG100-R p. 57 and table 46",
        "Compare the writes to the VPM with the number of varyings in the shader record.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "VTX-005",
        "Vertex shader does not end",
        "A coordinate or vertex shader exceeded its limit of instructions (four million for 16 "
        "vertices; 400 thousand in the reference interpreter), which usually means an endless loop. "
        "it are left out until the control list ends.",
        "AG100-R p. 37, branches",
        "Check the loop's counter and flags in the debugger.",
    ),
    Entry(
        "VTX-006",
        "Vertex shader writes too many words",
        "The shader writes more words than a vertex has (3 + varyings, or 7; one more with a point "
        "size). The hardware drops the excess writes and sets ERRSTAT.VPMEWNA.",
        "AG100-R p. 57, table 46 and ERRSTAT",
        "Compare the writes to the VPM with the number of varyings in the shader record.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "VTX-007",
        "Vertex shader reads a row that no set-up asks for",
        "A coordinate or vertex shader reads the VPM more often than its read set-ups (vr_setup) "
        "ask for. A read of an empty FIFO blocks, as was measured, and nothing fills it, so the "
        "QPU waits forever and with it the list: BFC or RFC never counts. Only what an earlier "
        "program on the same QPU asked for and left unread (VTX-008) could end the wait, by "
        "chance. vc4lab leaves the draw out (with --forgiving the row is 0).",
        "AG100-R p. 55, VPM reads; vc4asm, VideoCore IV addendum (measured: reads block while the "
        "FIFO is empty, and one more than the set-ups ask for is a deadlock); Mesa vc4 sets the "
        "FIFO up before the first read, because it starts uninitialised",
        "Bits 23:20 of the read set-up are the number of rows (0 means 16): as many as the shader "
        "reads, in several set-ups if there are more than 16.",
    ),
    Entry(
        "VTX-008",
        "Vertex shader leaves rows of its set-ups unread",
        "The read set-ups ask for more rows than the shader reads, or a set-up is ignored because "
        "the one before it has more than one row left. On a board the rest stays in the FIFO, "
        "which is no place of this program alone; what the next one reads is not documented. "
        "vc4lab drops it.",
        "vc4asm's notes (measured): all reads that were set up must be consumed; Mesa vc4: "
        "Broadcom's simulator insists on it, too",
        "Bits 23:20 of the read set-up are the number of rows: as many as the shader reads.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "VTX-009",
        "Vertex shader reads a row that no attribute fills",
        "The row lies inside the shader record's total attribute size, but none of the arrays that "
        "the shader selects reaches it: sizes, offsets or the bits of the selection do not fit "
        "the program. On a board the row holds what earlier batches left; vc4lab reads zero.",
        "AG100-R table 45 and p. 53, vertex attributes in the VPM",
        "Compare the number of bytes and the offset of each array with the rows that the shader "
        "reads; sizes are in bytes, a row is a word.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "VTX-010",
        "Shaded vertices with 1/Wc of 0 or less",
        "A vertex that the program has shaded itself (NV mode) has 1/Wc as its third word. Primitive setup "
        "divides varyings by Wc and the fragment program multiplies them by W again; with 0 or a negative "
        "number colours and texture coordinates come out as 0 or as nonsense.",
        "AG100-R p. 57, table 45",
        "Write 1.0f if there is no perspective; else the reciprocal of Wc, which is positive before the "
        "viewer.",
        Severity.HINT,
    ),
]
