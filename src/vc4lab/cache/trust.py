"""Decides what of the cache may be used: what no one else can have written.

Compiled code and downloaded programs are executed with the user's rights, roots and saved states
are run as they are. So the folder, each folder on the way and each file belong to the user and may
be written by no one else, and in no folder above can others put another one in its place. Single
files are opened by descriptor, without following links, and what was opened is checked; trees are
walked before something in them is started. This is one rule for all of the cache; what does not
keep it is not used, with a message that names it.
"""

from __future__ import annotations

import errno
import functools
import os
import stat
from pathlib import Path

from vc4lab.cache.place import cache_folder
from vc4lab.files import Unusable

OTHERS = stat.S_IWGRP | stat.S_IWOTH
CODE = "CLI-007"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Untrusted(Unusable):
    """A path that others may have written to; `strerror` says why."""

    def __str__(self) -> str:
        """A sentence with the code, for the user."""
        return f"{CODE}: {self.filename} {self.strerror}: others may have written it, so it is not used"


def distrust(status: os.stat_result, *, root_too: bool = False) -> str | None:
    """Why something is not to be trusted; None: it is. root_too: root's files are trusted, too."""
    mine = (os.geteuid(), 0) if root_too else (os.geteuid(),)
    if status.st_uid not in mine:
        return f"belongs to user {status.st_uid}, not to you"
    if status.st_mode & OTHERS and not stat.S_ISLNK(status.st_mode):
        return f"is writable by others (its mode is {stat.S_IMODE(status.st_mode):04o})"
    return None


def open_own(path: str, flags: int, kind: int, parent: int | None = None) -> tuple[int, int]:
    """Descriptor and size of a trusted file of this kind (`stat.S_IFREG`). Raises OSError."""
    try:
        descriptor = os.open(path, flags, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise Untrusted("is a link, or not a folder", path) from None
        raise
    status = os.fstat(descriptor)
    if stat.S_IFMT(status.st_mode) != kind:
        why: str | None = "is not a regular file"
    else:
        why = distrust(status)
    if why is None:
        return descriptor, status.st_size
    os.close(descriptor)
    raise Untrusted(why, path)


def open_folder(path: str, parent: int | None = None) -> int:
    """Descriptor of a trusted folder. Raises OSError."""
    return open_own(path, _FOLDER, stat.S_IFDIR, parent)[0]


def check_way(path: Path) -> None:
    """Whether a path in the cache, and each folder on the way to it, is trusted, as far as it
    exists. Raises Untrusted.

    The last part may be a link, whose target is the user's or root's.
    """
    root = cache_folder()
    if root is not None:
        _check_above(root)
    above = [one for one in path.parents if root is not None and one.is_relative_to(root)]
    for one in [*reversed(above), path]:
        try:
            status = os.lstat(one)
            why = distrust(status)
            if why is None and stat.S_ISLNK(status.st_mode):
                target = distrust(os.stat(one), root_too=True)
                why = target and f"leads to a file that {target}"
                if one != path:
                    why = "is a link"
        except (FileNotFoundError, NotADirectoryError):
            return
        if why is not None:
            raise Untrusted(why, one)


@functools.cache
def _check_above(root: Path) -> None:
    """Whether no one else can put another folder in the place of the cache's: by the folders that
    lead there, by name and as links in it resolve. Once in a process. Raises Untrusted.
    """
    for one in sorted({*root.parents, *Path(os.path.realpath(root)).parents}):
        try:
            why = _replaceable(os.lstat(one))
        except OSError:
            continue
        if why is not None:
            raise Untrusted(f"leads to the cache and {why}", one)


def _replaceable(status: os.stat_result) -> str | None:
    """Why others could rename what is in a folder, or a link to it. In a folder as /tmp (sticky) they
    cannot; a group with the number of the user is that user's only, as Debian makes them."""
    if status.st_uid not in (os.geteuid(), 0, _nobody()):
        return f"belongs to user {status.st_uid}"
    if stat.S_ISLNK(status.st_mode) or status.st_mode & stat.S_ISVTX:
        return None
    own_group = status.st_gid == os.geteuid() == os.getegid() and not status.st_mode & stat.S_IWOTH
    if status.st_mode & OTHERS and not own_group:
        return f"is writable by others (its mode is {stat.S_IMODE(status.st_mode):04o})"
    return None


@functools.cache
def _nobody() -> int:
    """The number that stands for users without one in this user namespace, root's as well."""
    try:
        with open("/proc/sys/kernel/overflowuid", encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


@functools.cache
def check_tree(folder: Path) -> None:
    """Whether everything in a folder is trusted, once in a process. Raises Untrusted, OSError.

    Nine thousand files take 40 ms.
    """
    check_way(folder)
    if not folder.is_dir():
        return
    todo = [os.fspath(folder)]
    while todo:
        with os.scandir(todo.pop()) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                why = distrust(status)
                if why is not None:
                    raise Untrusted(why, entry.path)
                if stat.S_ISDIR(status.st_mode):
                    todo.append(entry.path)
