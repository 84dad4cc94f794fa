"""Files of another architecture, shown to programs under qemu-user as if they were installed.

Debian's arm64 libraries ask for /usr/lib/aarch64-linux-gnu/… and /usr/share/…; on disk they lie in
a folder of the user's. Where only they can be meant, the folder's files are shown; everywhere else
the host's, and the folder's where the host has none.
"""

from __future__ import annotations

import os
import posixpath
from pathlib import Path

from vc4lab.drm.processes.targets import Task

EMULATOR = "qemu-aarch64"
"""Programs whose executable's name begins so see the folder."""
OWN = ("/usr/lib/aarch64-linux-gnu", "/usr/lib/ld-linux-aarch64.so.1", "/etc/ld.so.preload")
"""Here the folder's files come first."""
SHARED = ("/usr", "/etc", "/opt", "/var/games", "/var/lib")
"""Here they come where the host has none."""
_MERGED = ("/lib", "/bin", "/sbin")
"""Folders that are links into /usr; in the folder there is only that."""


class ForeignTree:
    """The folder `root`, in which /lib, /bin and /sbin lie below usr."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)

    def find(self, caller: Task, path: str) -> str | None:
        """The file that an absolute path means for this caller; None: the host's."""
        path = self.plain(path)
        own = _is_below(path, OWN)
        if not own and not _is_below(path, SHARED):
            return None
        place = self.root + path
        if not os.path.lexists(place) or not self.is_emulated(caller):
            return None
        return place if own or not os.path.lexists(path) else None

    @staticmethod
    def plain(path: str) -> str:
        """Without dots, and below /usr what lies there."""
        path = posixpath.normpath(path)
        if path.startswith("//"):
            path = path[1:]
        return "/usr" + path if _is_below(path, _MERGED) else path

    @staticmethod
    def is_emulated(caller: Task) -> bool:
        """Whether the caller is a program under qemu."""
        return caller.executable.rpartition("/")[2].startswith(EMULATOR)


def _is_below(path: str, places: tuple[str, ...]) -> bool:
    return any(path == place or path.startswith(place + "/") for place in places)
