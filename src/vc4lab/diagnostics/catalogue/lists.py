"""Messages about control lists: their bytes, their order, their binning and rendering rules."""

from vc4lab.diagnostics.entry import Entry, Severity

ENTRIES = [
    Entry(
        "CLE-001",
        "Reserved record id",
        "The control list executor read a byte that is not a record's id. The hardware stops the "
        "thread and sets CTERR in CTnCS. The cause is nearly always earlier in the list: a record "
        "of the wrong length shifts everything after it, or a branch leads to data.",
        "AG100-R pp. 62-69, table 38",
        "Print the list with its addresses and check the record before this one: compare its "
        "length with the table.",
    ),
    Entry(
        "CLE-002",
        "Record cut off by the end of the list",
        "A record begins before the end address but extends beyond it. The hardware compares "
        "addresses only between records, so it reads the missing bytes from whatever follows the "
        "list.",
        "AG100-R p. 62, registers CTnEA",
        "Set CTnEA to the address right after the last byte of the last record.",
    ),
    Entry(
        "CLE-003",
        "List address outside RAM",
        "A list, a branch or a record address points to memory that is not populated. The hardware "
        "reads an undefined value there, and the thread executes garbage.",
        "AG100-R p. 62",
        "The V3D takes bus addresses: 0xC0000000 + physical (0x40000000 + physical, through the L2 "
        "cache, on a Pi 1). A peripheral's address, or one beyond the RAM, is a mistake.",
    ),
    Entry(
        "CLE-004",
        "Record not simulated",
        "This record or field is legal, but vc4lab does not implement it. It is skipped, so the "
        "picture may lack what it draws.",
        "the record's own row in AG100-R pp. 62-81",
        "Avoid the feature, or send the list to the developers.",
        Severity.WARNING,
    ),
    Entry(
        "CLE-005",
        "Sub-lists nested too deeply",
        "Branch to Sub-list (17) pushes a return address, and the executor holds only two. The "
        "hardware stops with an error.",
        "AG100-R p. 66 (two levels); the CTnRA register describes one",
        "Return (18) from a sub-list before entering another.",
    ),
    Entry(
        "CLE-006",
        "Endless list",
        "The list was executed for so long without reaching its end address, a Halt or a Return "
        "that its branches must form a loop. The hardware would execute it forever.",
        "AG100-R p. 62",
        "Check the branch records: one of them leads back to an earlier record.",
    ),
    Entry(
        "CLE-007",
        "Reserved value in a field",
        "A field of this record holds a value that no document describes. vc4lab applies the "
        "nearest documented behaviour.",
        "the record's own row in AG100-R pp. 62-81",
        "Check the bit positions: a field that is one bit off is a common cause.",
        Severity.WARNING,
    ),
    Entry(
        "CLE-008",
        "Record of the other thread",
        "Binning-only records (flush, start binning, mode configuration, clipper scaling) do "
        "nothing in a rendering list; stores, loads and tile coordinates do nothing in a binning "
        "list. Working programs have been seen to contain such records.",
        "AG100-R table 38, column 'lists'",
        "Remove it, or move it to the other thread's list.",
        Severity.HINT,
    ),
    Entry(
        "CLE-009",
        "Misaligned address",
        "An address has low bits set that its field cannot hold or the hardware ignores: tile "
        "buffer loads and stores, shader records and NV vertex data need 16 bytes, tile lists 32. "
        "The hardware uses the address rounded down.",
        "AG100-R pp. 67-75",
        "Align the buffer. In some assemblers .align counts in powers of two, not in bytes.",
        Severity.HINT,
    ),
    Entry(
        "CLE-010",
        "Start Tile Binning without a mode configuration",
        "Record 6 came before any Tile Binning Mode Configuration (112). The binner does not know "
        "its tile memory, so it would write primitives to a random place.",
        "AG100-R p. 65 and p. 71",
        "Begin every binning list with 112, then 6.",
    ),
    Entry(
        "CLE-011",
        "Primitive before Start Tile Binning",
        "A primitive record came before record 6. The binner has not started, so nothing is drawn.",
        "AG100-R p. 65",
        "Put records 112 and 6 at the top of the list.",
    ),
    Entry(
        "CLE-012",
        "Binning list without a flush",
        "The list ended without Flush (4) or Flush All State (5). The tile lists stay unfinished "
        "in the binner, BFC does not count, and a wait for it never ends.",
        "AG100-R p. 65; BFC register",
        "End the list with 4, or with 5 if the rendering list does not set the state again.",
        Severity.WARNING,
    ),
    Entry(
        "CLE-013",
        "Primitive without a shader state",
        "A primitive record came before any GL, NV or VG shader state (64-67), so there are "
        "neither vertices nor a program to draw it with.",
        "AG100-R pp. 67-70",
        "Emit record 64, 65, 66 or 67 before the first primitive.",
    ),
    Entry(
        "CLE-014",
        "Index above the maximum",
        "An index of an indexed primitive list exceeds the record's maximum index. The vertex "
        "cache manager stops and sets an error bit in ERRSTAT (VCMBE or VCMRE).",
        "AG100-R p. 67, record 32; ERRSTAT register",
        "Set the maximum to the highest index used, or correct the index buffer: are its indices 8 "
        "or 16 bits wide?",
    ),
    Entry(
        "CLE-015",
        "Vertex numbers beyond 16 bits",
        "Tile lists hold vertex numbers in 16 bits (GFXH-515), so first + length of a vertex array "
        "record must not exceed 65535. Higher numbers wrap around to the wrong vertices.",
        "erratum GFXH-515 as worked around in Mesa's vc4_draw.c",
        "Split the draw, and move the attribute addresses instead of the first index.",
    ),
    Entry(
        "CLE-016",
        "Unknown primitive mode or index type",
        "The primitive mode or the index type of this record is not documented. The draw is skipped.",
        "AG100-R p. 67, records 32, 33 and 41",
        "Modes are 0 (points) to 6 (triangle fan) in bits 3:0; index types are 0 (8 bits) and 1 "
        "(16 bits) in bits 7:4.",
    ),
    Entry(
        "CLE-017",
        "Endless compressed primitive list",
        "A compressed primitive list (48, 49) is longer than any sensible one, or its branches "
        "form a loop. The escape byte 0x80 that ends it is missing.",
        "AG100-R pp. 75-79",
        "Only the binner should write these lists. Was tile memory overwritten, or the list read "
        "before the binner's flush?",
    ),
    Entry(
        "CLE-018",
        "Primitive list format cannot be decoded",
        "A compressed primitive list follows a Primitive List Format (56) whose primitive type or "
        "data type is not documented.",
        "AG100-R p. 69, record 56",
        "Use 0x12 (triangles, 16-bit indices), 0x32 (triangles, x/y) or 0x33 (RHT, x/y).",
    ),
    Entry(
        "CLE-019",
        "Tile coordinates and store out of step",
        "Each Tile Coordinates record (115) must be followed by exactly one store before the next "
        "one; loads come before the coordinates of their tile. Otherwise tiles are stored to the "
        "wrong place or not at all.",
        "AG100-R p. 72; Linux vc4_render_cl.c",
        "For each tile: load, 115, branch to the tile list, store. Between two stores, repeat 115.",
        Severity.WARNING,
    ),
    Entry(
        "CLE-020",
        "Rendering list without end of frame",
        "No store carried the end-of-frame mark (record 25, or 'last tile' in 26/28). The tiles "
        "were drawn, but the frame count RFC does not rise and FRDONE never comes.",
        "AG100-R p. 72; RFC register",
        "Use record 25 instead of 24 for the last tile, or set bit 19 of record 28.",
    ),
    Entry(
        "CLE-021",
        "Records after the flush",
        "Primitives or state records follow the flush in the binning list. The tile lists are "
        "already closed, so they are lost until the next frame's binning starts.",
        "AG100-R p. 65",
        "Move the flush to the end; only NOP and Halt may follow it.",
        Severity.WARNING,
    ),
    Entry(
        "CLE-022",
        "Waiting for a semaphore that is never incremented",
        "A thread waits at Wait on Semaphore (8), and the other thread ended without Increment "
        "Semaphore (7). The V3D hangs: CTRUN and CTSUBS stay 1.",
        "AG100-R p. 65, records 7 and 8",
        "Put 7 directly before the flush of the binning list, and 8 before the first tile's branch.",
    ),
    Entry(
        "CLE-023",
        "One buffer, two bus aliases",
        "The same memory is addressed through the alias 0xC0000000, which bypasses the VideoCore's "
        "L2 cache, and through another alias, which uses it. If the cache holds a line of it, the "
        "two see different bytes: it may work, or show the contents of an earlier frame.",
        "BCM2835 ARM Peripherals p. 5, address map",
        "Use one alias for every address given to the V3D: 0xC0000000 on a Pi 2 or 3, 0x40000000 "
        "on a Pi Zero or 1. Mask it off (& 0x3FFFFFFF) for the ARM.",
        Severity.HINT,
    ),
    Entry(
        "CLE-024",
        "Tile counts of binning and rendering differ",
        "The rendering list visits tiles that the binning list did not have, or assumes another "
        "grid width, so its branches lead to other tiles' lists.",
        "AG100-R p. 71, records 112 and 113",
        "Compute width and height in tiles once: ceil(pixels / 64), or ceil(pixels / 32) with 4x "
        "multisampling.",
        Severity.HINT,
    ),
    Entry(
        "CLE-025",
        "Primitive list format without a shader state after it",
        "Primitive List Format (56) takes effect only when a shader state record (64-67) follows.",
        "Mesa vc4_emit.c; AG100-R p. 69",
        "Emit the shader state after record 56.",
        Severity.HINT,
    ),
    Entry(
        "CLE-026",
        "Empty clip window",
        "The clip window (102) has width or height 0, or was never set. At left (bottom) 0 a size "
        "of 0 limits nothing: a Pi 3 draws up to the edge of the frame. Elsewhere nothing is drawn "
        "(unknown clip_window_empty).",
        "AG100-R p. 70; piglit and dEQP on a Pi 3; Broadcom's driver skips such draws",
        "Write left, bottom, width, height in this order, 16 bits each, in pixels. Leave out draws "
        "that an empty window would hide.",
        Severity.HINT,
    ),
    Entry(
        "CLE-027",
        "Tile allocation memory too small",
        "The declared tile allocation memory is smaller than the first blocks of all tiles "
        "together. The pool count wraps around, and the binner writes past the declared end.",
        "AG100-R p. 71, record 112; register BPCS",
        "Reserve at least tiles x initial block size + 4096 bytes, better four times as much.",
        Severity.WARNING,
    ),
    Entry(
        "CLE-028",
        "Binner out of memory",
        "The tile allocation pool is used up and no overspill block (BPOA/BPOS) is available. "
        "PCS.BMOOM (bit 8) and OUTOMEM are set, and the binning thread waits until BPOS is "
        "written. The other bits of PCS are not errors: bits 0 and 1 report that binning is "
        "active, bits 2 and 3 that rendering is.",
        "AG100-R p. 88, BPOA, BPOS, PCS",
        "Declare a larger pool in record 112, or answer the interrupt with another block of at "
        "least 4096 bytes.",
    ),
    Entry(
        "CLE-029",
        "State counter near its limit",
        "One binning list has more than 0x1EF0 changes of state. The hardware's 13-bit counter "
        "overflows and may leave invalid records in tile lists (HW-2116).",
        "erratum HW-2116 in Broadcom's khrn_prod_4.c",
        "Flush and start a new frame earlier.",
        Severity.WARNING,
    ),
    Entry(
        "CLE-030",
        "Rendering mode not configured",
        "A tile is loaded, drawn or stored before any Tile Rendering Mode Configuration (113), so "
        "the frame's address, size and format are zero or those of an earlier frame.",
        "AG100-R p. 72",
        "Put 113 at the top of the rendering list.",
        Severity.WARNING,
    ),
    Entry(
        "CLE-031",
        "Coverage mode has no effect",
        "The rendering configuration selects the coverage mode. In vc4lab only record 96 bit 8 "
        "decides whether a draw accumulates coverage in the Z and stencil memory. No document says "
        "what else the mode does, besides early tests, which are not simulated.",
        "AG100-R p. 72, record 113 bits 73 and 75",
        "Clear Z and stencil to 0 (record 114) before accumulating coverage.",
    ),
    Entry(
        "CLE-032",
        "Empty tile grid",
        "Width or height in tiles is zero, so nothing can be binned or drawn.",
        "AG100-R p. 71, record 112",
        "Bytes 12 and 13 of the record's payload count tiles, not pixels.",
    ),
    Entry(
        "CLE-033",
        "GL shader record does not fit its use",
        "The shader record's flags, attribute selection or VPM sizes contradict each other. Sizes "
        "are in bytes, not words, and the vertex and the coordinate shader each need at least one "
        "attribute.",
        "AG100-R pp. 79-80, tables 44-46",
        "Compare the record's printed form with the shader: words loaded must equal words read.",
        Severity.HINT,
    ),
    Entry(
        "CLE-034",
        "Tile list without an end",
        "A tile's list has no Return (18): it runs into a byte that is not a record, leaves the "
        "RAM, or contains a compressed list (48, 49) that does not end. The rest of the tile is "
        "not drawn. Each kind of fault is reported once, for the first list that has it.",
        "AG100-R p. 65",
        "Was the list read before the binner's flush, was tile memory overwritten, or does record "
        "56 declare another format than the list's?",
    ),
    Entry(
        "CLE-035",
        "Semaphore at its limit",
        "A list thread incremented its semaphore an eighth time while the other thread did not "
        "wait for it. The counter has three bits, so the increment is lost.",
        "AG100-R CTnCS.CTSEMA; Broadcom's driver tests for 7 before it submits one more list",
        "Put one wait (8) into the rendering lists for every increment (7) in the binning lists.",
        Severity.WARNING,
    ),
    Entry(
        "CLE-036",
        "Nested sub-list",
        "A Branch to Sub-list (17) inside a sub-list needs two return addresses. The guide's text "
        "allows two levels, its register description one; no known driver nests.",
        "AG100-R p. 66 against the CTnRA register",
        "Return (18) first, or leave the inner list with Branch (16).",
        Severity.HINT,
    ),
    Entry(
        "CLE-037",
        "Performance counter does not count",
        "An enabled counter will not count: bit 31 of PCTRE is not set (the guide calls it "
        "reserved, but it enables all counters), the source does not exist, or the source counts "
        "clocks or cache events, which vc4lab does not model.",
        "AG100-R pp. 97-99; Linux vc4_perfmon.c: V3D_PCTRE_EN",
        "Write PCTRE = 1 << 31 | mask; `vc4lab replay --counters` lists what is modelled.",
        Severity.WARNING,
    ),
    Entry(
        "CLE-038",
        "Primitives do not match the shader state",
        "In VG mode (66, 67) positions are in the list itself: only VG primitives (41, 42) and x/y "
        "lists can be drawn. With a GL or NV shader state (64, 65) vertices are addressed by "
        "number: records 32 and 33, or index lists.",
        "AG100-R pp. 67-70",
        "Use 41 or 42 with 66 or 67, and 32 or 33 with 64 or 65.",
        Severity.WARNING,
    ),
    Entry(
        "CLE-039",
        "Endless VG inline list",
        "Record 42 is followed by coordinates up to the code 0xBFFF0000, which is recognised only "
        "in place of the third vertex of a triangle or the second of a trapezoid. There is none "
        "within 16 MiB, so the hardware would not stop reading.",
        "AG100-R p. 68",
        "End the coordinates with 0xBFFF0000, after two vertices of a triangle or one of a trapezoid (RHT).",
    ),
    Entry(
        "CLE-040",
        "Overspill block too small",
        "BPOS was written with less than 4096 bytes. The binner takes memory in pieces of 4096 "
        "bytes and does not accept less: it stays out of memory (PCS.BMOOM, OUTOMEM), and BPOS "
        "keeps the value. With `--unknown bpos_small=taken` it accepts the block.",
        "comments in Broadcom's khrn_prod_4.c; register BPOS",
        "Give a block of at least 4096 bytes, better 256 KiB; the size is in bytes.",
    ),
    Entry(
        "CLE-041",
        "An ARM address where a bus address belongs",
        "On a Pi 2 or 3 the V3D's addresses begin with 0xC0000000. An ARM physical address reaches "
        "the same RAM, but through the VideoCore's L2 cache, which may have old bytes. Reported "
        "once, for the first such address.",
        "BCM2835 ARM Peripherals p. 5, address map; hardware reference 8.15",
        "Add 0xC0000000 to every address given to the V3D, in registers, records and uniforms; "
        "mask it off (& 0x3FFFFFFF) for the ARM.",
        Severity.HINT,
    ),
    Entry(
        "CLE-042",
        "Frame begins before its tile lists are written",
        "The rendering list was started while the binner, in the chip's time, was still writing "
        "the tile lists that it names, and nothing made it wait. A board draws whatever the memory "
        "holds: lists of an earlier frame, or records that are none, which stop the thread. How "
        "many tiles see old lists is a race. vc4lab draws the whole frame from what was there when "
        "it began (with --forgiving: from the new lists, without this message).",
        "AG100-R pp. 65-66: the semaphore, BFC and FLDONE show when tile lists are in memory",
        "Wait until BFC counts (or for the FLDONE interrupt) before CT1EA is written; or put "
        "record 7 before the flush of the binning list and record 8 before the first tile.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "CLE-043",
        "Tile lists are overwritten while a frame is drawn from them",
        "A binning list uses the tile memory of a frame that, in the chip's time, is still being "
        "rendered. On a board its remaining tiles are drawn from both. vc4lab has drawn the frame "
        "already, so its picture is right (--forgiving: no message).",
        "AG100-R pp. 65-66: the semaphore, RFC and FRDONE show when a frame is in memory",
        "Wait until RFC counts before the next binning list is started, or give every second "
        "frame a tile memory and a tile state array of its own.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "CLE-044",
        "List thread started or reset while it runs",
        "CTnEA was written, or CTnCS with CTRSTA, while the thread was still executing a list in "
        "the chip's time. On a board CTnCA cannot be written then, so the new end belongs to the "
        "list that runs, and a reset breaks it off in the middle. vc4lab lets the list come to its "
        "end first (with --forgiving: without this message).",
        "AG100-R, CTnCA and CTnCS: the address can be written while the thread is stopped",
        "Wait until BFC or RFC counts, or until CTRUN of CTnCS is 0.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "CLE-045",
        "Tile state that is not initialised",
        "Bit 2 of record 112's flags is 0, so the binner does not initialise the tile state data "
        "array but takes what is there: what was in memory, or the pointers into the tile lists "
        "of the list before, which it leaves there. On a board tile lists begin or go on in the "
        "wrong places; the array's layout is not documented. vc4lab begins new lists all the same, "
        "and only leaves a mark in the array (with --forgiving: neither mark nor message).",
        "AG100-R p. 72, record 112, bit 114; all known drivers set the bit",
        "Set bit 2 of the flags (auto-initialise tile state data array); or clear 48 bytes for "
        "each tile before each binning list.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "CLE-046",
        "Draw without a primitive",
        "The length of a primitive record is less than one primitive needs: 3 vertices for a "
        "triangle, 2 for a line, 1 for a point. Nothing is drawn.",
        "AG100-R p. 67, records 32 and 33",
        "The length counts vertices (or indices), not primitives; the mode is the byte before it.",
        Severity.HINT,
    ),
    Entry(
        "CLE-047",
        "No face is enabled",
        "Triangles are drawn while both bits 0 and 1 of the configuration (record 96), forward "
        "and reverse facing, are 0: the setup leaves all of them out.",
        "AG100-R p. 70, record 96",
        "Set bit 0, bit 1 or both in record 96.",
        Severity.HINT,
    ),
    Entry(
        "CLE-048",
        "NV vertices overlap",
        "The stride of the NV shader record is less than the size of a vertex: 12 bytes, 4 for "
        "each varying, 4 for a point size, 16 for a clip header. The end of a vertex is read from "
        "the beginning of the next one, by a board as by vc4lab.",
        "AG100-R tables 44 and 46; the stride is that of one vertex in all known programs",
        "Byte 1 of the record is the stride in bytes, byte 3 the number of varyings.",
        Severity.HINT,
    ),
]
