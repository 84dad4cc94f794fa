"""A separate process: makes a mount of a folder that is part of no directory tree.

Run as ``python -I -S detached.py SOCKET FOLDER``; imports nothing of vc4lab. Over the socket comes
one message: ``M`` with a descriptor of the mount, or ``E``. Above that folder, `..` leads nowhere:
so its directories can be given to programs in other roots.
"""

from __future__ import annotations

import ctypes
import os
import socket
import sys

_NEW_USER, _NEW_MOUNTS = 0x10000000, 0x20000
_OPEN_TREE = 428
_HERE, _CLONE, _CLOSE_ON_EXEC = -100, 1, 0o2000000


def main() -> int:
    """Answer once."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    library = ctypes.CDLL(None, use_errno=True)
    folder = os.fsencode(sys.argv[2])
    made = -1
    if library.unshare(_NEW_MOUNTS) == 0 or library.unshare(_NEW_USER | _NEW_MOUNTS) == 0:
        made = library.syscall(_OPEN_TREE, _HERE, folder, _CLONE | _CLOSE_ON_EXEC)
    if made < 0:
        connection.send(b"E")
        return 1
    socket.send_fds(connection, [b"M"], [made])
    return 0


if __name__ == "__main__":
    sys.exit(main())
