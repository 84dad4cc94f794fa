"""Messages of the command line."""

from __future__ import annotations

from vc4lab.diagnostics.entry import Entry, Severity

ENTRIES = [
    Entry(
        "CLI-001",
        "A file cannot be written",
        "The screenshot, recording or serial log cannot be written to the given path.",
        "vc4lab boot --help",
        "Check that the folder exists and is writable.",
    ),
    Entry(
        "CLI-002",
        "There is no picture to save",
        "The program never asked the firmware for a framebuffer, so the screen stayed black.",
        "vc4lab boot --help",
        "Run it longer, or check its serial output and the messages before this one.",
    ),
    Entry(
        "CLI-003",
        "Internal error",
        "Something in vc4lab itself went wrong. This is a bug of vc4lab, not of your program.",
        "the issue tracker",
        "Set VC4LAB_TRACEBACK=1 to see where it happened, and report it.",
    ),
    Entry(
        "CLI-004",
        "A port cannot be opened",
        "The debugger or the serial line was to listen on a TCP port of this computer, and the "
        "operating system refuses it: another program uses the port, or its number is below 1024.",
        "vc4lab boot --help",
        "Choose another number; 0 picks a free port.",
    ),
    Entry(
        "CLI-005",
        "A state cannot be saved or loaded",
        "A saved state belongs to one board, one program and one version of the format, and is "
        "checked as a whole before anything is restored. Saving requires that the V3D is between "
        "two frames.",
        "vc4lab boot --help",
        "Load it with the same image and --board; save after --frames, or a moment later.",
    ),
    Entry(
        "CLI-006",
        "Nowhere to write the SD card's changes",
        "What a program writes to its SD card is kept in memory. --write-image writes it to the "
        "card's image file at the end of the run. A folder is never written to, and without a card "
        "there is nothing to write.",
        "vc4lab boot --help",
        "Boot a card image, or insert one with --card IMAGE.",
    ),
    Entry(
        "CLI-007",
        "Something in the cache is not trusted",
        "What --setup downloads is kept in ~/.cache/vc4lab (or $VC4LAB_CACHE) with the roots and "
        "saved states made of it, and is run with your rights. So everything there must belong to "
        "the user who runs vc4lab and must not be writable by anyone else, as for compiled code "
        "(JIT-001). A tree that others may have written is not used; a saved state or root is made "
        "again.",
        "vc4lab linux --help",
        "Where the files are your own: chmod -R go-w FOLDER. Else delete the folder and run "
        "--setup again, or set VC4LAB_CACHE to a folder of your own, as with sudo.",
        Severity.WARNING,
    ),
    Entry(
        "CLI-008",
        "Not enough memory",
        "The operating system gives the process no more memory: the machine is full, or there is a "
        "limit (ulimit -v, a container). Guest RAM takes a GiB of address space, and tables of "
        "which little is used as much again, or three times as much for `profile`; what is really "
        "used is mostly less than 300 MB.",
        "vc4lab boot --help",
        "Raise the limit to 6 GiB of address space (ulimit -v 6291456), or run without one.",
    ),
]
