"""Messages about fragment programs, the rasteriser and the tile buffer."""

from vc4lab.diagnostics.entry import Entry, Severity

_QPU = "AG100-R, QPU register address map"

ENTRIES = [
    Entry(
        "FRG-001",
        "Fragment program uses an unsupported feature",
        "The program uses something that vc4lab does not implement for fragment programs, or makes "
        "more texture lookups than it has room for. Primitives drawn with it are left out.",
        _QPU,
        "Check the program's disassembly; fragment programs have neither VPM nor DMA.",
    ),
    Entry(
        "FRG-002",
        "A texture lookup without configuration",
        "The program writes a coordinate to the texture unit, but consumes no configuration words "
        "for this lookup, as far as reading the program from top to bottom shows.",
        "AG100-R p. 41",
        "Write T (and R, B) before S in the same basic block as S.",
    ),
    Entry(
        "FRG-003",
        "Texture result read without a lookup",
        "The program has a load signal for a texture unit whose queue is empty. The hardware waits "
        "forever; vc4lab leaves the primitive out.",
        "AG100-R p. 39",
        "Every load signal needs one write to the S register of the same unit before it.",
    ),
    Entry(
        "FRG-004",
        "Coverage in a multisample frame",
        "The draw sends its primitives to the coverage pipe (record 96 bit 8), or its program "
        "reads coverage (signal 7), in a 4x multisample frame. There Z and stencil have a word for "
        "each of the four samples, and no document says which of them hold a path's coverage: "
        "`vc4lab unknowns coverage_multisample` has the choice.",
        "AG100-R pp. 50, 71; hardware reference 7.1, 7.12",
        "Draw paths in a frame without multisampling: coverage has 16 samples of its own. For "
        "their arrangement and count see `vc4lab unknowns coverage_samples`, coverage_winding, "
        "coverage_level.",
        Severity.HINT,
    ),
    Entry(
        "FRG-006",
        "Primitives with x/y coordinates are not supported",
        "Lists of data type 3 (OpenVG paths) contain coordinates instead of vertex indices, and "
        "right-hand trapezoids use them. They are not drawn.",
        "AG100-R Tables 40, 41",
        "Draw indexed triangles, lines or points instead.",
    ),
    Entry(
        "FRG-007",
        "Too many varyings",
        "The shader record announces more varyings than there are flat-shade flags.",
        "AG100-R, Flat Shade Flags",
        "Check the shader record: byte 3 is the number of varyings.",
    ),
    Entry(
        "FRG-008",
        "Fragment program reads more varyings than there are",
        "The program reads more varyings than the shader record declares (and the implicit ones: "
        "two of a point, one of a line). The setup delivers no more values, so the QPU of a board "
        "waits for one, or gets what belongs to something else; no document says which. vc4lab "
        "gives 0 (`vc4lab unknowns varying_missing`).",
        "AG100-R p. 50 and table 46; hardware reference 4.15",
        "Byte 3 of the shader record is the number of varyings of a vertex: as many as the program reads.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "FRG-009",
        "Fragment program leaves varyings unread",
        "The shader record declares more varyings than the program reads (a point has two more, "
        "a line one, which come first). The rest is dropped at the program's end: programs that "
        "do so run on boards. It is a waste, and often a sign that colours are taken from the "
        "wrong values.",
        "hardware reference 4.15, 7.4; published programs for points and lines",
        "Byte 3 of the shader record is the number of varyings of a vertex. Of points and lines "
        "read the implicit ones first.",
        Severity.HINT,
    ),
]
