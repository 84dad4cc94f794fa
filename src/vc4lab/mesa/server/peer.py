"""What is known of the program at the other end of a socket."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

PROC = Path("/proc")
GLX = b"/libGLX_mesa.so"
"""Mesa's GLX, which libGL loads when a program calls it for a display."""
_CREDENTIALS = struct.Struct("=iII")


def uses_glx(connection: socket.socket) -> bool:
    """Whether the peer's process has Mesa's GLX loaded; False where that cannot be seen.

    With shared memory, Mesa 22.3 asks the X server for the pixels of a window as soon as it needs a
    front buffer in GLX: of a visual with one buffer always. Of a window that is not mapped, or
    partly outside of the screen, the answer is the error BadMatch, which ends the program. With
    data inline it does not ask (virgl_vtest_winsys_resource_create).
    """
    try:
        data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        process, _, _ = _CREDENTIALS.unpack(data)
        return GLX in (PROC / str(process) / "maps").read_bytes()
    except (OSError, struct.error):
        return False
