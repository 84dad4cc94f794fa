"""Messages of the command line."""

from __future__ import annotations

from vc4lab.diagnostics.entry import Entry

ENTRIES = [
    Entry(
        "CLI-001",
        "A file cannot be written",
        "The screenshot, recording or serial log cannot be written where it was asked for.",
        "vc4lab boot --help",
        "Check that the folder exists and may be written to.",
    ),
    Entry(
        "CLI-002",
        "There is no picture to save",
        "The program never asked the firmware for a framebuffer, so the screen stayed black.",
        "vc4lab boot --help",
        "Run it longer, or look at its serial output and at the messages before this one.",
    ),
    Entry(
        "CLI-003",
        "An internal error",
        "Something in vc4lab itself went wrong; this is our mistake, not yours.",
        "the issue tracker",
        "Set VC4LAB_TRACEBACK=1 to see where it happened, and tell us.",
    ),
    Entry(
        "CLI-004",
        "A port cannot be opened",
        "The debugger or the serial line was to listen on a TCP port of this computer, and the "
        "operating system does not give it: another program has it, or it is below 1024.",
        "vc4lab boot --help",
        "Take another number; 0 takes a free one.",
    ),
    Entry(
        "CLI-005",
        "A state cannot be saved or loaded",
        "A saved state belongs to one board and one program, and to this version of the format. It "
        "is checked as a whole before anything of it is used. Saving wants a V3D between two "
        "frames.",
        "vc4lab boot --help",
        "Load it with the same image and --board; save after --frames, or a moment later.",
    ),
    Entry(
        "CLI-006",
        "Nothing to write the SD card's changes to",
        "What a program writes to its SD card is kept in memory. --write-image puts it into the "
        "card's image file at the end of the run. A folder is never written, and without a card "
        "there is nothing to write.",
        "vc4lab boot --help",
        "Boot a card image, or put one in with --card IMAGE.",
    ),
]
