"""Messages about fragment programs, the rasteriser and the tile buffer."""

from vc4lab.diagnostics.entry import Entry, Severity

_QPU = "AG100-R, QPU register address map"

ENTRIES = [
    Entry(
        "FRG-001",
        "A fragment program does what is not simulated",
        "The program asks for something its stage of the simulator does not have, or for more "
        "texture lookups than fit. Primitives drawn with it are left out.",
        _QPU,
        "Look at the disassembly of the program; fragment programs have no VPM and no DMA.",
    ),
    Entry(
        "FRG-002",
        "A texture lookup without configuration",
        "A coordinate was written to the texture unit, but the program consumes no configuration "
        "words for this lookup on the path that was found by reading it from top to bottom.",
        "AG100-R p. 41",
        "Write T (and R, B) before S in the same basic block as S.",
    ),
    Entry(
        "FRG-003",
        "A texture result is read, but nothing was looked up",
        "The program has a load signal for a texture unit whose queue is empty. The hardware "
        "waits forever; the primitive is left out.",
        "AG100-R p. 39",
        "Every load signal needs one write to the S register of the same unit before it.",
    ),
    Entry(
        "FRG-004",
        "Coverage in a multisample frame",
        "The draw sends its primitives to the coverage pipe (record 96 bit 8), or its program "
        "reads coverage (signal 7), in a 4x multisample frame. Z and stencil have a word for each "
        "of the four samples there, and no document says which of them hold the coverage of a "
        "path: the choice is `vc4lab unknowns coverage_multisample`.",
        "AG100-R pp. 50, 71; hardware reference 7.1, 7.12",
        "Draw paths in a frame without multisampling: coverage has 16 samples of its own. How they "
        "are arranged and counted: `vc4lab unknowns coverage_samples`, coverage_winding, "
        "coverage_level.",
        Severity.HINT,
    ),
    Entry(
        "FRG-006",
        "Primitives with x/y coordinates are not drawn yet",
        "Lists of data type 3 (OpenVG paths) hold coordinates instead of vertex indices, and "
        "right-hand trapezoids need them.",
        "AG100-R Tables 40, 41",
        "Draw indexed triangles, lines or points for now.",
    ),
    Entry(
        "FRG-007",
        "Too many varyings",
        "The shader record announces more varyings than the flat-shade flags have bits.",
        "AG100-R, Flat Shade Flags",
        "Check the shader record: byte 3 is the number of varyings.",
    ),
]
