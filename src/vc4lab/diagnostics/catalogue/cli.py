"""Messages of the command line."""

from __future__ import annotations

from vc4lab.diagnostics.entry import Entry

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
]
