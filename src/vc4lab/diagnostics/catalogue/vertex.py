"""Messages about vertices: attribute fetch, coordinate and vertex shaders, binning of draws."""

from vc4lab.diagnostics.entry import Entry, Severity

ENTRIES = [
    Entry(
        "VTX-001",
        "Draw with an enormous number of vertices",
        "The length of a primitive record, or of all those of one binning list together, is larger "
        "than any sensible frame; vc4lab looks at the first 16 million vertices only.",
        "AG100-R p. 67, records 32 and 33",
        "The length counts indices or vertices, not bytes, and stands in bits 39:8 of the record.",
    ),
    Entry(
        "VTX-002",
        "Vertex shader uses something not simulated",
        "A coordinate or vertex shader uses a unit in a way that vc4lab does not do in vertex "
        "shaders yet; its vertices are lost, so the draw is missing.",
        "AG100-R pp. 53-57 (VPM) and the unit's own chapter",
        "The message names the access; a fragment shader may be the better place for it.",
    ),
    Entry(
        "VTX-003",
        "Vertex shader reads beyond its attributes",
        "The shader reads more VPM rows than the shader record's total attribute size gives it. "
        "The hardware returns other data and sets ERRSTAT.VPMERNA; vc4lab reads zero.",
        "AG100-R p. 53 and ERRSTAT",
        "The total size is in bytes: four times the number of words the shader reads.",
        Severity.WARNING,
    ),
    Entry(
        "VTX-004",
        "Vertex shader writes too few words",
        "The primitive setup or the binner reads more words of each vertex (3 + varyings or 7; one "
        "more with a point size). What was not written is anything; vc4lab reads zero.",
        "AG100-R p. 57 and table 46",
        "Compare the writes to the VPM with the number of varyings in the shader record.",
        Severity.WARNING,
    ),
    Entry(
        "VTX-005",
        "Vertex shader does not end",
        "A coordinate or vertex shader ran over its budget of instructions (four million for 16 "
        "vertices; in the golden interpreter, 400 thousand): a loop without end. What is drawn "
        "with it is left out until the control list ends.",
        "AG100-R p. 37, branches",
        "Look at the loop's counter and flags in the debugger.",
    ),
    Entry(
        "VTX-006",
        "Vertex shader writes too many words",
        "The shader writes more words than a vertex has (3 + varyings, or 7; one more with a point "
        "size). The hardware drops the write and sets ERRSTAT.VPMEWNA.",
        "AG100-R p. 57, table 46 and ERRSTAT",
        "Compare the writes to the VPM with the number of varyings in the shader record.",
        Severity.WARNING,
    ),
]
