"""Messages about frames without a picture: the stage that dropped what was drawn, and what decides it."""

from vc4lab.diagnostics.entry import Entry, Severity

_ONCE = (
    " The counts below the message say how many primitives each stage has let through; a primitive "
    "counts once in each tile that it touches."
)

ENTRIES = [
    Entry(
        "DRAW-001",
        "Nothing is drawn",
        "The binning list names a shader record and sets state, but no primitive record follows, so the "
        "frame has nothing but the colour that it is cleared to.",
        "AG100-R pp. 67-68, records 32 and 33",
        "Put record 33 (vertex array primitives) or 32 (indexed primitives) after the shader state, before "
        "the flush.",
        Severity.HINT,
    ),
    Entry(
        "DRAW-002",
        "All primitives are outside of the view volume",
        "The clipper leaves out primitives all of whose vertices are beyond one plane: Xc and Yc from -Wc to "
        "Wc, Zc from -Wc to Wc, Wc above 0. The coordinate shader writes Xc, Yc, Zc and Wc first; clip "
        "coordinates are not pixels." + _ONCE,
        "AG100-R p. 57, table 46 (coordinate shader's output)",
        "Check the projection: positions are multiplied by it, visible ones come out between -Wc and Wc, and "
        "what is before the viewer has a positive Wc.",
        Severity.HINT,
    ),
    Entry(
        "DRAW-003",
        "No primitive has an area",
        "The vertices of each triangle are in one place or on one line of the screen. Often vertices are not "
        "read from where they are (address, stride, attribute not selected), indices have another width than "
        "record 32 says, or a uniform that scales positions is 0." + _ONCE,
        "AG100-R pp. 79-81, shader records; p. 67, record 32",
        "Compare the address and stride in the message with the array; look at the uniforms of the "
        "coordinate shader.",
        Severity.HINT,
    ),
    Entry(
        "DRAW-004",
        "All primitives are outside of the window",
        "The binner leaves out primitives that touch no tile inside of the clip window (record 102, in "
        "pixels). Screen coordinates are relative to the viewport offset (record 103), which is in 1/16 "
        "pixel, as are Xs and Ys of shaded vertices; Y grows downwards." + _ONCE,
        "AG100-R p. 70, records 102 and 103",
        "Compare where the primitives lie with the window in the message. The offset of a picture's centre "
        "is 8 times its width and height.",
        Severity.HINT,
    ),
    Entry(
        "DRAW-005",
        "Tile lists are not drawn",
        "The binner has written primitives into the lists of tiles, but the rendering list does not come to "
        "them: between a tile's coordinates (115) and its store it must branch (record 17) to the list of "
        "that tile, which begins at record 112's address + number of the tile x size of a first block."
        + _ONCE,
        "AG100-R p. 64, record 17; p. 71, record 112",
        "Branch to address + (row x columns + column) x 32 (or what the initial block size in record 112 "
        "says).",
        Severity.HINT,
    ),
    Entry(
        "DRAW-006",
        "All triangles face away",
        "Record 96 enables forward-facing triangles with bit 0, reverse-facing ones with bit 1; bit 2 says "
        "whether clockwise ones are forward, seen with Y upwards; on the screen Y goes downwards. Triangles "
        "of a face that is not enabled are dropped before any pixel." + _ONCE,
        "AG100-R p. 69, record 96",
        "Set both bits while you look for a mistake. Then invert bit 2, or exchange two vertices of each "
        "triangle; mirroring Y exchanges the faces.",
        Severity.HINT,
    ),
    Entry(
        "DRAW-007",
        "No primitive covers a pixel",
        "The triangles lie between the middles of pixels, or the clip window cuts off what they cover. "
        "Shaded vertices have X and Y in 1/16 pixel." + _ONCE,
        "AG100-R p. 70, record 102; p. 57, table 45",
        "Multiply X and Y by 16, or compare the primitives' place with the clip window.",
        Severity.HINT,
    ),
    Entry(
        "DRAW-008",
        "All pixels are outside of the Z planes",
        "Pixels whose depth Zs is not between the two values of record 104 (0 and 1 unless a list sets them) "
        "are dropped before the fragment program." + _ONCE,
        "AG100-R p. 70, record 104",
        "Zs of a shaded vertex is 0 to 1: with clip coordinates it is Zc / Wc x 0.5 + 0.5. Set the planes to "
        "0.0 and 1.0, the smaller one first.",
        Severity.HINT,
    ),
    Entry(
        "DRAW-009",
        "The depth or stencil test refuses everything",
        "Each pixel's depth is compared with what the tile buffer holds, at first the clear value of record "
        "114, by the function in bits 14:12 of record 96. The stencil test is set up by the fragment "
        "program." + _ONCE,
        "AG100-R p. 69, record 96; p. 73, record 114",
        "Clear depth to 0xffffff for 'less', to 0 for 'greater'; use 'always' (7) while you look for a "
        "mistake. If tiles are not cleared, the first store (a record 28 that stores nothing) is missing.",
        Severity.HINT,
    ),
    Entry(
        "DRAW-010",
        "The fragment program writes no colour",
        "The program runs for all pixels, but none of its executed instructions writes to the tile buffer's "
        "colour (tlbc, or tlbm for a sample of four)." + _ONCE,
        "AG100-R pp. 38 and 59, register 46",
        "End the program with mov tlbc, r0 after the scoreboard wait. A conditional write depends on flags "
        "that the last .setf has set: lanes whose condition does not hold are discarded.",
        Severity.HINT,
    ),
    Entry(
        "DRAW-011",
        "Drawing changes no colour",
        "Pixels are written, but the whole picture has the colour that it was cleared to: the program gives "
        "the same colour, or what it blends with the colour that is there has no weight (alpha 0)." + _ONCE,
        "AG100-R p. 59, loading and writing of colours",
        "Write a constant colour (ldi r0, 0xff00ffff) to see where the triangles are; then look at the "
        "uniforms, varyings or texels that the colour is made of.",
        Severity.HINT,
    ),
    Entry(
        "DRAW-012",
        "Tiles are not stored",
        "The rendering list goes to tiles and leaves them without a store. What was drawn there stays in the "
        "tile buffer and is lost at the next clear.",
        "AG100-R pp. 64-66, records 24, 25 and 28",
        "For each tile: coordinates (115), branch to its list (17), store (24); for the last one 25, which "
        "ends the frame, too.",
        Severity.HINT,
    ),
    Entry(
        "DRAW-013",
        "The picture is 16 times too small",
        "Everything that a frame draws lies in a few pixels, and 16 times as large it would fit the "
        "picture: X and Y of shaded vertices, and the clipper's scale, are in 1/16 pixel.",
        "AG100-R p. 57, table 45",
        "Multiply screen coordinates by 16.",
        Severity.HINT,
    ),
    Entry(
        "DRAW-014",
        "The viewport's units",
        "The viewport offset (record 103) and the clipper's scale (record 105) are in 1/16 pixel. A value "
        "that is just half of the clip window's size in pixels puts the picture's centre, or its edges, "
        "near the top left corner.",
        "AG100-R p. 70, records 103 and 105",
        "Write 8 times the width and height (16 x half).",
        Severity.HINT,
    ),
    Entry(
        "DRAW-015",
        "A run without a pixel",
        "A program of Linux or OpenGL has drawn primitives, and none of them has come to a pixel in the "
        "whole run: all were clipped, turned away or outside of the window. Single frames of such programs "
        "may draw nothing, so it is said at the end only.",
        "docs/black-screen.md",
        "Run it again with --capture F.vc4cap, and ask `vc4lab why F.vc4cap`.",
        Severity.HINT,
    ),
]
