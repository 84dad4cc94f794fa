"""Temporary folders that do not stay for ever, also where the process is killed.

A folder is locked as long as its process lives; the kernel takes the lock away with the process.
Each new one first sweeps those of the same kind away that belong to the user and are locked by no
process any more.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time

_NEW = "vc4lab-new-"
"""How the name of a folder begins before it is locked; it is renamed then, so that no other start
takes it for an abandoned one."""
_LOCKED = "of-"
"""Follows the prefix in names of folders that are locked; there are others from before."""
_UNFINISHED = 3600.0
"""Seconds after which nothing is going to rename a folder any more."""
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class TemporaryFolder:
    """An empty folder that only the user can enter. Raises OSError.

    Parameters
    ----------
    prefix
        How its name begins; one per kind.
    parent
        Where it is made; None: where temporary files belong.

    Attributes
    ----------
    path
        The folder.
    """

    def __init__(self, prefix: str, parent: str | None = None) -> None:
        parent = parent or tempfile.gettempdir()
        sweep(prefix, parent)
        new = tempfile.mkdtemp(prefix=_NEW, dir=parent)
        self._descriptor = os.open(new, _FLAGS)
        with contextlib.suppress(OSError):  # a file system without locks: nothing is swept there
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        name = f"{prefix}{_LOCKED}{os.getpid()}-{os.path.basename(new)[len(_NEW) :]}"
        self.path = os.path.join(parent, name)
        os.rename(new, self.path)

    def remove(self) -> None:
        """Take it away with all that is in it; harmless a second time."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def sweep(prefix: str, parent: str) -> None:
    """Remove the folders of this kind whose processes are gone; only those of this user."""
    try:
        with os.scandir(parent) as entries:
            begins = prefix + _LOCKED, _NEW
            names = [entry.name for entry in entries if entry.name.startswith(begins)]
    except OSError:
        return
    for name in names:
        with contextlib.suppress(OSError):
            _sweep_one(os.path.join(parent, name), is_new=name.startswith(_NEW))


def _sweep_one(path: str, is_new: bool) -> None:
    """Raises OSError: it is in use, not a folder, or just gone."""
    descriptor = os.open(path, _FLAGS)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) != 0o700:
            return
        if is_new and time.time() - status.st_mtime < _UNFINISHED:
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(descriptor)
