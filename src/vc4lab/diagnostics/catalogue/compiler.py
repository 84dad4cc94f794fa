"""Messages about compiled code and where it is kept."""

from __future__ import annotations

from vc4lab.diagnostics.entry import Entry, Severity

ENTRIES = [
    Entry(
        "JIT-001",
        "The cache of compiled code is not used",
        "Compiled programs are kept in ~/.cache/vc4lab (or $VC4LAB_CACHE) and loaded into the "
        "process at the next start. What others may have written is not loaded: the folder, the "
        "folders in it and the files must belong to the user who runs vc4lab, be writable by no "
        "one else, and be no links. Everything is compiled at each start instead.",
        "vc4lab boot --help",
        "Delete the folder: it is made anew, for you alone. With sudo, set VC4LAB_CACHE to a "
        "folder of root's.",
        Severity.WARNING,
    ),
    Entry(
        "JIT-002",
        "There is no home folder to keep compiled code in",
        "HOME is empty, not set, or no folder that can be written, and neither XDG_CACHE_HOME nor "
        "VC4LAB_CACHE says where else compiled programs may be kept. They are kept in a private "
        "temporary folder and deleted when the program ends.",
        "vc4lab boot --help",
        "Set HOME, or VC4LAB_CACHE to a folder of your own.",
        Severity.WARNING,
    ),
]
