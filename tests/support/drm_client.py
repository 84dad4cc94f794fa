"""A small DRM client in plain Python: what tests run under the supervisor.

`run_client` takes a function, and runs its source in a process of its own in front of a device;
the names of this file below `CLIENT` are there, too. A client that fails exits with 1 and its
traceback is shown.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vc4lab.drm.device.device import DrmDevice

CLIENT = '''
import array, ctypes, errno, fcntl, mmap, os, select, signal, socket, stat, struct, sys
import threading, time

READ, WRITE = 2, 1

def number(nr, size, direction=3):
    return direction << 30 | size << 16 | 0x64 << 8 | nr

def ioctl(fd, nr, fmt, *values, direction=3):
    """The structure after the call, as a tuple."""
    data = bytearray(struct.pack("<" + fmt, *values))
    fcntl.ioctl(fd, number(nr, len(data), direction), data)
    return struct.unpack("<" + fmt, data)

def refused(fd, nr, fmt, *values, direction=3):
    """The errno that a call gives, 0 for none."""
    try:
        ioctl(fd, nr, fmt, *values, direction=direction)
    except OSError as error:
        return error.errno
    return 0

def open_card(name="card0", flags=os.O_RDWR | os.O_CLOEXEC):
    return os.open("/dev/dri/" + name, flags)

def create_bo(fd, size):
    return ioctl(fd, 0x43, "IIII", size, 0, 0, 0)[2]

def map_bo(fd, handle, size):
    offset = ioctl(fd, 0x44, "IIQ", handle, 0, 0)[2]
    return mmap.mmap(fd, size, offset=offset)

def dumb(fd, width, height, bpp=32):
    """handle, pitch, size"""
    return ioctl(fd, 0xB2, "IIIIIIQ", height, width, bpp, 0, 0, 0, 0)[4:]

def dumb_of(fd, width, height, bpp, flags, pitch=0, size=0):
    """handle, pitch, size"""
    return ioctl(fd, 0xB2, "IIIIIIQ", height, width, bpp, flags, 0, pitch, size)[4:]

def get_param(fd, param):
    return ioctl(fd, 0x40, "IIQ", param, 0, 0)[2]

def set_param(fd, param, value):
    ioctl(fd, 0x41, "IIQ", param, 0, value)

def export(fd, handle):
    return ioctl(fd, 0x2D, "IIi", handle, os.O_CLOEXEC | os.O_RDWR, 0)[2]

def imported(fd, dma_buf):
    return ioctl(fd, 0x2E, "IIi", 0, 0, dma_buf)[0]

def map_dumb(fd, handle, size):
    return mmap.mmap(fd, size, offset=ioctl(fd, 0xB3, "IIQ", handle, 0, 0)[2])

def buffer(data):
    """Memory whose address can be given to the kernel, and the address."""
    held = ctypes.create_string_buffer(bytes(data), len(data))
    return held, ctypes.addressof(held)

def resources(fd):
    """crtc, connector, encoder"""
    held, place = buffer(bytes(12))
    ioctl(fd, 0xA0, "QQQQIIIIIIII", 0, place, place + 4, place + 8, 0, 1, 1, 1, 0, 0, 0, 0)
    return struct.unpack("<III", held.raw)

MODE = "IHHHHHHHHHHIII32s"

def modes(fd, connector):
    held, place = buffer(bytes(68 * 32))
    out = ioctl(fd, 0xA7, "QQQQIIIIIIIIIIII", 0, place, 0, 0, 32, *[0] * 3, connector, *[0] * 7)
    return [struct.unpack_from("<" + MODE, held.raw, 68 * n) for n in range(out[4])]

def set_crtc(fd, crtc, connector, fb, mode):
    held, place = buffer(struct.pack("<I", connector))
    ioctl(fd, 0xA2, "QIIIIIII" + MODE, place, 1, crtc, fb, 0, 0, 0, 1, *mode)

def add_fb(fd, width, height, pitch, handle, bpp=32, depth=24):
    return ioctl(fd, 0xAE, "IIIIIII", 0, width, height, pitch, bpp, depth, handle)[0]

def flip(fd, crtc, fb, user=0, flags=1):
    ioctl(fd, 0xB0, "IIIIQ", crtc, fb, flags, 0, user)

def events(fd):
    """(type, user, sequence, crtc) of a read."""
    data = os.read(fd, 1024)
    return [(e[0], e[2], e[5], e[6]) for e in struct.iter_unpack("<IIQIIII", data)]

def show(fd, width=640, height=480):
    """Set the mode with a fresh dumb buffer; crtc, fb, map, pitch."""
    crtc, connector, encoder = resources(fd)
    mode = next(m for m in modes(fd, connector) if (m[1], m[6]) == (width, height))
    handle, pitch, size = dumb(fd, width, height)
    fb = add_fb(fd, width, height, pitch, handle)
    view = map_dumb(fd, handle, size)
    set_crtc(fd, crtc, connector, fb, mode)
    return crtc, fb, view, pitch
'''


def run_client(
    device: DrmDevice, client: Callable[[], None], *arguments: str, expect: int | None = 0, helpers: str = ""
) -> str:
    """Run a function's source under the device; what it printed."""
    source = textwrap.dedent(inspect.getsource(client))
    text = f"{CLIENT}\n{helpers}\n{source}\n\n{client.__name__}()\n"
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "client.py")
        script.write_text(text)
        output = Path(folder, "output")
        with output.open("wb") as file:
            code = device.run(
                [sys.executable, "-S", str(script), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        shown = output.read_text(errors="replace")
    assert expect is None or code == expect, f"exit code {code}\n{shown}"
    return shown
