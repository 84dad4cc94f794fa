"""A separate process: creates netlink sockets for device events in its own network namespace.

Run as ``python -I -S uevent_hub.py SOCKET``; imports nothing of vc4lab. Over the socket: ``S`` and
a type, answered with a new socket; ``E`` and a message for all of them. Programs with such a
socket hear what is sent here, and nothing of the host. It ends when the other end is closed.
"""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct
import sys

_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_EVENTS = 15
_UDEV_GROUP = 2
_ROOM = 65536


def main() -> int:
    """Serve until the other end is closed; 1 if there can be no such network."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(_NEW_NETWORK) and library.unshare(_NEW_USER | _NEW_NETWORK):
        return 1
    out = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _EVENTS)
    while data := connection.recv(_ROOM):
        if data[:1] == b"S":
            (kind,) = struct.unpack("<I", data[1:])
            with socket.socket(socket.AF_NETLINK, kind, _EVENTS) as made:
                socket.send_fds(connection, [b"S"], [made.fileno()])
        else:
            with contextlib.suppress(OSError):  # there is no listener
                out.sendto(data[1:], (0, _UDEV_GROUP))
    return 0


if __name__ == "__main__":
    sys.exit(main())
