"""Messages about compiled code and where it is kept."""

from __future__ import annotations

from vc4lab.diagnostics.entry import Entry, Severity

ENTRIES = [
    Entry(
        "JIT-001",
        "The cache of compiled code is not used",
        "Compiled code is kept in ~/.cache/vc4lab (or $VC4LAB_CACHE) and loaded at the next start. "
        "Code that others could have written is not loaded: the folder, its subfolders and the "
        "files must belong to the user who runs vc4lab, must not be writable by anyone else, and "
        "must not be links. Until then everything is compiled again at each start.",
        "vc4lab boot --help",
        "Delete the folder; vc4lab creates it again with the right permissions. With sudo, set "
        "VC4LAB_CACHE to a folder that belongs to root.",
        Severity.WARNING,
    ),
    Entry(
        "JIT-002",
        "No folder to keep compiled code in",
        "HOME is empty, unset or not a writable folder, and neither XDG_CACHE_HOME nor "
        "VC4LAB_CACHE names another place. Compiled code goes to a private temporary folder, which "
        "is deleted at the end, so the next start compiles everything again.",
        "vc4lab boot --help",
        "Set HOME, or set VC4LAB_CACHE to a folder of your own.",
        Severity.WARNING,
    ),
    Entry(
        "JIT-003",
        "Compiled code could not be kept",
        "The folder for compiled code cannot be written: its disk is full or read-only, or its "
        "name is too long. The program runs as usual; the next start compiles the same code again.",
        "vc4lab boot --help",
        "Make room on that disk, or set VC4LAB_CACHE to a folder that can be written.",
        Severity.WARNING,
    ),
]
