"""Finds where a path of a program leads: to a node, to a descriptor, or to something of the host's.

Only nodes are served. All else the kernel opens, with the program's own rights and below its own
root: a path that climbs out of the nodes' folder with `..` leads there by links in that folder.
What is decided here may be outdated when the kernel looks (another thread changes the text): then
the program gets what its own rights allow, which is what it may have anyway.
"""

from __future__ import annotations

import errno
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vc4lab.drm.nodes.tree import HostPath, Node, Tree
from vc4lab.drm.supervisor.answers import Caller, Outcome
from vc4lab.drm.uapi.numbers import AT_FDCWD
from vc4lab.drm.uapi.results import Refused

if TYPE_CHECKING:
    from vc4lab.drm.nodes.foreign import ForeignTree
    from vc4lab.drm.processes.targets import Task

PREFIXES = ("/sys", "/dev/dri", "/dev/input", "/run/udev", "/proc")
"""Absolute paths that begin otherwise are the host's, unless they climb with `..`."""
_STANDARD = {"stdin": "0", "stdout": "1", "stderr": "2"}
_DESCRIPTORS = "/fd/", "/dev/std"


class ForeignFile(str):
    """A file of the folder that programs under qemu see, on disk."""


@dataclass(eq=False)
class Places:
    """The nodes, and what else programs find at paths."""

    tree: Tree
    foreign: ForeignTree | None = None
    """Files that programs under qemu find besides the host's."""

    def absolute(self, caller: Caller, directory: int, path: str) -> tuple[str, bool]:
        """A path from the root on, and whether it begins at a directory of the nodes' on disk."""
        if path.startswith("/"):
            return path, False
        if directory & 0xFFFFFFFF == AT_FDCWD:
            base = caller.directory
        else:
            base = caller.path_of(directory & 0xFFFFFFFF)
        virtual = self.tree.virtual(base)
        return f"{virtual}/{path}", virtual != base

    def locate(
        self,
        caller: Caller,
        path: str,
        *,
        inside: bool = False,
        follow: bool = True,
        writes: bool = False,
        missing: int = errno.ENOENT,
    ) -> Node | ForeignFile | Outcome:
        """PROCEED for what is no node. The path is absolute. `writes`: it may be changed.

        Raises Refused with `missing` for what does not exist in the tree.
        """
        if not path.startswith(PREFIXES) and not ("/.." in path or inside):
            first = path.lstrip("/")  # // and /. are rare
            if not path.startswith(("//", "/./")) or not first.startswith(("sys", "dev", "./")):
                return self._foreign(caller, path, writes)
        found = self.tree.resolve(path, follow=follow)
        if isinstance(found, HostPath):
            return Outcome.PROCEED
        if isinstance(found, Node) and found.is_directory and not self.tree.is_listed(found):
            return Outcome.PROCEED
        if found is None:
            raise Refused(missing)
        return found

    def _foreign(self, caller: Caller, path: str, writes: bool) -> ForeignFile | Outcome:
        if self.foreign is None or writes:
            return Outcome.PROCEED
        place = self.foreign.find(caller, path)
        if place is None or not caller.shares_root:
            return Outcome.PROCEED
        return ForeignFile(place)

    # -- descriptors -------------------------------------------------------------------------------

    @staticmethod
    def descriptor(caller: Caller, path: str) -> tuple[Task, int] | None:
        """Which descriptor of which thread an absolute path names, as /dev/fd/3 does."""
        if not any(part in path for part in _DESCRIPTORS):
            return None
        names = posixpath.normpath(path).strip("/").split("/")
        while names[:3] in (["proc", "self", "root"], ["proc", "thread-self", "root"]):
            del names[:3]
        if not names:
            return None
        if names[:2] == ["dev", "fd"]:
            names[:2] = ["proc", "self", "fd"]
        elif names[0] == "dev" and len(names) == 2 and names[1] in _STANDARD:
            names = ["proc", "self", "fd", _STANDARD[names[1]]]
        if names[0] != "proc" or len(names) not in (4, 6) or names[-2] != "fd":
            return None
        if len(names) == 6 and names[2] != "task":
            return None
        whose = names[3] if len(names) == 6 else names[1]
        if not names[-1].isdecimal() or not names[-1].isascii():
            return None
        if whose in ("self", "thread-self"):
            return caller, int(names[-1])
        if not whose.isdecimal() or not whose.isascii():
            return None
        return caller.other(int(whose)), int(names[-1])
