"""Messages about control lists: their bytes, their order, their binning and rendering rules."""

from vc4lab.diagnostics.entry import Entry, Severity

ENTRIES = [
    Entry(
        "CLE-001",
        "Reserved record id",
        "The control list executor met a byte that is no record. The hardware stops the thread and "
        "sets CTERR in CTnCS. Nearly always the list went wrong earlier: a record written with the "
        "wrong number of bytes shifts everything after it, or a branch points into nothing.",
        "AG100-R pp. 62-69, table 38",
        "Print the list with its addresses and look at the record before this one; compare its "
        "length with the table.",
    ),
    Entry(
        "CLE-002",
        "Record cut off by the end of the list",
        "A record begins before the end address but its fixed bytes reach beyond it. The hardware "
        "compares addresses only between records and reads the missing bytes from whatever lies "
        "after the list.",
        "AG100-R p. 62, registers CTnEA",
        "Let CTnEA point right after the last byte of the last record.",
    ),
    Entry(
        "CLE-003",
        "List address outside RAM",
        "A list, a branch or a record address points to memory that is not populated. The hardware "
        "reads some value there; the thread will run into garbage.",
        "AG100-R p. 62",
        "The V3D takes bus addresses: 0xC0000000 + physical (0x40000000 + physical through the L2 "
        "on a Pi 1); an address of a peripheral or beyond the RAM size is a mistake.",
    ),
    Entry(
        "CLE-004",
        "Record not simulated",
        "This record or field is legal, but vc4lab does not do it yet. It is skipped, so the "
        "picture may lack what it would have drawn.",
        "the record's own row in AG100-R pp. 62-81",
        "Avoid the feature, or send the list to the developers.",
        Severity.WARNING,
    ),
    Entry(
        "CLE-005",
        "Sub-lists nested too deeply",
        "Branch to Sub-list (17) pushes a return address, and the executor holds only two of them. "
        "The hardware stops with an error.",
        "AG100-R p. 66 (two levels); the CTnRA register describes one",
        "Return (18) from a sub-list before entering another one.",
    ),
    Entry(
        "CLE-006",
        "List without end",
        "The list was followed for so long without reaching its end address, a Halt or a Return "
        "that it must be a loop of branches. The hardware would run in it forever.",
        "AG100-R p. 62",
        "Look at the branch records: one of them leads back into its own past.",
    ),
    Entry(
        "CLE-007",
        "Reserved value in a field",
        "A field of this record holds a code that no document describes. vc4lab takes the nearest "
        "documented behaviour.",
        "the record's own row in AG100-R pp. 62-81",
        "Check the bit positions: in this instruction set a field is often one bit off.",
        Severity.WARNING,
    ),
    Entry(
        "CLE-008",
        "Record of the other thread",
        "Binning-only records (flush, start binning, mode configuration, clipper scaling) in the "
        "rendering list do nothing; store, load and tile coordinates in a binning list do nothing "
        "either. Recorded programs that draw correctly contain such records.",
        "AG100-R table 38, column 'lists'",
        "Leave it out, or move it to the list of the other thread.",
        Severity.HINT,
    ),
    Entry(
        "CLE-009",
        "Misaligned address",
        "An address has low bits set that its field cannot hold or the hardware ignores: tile "
        "buffer loads and stores, shader records and NV vertex data need 16 bytes, tile lists 32.",
        "AG100-R pp. 67-75",
        "Align the buffer; an assembler's .align of the target counts in powers of two.",
        Severity.HINT,
    ),
    Entry(
        "CLE-010",
        "Start Tile Binning without a mode",
        "Record 6 came before any Tile Binning Mode Configuration (112). The binner does not know "
        "its tile memory, so primitives would be written to a random place.",
        "AG100-R p. 65 and p. 71",
        "Begin every binning list with 112, then 6.",
    ),
    Entry(
        "CLE-011",
        "Primitive before Start Tile Binning",
        "A primitive record came before record 6. The binner has not started; nothing is drawn.",
        "AG100-R p. 65",
        "Put 112 and 6 at the top of the list.",
    ),
    Entry(
        "CLE-012",
        "Binning list without a flush",
        "The list ended without Flush (4) or Flush All State (5): the tile lists stay unfinished "
        "in the binner, the frame count never rises, and a wait for it never ends.",
        "AG100-R p. 65; BFC register",
        "End the list with 4, or with 5 when the rendering list does not repeat the state.",
        Severity.WARNING,
    ),
    Entry(
        "CLE-013",
        "Primitive without a shader state",
        "A primitive record came before any GL, NV or VG shader state (64-67), so there is neither "
        "vertex data nor a program to draw it with.",
        "AG100-R pp. 67-70",
        "Emit record 64, 65, 66 or 67 before the first primitive.",
    ),
    Entry(
        "CLE-014",
        "Index above the maximum",
        "An index of an indexed primitive list is larger than the record's maximum index. The "
        "vertex cache manager stops with an error bit in ERRSTAT (VCMBE or VCMRE).",
        "AG100-R p. 67, record 32; ERRSTAT register",
        "Set the maximum to the highest index really used, or repair the index buffer: is its "
        "type 8 or 16 bit?",
    ),
    Entry(
        "CLE-015",
        "Vertex numbers beyond 16 bits",
        "Tile lists carry vertex numbers in 16 bits (GFXH-515), so first + length of a vertex "
        "array record must stay at or below 65535; higher ones wrap to the wrong vertices.",
        "erratum GFXH-515 as worked around in Mesa's vc4_draw.c",
        "Split the draw and move the attribute addresses instead of the first index.",
    ),
    Entry(
        "CLE-016",
        "Unknown primitive mode or index type",
        "The mode or index type of this primitive record is not documented; the draw is skipped.",
        "AG100-R p. 67, records 32, 33 and 41",
        "Modes are 0 points to 6 triangle fan, in bits 3:0; index types 0 (8 bit) and 1 (16 bit), "
        "in bits 7:4.",
    ),
    Entry(
        "CLE-017",
        "Compressed primitive list without end",
        "A compressed primitive list (48, 49) went on beyond any sensible size or its branches "
        "form a loop: the escape byte 0x80 that ends it is missing.",
        "AG100-R pp. 75-79",
        "Only the binner should write these lists; was tile memory overwritten, or the list read "
        "before the binner's flush?",
    ),
    Entry(
        "CLE-018",
        "Primitive list format not decodable",
        "A compressed primitive list follows a Primitive List Format (56) whose type or data type "
        "is not documented.",
        "AG100-R p. 69, record 56",
        "Use 0x12 (triangles, 16-bit indices), 0x32 (triangles, x/y) or 0x33 (RHT, x/y).",
    ),
    Entry(
        "CLE-019",
        "Tile coordinates and store out of step",
        "Every Tile Coordinates record (115) must be followed by exactly one store before the next "
        "one; loads come before the coordinates they belong to.",
        "AG100-R p. 72; Linux vc4_render_cl.c",
        "Per tile: load, 115, branch to the tile list, store; repeat 115 between two stores.",
        Severity.WARNING,
    ),
    Entry(
        "CLE-020",
        "Rendering list without end of frame",
        "No store carried the end-of-frame mark (record 25, or 'last tile' in 26/28): the frame "
        "count RFC never rises and FRDONE never comes, although the tiles were drawn.",
        "AG100-R p. 72; RFC register",
        "Use record 25 instead of 24 for the last tile, or set bit 19 of record 28.",
    ),
    Entry(
        "CLE-021",
        "Records after the flush",
        "Primitives or state follow Flush in the binning list. The tile lists are already closed, "
        "so these are lost until the next frame's binning starts.",
        "AG100-R p. 65",
        "Move the flush to the end; only NOP and Halt may follow.",
        Severity.WARNING,
    ),
    Entry(
        "CLE-022",
        "Waiting for a semaphore that is never incremented",
        "A thread stands at Wait on Semaphore (8) and the other thread ended without Increment "
        "(7). The V3D hangs: CTRUN and CTSUBS stay 1.",
        "AG100-R p. 65, records 7 and 8",
        "Put 7 directly before the flush of the binning list, 8 before the first tile's branch.",
    ),
    Entry(
        "CLE-023",
        "One place, two bus aliases",
        "The same place in memory is named by the alias 0xC0000000, which goes past the "
        "VideoCore's L2 cache, and by another one, which goes through it. If that cache has a line "
        "of it, the two see other bytes: it may work, or show what was there a frame ago.",
        "BCM2835 ARM Peripherals p. 5, address map",
        "Take one alias for everything the V3D is told: 0xC0000000 on a Pi 2 or 3, 0x40000000 on a "
        "Pi Zero or 1; mask it off (& 0x3FFFFFFF) for the ARM.",
        Severity.HINT,
    ),
    Entry(
        "CLE-024",
        "Tile counts of binning and rendering differ",
        "The rendering list visits tiles that the binning list did not have, or treats the tile "
        "grid with another width; branches then lead to other tiles' lists.",
        "AG100-R p. 71, records 112 and 113",
        "Compute width and height in tiles once: ceil(pixels / 64), with 4x multisampling / 32.",
        Severity.HINT,
    ),
    Entry(
        "CLE-025",
        "Primitive list format without a shader state after it",
        "Primitive List Format (56) is only recognised when a shader state record (64-67) follows.",
        "Mesa vc4_emit.c; AG100-R p. 69",
        "Emit the shader state after record 56.",
        Severity.HINT,
    ),
    Entry(
        "CLE-026",
        "Empty clip window",
        "The clip window (102) has width or height 0, or was never sent. At left (bottom) 0 a size "
        "of 0 limits nothing: a Pi 3 draws as far as the frame goes. Elsewhere nothing is drawn "
        "(unknown clip_window_empty).",
        "AG100-R p. 70; piglit and dEQP on a Pi 3; Broadcom's driver skips such draws",
        "Send left, bottom, width, height in this order, 16 bits each, in pixels. Leave out draws "
        "that an empty window would hide.",
        Severity.HINT,
    ),
    Entry(
        "CLE-027",
        "Tile allocation memory too small",
        "The declared size of the tile allocation memory is smaller than the first blocks of all "
        "tiles, so the pool count wraps and the binner goes on past the declared end.",
        "AG100-R p. 71, record 112; register BPCS",
        "Give at least tiles x initial block size + 4096 bytes, better 4 times as much.",
        Severity.WARNING,
    ),
    Entry(
        "CLE-028",
        "Binner out of memory",
        "The tile allocation pool is used up and no overspill block (BPOA/BPOS) was given: "
        "PCS.BMOOM (bit 8) and OUTOMEM are set and the binning thread stands still until BPOS is "
        "written. The other bits of PCS are no errors: 0 and 1 say that binning is not through, 2 "
        "and 3 that rendering is not.",
        "AG100-R p. 88, BPOA, BPOS, PCS",
        "Give a larger pool in record 112, or answer the interrupt with another block of at least "
        "4096 bytes.",
    ),
    Entry(
        "CLE-029",
        "State counter near its limit",
        "More than 0x1EF0 changes of state in one binning list: the hardware's 13-bit counter "
        "overflows and may leave bad records in tile lists (HW-2116).",
        "erratum HW-2116 in Broadcom's khrn_prod_4.c",
        "Flush and start a new frame before that.",
        Severity.WARNING,
    ),
    Entry(
        "CLE-030",
        "Rendering mode not configured",
        "A tile is loaded, drawn or stored before any Tile Rendering Mode Configuration (113), so "
        "the frame's address, size and format are those of an earlier frame or zero.",
        "AG100-R p. 72",
        "Put 113 at the top of the rendering list.",
        Severity.WARNING,
    ),
    Entry(
        "CLE-031",
        "Coverage mode changes nothing",
        "The rendering configuration selects the coverage mode. Record 96 bit 8 alone decides here "
        "whether a draw accumulates coverage in the Z and stencil memory; no document says what "
        "else the mode does, besides early tests, which are not simulated.",
        "AG100-R p. 72, record 113 bits 73 and 75",
        "Clear Z and stencil to 0 (record 114) before coverage is accumulated.",
    ),
    Entry(
        "CLE-032",
        "Tile grid with no tiles",
        "Width or height in tiles is zero.",
        "AG100-R p. 71, record 112",
        "Bytes 12 and 13 of the record's payload are the counts in tiles, not pixels.",
    ),
    Entry(
        "CLE-033",
        "GL shader record does not fit its use",
        "The shader record's flags, attribute selection or VPM sizes contradict each other (sizes "
        "are bytes, not words; at least one attribute must be selected for both vertex and "
        "coordinate shader).",
        "AG100-R pp. 79-80, tables 44-46",
        "Compare the record's printed form with the shader: words loaded must equal words read.",
        Severity.HINT,
    ),
    Entry(
        "CLE-034",
        "Tile list ended in the middle",
        "A tile's list ran off without Return (18): into a byte that is no record, out of RAM, or "
        "through a compressed list (48, 49) that does not end. The rest of this tile is left out. "
        "Each kind of fault is named once, with the list that had it first.",
        "AG100-R p. 65",
        "Was the list read before the binner's flush, was tile memory overwritten, or was the list "
        "written in another format than record 56 says?",
    ),
    Entry(
        "CLE-035",
        "Semaphore at its limit",
        "A list thread incremented its semaphore an eighth time without the other thread waiting "
        "for it. The counter has three bits; the increment is lost.",
        "AG100-R CTnCS.CTSEMA; Broadcom's driver tests for 7 before it submits one more list",
        "Let the rendering list wait (8) once for every binning list that increments (7).",
        Severity.WARNING,
    ),
    Entry(
        "CLE-036",
        "Sub-list in a sub-list",
        "A Branch to Sub-list (17) inside a sub-list needs two return addresses. The guide's text "
        "allows two levels, its register description one; no driver nests.",
        "AG100-R p. 66 against the CTnRA register",
        "Return (18) first, or leave the inner list by Branch (16).",
        Severity.HINT,
    ),
    Entry(
        "CLE-037",
        "Performance counter stands still",
        "A counter was enabled that will not count: bit 31 of PCTRE is not set (the guide calls it "
        "reserved, but it enables all counters), there is no such source, or the source counts "
        "clocks or cache events, which a functional model does not know.",
        "AG100-R pp. 97-99; Linux vc4_perfmon.c: V3D_PCTRE_EN",
        "Write PCTRE = 1 << 31 | mask; `vc4lab replay --counters` lists what is modelled.",
        Severity.WARNING,
    ),
    Entry(
        "CLE-038",
        "Primitives and shader state of different modes",
        "In VG mode (66, 67) positions stand in the list itself: only VG primitives (41, 42) and "
        "x/y lists can be drawn. With a GL or NV shader state (64, 65) vertices have numbers: "
        "records 32 and 33, or index lists.",
        "AG100-R pp. 67-70",
        "Use 41 or 42 with 66 or 67, and 32 or 33 with 64 or 65.",
        Severity.WARNING,
    ),
    Entry(
        "CLE-039",
        "VG inline list without end",
        "Record 42 is followed by coordinates up to the code 0xBFFF0000, which counts only where "
        "the third vertex of a triangle or the second of a trapezoid may stand. There is none in "
        "16 MiB, so the hardware would read on and on.",
        "AG100-R p. 68",
        "End the coordinates with 0xBFFF0000, after two vertices of a triangle or one of an RHT.",
    ),
    Entry(
        "CLE-040",
        "Overspill block too small",
        "BPOS was written with less than 4096 bytes. The binner takes memory in pieces of 4096 "
        "bytes and does not accept less: it stays out of memory (PCS.BMOOM, OUTOMEM), and BPOS "
        "keeps what was written. `--unknown bpos_small=taken` lets it have the block.",
        "comments in Broadcom's khrn_prod_4.c; register BPOS",
        "Give a block of at least 4096 bytes, better of 256 KiB; the size is in bytes.",
    ),
    Entry(
        "CLE-041",
        "An ARM address where a bus address belongs",
        "On a Pi 2 or 3 the V3D's addresses begin with 0xC0000000. An address as the ARM has it "
        "finds the same RAM, but through the VideoCore's L2 cache, which may have old bytes of it. "
        "Said once for the first such address.",
        "BCM2835 ARM Peripherals p. 5, address map; hardware reference 8.15",
        "Add 0xC0000000 to every address that the V3D is told, in registers, records and uniforms; "
        "mask it off (& 0x3FFFFFFF) for the ARM.",
        Severity.HINT,
    ),
]
