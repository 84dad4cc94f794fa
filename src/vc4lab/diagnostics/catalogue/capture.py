"""Messages about captures: archives and folders of frames."""

from vc4lab.diagnostics.entry import Entry

DUMPS = "src/vc4lab/jobs/dumps/README.md"
FORMAT = "src/vc4lab/capture/README.md"

ENTRIES = [
    Entry(
        "CAP-001",
        "No capture, or a damaged one",
        "The file is no zip archive, is not the whole of one, or a file in it does not have the "
        "size and the check sum that the archive says.",
        FORMAT,
        "Capture again (`--capture run.vc4cap`), or copy the file again.",
    ),
    Entry(
        "CAP-002",
        "An archive or folder that no capture is",
        "A name that could lead out of the folder, a link, a name twice, an encrypted file, more "
        "files or more bytes than a capture has. Nothing of it is used.",
        FORMAT,
        "Take only captures that `--capture` made; do not link files of an edited folder "
        "to places outside of it.",
    ),
    Entry(
        "CAP-003",
        "A file of a capture is missing or cannot be read",
        "The table or a command names a file that is not there.",
        FORMAT,
        "Unpack again, or give the file the name that the message has.",
    ),
    Entry(
        "CAP-004",
        "The table of a capture cannot be used",
        "capture.json is no JSON, has another format or a newer version, or a value in it is "
        "missing or out of its range. The message names the value.",
        FORMAT,
        "Correct the value that the message names; a newer version needs a newer vc4lab.",
    ),
    Entry(
        "CAP-005",
        "A folder that exists",
        "`vc4lab unpack` writes to a folder that is new or empty, so that no edited one is lost.",
        FORMAT,
        "Give another name, or remove the folder.",
    ),
    Entry(
        "CAP-006",
        "A mistake in a file of a capture",
        "A command, a part of the state, a table, a shader or a program has something that it "
        "cannot have. The message names file and line.",
        FORMAT,
        "Correct the line; what it may have stands in the other lines of such files, and "
        "in docs/virgl.md by the names of the fields.",
    ),
    Entry(
        "CAP-007",
        "A capture needs more than there is",
        "The resources of a capture, or the blocks and data of one of its queues, do not fit into "
        "GPU memory.",
        "src/vc4lab/driver/gpu/memory.py",
        "Capture fewer frames.",
    ),
    Entry(
        "CAP-008",
        "Edited twice",
        "The same texel, vertex, constant or instruction was edited in two places of the folder "
        "which say different things: in a picture or table and in the data that it was made of.",
        FORMAT,
        "Undo one of the edits; the message names both files.",
    ),
    Entry(
        "CAP-009",
        "A capture is full",
        "The memory that the jobs use, each page of 4 KiB once, is more than the capture may hold. "
        "The frame at hand is left out; those before it are kept and written.",
        FORMAT,
        "Capture fewer frames (`--frames 10:12`), or allow more (`--capture-size 1024`).",
    ),
    Entry(
        "CAP-010",
        "A page of memory is missing from a capture, or is another",
        "A file of pages is shorter than the table says, or a page does not have the check sum that "
        "pages/sums.txt has for it. Nothing is drawn from it.",
        FORMAT,
        "Copy the file again, or capture again; pages are edited in the tables, pictures and "
        "listings of an unpacked capture, not in pages/.",
    ),
    Entry(
        "CAP-011",
        "These jobs are not those of a driver",
        "A folder of recorded jobs holds what programs hand to Linux's vc4 driver: lists before the "
        "driver has checked them, and buffers. Board programs and vc4lab's OpenGL driver write to "
        "the V3D's registers themselves, so there is nothing to put into such a folder.",
        FORMAT,
        "Keep the archive, which every command takes; `vc4lab drm --capture` makes captures that "
        "can be converted.",
    ),
    Entry(
        "CAP-012",
        "A mistake in a dump of another tool",
        "Dumps of hangs are registers and buffers as vc4_dump_hang_state writes them; CLIF is text "
        "with buffers, records by their fields, and the lists that start. The message names what is "
        "missing, or the line that says something else than these formats have.",
        DUMPS,
        "Write the dump again, as a whole; a hang is only told once by the kernel.",
    ),
    Entry(
        "CAP-013",
        "A list without its memory cannot be drawn",
        "VC4_DEBUG=cl prints the records of a binning list as Mesa hands it to the kernel: no shader "
        "records, programs, uniforms, vertices and textures, no rendering list, and buffers by "
        "number instead of addresses.",
        DUMPS,
        "`vc4lab show` prints it. For what can be drawn, `vc4lab drm --capture F.vc4cap -- PROGRAM` "
        "captures the jobs of the same driver.",
    ),
]
