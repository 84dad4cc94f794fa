"""A small tree of files in front of the host's own: directories, text files, links, device nodes.

It lies on disk too, so that opened directories and files are real ones. Directories are either
whole (what is not in them does not exist) or lie over the host's (other names are the host's).
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from vc4lab.temporary import TemporaryFolder

MAX_LINKS = 40
MAX_TEXT = 4096
"""So much of a file that programs write is read."""


DETACHED = Path(__file__).with_name("detached.py")
_PATIENCE = 10.0
_PATH = getattr(os, "O_PATH", 0)
_FOLDER = _PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass
class Node:
    """One entry. Exactly one of `text`, `link`, `device` is set, or it is a directory."""

    path: str
    text: str | None = None
    link: str | None = None
    device: str | None = None
    """Name of the device that opens here."""
    number: tuple[int, int] = (0, 0)
    """A device's major and minor."""
    over_host: bool = False
    is_writable: bool = False
    """Whether programs may write into a text file."""
    mode: int = 0o666
    """A device's, as programs see and change it."""
    owner: tuple[int, int] = (0, 0)
    """A device's user and group."""
    children: dict[str, Node] = field(default_factory=dict)

    @property
    def is_directory(self) -> bool:
        return self.text is None and self.link is None and self.device is None


class HostPath(str):
    """A path that is the host's own."""


class Tree:
    """Nodes by path, and their likeness on disk below `root`."""

    def __init__(self) -> None:
        self.top = Node("/", over_host=True)
        self.root = ""
        self._folder: TemporaryFolder | None = None
        self._top = -1
        """A descriptor of that folder."""
        self._detached: int | None = None
        """One of it as a mount of its own; -1: not possible, None: not needed yet."""

    # -- building ----------------------------------------------------------------------------------

    def directory(self, path: str, *, over_host: bool = False) -> Node:
        """Make a directory and those above it; these lie over the host's."""
        node = self.top
        for name in _names(path):
            place = f"{node.path.rstrip('/')}/{name}"
            node = node.children.setdefault(name, Node(place, over_host=True))
        node.over_host = over_host
        return node

    def _add(self, node: Node) -> None:
        parent, _, name = node.path.rpartition("/")
        (self.find(parent) or self.directory(parent)).children[name] = node

    def find(self, path: str) -> Node | None:
        """The node at a path without links; None if there is none."""
        node = self.top
        for name in _names(path):
            if name not in node.children:
                return None
            node = node.children[name]
        return node

    def file(self, path: str, text: str, *, is_writable: bool = False) -> None:
        """Add a text file."""
        self._add(Node(path, text=text, is_writable=is_writable))

    def link(self, path: str, target: str) -> None:
        """Add a link to an absolute path; it is stored relative, as in sysfs."""
        self._add(Node(path, link=os.path.relpath(target, os.path.dirname(path))))

    def device(self, path: str, name: str, number: tuple[int, int]) -> None:
        """Add a character device."""
        self._add(Node(path, device=name, number=number))

    # -- on disk -----------------------------------------------------------------------------------

    def write(self) -> None:
        """Lay the tree down in a temporary folder. Raises OSError."""
        memory = "/dev/shm"  # made and removed in no time there
        folder = memory if os.access(memory, os.W_OK | os.X_OK) else None
        self._folder = TemporaryFolder("vc4lab-nodes-", folder)
        self.root = self._folder.path
        self._top = os.open(self.root, _FOLDER)
        self._write(self.top)

    def _write(self, node: Node) -> None:
        place = Path(self.root + node.path)
        if node.link is not None:
            place.symlink_to(node.link)
        elif not node.is_directory:
            place.write_text(node.text or "")
            place.chmod(0o644)
        else:
            place.mkdir(exist_ok=True)
            place.chmod(0o755)  # as in sysfs: also for programs that became other users
            if node.over_host and not os.path.isdir(node.path):
                node.over_host = False  # the host has no such directory
            for child in node.children.values():
                self._write(child)
            if node.over_host:
                self._link_host(node, place)

    def _link_host(self, node: Node, place: Path) -> None:
        """Link to what else is in the host's directory: there the kernel goes on, in a program's root."""
        try:
            names = os.listdir(node.path)
        except OSError:
            names = []
        for name in names:
            if name not in node.children:
                (place / name).symlink_to(f"{node.path.rstrip('/')}/{name}")

    def open(self, path: str, flags: int, *, detached: bool = False) -> int:
        """A descriptor of what lies on disk for a node's path; this never waits. Raises OSError.

        Programs of the same user can change what lies there. So no link is followed, and of what
        is found only files and directories are opened.

        Parameters
        ----------
        detached
            Of a mount that is part of no directory tree: above the nodes, `..` leads nowhere.
            Raises OSError where there can be none.
        """
        names = _names(path) or ["."]
        folder = os.dup(self._detached_top() if detached else self._top)
        try:
            for name in names[:-1]:
                inner = os.open(name, _FOLDER, dir_fd=folder)
                os.close(folder)
                folder = inner
            wanted = flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            file = os.open(names[-1], wanted, dir_fd=folder)
        finally:
            os.close(folder)
        mode = os.fstat(file).st_mode
        if flags & _PATH or stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            return file
        os.close(file)
        raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))

    def _detached_top(self) -> int:
        """A descriptor of the folder as a mount of its own. Raises OSError (EPERM)."""
        if self._detached is None:
            self._detached = detached_mount(self.root)
        if self._detached < 0:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))
        return self._detached

    def status(self, path: str) -> os.stat_result:
        """Look at what lies on disk for a node's path, links not followed. Raises OSError."""
        file = self.open(path, _PATH)
        try:
            return os.fstat(file)
        finally:
            os.close(file)

    def text_of(self, path: str) -> str:
        """A text file's content: what a program wrote into it, if one did."""
        node = self.find(path)
        if node is None or node.text is None:
            return ""
        if self.root and node.is_writable:
            try:
                file = self.open(path, os.O_RDONLY)
                with open(file, encoding="utf-8", errors="replace") as text:
                    node.text = text.read(MAX_TEXT)
            except OSError:
                pass
        return node.text

    def set_text(self, path: str, text: str) -> None:
        """Change a text file."""
        node = self.find(path)
        if node is None or node.text is None:
            return
        node.text = text
        if self.root:
            with open(self.open(path, os.O_WRONLY | os.O_TRUNC), "w", encoding="utf-8") as file:
                file.write(text)

    def remove(self) -> None:
        """Take the files away again."""
        if self._folder is not None:
            os.close(self._top)
            if self._detached is not None and self._detached >= 0:
                os.close(self._detached)
            self._detached = None
            self._folder.remove()
            self._folder, self.root = None, ""

    # -- looking up --------------------------------------------------------------------------------

    def virtual(self, place: str) -> str:
        """The path that a file below `root` stands for; other paths as they are."""
        if self.root and (place == self.root or place.startswith(self.root + "/")):
            return place[len(self.root) :] or "/"
        return place

    def resolve(self, path: str, *, follow: bool = True) -> Node | HostPath | None:
        """Find what an absolute path leads to.

        A node, the host's path (with all links of the tree followed), or None for what does not
        exist. `follow`: also follow a link at the end. A directory over the host's counts as the
        host's unless something of it has to be listed: see `is_listed`.
        """
        names = _names(path)
        node, done, links = self.top, list[str](), 0
        trail = [self.top]
        while names:
            name = names.pop(0)
            if name == "..":
                if len(trail) > 1:
                    trail.pop()
                    done.pop()
                node = trail[-1]
                continue
            child = node.children.get(name) if node.is_directory else None
            if child is None:
                if not node.is_directory or not node.over_host:
                    return None
                return HostPath("/" + "/".join([*done, name, *names]))
            if child.link is not None and (names or follow):
                links += 1
                if links > MAX_LINKS:
                    return None
                names = child.link.split("/") + names
                continue
            node = child
            trail.append(node)
            done.append(name)
        return node

    def is_listed(self, node: Node) -> bool:
        """Whether opening the directory must show or lead to the tree's nodes."""
        return not node.over_host or node.path in ("/sys/class", "/sys/bus", "/sys/dev/char")


def detached_mount(folder: str) -> int:
    """A descriptor of a folder as a mount that is part of no directory tree; -1: not possible."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        ours.settimeout(_PATIENCE)
        try:
            with subprocess.Popen(
                [sys.executable, "-I", "-S", str(DETACHED), str(theirs.fileno()), folder],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True,
            ):  # fmt: skip
                _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
        except OSError:
            return -1
    return descriptors[0] if descriptors else -1


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]
